"""Finds phrases that may name a concept: consecutive words without punctuation or stop words between them.

Also parses chunks into sentences with their phrases.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from octavo.language import languages
from octavo.language.insights import ChunkText
from octavo.language.markdown_segments import Segment, SegmentKind, blank_markup, split_segments, split_sentences
from octavo.language.vocabulary import MAX_LETTERS, STOPWORDS, TOKEN, WORD, fold, is_content

MAX_WORDS = 3
_POSSESSIVE = re.compile(r"['\u2019]s$")

Stems = tuple[str, ...]


@dataclass(slots=True)
class PhraseCount:
    """The number of occurrences of a phrase, and its spelling.

    `first` is the index of the word sequence in which it occurs first.
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
    for run in (run for text in texts for run in _runs(text, language)) if language else ():
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

    The singular and lower case are preferred, because a capital may only mark the start of a sentence.
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
    """Parse a chunk. `language` is the document's language. If the chunk is in another language, that one is used."""
    text = blank_markup(chunk.content)
    parts = list(split_segments(chunk.content))
    own = languages.confirm_language(text, language)
    known = own if own in STOPWORDS else None
    return ParsedChunk(
        chunk=chunk,
        text=text,
        language=own,
        segments=parts,
        sentences=list(_sentences(text, parts)),
        phrases=find_phrases((text[part.start : part.end] for part in parts), known),
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
    return find_phrases([blank_markup(text)], language if language in STOPWORDS else None).stems
