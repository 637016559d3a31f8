"""Data types for detecting connections: pairs of chunks, and connections with the quotes that support them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from uuid import UUID

from octavo.core.types import JSON
from octavo.records.search import Engine, Status


@dataclass(frozen=True, slots=True)
class ComparableChunk:
    """A chunk with the data that is needed to find connections.

    `polarity` is its tone, negative or positive, or None if unknown.
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
