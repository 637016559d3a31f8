"""Scheduled jobs. Each run is started by only one worker. If several runs were missed, only one is started.

Times are UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from cronsim import CronSim, CronSimError
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.core.errors import BadInput, NotFound
from octavo.core.types import JSON
from octavo.database import Connection, load_queries
from octavo.jobs.queue import NewJob, enqueue

QUERIES = load_queries("schedules")
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
    row = await (await connection.execute(QUERIES.engine_time)).fetchone()
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
        await connection.execute(QUERIES.sync, values)


async def run_due(connection: Connection) -> int:
    """Enqueue the jobs of schedules that are due. Returns the number of jobs. Must be called in a transaction."""
    started = 0
    for due in await _due(connection):
        job = None if due.busy else await _start(connection, due, due.next_run_at)
        started += job is not None
        values = {"name": due.name, "next_run_at": next_run(due.cron, due.at), "job": job}
        await connection.execute(QUERIES.advance, values)
    return started


async def run_now(connection: Connection, name: str) -> UUID:
    """Run a schedule now, regardless of when it is due."""
    async with connection.cursor(row_factory=class_row(DueSchedule)) as cursor:
        await cursor.execute(QUERIES.one, {"name": name})
        schedule = await cursor.fetchone()
    if schedule is None:
        raise NotFound(f"Schedule {name}.")
    job = await _start(connection, schedule, schedule.at)
    await connection.execute(
        QUERIES.advance, {"name": name, "next_run_at": next_run(schedule.cron, schedule.at), "job": job}
    )
    return job


async def list_schedules(connection: Connection) -> list[ScheduleState]:
    async with connection.cursor(row_factory=class_row(ScheduleState)) as cursor:
        await cursor.execute(QUERIES.all)
        return await cursor.fetchall()


async def enable(connection: Connection, name: str, *, enabled: bool) -> None:
    cursor = await connection.execute(QUERIES.enable, {"name": name, "enabled": enabled})
    if cursor.rowcount == 0:
        raise NotFound(f"Schedule {name}.")


async def _due(connection: Connection) -> list[DueSchedule]:
    async with connection.cursor(row_factory=class_row(DueSchedule)) as cursor:
        await cursor.execute(QUERIES.due)
        return await cursor.fetchall()


async def _start(connection: Connection, schedule: DueSchedule, planned: datetime) -> UUID:
    row = await (await connection.execute(QUERIES.local_owner)).fetchone()
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
