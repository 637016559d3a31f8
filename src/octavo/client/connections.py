"""What documents have to do with each other, as the API answers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

Engine = Literal["semantic_similarity", "contradiction_detection", "thematic_bridge"]
Decision = Literal["confirm", "dismiss", "undo"]


@dataclass(frozen=True, slots=True)
class ConnectedPlace:
    """`quote` stands there letter by letter; `start` is its first character in the document's markdown."""

    document_id: UUID
    title: str
    chunk_id: UUID
    quote: str
    page: int | None
    start: int


@dataclass(frozen=True, slots=True)
class Connection:
    """`source` is the side of the document that was asked about."""

    id: UUID
    engine: str
    strength: float
    status: str
    source: ConnectedPlace
    target: ConnectedPlace
    explanation: str
    kind: str | None
    made_by: str


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """The jobs that compare documents anew."""

    jobs: list[UUID]
