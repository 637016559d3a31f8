"""Versions of a document and what changed between them, as the server answers it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Version:
    """`revisions` are those whose text is kept, `revision` is the one that is read."""

    document_id: UUID
    version: int
    title: str
    filename: str
    status: str
    bytes: int
    sha256: str
    created_at: datetime
    newest: bool
    revision: int
    revisions: list[int]


@dataclass(frozen=True, slots=True)
class Side:
    document_id: UUID
    title: str
    version: int
    revision: int


@dataclass(frozen=True, slots=True)
class FieldChange:
    field: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Part:
    kind: Literal["same", "removed", "added"]
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """Characters of the Markdown, and the page where they begin."""

    start: int
    end: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class TextChange:
    old: Span
    new: Span
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class OtherConnection:
    """What only one side is connected with: a passage of a third document."""

    engine: str
    strength: float
    document_id: UUID
    title: str
    chunk_id: UUID
    quote: str
    explanation: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`text` are the first of `changes`, None where one side has no text."""

    old: Side
    new: Side
    fields: list[FieldChange]
    changes: int
    text: list[TextChange] | None
    appeared: list[OtherConnection]
    vanished: list[OtherConnection]
