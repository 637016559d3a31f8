"""The state of a worker in memory: its slots, its heartbeat, and the queue position where its next claim begins."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import structlog

from octavo.core.errors import OctavoError
from octavo.core.instruments import HEARTBEATS_MISSED
from octavo.core.types import JSON, Lane
from octavo.database import ThreadConnection, explain
from octavo.jobs.job_run import ClaimedJob

log = structlog.get_logger()
# If a cancelled task is still running after this time, it is cancelled again.
CANCEL_SECONDS = 1.0
# A claim starts at the position where this worker claimed jobs `LAG_SECONDS` ago. The whole queue is scanned at the
# second interval.
LAG_SECONDS = 0.5
FULL_SCAN_SECONDS = 3.0
# After this many interactive jobs, a worker claims one bulk job first.
BULK_TURN = 20
# A heartbeat that could not renew all leases is repeated after this time.
BEAT_AGAIN_SECONDS = 1.0
# If the event loop has not run for this long, it hangs, and the leases are no longer renewed.
HANGING_SECONDS = 120.0


class DueIn(float):
    """The number of seconds until the next run of a background task.

    Unlike a pause given as a plain number, this one does not grow while the worker is idle, and an event can shorten
    it.
    """


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """The limits of a worker.

    `slots` is the number of jobs that run at the same time. In addition, up to `aside` jobs can wait for text
    recognition or similar work. `batch` limits how many jobs are claimed in one call, so that a worker with many slots
    leaves some jobs to others. A worker without a job looks for one every `poll_seconds`, or every `quiet_seconds` if
    it receives notifications about new jobs. A lease is renewed four times during its duration. If no lease could be
    renewed for two thirds of the duration, the worker abandons its jobs.
    """

    slots: int = 10
    aside: int = 50
    batch: int = 10
    lease_seconds: float = 60.0
    poll_seconds: float = 2.0
    quiet_seconds: float = 60.0
    grace_seconds: float = 5.0

    @property
    def bulk_slots(self) -> int:
        """How many slots bulk jobs can use. The others stay free for interactive jobs."""
        return max(1, self.slots - max(2, self.slots // 4))

    @property
    def heartbeat_seconds(self) -> float:
        return self.lease_seconds / 4

    @property
    def abandon_seconds(self) -> float:
        return self.lease_seconds * 2 / 3

    @property
    def takeover_delay_seconds(self) -> float:
        """How many seconds workers have after an outage to renew their leases before others take over their jobs."""
        return max(3.0, self.heartbeat_seconds * 2)


@dataclass(slots=True)
class RunningJob:
    """A job that occupies one of the worker's slots."""

    job: ClaimedJob
    task: asyncio.Task[None] | None = None
    deadline: float = 0.0
    timed_out: bool = False
    ended: bool = False
    aside: bool = False

    @property
    def lease(self) -> tuple[UUID, int]:
        """The id of the job and the token of its lease, which together identify this attempt.

        The id alone is not enough, because the job may be claimed again before this attempt has ended.
        """
        return self.job.id, self.job.lease_token

    def renew_limit(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds

    @contextmanager
    def step_aside(self, wake: Callable[[], None]) -> Generator[None]:
        """Free the job's slot while the context is active. `wake` makes the worker claim another job."""
        self.aside = True
        wake()
        try:
            yield
        finally:
            self.aside = False


class Slots:
    """The running, finished and abandoned jobs of a worker.

    A job occupies its slot until the database has recorded that the job ended.
    """

    def __init__(self, limits: WorkerLimits) -> None:
        self.running: dict[tuple[UUID, int], RunningJob] = {}
        self.finished: list[tuple[ClaimedJob, JSON]] = []
        self.abandoned: list[ClaimedJob] = []
        self._limits = limits

    @property
    def free(self) -> int:
        aside = min(self._limits.aside, sum(one.aside for one in self.running.values()))
        taken = len(self.running) + len(self.abandoned) - aside
        return max(0, min(self._limits.batch, self._limits.slots - taken))

    @property
    def free_for_bulk(self) -> int:
        bulk = sum(one.job.lane is Lane.BULK and not one.aside for one in self.running.values())
        return max(0, min(self.free, self._limits.bulk_slots - bulk))

    @property
    def has_unreported(self) -> bool:
        """Whether there are finished or abandoned jobs that have not been reported to the database yet."""
        return bool(self.finished or self.abandoned)

    @property
    def is_empty(self) -> bool:
        """Whether the worker has no running jobs and has reported all finished ones."""
        return not (self.running or self.has_unreported)

    def held(self) -> list[ClaimedJob]:
        """Return the jobs that this worker holds and whose leases must be renewed.

        Can be called from another thread.
        """
        return [*(one.job for one in self.running.copy().values()), *(job for job, _ in self.finished.copy())]

    @property
    def job_ids(self) -> list[UUID]:
        jobs = [*(one.job for one in self.running.values()), *(job for job, _ in self.finished), *self.abandoned]
        return [job.id for job in jobs]

    def stop_overdue(self) -> None:
        for one in self.running.values():
            if one.task and not one.ended and time.monotonic() > one.deadline:
                one.timed_out = True
                one.task.cancel()

    def stop_lost(self, one: RunningJob) -> bool:
        """Cancel a job whose lease is lost. Returns whether the job was cancelled.

        A job that has already ended is not cancelled, so that the handling of its failure can finish. If two attempts
        of the job are running, only the earlier one is cancelled.
        """
        earliest = next((other for other in self.running.values() if other.job.id == one.job.id), None)
        if not one.task or one.ended or earliest is not one:
            return False
        one.task.cancel()
        return True

    def abandon_all(self) -> None:
        """Cancel all jobs, because their leases may have expired.

        They are requeued when the database is available again.
        """
        for one in list(self.running.values()):
            if one.task and one.job not in self.abandoned:
                self.abandoned.append(one.job)
                one.task.cancel()

    async def empty(self) -> list[ClaimedJob]:
        """Wait a limited time for the running jobs to finish, then cancel the rest. Returns the cancelled jobs."""
        if tasks := [one.task for one in self.running.values() if one.task]:
            await asyncio.wait(tasks, timeout=self._limits.grace_seconds)
        left = list(self.running.values())
        await cancel_tasks([one.task for one in left if one.task])
        return [one.job for one in left]


class Heartbeat:
    """Renews the leases of a worker in a separate thread with its own connection.

    The worker therefore keeps its jobs even while its event loop or pool is busy. `renew` returns whether it renewed
    all leases. While all `slots` are empty, the connection is closed after each heartbeat.
    """

    def __init__(
        self,
        connect: Callable[[], ThreadConnection],
        renew: Callable[[ThreadConnection], bool],
        seconds: float,
        slots: Slots,
    ) -> None:
        self._connect = connect
        self._renew = renew
        self._seconds = seconds
        self._slots = slots
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._connection: ThreadConnection | None = None
        self._renewed = self._looped = time.monotonic()

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)

    def loop_runs(self) -> None:
        """Record that the event loop is still running.

        If it hangs and no longer calls this, the leases are not renewed.
        """
        self._looped = time.monotonic()

    @property
    def silent_seconds(self) -> float:
        """How many seconds ago the leases were last renewed."""
        return time.monotonic() - self._renewed

    def _run(self) -> None:
        pause = self._seconds
        while not self._stopping.wait(pause):
            complete = time.monotonic() - self._looped < HANGING_SECONDS and self._beat()
            pause = self._seconds if complete else min(self._seconds, BEAT_AGAIN_SECONDS)
        self._disconnect()

    def _beat(self) -> bool:
        try:
            if self._connection is None:
                self._connection = self._connect()
            complete = self._renew(self._connection)
        except (OctavoError, psycopg.Error) as error:
            log.warning("leases not renewed", reason=explain(error))
            HEARTBEATS_MISSED.inc()
            self._disconnect()
            return False
        self._renewed = time.monotonic()
        if self._slots.is_empty:
            self._disconnect()
        return complete

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None


class QueuePosition(NamedTuple):
    priority: int
    virtual_time: int


# Where each lane begins in the queue.
BEGINNINGS = {Lane.INTERACTIVE: QueuePosition(0, 0), Lane.BULK: QueuePosition(10, 0)}


class ClaimStart:
    """Decides at which position of a lane the next claim starts. Times are in seconds on a monotonic clock.

    While an old snapshot is open, for example during a backup, PostgreSQL cannot remove the index entries of claimed
    jobs, and reading the queue from its beginning becomes slower and slower. A busy worker therefore starts where it
    recently claimed jobs. Regular full scans find jobs that a slow transaction added before that position.
    """

    def __init__(self, lane: Lane) -> None:
        self._recent: deque[tuple[float, QueuePosition]] = deque()
        self._beginning = BEGINNINGS[lane]
        self._position = self._beginning
        self._full_scan_at = 0.0

    def at(self, seconds: float) -> QueuePosition:
        """Return the queue position at which the next claim starts.

        This is where the worker claimed jobs about `LAG_SECONDS` ago, or the beginning of the queue if a full scan is
        due or the worker has claimed nothing recently.
        """
        while self._recent and self._recent[0][0] <= seconds - LAG_SECONDS:
            self._position = self._recent.popleft()[1]
        if seconds >= self._full_scan_at or not self._recent:
            self._full_scan_at = seconds + FULL_SCAN_SECONDS
            self._position = self._beginning
        return self._position

    def add(self, jobs: Sequence[ClaimedJob], seconds: float) -> None:
        """Remember the lowest queue position of the jobs that were just claimed."""
        if jobs:
            self._recent.append((seconds, min(QueuePosition(job.priority, job.virtual_time) for job in jobs)))


class LaneClaims:
    """How the next claim takes jobs from each lane: where it starts, and whether a bulk job comes first.

    Interactive jobs are claimed first. After every `BULK_TURN` of them, one bulk job is claimed, so that the bulk lane
    always advances.
    """

    def __init__(self) -> None:
        self._starts = {lane: ClaimStart(lane) for lane in Lane}
        self._since_bulk = 0

    def values(self, seconds: float) -> dict[str, Any]:
        """Return the parameters of the query that claims the next jobs."""
        start, bulk = (self._starts[lane].at(seconds) for lane in (Lane.INTERACTIVE, Lane.BULK))
        marks = {"mark_priority": start.priority, "mark_time": start.virtual_time}
        bulk_marks = {"bulk_mark_priority": bulk.priority, "bulk_mark_time": bulk.virtual_time}
        return {**marks, **bulk_marks, "bulk_first": self._since_bulk >= BULK_TURN}

    def add(self, jobs: Sequence[ClaimedJob], seconds: float) -> None:
        for lane, start in self._starts.items():
            start.add([job for job in jobs if job.lane is lane], seconds)
        has_bulk = any(job.lane is Lane.BULK for job in jobs)
        self._since_bulk = 0 if has_bulk or self._since_bulk >= BULK_TURN else self._since_bulk + len(jobs)


async def cancel_tasks(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks until all have ended.

    Before Python 3.12, a task misses its cancellation if the result it awaits arrives at the same moment, so the tasks
    may have to be cancelled again.
    """
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=CANCEL_SECONDS)


def leases_of(jobs: Sequence[ClaimedJob]) -> dict[str, Any]:
    return {"held": as_array(job.id for job in jobs), "tokens": as_array(job.lease_token for job in jobs)}


def as_array(values: Iterable[object]) -> str:
    """Format ids or numbers as a PostgreSQL array literal.

    This is much faster than letting psycopg detect their type.
    """
    return f"{{{','.join(map(str, values))}}}"
