"""Finds phrases and counts them, to choose the concepts and themes of chunks and the topics of a document.

A phrase is a sequence of words, without punctuation or stop words between them, that may name a concept.

No language model is used, because it would take ten times as long as embedding the chunk. The weight of a phrase
depends on its words. A word weighs more if it is frequent in the chunk, rare in English, and present in few chunks of
the document. Occurrences inside a longer phrase are not counted, and phrases near the beginning weigh more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, log1p, sqrt
from typing import NamedTuple

from octavo.language import languages
from octavo.language.insights import MAX_CONCEPTS, MAX_THEMES, ChunkText, Concept
from octavo.language.markdown_segments import Segment, SegmentKind, blank_markup, split_segments, split_sentences
from octavo.language.vocabulary import MAX_LETTERS, STOPWORDS, TOKEN, WORD, fold, is_content, rarity

MAX_WORDS = 3
_POSSESSIVE = re.compile(r"['\u2019]s$")

Stems = tuple[str, ...]


@dataclass(slots=True)
class PhraseCount:
    """The number of occurrences of a phrase, and its spelling.

    `first` is the index of the first word sequence that contains it.
    """

    count: int
    first: int
    form: str


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases in a text.

    `runs` is the number of word sequences in which the phrases were found. A stop word or punctuation ends a sequence.
    """

    stems: Counter[str] = field(default_factory=Counter[str])
    seen: dict[Stems, PhraseCount] = field(default_factory=dict[Stems, PhraseCount])
    runs: int = 0


def find_phrases(texts: Iterable[str], language: str | None) -> Phrases:
    """Find the phrases in a text. The result is empty for languages without a list of stop words."""
    stems: Counter[str] = Counter()
    seen: dict[Stems, PhraseCount] = {}
    number = 0
    for run in (run for text in texts for run in _runs(text, language)) if language in STOPWORDS else ():
        run_stems = tuple(fold(word, language) for word in run)
        stems.update(run_stems)
        for start, end in _spans(len(run)):
            if language == "de" and not run[end - 1][0].isupper():
                continue  # German capitalises nouns, and a phrase ends with a noun
            form = " ".join(run[start:end])
            known = seen.setdefault(run_stems[start:end], PhraseCount(0, number, form))
            known.count += 1
            if form != known.form:
                known.form = better_form(known.form, form)
        number += 1
    return Phrases(stems, seen, number)


def better_form(one: str, other: str) -> str:
    """Choose the better spelling of a phrase.

    The singular is preferred, and so is lower case, because a capital letter may only mark the start of a sentence.
    """
    return min(one, other, key=lambda form: (len(form), form.swapcase()))


def _runs(text: str, language: str) -> Iterator[Sequence[str]]:
    run: list[str] = []
    for token in TOKEN.findall(text):
        if token[0].isalpha() and len(token) <= MAX_LETTERS and is_content(token, language):
            run.append(_POSSESSIVE.sub("", token))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _spans(length: int) -> Iterator[tuple[int, int]]:
    for start in range(length):
        for end in range(start + 1, min(start + MAX_WORDS, length) + 1):
            yield start, end


def parts_of(phrase: Stems) -> Iterator[Stems]:
    """Yield all shorter phrases that a phrase contains."""
    for start, end in _spans(len(phrase)):
        if end - start < len(phrase):
            yield phrase[start:end]


# Chunks ---------------------------------------------------------------------------------------------------------------


_CLOSING = "\"')]\u201d\u2019\u300d\u300f\uff09"
_ENDING = ".!?\u2026\u3002\uff01\uff1f\uff61"


class Sentence(NamedTuple):
    """A sentence, `content[start:end]` of its chunk. `whole` is true if it ends with sentence punctuation."""

    start: int
    end: int
    words: tuple[str, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """A parsed chunk. `phrases` is empty for languages without a list of stop words."""

    chunk: ChunkText
    text: str
    language: str | None
    segments: Sequence[Segment]
    sentences: Sequence[Sentence]
    phrases: Phrases

    @property
    def stems(self) -> Counter[str]:
        return self.phrases.stems

    @property
    def word_count(self) -> int:
        return sum(len(sentence.words) for sentence in self.sentences)


def parse_chunk(chunk: ChunkText, language: str | None) -> ParsedChunk:
    """Parse a chunk. `language` is the language of the document. The chunk itself can be in another language."""
    text = blank_markup(chunk.content)
    parts = list(split_segments(chunk.content))
    own = languages.confirm_language(text, language)
    return ParsedChunk(
        chunk=chunk,
        text=text,
        language=own,
        segments=parts,
        sentences=list(_sentences(text, parts)),
        phrases=find_phrases((text[part.start : part.end] for part in parts), own),
    )


def _sentences(text: str, parts: Sequence[Segment]) -> Iterator[Sentence]:
    for part in parts:
        if part.part in {SegmentKind.PARAGRAPH, SegmentKind.ITEM}:
            for start, end in split_sentences(text, part.start, part.end):
                words = tuple(word.lower() for word in WORD.findall(text, start, end) if len(word) <= MAX_LETTERS)
                whole = text[start:end].rstrip(_CLOSING).endswith(tuple(_ENDING))
                yield Sentence(start, end, words, whole)


def heading_stems(text: str, language: str | None) -> Counter[str]:
    """Count the stems of the content words in a heading."""
    return find_phrases([blank_markup(text)], language).stems


# Half of a word's weight does not depend on the other chunks. Otherwise, a word that all chunks contain, such as the
# subject of the document, would have almost no weight.
_OWN = 0.5
# An exponent below one, so that a frequently repeated word does not outweigh all others.
_REPEATED = 0.7
_MAX_CHARACTERS = 80
NamedConcepts = Sequence[tuple[Stems, Concept]]

_UNDER_HEADING = 1.5
_LONGEST_THEME = 80


class WordWeights:
    """The weights of a document's words. A word that occurs in few chunks weighs more."""

    def __init__(self, chunks: Sequence[Phrases], language: str | None) -> None:
        self._is_english = language == "en"
        self._count = len(chunks)
        self._chunks_with: Counter[str] = Counter(stem for phrases in chunks for stem in phrases.stems)

    def weigh(self, stem: str) -> float:
        scarce = log((1 + self._count) / max(self._chunks_with[stem], 1)) / log(1 + self._count)
        return (rarity(stem) ** 2 if self._is_english else 1) * (_OWN + (1 - _OWN) * scarce)


def score_phrases(phrases: Phrases, weights: WordWeights) -> dict[Stems, float]:
    """Score each phrase by its words. Occurrences inside a longer phrase are not counted."""
    inside: Counter[Stems] = Counter()
    for phrase, seen in phrases.seen.items():
        for part in parts_of(phrase):
            inside[part] = max(inside[part], seen.count)
    words = {stem: weights.weigh(stem) * log(1 + count) for stem, count in phrases.stems.items()}
    return {
        phrase: alone**_REPEATED
        * sum(words[stem] for stem in phrase)
        / sqrt(len(phrase))
        / (1 + seen.first / phrases.runs)
        for phrase, seen in phrases.seen.items()
        if (alone := seen.count - inside[phrase]) > 0 and len(seen.form) <= _MAX_CHARACTERS
    }


def choose_distinct(scores: Mapping[Stems, float], most: int, *, apart: bool = False) -> list[Stems]:
    """Return the best phrases, without those that share most of their words with a better phrase.

    If `apart` is true, longer phrases that contain a better phrase are also left out.
    """
    size = min if apart else max
    chosen: list[Stems] = []
    for phrase in sorted(scores, key=lambda phrase: (-scores[phrase], phrase)):
        own = {*phrase}
        if not any(own <= {*other} or 2 * len(own & {*other}) > size(len(own), len(other)) for other in chosen):
            chosen.append(phrase)
        if len(chosen) == most:
            break
    return chosen


def name_concepts(phrases: Phrases, scores: Mapping[Stems, float]) -> NamedConcepts:
    """Choose the most important phrases of a chunk as its concepts. The first one has an importance of 1."""
    chosen = choose_distinct(scores, MAX_CONCEPTS)
    best = scores[chosen[0]] if chosen else 1.0
    return [
        (phrase, Concept(text=phrases.seen[phrase].form, importance=round(scores[phrase] / best, 3)))
        for phrase in chosen
        if best > 0
    ]


class Topics:
    """The concepts of a whole document. The weight of a concept is the sum of its importance in all chunks."""

    def __init__(self, chunks: Sequence[NamedConcepts]) -> None:
        self._weights: Counter[Stems] = Counter()
        self._chunks_with: Counter[Stems] = Counter()
        self._forms: dict[Stems, str] = {}
        for named in chunks:
            for phrase, concept in named:
                self._weights[phrase] += concept.importance  # pyright: ignore[reportArgumentType] - counters add floats
                self._chunks_with[phrase] += 1
                self._forms[phrase] = better_form(self._forms.get(phrase, concept.text), concept.text)

    def weigh(self, named: NamedConcepts) -> float:
        """Return how important these concepts are in the whole document."""
        return sum(concept.importance * log1p(self._weights[phrase]) for phrase, concept in named)

    def word_weights(self) -> dict[str, float]:
        """Return the weight of each word in the whole document."""
        weights: dict[str, float] = {}
        for phrase, weight in self._weights.items():
            for stem in phrase:
                weights[stem] = weights.get(stem, 0.0) + weight
        return {stem: log1p(weight) for stem, weight in weights.items()}

    def themes(self, parsed: ParsedChunk, named: NamedConcepts) -> list[str]:
        """Return the themes of a chunk: those of its concepts that are most important in the whole document.

        Concepts that also occur in the chunk's headings get a higher score. If the chunk has no concepts, its headings
        are returned, innermost first.
        """
        if not named:
            return _short(list(reversed(parsed.chunk.headings)), _LONGEST_THEME)[:MAX_THEMES]
        headings = heading_stems(". ".join(parsed.chunk.headings), parsed.language)
        scores = {
            phrase: concept.importance
            * log1p(self._weights[phrase])
            * (_UNDER_HEADING if any(stem in headings for stem in phrase) else 1)
            for phrase, concept in named
        }
        return [self._forms[phrase] for phrase in choose_distinct(scores, MAX_THEMES, apart=True)]

    @property
    def weights(self) -> Mapping[Stems, float]:
        return self._weights

    @property
    def forms(self) -> Mapping[Stems, str]:
        return self._forms


def _short(texts: Sequence[str], most: int) -> list[str]:
    return list(dict.fromkeys(text.strip() for text in texts if text.strip() and len(text.strip()) <= most))
