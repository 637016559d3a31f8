"""Record types for jobs, their stages and their events, and for the current activity of an installation.

Also contains the texts that pages and the command line show for stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.core.types import JobStatus, Lane

CircuitPolicy = Literal["next model", "wait", "fail"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a job. `done` is the number of finished units; `unit` says what is counted."""

    done: int
    total: int | None
    unit: str | None


@dataclass(frozen=True, slots=True)
class Eta:
    low_seconds: float
    high_seconds: float


@dataclass(frozen=True, slots=True)
class JobError:
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class StageView:
    stage: str
    part: str | None
    attempt: int
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class WaitingBecause:
    """The reason why a job is waiting.

    `detail` is a sentence for people, with times in UTC; `facts` contains the values in the sentence.
    """

    reason: str
    detail: str
    facts: dict[str, Any]

    @property
    def is_retry(self) -> bool:
        """Whether the job failed and is waiting for its next attempt. Users can also start that attempt immediately."""
        return self.reason in {"backing_off", "provider"} and "error" in self.facts


@dataclass(frozen=True, slots=True)
class JobView:
    """A job.

    `lane` is `bulk` for imports and other work on many documents; such jobs run after interactive ones. `stages`
    lists the finished stages. If a single job is requested, it also lists the finished steps of each stage.
    """

    id: UUID
    kind: str
    document_id: UUID | None
    status: JobStatus
    stage: str | None
    attempt: int
    failures: int
    max_attempts: int
    progress: Progress
    eta: Eta | None
    waiting_because: WaitingBecause | None
    error: JobError | None
    stages: list[StageView]
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    progressed_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None
    lane: Lane = Lane.INTERACTIVE


@dataclass(frozen=True, slots=True)
class ImportState:
    """Whether an owner's imports are paused, and how many bulk jobs are waiting. The number is counted only up to
    1,000.
    """

    paused_at: datetime | None
    waiting: int


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """An event of a document or a job. `state_after` is set if the job changed its state."""

    id: int
    at: datetime
    kind: str
    process_id: UUID
    document_id: UUID | None
    state_after: str | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventView:
    id: int
    at: datetime
    kind: str
    process_id: UUID
    document_id: UUID | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker. `alive` is false if its last heartbeat is too old. A worker that is not alive is listed for an hour."""

    id: UUID
    host: str
    pid: int
    kinds: list[str]
    slots: int
    running: int
    alive: bool
    started_at: datetime
    heartbeat_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Circuit:
    """A circuit breaker. After `limit` failures in a row, no calls are sent until `open_until`.

    Then one test call is sent. `policy` specifies what jobs do in the meantime: call the next model, wait or fail.
    """

    name: str
    failures: int
    limit: int
    policy: CircuitPolicy
    open_until: datetime | None
    half_open: bool


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class OperationsHealth:
    """The health of the installation. `jobs` is the number of jobs by state, for the states that may need attention."""

    ready: bool
    checks: list[Check]
    live_workers: int
    jobs: dict[str, int]


@dataclass(frozen=True, slots=True)
class ChangeCount:
    changed: int


# Words for stages ---------------------------------------------------------------------------------------------------

DOCUMENT_JOB = "process_document"
# The activity that follows each finished stage.
STAGES: Mapping[str | None, str] = Texts(
    {
        None: "Reading pages",
        "inherited": "Reading pages",
        "fetched": "Reading pages",
        "pictured": "Reading pages",
        "recognising": "Recognising text",
        "reading": "Reading pages",
        "extracted": "Saving text",
        "markdown_saved": "Splitting",
        "rewriting": "Writing text",
        "rewritten": "Splitting",
        "chunked": "Describing",
        "facts_found": "Describing",
        "parts_added": "Adding files",
        "classified": "Describing",
        "describing": "Describing",
        "enriched": "Indexing",
        "indexing": "Indexing",
        "embedded": "Connecting",
        "improvement_planned": "Connecting",
    }
)
# The steps of a document job, for jobs that count nothing else.
STEPS: dict[str | None, int] = {
    None: 1,
    "inherited": 1,
    "fetched": 1,
    "pictured": 1,
    "recognising": 1,
    "reading": 1,
    "extracted": 2,
    "markdown_saved": 3,
    "rewriting": 3,
    "rewritten": 3,
    "chunked": 4,
    "facts_found": 4,
    "parts_added": 4,
    "classified": 4,
    "describing": 4,
    "enriched": 5,
    "indexing": 5,
    "embedded": 5,
    "improvement_planned": 5,
}
# The activity that each finished stage was a part of.
FINISHED = Texts(
    {
        "inherited": "Reading pages",
        "fetched": "Fetching",
        "pictured": "Reading pages",
        "recognising": "Recognising text",
        "reading": "Reading pages",
        "extracted": "Reading pages",
        "markdown_saved": "Saving text",
        "rewriting": "Writing text",
        "rewritten": "Writing text",
        "chunked": "Splitting",
        "facts_found": "Describing",
        "parts_added": "Adding files",
        "classified": "Describing",
        "describing": "Describing",
        "enriched": "Describing",
        "indexing": "Indexing",
        "embedded": "Indexing",
        "improvement_planned": "Describing",
    }
)
# The activity of jobs with a single stage.
ACTIVITIES = Texts({"embed_document": "Indexing", "detect_connections": "Comparing"})
LINKS = frozenset({"web", "youtube"})


def stage_of(job: JobView, source_type: str = "") -> str:
    if job.kind in ACTIVITIES:
        return ACTIVITIES[job.kind]
    if job.stage is None and source_type in LINKS:
        return FINISHED["fetched"]
    return STAGES.get(job.stage) or _("Working")


def stage_words(job: JobView) -> str:
    """Describe what a document job is doing now. For other kinds of jobs, return the name of their stage."""
    if job.kind == DOCUMENT_JOB:
        return stage_of(job)
    return job.stage or _("the start")


def finished_words(kind: str, stage: str) -> str:
    """Describe what a document job did in this stage. For other kinds of jobs, return the name of the stage."""
    if kind != DOCUMENT_JOB:
        return stage
    return FINISHED.get(stage, stage)


@dataclass(frozen=True, slots=True)
class KindActivity:
    """The jobs of one kind.

    `delayed` jobs wait until a certain time, for example until their next attempt. `failed` jobs failed for good or
    with an error that a retry would not solve.
    """

    kind: str
    queued: int
    delayed: int
    running: int
    paused: int
    failed: int
    finished_last_minute: int
    finished_last_hour: int
    oldest_wait_seconds: float | None


@dataclass(frozen=True, slots=True)
class StageTime:
    """The duration of a stage in the jobs of the last hour, including all its steps. `jobs` is the number of these
    jobs.
    """

    kind: str
    stage: str
    jobs: int
    mean_seconds: float
    p95_seconds: float


@dataclass(frozen=True, slots=True)
class SourceCost:
    """The cost of model answers in the last hour for documents of one source type."""

    source_type: str
    answers: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Spending:
    """The cost of models. `month_usd` is this month's cost, and `budget_usd` is the monthly budget for all owners.

    The numbers of answers and the `sources` cover the last hour.
    """

    month_usd: float
    budget_usd: float
    new_answers: int
    reused_answers: int
    sources: list[SourceCost]


@dataclass(frozen=True, slots=True)
class Activity:
    """The current activity of an installation. Only kinds with unfinished or recent jobs are listed."""

    at: datetime
    kinds: list[KindActivity]
    workers: list[WorkerView]
    stages: list[StageTime]
    spending: Spending

    @property
    def finished_last_minute(self) -> int:
        return sum(one.finished_last_minute for one in self.kinds)

    @property
    def finished_last_hour(self) -> int:
        return sum(one.finished_last_hour for one in self.kinds)
