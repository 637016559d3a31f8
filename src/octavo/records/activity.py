"""Record types for the current activity of an installation: its queue, workers, stage times and costs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from octavo.records.jobs import WorkerView


@dataclass(frozen=True, slots=True)
class KindActivity:
    """The jobs of one kind.

    `delayed` jobs wait for a time, for example for their next attempt. `failed` jobs failed for good or with an error
    that a retry would not solve.
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
    """The duration of a stage, including all its parts, in the jobs of the last hour. `jobs` is the number of these
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
    """The cost of models. `budget_usd` is the monthly budget for all owners; the answers are those of the last hour."""

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
