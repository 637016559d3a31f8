"""Conversions of business documents, and their mappings."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel

NEEDS_REVIEW = "needs_review"  # complete, but a person should look at it
ENDED = frozenset({"complete", NEEDS_REVIEW, "failed", "dead_letter", "cancelled"})


class FoundValue(BaseModel):
    """A value. `box` is left, top, right and bottom in points from the upper left corner of the page.

    `status`: `found` in the document, `checked` by a cross-check, `confirmed` by a person, or `needs_review`.
    `verified` is true for `checked` and `confirmed`.
    """

    name: str
    value: str
    page: int | None
    box: list[float] | None
    quote: str | None
    confidence: float
    verified: bool
    status: str = "found"


class FoundCheck(BaseModel):
    check: str
    holds: bool | None


class ModelSuggestion(BaseModel):
    name: str
    value: str
    quote: str


class ModelCall(BaseModel):
    """A model call for the fields that the rules did not find. `error` is set if no model answered.

    `said` contains all suggestions of the model. Accepted suggestions are also in the `values` of the conversion.
    """

    task: str
    fields: list[str]
    made_by: str | None
    said: list[ModelSuggestion]
    error: str | None


class ConversionView(BaseModel):
    """A conversion. After a repeated submission, `duplicate_of` is the id of this conversion, which already existed."""

    id: UUID
    document_id: UUID | None
    filename: str
    mapping: str
    status: str
    error: dict[str, str] | None
    duplicate_of: UUID | None = None
    revision: int
    sha256: str | None
    bytes: int | None
    download_count: int
    first_downloaded_at: datetime | None
    archived_at: datetime | None
    created_at: datetime
    values: list[FoundValue] = []
    checks: list[FoundCheck] = []
    missing: list[str] = []
    model: ModelCall | None = None

    @property
    def is_over(self) -> bool:
        return self.status in ENDED


class MappingSummary(BaseModel):
    """A mapping without its text.

    `created_at` is null for a mapping that ships with Octavo. `error` is set if the mapping is no longer valid.
    """

    name: str
    title: str
    fields: list[str]
    required: list[str]
    created_at: datetime | None = None
    error: str | None = None


class MappingView(MappingSummary):
    text: str
