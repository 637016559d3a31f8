"""Schedules: once across all workers, missed runs collapse, and none starts while its last run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from octavo.core.errors import NotFound
from octavo.core.types import JSON
from octavo.database import Connection, connect
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import (
    BadCron,
    JobKind,
    Kinds,
    Schedule,
    enable,
    list_schedules,
    next_run,
    run_due,
    run_now,
    sync_kinds,
    sync_schedules,
)
from octavo.jobs.queue import cancel
from octavo.owners import ensure_local_owner

HOURLY = Schedule("tidy", "tidy", "0 * * * *")


async def tidy(run: Run[None]) -> JSON:
    return None


@pytest.fixture
async def connection(any_database_info: str) -> AsyncIterator[Connection]:
    kinds: Kinds[None] = Kinds()
    kinds.add(JobKind("tidy", tidy, time_limit_seconds=60))
    async with await connect(any_database_info) as one:
        await ensure_local_owner(one)
        await sync_kinds(one, kinds)
        await sync_schedules(one, [HOURLY])
        yield one


async def pass_hours(connection: Connection, hours: int) -> None:
    await connection.execute(b"UPDATE engine_clock SET shift = shift + make_interval(hours => %s)", [hours])


async def due(connection: Connection) -> int:
    async with connection.transaction():
        return await run_due(connection)


async def test_it_starts_when_its_time_has_come_and_not_before(connection: Connection) -> None:
    assert await due(connection) == 0
    await pass_hours(connection, 1)
    assert await due(connection) == 1
    assert await due(connection) == 0
    (state,) = await list_schedules(connection)
    assert (state.last_status, state.last_run_at is not None) == ("queued", True)
    assert state.last_run_at is not None
    assert state.next_run_at > state.last_run_at


async def test_ten_parallel_workers_start_a_schedule_once(connection: Connection, any_database_info: str) -> None:
    await pass_hours(connection, 1)

    async def look() -> int:
        async with await connect(any_database_info) as one:
            return await due(one)

    assert sum(await asyncio.gather(*(look() for _ in range(10)))) == 1


async def test_missed_runs_collapse_into_one(connection: Connection) -> None:
    await pass_hours(connection, 50)
    assert await due(connection) == 1
    assert await due(connection) == 0


async def test_it_is_skipped_while_its_last_run_goes_on(connection: Connection) -> None:
    await pass_hours(connection, 1)
    assert await due(connection) == 1
    await pass_hours(connection, 1)
    assert await due(connection) == 0
    (state,) = await list_schedules(connection)
    assert state.last_job_id is not None
    await cancel(connection, state.last_job_id)
    await pass_hours(connection, 1)
    assert await due(connection) == 1


async def test_any_can_be_run_now_and_switched_off(connection: Connection) -> None:
    job = await run_now(connection, "tidy")
    (state,) = await list_schedules(connection)
    assert state.last_job_id == job
    await cancel(connection, job)
    await enable(connection, "tidy", enabled=False)
    await pass_hours(connection, 2)
    assert await due(connection) == 0


async def test_a_restart_keeps_the_plan_and_a_persons_switch(connection: Connection) -> None:
    await enable(connection, "tidy", enabled=False)
    (before,) = await list_schedules(connection)
    await pass_hours(connection, 5)
    await sync_schedules(connection, [HOURLY])
    assert await list_schedules(connection) == [before]


async def test_an_unknown_name_is_reported(connection: Connection) -> None:
    with pytest.raises(NotFound, match="Schedule other"):
        await run_now(connection, "other")
    with pytest.raises(NotFound, match="Schedule other"):
        await enable(connection, "other", enabled=True)


def test_times_are_utc_and_a_wrong_one_is_refused() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert next_run("30 3 * * *", noon) == datetime(2026, 1, 2, 3, 30, tzinfo=UTC)
    with pytest.raises(BadCron):
        next_run("at noon", noon)
