"""What the server answers, as records. Fields that a newer server adds are left out; those named here must be there."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

Policy = Literal["reuse", "new", "reject"]
Scope = Literal["read", "write", "admin"]
DocumentStatus = Literal["pending", "completed", "failed"]
Action = Literal["delete", "restore", "purge"]


# Events ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a document or a job; `cursor` is where to go on after it."""

    id: int
    at: datetime
    kind: str
    process_id: UUID
    document_id: UUID | None
    state_after: str | None
    detail: dict[str, Any]
    cursor: str


@dataclass(frozen=True, slots=True)
class Place:
    """How far somebody is who follows the events."""

    cursor: str


# Documents ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something failed."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class DocumentJob:
    id: UUID
    kind: str
    status: str


@dataclass(frozen=True, slots=True)
class Document:
    """`deleted_at` is set in the trash; `process_id` is the job that its status comes from.

    `version` counts new bytes, `revision` how often these were processed; `superseded`: there is a newer version.
    """

    id: UUID
    title: str
    filename: str
    status: DocumentStatus
    quality: str | None
    text_ready: bool
    embeddings_ready: bool
    needs_classification: bool
    source_type: str
    source_url: str | None
    content_type: str
    page_count: int | None
    word_count: int | None
    author: str | None
    language: str | None
    document_date: date | None
    summary: str | None
    described_by: str | None
    tags: list[str]
    collection: str | None
    sha256: str
    bytes: int
    cost_usd: float
    error: Problem | None
    duplicate_of: UUID | None
    version: int
    superseded: bool
    revision: int
    metadata: dict[str, Any]
    download_count: int
    first_downloaded_at: datetime | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    process_id: UUID
    jobs: list[DocumentJob]


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents are wanted; `q` is looked for in title, file name and author, `id` is a beginning or an end.

    `versions`: also those that there is a newer version of.
    """

    id: str | None = None
    q: str | None = None
    status: DocumentStatus | None = None
    tag: str | None = None
    collection: str | None = None
    trashed: bool = False
    versions: bool = False


@dataclass(frozen=True, slots=True)
class Concept:
    text: str
    importance: float


@dataclass(frozen=True, slots=True)
class PageBox:
    """`box` is left, top, right and bottom, in points from the upper left corner of the page."""

    page: int
    box: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Chunk:
    """`start` and `end` are characters of the document's markdown, `boxes` where on its pages that stands."""

    id: UUID
    index: int
    content: str
    start: int
    end: int
    page_from: int | None
    page_to: int | None
    heading_path: list[str]
    themes: list[str]
    concepts: list[Concept]
    tone: dict[str, Any] | None
    importance: float | None
    summary: str | None
    made_by: str | None
    seconds: float | None = None
    url: str | None = None
    boxes: list[PageBox] = field(default_factory=list[PageBox])


@dataclass(frozen=True, slots=True)
class Retried:
    """`state` is `skipped` when there is nothing that a retry would change."""

    document_id: UUID
    process_id: UUID
    state: Literal["pending", "skipped"]


@dataclass(frozen=True, slots=True)
class Changed:
    changed: int


@dataclass(frozen=True, slots=True)
class Embedding:
    queued: int


# Uploads -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ticket:
    """An upload that was announced; its document exists when it is finalized."""

    upload_id: UUID
    document_id: UUID
    process_id: UUID


@dataclass(frozen=True, slots=True)
class Received:
    """What arrived of an upload."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an upload: `deduplicated` means that `document_id` had this content before."""

    state: Literal["uploaded", "deduplicated"]
    upload_id: UUID
    document_id: UUID
    process_id: UUID
    duplicate_of: UUID | None = None
    sha256: str | None = None


# Jobs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Progress:
    done: int
    total: int | None
    unit: str | None


@dataclass(frozen=True, slots=True)
class Eta:
    low_seconds: float
    high_seconds: float


@dataclass(frozen=True, slots=True)
class WaitingBecause:
    """`detail` is a sentence for people."""

    reason: str
    detail: str
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Stage:
    stage: str
    attempt: int
    started_at: datetime
    finished_at: datetime
    part: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    id: UUID
    kind: str
    document_id: UUID | None
    status: str
    stage: str | None
    attempt: int
    failures: int
    max_attempts: int
    progress: Progress
    eta: Eta | None
    waiting_because: WaitingBecause | None
    error: Problem | None
    stages: list[Stage]
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None


# The installation and who asks -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """`stored_bytes` is None where there is no limit."""

    upload_bytes: int
    stored_bytes: int | None
    concurrent_uploads: int


@dataclass(frozen=True, slots=True)
class Published:
    """What an installation allows."""

    version: str
    limits: Limits
    trash_days: int


@dataclass(frozen=True, slots=True)
class Key:
    """`start` is how a key is recognised; the rest of it is known to nobody."""

    id: UUID
    name: str
    start: str
    scope: Scope
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewKey(Key):
    """The only time that the key itself is answered."""

    key: str = field(repr=False)
