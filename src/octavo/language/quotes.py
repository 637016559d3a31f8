"""Answers questions and summarises texts with verbatim quotes, and locates a model's quotes in the text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum, log
from typing import TYPE_CHECKING

from octavo.core.languages import ONE_CHARACTER, count_words
from octavo.language import sentences
from octavo.language.insights import Answer, ChunkText, Quote
from octavo.language.languages import ENGLISH, detect_document_language
from octavo.language.markdown_segments import SegmentKind, blank_markup, split_segments
from octavo.language.vocabulary import MAX_LETTERS, STOPWORDS, WORD, root

if TYPE_CHECKING:
    import numpy as np

from octavo.language.concepts import Topics, WordWeights, name_concepts, score_phrases
from octavo.language.importance import has_back_matter_heading, has_core_heading
from octavo.language.parsed_chunks import parse_chunk
from octavo.language.summaries import SELF_REFERENCE, SELF_REFERENCE_BONUS, good_sentences, rate_sentence
from octavo.language.vocabulary import fold

# Returns a unit vector for each text, like `Embedder.embed`.
Embed = Callable[[Sequence[str]], "np.ndarray"]

_MAX_QUOTES = 5
# Only the best sentences by words are compared by meaning. Embedding ten takes a few hundredths of a second, and more
# sentences do not find more answers (decision 20).
_MAX_EMBEDDED = 10
# A sentence must contain half of the question's words, or mean nearly the same as the question.
_MIN_SCORE = 0.5
# The similarity of unrelated sentences, and of a question and an answer that uses the same words.
_UNRELATED, _SAME = 0.15, 0.9
_MEANING_ALONE = 0.9
_OF_HEADINGS = 0.5
# A bonus for sentences that contain the figure or definition that the question asks for.
_BONUS = 0.15
_MIN_WORDS = 4
_MARKS = "*_`"
_IDEOGRAPHS = re.compile(f"[{ONE_CHARACTER}]{{2,}}")
_ASKS_FIGURE = re.compile(
    r"\b(when|how (many|much|long|old|far|often)|which year|what (year|date|percentage|number)|wann|wie ?viele?|combien"
    r"|quand|cuándo|cuántos?)\b",
    re.IGNORECASE,
)
_HIRAGANA = re.compile("[\u3040-\u309f]+")
_NUMBER = re.compile(r"\d+")
_FIGURE = re.compile(r"\d")
_ASKS_MEANING = re.compile(
    r"^\W*(what (is|are|does|do)|who (is|are|was)|was (ist|sind|bedeutet)|qu'est)\b", re.IGNORECASE
)
_MEANING = re.compile(
    r"\b(is|are|was|means?|refers? to|called|defined as|known as|stands for|ist|sind|bedeutet|heißt|est|signifie)\b",
    re.IGNORECASE,
)
_ASKS_SUMMARY = re.compile(
    r"\bsummar(y|ies|i[sz]e|i[sz]ing)\b|\b(main|key|most important) (points|ideas|findings|messages)\b|\boverview\b"
    r"|\bwhat (is|are) .{1,60} about\b|\bzusammenfass|\bfasse\b.{1,80}\bzusammen\b|\brésum|\bresum(en|e|ir|o)\b"
    r"|\briassu|\bsamenvat",
    re.IGNORECASE,
)
_UNDER_CORE = 1.3
# Two sentences are repetitions if they share at least this share of the words of the shorter one.
_SAME_SHARE = 0.6
_WORD = re.compile(r"\S+")
MIN_CHARACTERS = 3


@dataclass(frozen=True, slots=True)
class _Candidate:
    chunk: int
    start: int
    end: int
    text: str
    words: frozenset[str]
    around: frozenset[str]


def answer(question: str, chunks: Sequence[ChunkText], embed: Embed | None = None, most: int = _MAX_QUOTES) -> Answer:
    """Answer a question with quotes, best first.

    With `embed`, paraphrases are found too. If it is None, only words are compared.
    """
    language = detect_document_language([*(chunk.content for chunk in chunks), question]) or ENGLISH
    keys = _keys(question, language) or _keys(question, None)
    candidates = [one for place, chunk in enumerate(chunks) for one in _candidates(place, chunk, language)]
    by_words = _score_words(question, keys, candidates)
    order = sorted(range(len(candidates)), key=lambda place: -by_words[place])
    scores = {place: by_words[place] for place in order}
    if embed and candidates:
        looked_at = order[:_MAX_EMBEDDED]
        vectors = embed([question, *(candidates[place].text for place in looked_at)])
        for place, similarity in zip(looked_at, vectors[1:] @ vectors[0], strict=True):
            scores[place] = _join(by_words[place], float(similarity))
    best = sorted((place for place in order if scores[place] >= _MIN_SCORE), key=lambda place: -scores[place])
    unique = {candidates[place].text: place for place in reversed(best)}  # a repeated sentence is quoted once
    chosen = [place for place in best if unique[candidates[place].text] == place][:most]
    return Answer(quotes=[_quote(candidates[place], scores[place], chunks) for place in chosen])


def _candidates(place: int, chunk: ChunkText, language: str | None) -> Iterator[_Candidate]:
    text = blank_markup(chunk.content)
    around = _keys(" ".join(chunk.headings), language)
    for part in split_segments(chunk.content):
        rows = (
            [(part.start, part.end)]
            if part.part is SegmentKind.CELLS
            else sentences.split_sentences(text, part.start, part.end)
        )
        for start, end in rows if part.part is not SegmentKind.HEADING else ():
            words = _keys(text[start:end], language)
            if words and (part.part is SegmentKind.CELLS or count_words(text[start:end]) >= _MIN_WORDS):
                yield _Candidate(place, start, end, text[start:end], words, around)


def _score_words(question: str, keys: frozenset[str], candidates: Sequence[_Candidate]) -> list[float]:
    """Score each sentence by the share of the question's words in it.

    Rare words count more. Words that are only in the headings count half.
    """
    having = Counter(word for one in candidates for word in one.words & keys)
    weights = {word: log(1 + len(candidates) / (1 + having[word])) for word in keys}
    total = fsum(weights.values()) or 1.0
    wanted = _FIGURE if _ASKS_FIGURE.search(question) else _MEANING if _ASKS_MEANING.search(question) else None
    scores: list[float] = []
    for one in candidates:
        inside = fsum(weights[word] for word in one.words & keys)
        above = fsum(weights[word] for word in one.around & keys - one.words)
        bonus = _BONUS if wanted and wanted.search(one.text) else 0.0
        scores.append((inside + _OF_HEADINGS * above) / total * (1 + bonus) if inside else 0.0)
    return scores


def _join(by_words: float, similarity: float) -> float:
    """Combine both scores. Words count twice as much as meaning, but meaning alone can score nearly as high as both."""
    by_meaning = min(max((similarity - _UNRELATED) / (_SAME - _UNRELATED), 0.0), 1.0)
    return max((2 * by_words + by_meaning) / 3, _MEANING_ALONE * by_meaning)


def _keys(text: str, language: str | None) -> frozenset[str]:
    """The stems that are compared between texts. In scripts without spaces, pairs of characters are used instead."""
    grammar = STOPWORDS.get(language or "", frozenset())
    words = {word.lower() for word in WORD.findall(_IDEOGRAPHS.sub(" ", text)) if len(word) <= MAX_LETTERS} - grammar
    pairs = {run[place : place + 2] for run in _IDEOGRAPHS.findall(text) for place in range(len(run) - 1)}
    pairs = {pair for pair in pairs if not _HIRAGANA.fullmatch(pair)}  # pairs of hiragana are Japanese grammar
    numbers = set(_NUMBER.findall(text))
    return frozenset({root(word) if language == "en" else word for word in words} | pairs | numbers)


def _quote(candidate: _Candidate, score: float, chunks: Sequence[ChunkText]) -> Quote:
    """Extend a sentence by the markup directly around it, so that bold text stays bold."""
    content = chunks[candidate.chunk].content
    start, end = candidate.start, candidate.end
    while start and content[start - 1] in _MARKS:
        start -= 1
    while end < len(content) and content[end] in _MARKS:
        end += 1
    text = content[start:end]
    return Quote(chunk=candidate.chunk, start=start, end=end, text=text, score=round(min(score, 1.0), 3))


@dataclass(frozen=True, slots=True)
class _SummaryCandidate:
    chunk: int
    start: int
    end: int
    text: str
    words: frozenset[str]
    score: float


def asks_summary(question: str) -> bool:
    """Whether a question requests a summary instead of something specific."""
    return bool(_ASKS_SUMMARY.search(question))


def summarise_in_quotes(chunks: Sequence[ChunkText], most: int) -> Answer:
    """The most representative sentences of the chunks, best first, without repetitions."""
    chosen: list[_SummaryCandidate] = []
    for one in sorted(_summary_candidates(chunks), key=lambda one: (-one.score, one.chunk, one.start)):
        if len(chosen) == most:
            break
        if not any(_say_the_same(one.words, other.words) for other in chosen):
            chosen.append(one)
    return Answer(quotes=[_scored_quote(one) for one in chosen])


def _summary_candidates(chunks: Sequence[ChunkText]) -> list[_SummaryCandidate]:
    language = detect_document_language([chunk.content for chunk in chunks])
    parsed_chunks = [parse_chunk(chunk, language) for chunk in chunks]
    weights = WordWeights([parsed.phrases for parsed in parsed_chunks], language)
    word_weights = Topics(
        [name_concepts(one.phrases, score_phrases(one.phrases, weights)) for one in parsed_chunks]
    ).word_weights()
    found: list[_SummaryCandidate] = []
    for place, parsed in enumerate(parsed_chunks):
        good = [] if has_back_matter_heading(parsed.chunk) else good_sentences(parsed)
        for number, one in enumerate(good):
            text = parsed.chunk.content[one.start : one.end]
            score = rate_sentence(one, word_weights, number / len(good), parsed.language)
            score *= (SELF_REFERENCE_BONUS if SELF_REFERENCE.search(text) else 1) * (
                _UNDER_CORE if has_core_heading(parsed.chunk) else 1
            )
            words = frozenset(fold(word, parsed.language) for word in one.words) & word_weights.keys()
            found.append(_SummaryCandidate(place, one.start, one.end, text, words, score))
    return found


def _say_the_same(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > _SAME_SHARE * min(len(one), len(other)) if one and other else one == other


def _scored_quote(one: _SummaryCandidate) -> Quote:
    """Make a quote. Its score has no upper limit, so it is mapped to the range from 0 to 1."""
    return Quote(
        chunk=one.chunk, start=one.start, end=one.end, text=one.text, score=round(one.score / (1 + one.score), 3)
    )


@dataclass(frozen=True, slots=True)
class QuoteMatch:
    """A quote that was found in a text. `text` is `source[start:end]`, not the model's spelling."""

    text: str
    start: int
    end: int


def find_quote(quote: str, source: str) -> QuoteMatch | None:
    """Find the first occurrence of a quote. None if there is none. Only white space may differ."""
    words = _WORD.findall(quote)
    if sum(map(len, words)) < MIN_CHARACTERS:
        return None
    place = re.search(r"\s+".join(map(re.escape, words)), source)
    return QuoteMatch(place.group(), place.start(), place.end()) if place else None
