"""Record types for prompts, for analyses of whole documents, and for their items and results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from octavo.records.jobs import Eta, JobError


@dataclass(frozen=True, slots=True)
class Prompt:
    """A saved prompt. `version` increases when `content` or `system` changes.

    An analysis keeps the version that it ran with.
    """

    id: UUID
    title: str
    content: str
    system: str
    execution_order: int
    active: bool
    version: int
    built_in: bool
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Done:
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ItemsDone(Done):
    failed: int
    running: int


@dataclass(frozen=True, slots=True)
class Percent:
    upload: int
    processing: int
    overall: int


@dataclass(frozen=True, slots=True)
class AnalysesHealth:
    ok: bool
    message: str


@dataclass(frozen=True, slots=True)
class LoggedError:
    at: datetime
    code: str
    message: str
    job_id: UUID


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysis of a document.

    `title` is the document's title. `units` is the number of pages or, if the document has no pages, of passages;
    `unit` says which. A completed analysis has an `error` if some pages of the document have no answer.
    `last_heartbeat` is the last time at which a worker reported that it is running a job of the analysis. If `offline`
    is true, all answers were made without a model: they are passages of the document, not written answers.
    """

    id: UUID
    document_id: UUID
    title: str
    mode: str
    at_once: int
    status: str
    phase: str
    unit: str | None
    units: int | None
    segments: Done
    items: ItemsDone
    results: Done
    percent: Percent
    mean_item_seconds: float | None
    eta: Eta | None
    elapsed_seconds: float
    tokens: int
    cost_usd: float
    workers: int
    retries: int
    paused: int
    health: AnalysesHealth
    last_heartbeat: datetime | None
    error: JobError | None
    errors: list[LoggedError]
    created_at: datetime
    completed_at: datetime | None
    offline: bool = False

    @property
    def is_over(self) -> bool:
        return self.status in ("completed", "error", "stopped")


@dataclass(frozen=True, slots=True)
class CitationView:
    """A citation of a page. `verified` is true if the quote was found on this page."""

    page: int
    quote: str
    verified: bool
    relevance: float


@dataclass(frozen=True, slots=True)
class ItemView:
    """One prompt on one segment of a document, with its answer. The segment contains the pages from `first` to `last`.

    `status` is planned, running, retrying, paused, done, split or failed.
    """

    id: UUID
    segment_id: UUID
    prompt_id: UUID
    prompt_title: str
    first: int
    last: int
    status: str
    content: str | None
    citations: list[CitationView]
    made_by: str | None
    failed_models: list[dict[str, str]]
    error: JobError | None
    attempts: int
    tokens: int
    cost_usd: float
    seconds: float | None
    done_at: datetime | None
    job_id: UUID | None


@dataclass(frozen=True, slots=True)
class AnsweredPart:
    """A range of pages, from `first` to `last`.

    `answered_by` is the model that answered for these pages, or `local`.
    """

    first: int
    last: int
    answered_by: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of pages, from `first` to `last`, without an answer."""

    first: int
    last: int
    error: JobError


@dataclass(frozen=True, slots=True)
class ResultView:
    """The answer to one prompt for the whole document. `content` is None until the answer is complete.

    `prompt` and `system` are the texts that were sent. `parts` are the page ranges that have an answer, `answered_by`
    names the models that gave these answers, and `made_by` is the model that combined them. `gaps` are the page ranges
    without an answer.
    """

    prompt_id: UUID
    title: str
    prompt: str
    system: str
    version: int
    execution_order: int
    status: str
    items: Done
    content: str | None
    citations: list[CitationView]
    made_by: str | None
    failed_models: list[dict[str, str]]
    error: JobError | None
    attempts: int
    tokens: int
    cost_usd: float
    seconds: float | None
    completed_at: datetime | None
    answered_by: list[str]
    parts: list[AnsweredPart]
    gaps: list[Gap]


@dataclass(frozen=True, slots=True)
class SegmentView:
    """A segment of an analysis: the units (pages or chunks) `first` to `last`.

    The `context` units before `first` are shown to the model only as context. `split` is true if smaller segments have
    replaced this segment. `answered_by` names the models that answered prompts for this segment.
    """

    id: UUID
    parent_id: UUID | None
    first: int
    last: int
    context: int
    tokens: int
    ready: bool
    split: bool
    answered_by: list[str]


@dataclass(frozen=True, slots=True)
class PromptVersion:
    version: int
    title: str
    content: str
    system: str
    created_at: datetime
