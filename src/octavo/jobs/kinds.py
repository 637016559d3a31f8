"""Job kinds with their handlers and limits, and scheduled jobs.

Workers copy the registry of job kinds to the database. Each scheduled run is started by only one worker. If several
runs of a schedule were missed, only one is started. Times are in UTC.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from cronsim import CronSim, CronSimError
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.core.errors import BadInput, NotFound
from octavo.core.types import JSON
from octavo.database import Connection, load_queries
from octavo.jobs.queue import NewJob, UnknownKind, enqueue

if TYPE_CHECKING:
    from octavo.jobs.job_run import ClaimedJob, Run


QUERIES = load_queries("jobs")

Tools = TypeVar("Tools")


@dataclass(frozen=True, slots=True)
class JobKind(Generic[Tools]):
    """A kind of job: its handler and its limits.

    `cap` limits how many jobs of this kind run at the same time, and `starts_per_second` how many start per second.
    Both count the jobs of all workers.

    `check_input` raises `BadInput` for input that the handler would reject, so that the job is never enqueued.

    `after_failure` runs after a failed attempt, but not if the worker crashes. The work of this
    function must therefore also be done by a scheduled job.
    """

    name: str
    handler: Callable[[Run[Tools]], Awaitable[JSON]]
    time_limit_seconds: float
    limit_renewed_by_stage: bool = False
    max_attempts: int = 3
    cap: int | None = None
    starts_per_second: float | None = None
    check_input: Callable[[dict[str, JSON]], object] | None = None
    after_failure: Callable[[Tools, ClaimedJob], Awaitable[None]] | None = None


class Kinds(Generic[Tools]):
    """The kinds of jobs that a worker runs. Names must be unique.

    The error for an unknown name lists the known names.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, JobKind[Tools]] = {}

    def __iter__(self) -> Iterator[JobKind[Tools]]:
        return iter(self._kinds.values())

    def __getitem__(self, name: str) -> JobKind[Tools]:
        try:
            return self._kinds[name]
        except KeyError:
            raise UnknownKind(f"{name} is not one of {', '.join(sorted(self._kinds))}.") from None

    def add(self, kind: JobKind[Tools]) -> None:
        if kind.name in self._kinds:
            raise ValueError(f"the job kind {kind.name} already exists")
        self._kinds[kind.name] = kind

    @property
    def names(self) -> list[str]:
        return sorted(self._kinds)


async def sync_kinds(connection: Connection, kinds: Kinds[Any]) -> None:
    """Store the kinds and their limits in the database, which then enforces the limits and rejects unknown kinds."""
    known = list(kinds)
    values = {
        "names": [kind.name for kind in known],
        "max_attempts": [kind.max_attempts for kind in known],
        "time_limits": [kind.time_limit_seconds for kind in known],
        "renewed": [kind.limit_renewed_by_stage for kind in known],
        "caps": [kind.cap for kind in known],
        "rates": [kind.starts_per_second for kind in known],
    }
    await connection.execute(QUERIES.sync_kinds, values)
    await connection.execute(QUERIES.sync_rates)
    await connection.execute(QUERIES.sync_caps)


SCHEDULE_QUERIES = load_queries("schedules")
PRIORITY = 7


class BadCron(BadInput):
    """Invalid schedule. Use the five fields of cron: minute, hour, day, month, weekday."""

    code = "BAD_CRON"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A scheduled job. `cron` is a cron expression with five fields, in UTC."""

    name: str
    kind: str
    cron: str
    input: dict[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class ScheduleState:
    name: str
    kind: str
    cron: str
    enabled: bool
    next_run_at: datetime
    last_run_at: datetime | None
    last_job_id: UUID | None
    last_status: str | None


@dataclass(frozen=True, slots=True)
class DueSchedule:
    name: str
    kind: str
    cron: str
    input: dict[str, JSON]
    next_run_at: datetime
    busy: bool
    at: datetime


def next_run(cron: str, after: datetime) -> datetime:
    """Return the first time after `after` that matches the cron expression."""
    try:
        return next(CronSim(cron, after.astimezone(UTC)))
    except (CronSimError, StopIteration):
        raise BadCron(f"{cron!r} cannot be parsed.") from None


async def sync_schedules(connection: Connection, schedules: Sequence[Schedule]) -> None:
    """Store the schedules of this version of Octavo.

    Changed times take effect, and disabled schedules stay disabled.
    """
    row = await (await connection.execute(SCHEDULE_QUERIES.engine_time)).fetchone()
    if row is None:
        raise AssertionError("the clock returns one row")
    for schedule in schedules:
        values = {
            "name": schedule.name,
            "kind": schedule.kind,
            "cron": schedule.cron,
            "input": Jsonb(schedule.input),
            "next_run_at": next_run(schedule.cron, row[0]),
        }
        await connection.execute(SCHEDULE_QUERIES.sync, values)


async def run_due(connection: Connection) -> int:
    """Enqueue the jobs of schedules that are due. Returns the number of jobs. Must be called in a transaction."""
    started = 0
    for due in await _due(connection):
        job = None if due.busy else await _start(connection, due, due.next_run_at)
        started += job is not None
        values = {"name": due.name, "next_run_at": next_run(due.cron, due.at), "job": job}
        await connection.execute(SCHEDULE_QUERIES.advance, values)
    return started


async def run_now(connection: Connection, name: str) -> UUID:
    """Enqueue the job of a schedule now, regardless of when it is due. Returns the id of the job."""
    async with connection.cursor(row_factory=class_row(DueSchedule)) as cursor:
        await cursor.execute(SCHEDULE_QUERIES.one, {"name": name})
        schedule = await cursor.fetchone()
    if schedule is None:
        raise NotFound(f"Schedule {name}.")
    job = await _start(connection, schedule, schedule.at)
    await connection.execute(
        SCHEDULE_QUERIES.advance, {"name": name, "next_run_at": next_run(schedule.cron, schedule.at), "job": job}
    )
    return job


async def list_schedules(connection: Connection) -> list[ScheduleState]:
    async with connection.cursor(row_factory=class_row(ScheduleState)) as cursor:
        await cursor.execute(SCHEDULE_QUERIES.all)
        return await cursor.fetchall()


async def enable(connection: Connection, name: str, *, enabled: bool) -> None:
    cursor = await connection.execute(SCHEDULE_QUERIES.enable, {"name": name, "enabled": enabled})
    if cursor.rowcount == 0:
        raise NotFound(f"Schedule {name}.")


async def _due(connection: Connection) -> list[DueSchedule]:
    async with connection.cursor(row_factory=class_row(DueSchedule)) as cursor:
        await cursor.execute(SCHEDULE_QUERIES.due)
        return await cursor.fetchall()


async def _start(connection: Connection, schedule: DueSchedule, planned: datetime) -> UUID:
    row = await (await connection.execute(SCHEDULE_QUERIES.local_owner)).fetchone()
    if row is None:
        raise NotFound("The local owner, which scheduled jobs belong to, is missing. Run `octavo migrate`.")
    job = NewJob(
        schedule.kind,
        row[0],
        schedule.input,
        key=f"schedule:{schedule.name}:{planned.astimezone(UTC).isoformat()}",
        priority=PRIORITY,
    )
    (made,) = await enqueue(connection, [job])
    return made.id
