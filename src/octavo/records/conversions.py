"""Record types for conversions of business documents, and for mappings, the rules of a conversion."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel

NEEDS_REVIEW = "needs_review"  # complete, but a person should look at it
ENDED = frozenset({"complete", NEEDS_REVIEW, "failed", "dead_letter", "cancelled"})


class FoundValue(BaseModel):
    """A value of a conversion.

    `box` contains the left, top, right and bottom edges, in points from the upper left corner of the page. `status` is
    `found` (the value is in the document), `checked` (a cross-check passed as well), `confirmed` (by a person) or
    `needs_review`. `verified` is true for `checked` and `confirmed`. If `calibrated` is true, `confidence` was measured
    on labelled documents; otherwise it is a rough estimate. `confirmed_by` is the person who entered or accepted the
    value, and `confirmed_at` is the time.
    """

    name: str
    value: str
    page: int | None
    box: list[float] | None
    quote: str | None
    confidence: float
    verified: bool
    status: str = "found"
    calibrated: bool = False
    confirmed_by: str | None = None
    confirmed_at: datetime | None = None


class FoundCheck(BaseModel):
    """A cross-check of values, such as `net + tax = total`.

    `holds` is true if the check passed, and null if a value is missing. If `accepted` is true, the check failed, but a
    person accepted the values anyway.
    """

    check: str
    holds: bool | None
    accepted: bool = False


class ModelSuggestion(BaseModel):
    name: str
    value: str
    quote: str


class ModelCall(BaseModel):
    """A model call for the fields that the rules of the mapping did not find. `error` is set if no model answered.

    `said` contains all suggestions of the model. Accepted suggestions are also in the `values` of the conversion.
    """

    task: str
    fields: list[str]
    made_by: str | None
    said: list[ModelSuggestion]
    error: str | None


class ConversionView(BaseModel):
    """A conversion of a document.

    `status` is queued, processing, complete, needs_review, failed, dead_letter, or another state of the job, such as
    cancelled. If the same content was converted before, `duplicate_of` is the id of the earlier conversion.
    `source_expires_at` is null if the file belongs to a document in the library.
    """

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
    batch_id: UUID | None = None
    source_expires_at: datetime | None = None
    result_expires_at: datetime | None = None
    values: list[FoundValue] = []
    checks: list[FoundCheck] = []
    missing: list[str] = []
    model: ModelCall | None = None

    @property
    def is_over(self) -> bool:
        return self.status in ENDED


class BatchView(BaseModel):
    """Conversions of many documents, requested together.

    `total` is the number of conversions queued so far, and `ended` the number that have ended. `existing` is the number
    of documents that were already converted with this mapping, and `skipped` the number that are not PDFs.
    `completed_at` is null until all conversions have ended.
    """

    id: UUID
    mapping: str
    total: int
    ended: int
    existing: int
    skipped: int
    needs_review: int
    failed: int
    created_at: datetime
    completed_at: datetime | None


class MappingSummary(BaseModel):
    """A mapping (rules for converting a type of document) without its text.

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


class RevisionView(BaseModel):
    """A revision of a conversion's values. `person` is the person who made it, and `changes` lists the changes."""

    number: int
    made_by: str
    user_id: UUID | None
    person: str | None
    created_at: datetime
    changes: list[dict[str, Any]] | None
    values: list[FoundValue]


class PageWord(BaseModel):
    text: str
    box: tuple[float, float, float, float]
