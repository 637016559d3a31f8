"""Search filters and results. The API returns these records as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol
from uuid import UUID

from octavo.ai.calls import Answered, Caller
from octavo.ai.vectors import Vectors
from octavo.core.types import JSON

DEFAULT_LIMIT = 20
MOST_LIMIT = 100


class QueryEmbedder(Protocol):
    """Embeds a query; the AI gateway does."""

    async def embed(self, texts: Sequence[str], caller: Caller, model: str | None = None) -> Answered[Vectors]: ...


@dataclass(frozen=True, slots=True)
class Filters:
    """A document must match all filters, and at least one entry of each of `documents`, `tags` and `kinds`.

    `since` and `until` compare with the document's date, or with the day it was added if it has none. `kinds` are
    source types. `versions` includes superseded versions, which otherwise must be named in `documents`.
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
        """The set filters, as the database expects them."""
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
class RelatedDocument:
    """A document on similar topics. `score` is the mean similarity of its most similar chunks."""

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
