"""What searching answers, as the API has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal
from uuid import UUID

from octavo.client.records import Problem

Mode = Literal["hybrid", "text", "semantic"]


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Only documents that have all of it; of several tags, kinds or documents one is enough. All by default.

    `versions`: also those that there is a newer version of.
    """

    document: Sequence[UUID] = ()
    tag: Sequence[str] = ()
    collection: str | None = None
    kind: Sequence[str] = ()
    language: str | None = None
    since: date | None = None
    until: date | None = None
    versions: bool = False

    def as_query(self) -> dict[str, str | list[str]]:
        several = {"document": [str(one) for one in self.document], "tag": list(self.tag), "kind": list(self.kind)}
        single = {"collection": self.collection, "language": self.language, "since": self.since, "until": self.until}
        if self.versions:
            single["versions"] = "true"
        return {**several, **{name: str(value) for name, value in single.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers. `marks` are where found words begin and end in the snippet."""

    document_id: UUID
    title: str
    chunk_id: UUID
    snippet: str
    marks: list[tuple[int, int]]
    page: int | None
    heading_path: list[str]
    score: float


@dataclass(frozen=True, slots=True)
class Found:
    """Best first. `degraded` says why it was looked for in another way than asked."""

    items: list[Hit]
    mode: Mode
    degraded: Problem | None
    next_cursor: str | None = None
