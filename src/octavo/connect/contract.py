"""What the engines are given and what they answer: passages in, connections with their evidence out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from uuid import UUID

from octavo.core.json import JSON


class Engine(StrEnum):
    SIMILARITY = "semantic_similarity"
    CONTRADICTION = "contradiction_detection"
    BRIDGE = "thematic_bridge"


class Status(StrEnum):
    """`POSSIBLE` is what nobody but a rule has said; `DISMISSED` only a person says."""

    FOUND = "found"
    POSSIBLE = "possible"
    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage as the engines see it. `polarity` is None where nobody could tell; `domain` are its document's tags."""

    id: UUID
    document_id: UUID
    content: str
    concepts: Mapping[str, float] = field(default_factory=dict[str, float])
    themes: tuple[str, ...] = ()
    polarity: float | None = None
    importance: float = 0.0
    language: str | None = None
    domain: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pair:
    """Two passages of different documents that may be connected. `similarity` is that of their vectors."""

    source: Piece
    target: Piece
    similarity: float


@dataclass(frozen=True, slots=True)
class Span:
    """A quote is a place in a passage and never a text of its own, so it is verbatim by construction."""

    start: int
    end: int

    def of(self, piece: Piece) -> str:
        return piece.content[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Found:
    """One connection, with the places that show it and a sentence that says why."""

    engine: Engine
    pair: Pair
    strength: float
    source_span: Span
    target_span: Span
    explanation: str
    status: Status = Status.FOUND
    made_by: str = "local"
    detail: Mapping[str, JSON] = field(default_factory=dict[str, JSON])

    @property
    def quotes(self) -> tuple[str, str]:
        return self.source_span.of(self.pair.source), self.target_span.of(self.pair.target)


def digest_of(engine: Engine, quotes: Sequence[str]) -> bytes:
    """What a verdict is remembered by: what both sides say, in either order and however lines are broken."""
    plain = sorted("".join(one for one in quote.lower() if one.isalnum()) for quote in quotes)
    return sha256("\0".join([engine, *plain]).encode()).digest()
