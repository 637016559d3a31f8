"""What searching takes and answers. The records here are the public form: the API answers them as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, Protocol
from uuid import UUID

from octavo.ai.calls import Answered, Caller
from octavo.ai.vectors import Vectors
from octavo.core.json import JSON

Mode = Literal["hybrid", "text", "semantic"]
DEFAULT_LIMIT = 20
MOST_LIMIT = 100


class Embeds(Protocol):
    """Who makes the vector of a query: the gateway is one."""

    async def embed(self, texts: Sequence[str], caller: Caller, model: str | None = None) -> Answered[Vectors]: ...


@dataclass(frozen=True, slots=True)
class Filters:
    """Only documents that have all of it; of `documents`, `tags` and `kinds` one is enough.

    `since` and `until` are days of the document, or of its arrival where it has no date. `kinds` are source types.
    `versions`: also those that there is a newer version of, which else are found only where they are in `documents`.
    """

    documents: Sequence[UUID] = ()
    tags: Sequence[str] = ()
    collection: str | None = None
    kinds: Sequence[str] = ()
    language: str | None = None
    since: date | None = None
    until: date | None = None
    without: UUID | None = None
    versions: bool = False

    def as_json(self) -> dict[str, JSON]:
        """As the database takes it: what is not asked for is missing."""
        given: dict[str, JSON] = {
            "documents": [str(one) for one in self.documents],
            "tags": list(self.tags),
            "collection": self.collection,
            "kinds": list(self.kinds),
            "language": self.language,
            "since": self.since.isoformat() if self.since else None,
            "until": self.until.isoformat() if self.until else None,
            "without": str(self.without) if self.without else None,
            "versions": self.versions,
        }
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class Scores:
    """What each way of looking gave: BM25 of the words, similarity of the vectors. None where it did not find it."""

    text: float | None
    semantic: float | None


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers. `snippet` is plain text; `marks` are where in it found words begin and end.

    `score` is between 0 and 1 and only orders the hits of one answer.
    """

    document_id: UUID
    title: str
    source_type: str
    chunk_id: UUID
    snippet: str
    marks: list[tuple[int, int]]
    page: int | None
    heading_path: list[str]
    seconds: float | None
    score: float
    scores: Scores


@dataclass(frozen=True, slots=True)
class Degraded:
    """Why only words were looked for, although meaning was asked for too."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Found:
    """Best first. `mode` is how it was really looked for; `degraded` says why that is not what was asked."""

    items: list[Hit]
    mode: Mode
    degraded: Degraded | None = None
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """A document about the same things. `score` is how similar its most similar passages are."""

    document_id: UUID
    title: str
    source_type: str
    summary: str | None
    score: float


@dataclass(frozen=True, slots=True)
class SimilarTag:
    name: str
    score: float
    documents: int
