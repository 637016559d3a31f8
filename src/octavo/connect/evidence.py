"""Chooses the quotes for a connection: the two sentences that have the most words in common.

Also defines the data types of connections: pairs of chunks, and the quotes that support a connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from uuid import UUID

from octavo.connect.english_words import as_root, is_content_word, weigh
from octavo.connect.statements import REMEMBERED_CHUNKS, WORD, Statement, find_names, read_statements
from octavo.core.texts import primary_language
from octavo.core.types import JSON
from octavo.language.languages import ENGLISH, confirm_language
from octavo.language.markdown_segments import SegmentKind, split_segments, split_sentences
from octavo.records.search import Engine, Status

MOST_QUOTED = 400
_QUOTED_SEGMENTS = frozenset({SegmentKind.PARAGRAPH, SegmentKind.ITEM})


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a chunk in any language, with its numbers and the roots of its content words."""

    start: int
    end: int
    roots: frozenset[str]
    figures: frozenset[str]
    weight: float


@dataclass(frozen=True, slots=True)
class SharedQuotes:
    """The most similar sentences of two chunks.

    `overlap` is the share of words that they have in common, from 0 to 1. Rare words count more.
    """

    mine: Span
    theirs: Span
    overlap: float = 0.0
    figures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SentenceCache:
    """Splits each chunk into sentences only once, even if the chunk is in many pairs.

    The sentences of recent chunks are kept in memory for later comparisons.
    """

    _places: dict[UUID, dict[str, list[int]]] = field(default_factory=dict[UUID, dict[str, list[int]]])
    _supported: dict[UUID, bool] = field(default_factory=dict[UUID, bool])

    def sentences(self, chunk: ComparableChunk) -> tuple[Sentence, ...]:
        return _read_sentences(chunk.content)

    def statements(self, chunk: ComparableChunk) -> tuple[Statement, ...]:
        return read_statements(chunk.content)

    def places(self, chunk: ComparableChunk) -> dict[str, list[int]]:
        """Map each word root in a chunk to the indexes of the statements that contain it.

        A root is the part that all forms of a word share.
        """
        if chunk.id not in self._places:
            places = self._places[chunk.id] = {}
            for place, statement in enumerate(self.statements(chunk)):
                for one in statement.roots:
                    places.setdefault(one, []).append(place)
        return self._places[chunk.id]

    def names(self, chunk: ComparableChunk) -> frozenset[str]:
        """Return every name that appears in a sentence of the chunk."""
        return _read_names(chunk.content)

    def is_supported(self, chunk: ComparableChunk) -> bool:
        """Whether the chunk is in English, the only language in which contradictions can be found."""
        if chunk.id not in self._supported:
            may_be = primary_language(chunk.language) in {None, ENGLISH}
            self._supported[chunk.id] = may_be and confirm_language(chunk.content, ENGLISH) == ENGLISH
        return self._supported[chunk.id]


@lru_cache(maxsize=REMEMBERED_CHUNKS)
def _read_names(content: str) -> frozenset[str]:
    sentences = (content[one.start : one.end] for one in _read_sentences(content))
    return frozenset(name for text in sentences for name in find_names(WORD.findall(text)))


@lru_cache(maxsize=REMEMBERED_CHUNKS)
def _read_sentences(content: str) -> tuple[Sentence, ...]:
    return tuple(_sentences_of(content))


def _sentences_of(content: str) -> Iterator[Sentence]:
    for segment in split_segments(content):
        if segment.part in _QUOTED_SEGMENTS:
            for start, end in split_sentences(content, segment.start, segment.end):
                words = [word.lower().replace("\u2019", "'") for word in WORD.findall(content, start, end)]
                roots = frozenset(map(as_root, filter(is_content_word, words)))
                figures = frozenset(word for word in words if len(word) > 1 and word[-1].isdigit())
                yield Sentence(start, end, roots, figures, sum(map(weigh, roots)))


def shared_quotes(source: ComparableChunk, target: ComparableChunk, sentences: SentenceCache) -> SharedQuotes:
    """Return the two sentences that share the most words.

    If no sentences share a word, returns the first sentence of each chunk.
    """
    best, most, overlap = None, 0.0, 0.0
    for mine in sentences.sentences(source):
        for theirs in sentences.sentences(target):
            shared = mine.roots & theirs.roots
            if not shared:
                continue
            weight = sum(map(weigh, shared))
            score = weight * weight / (1 + mine.weight + theirs.weight)
            if score > most:
                best, most, overlap = (mine, theirs), score, weight / (mine.weight + theirs.weight - weight)
    if best is None:
        return SharedQuotes(_first_sentence(source), _first_sentence(target))
    mine, theirs = best
    spans = shorten(source.content, mine.start, mine.end), shorten(target.content, theirs.start, theirs.end)
    return SharedQuotes(*spans, overlap, tuple(sorted(mine.figures & theirs.figures)))


def _first_sentence(chunk: ComparableChunk) -> Span:
    text = chunk.content
    return shorten(text, *next(split_sentences(text), (0, len(text))))


def shorten(text: str, start: int, end: int) -> Span:
    """Return a quote from `start` to `end`, shortened at a word boundary if it is too long."""
    if end - start > MOST_QUOTED:
        space = text.rfind(" ", start + 1, start + MOST_QUOTED)
        end = space if space > 0 else start + MOST_QUOTED
    return Span(start, end)


@dataclass(frozen=True, slots=True)
class ComparableChunk:
    """A chunk with the data that is needed to find connections.

    `polarity` is its tone: a negative or positive number. It is None if the tone is unknown.
    """

    id: UUID
    document_id: UUID
    content: str
    concepts: Mapping[str, float] = field(default_factory=dict[str, float])
    themes: tuple[str, ...] = ()
    polarity: float | None = None
    importance: float = 0.0
    language: str | None = None


@dataclass(frozen=True, slots=True)
class ChunkPair:
    """Two chunks of different documents that may be connected. `similarity` is the cosine of their vectors."""

    source: ComparableChunk
    target: ComparableChunk
    similarity: float


@dataclass(frozen=True, slots=True)
class Span:
    """A quote, stored as a start and end in its chunk instead of as text, so that it is always verbatim."""

    start: int
    end: int

    def text_in(self, chunk: ComparableChunk) -> str:
        return chunk.content[self.start : self.end]


@dataclass(frozen=True, slots=True)
class DetectedConnection:
    """A connection with the quotes that support it and a one-sentence explanation."""

    engine: Engine
    pair: ChunkPair
    strength: float
    source_span: Span
    target_span: Span
    explanation: str
    status: Status = Status.FOUND
    made_by: str = "local"
    detail: Mapping[str, JSON] = field(default_factory=dict[str, JSON])

    @property
    def quotes(self) -> tuple[str, str]:
        return self.source_span.text_in(self.pair.source), self.target_span.text_in(self.pair.target)


def digest_of(engine: Engine, quotes: Sequence[str]) -> bytes:
    """Return the key under which a decision about a connection is stored.

    It depends on both quotes, but not on their order, case, spacing or punctuation.
    """
    plain = sorted("".join(one for one in quote.lower() if one.isalnum()) for quote in quotes)
    return sha256("\0".join([engine, *plain]).encode()).digest()
