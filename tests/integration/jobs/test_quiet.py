"""A worker without jobs leaves the database alone, and still starts each job when it is due."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg

from octavo.core.settings import Settings
from octavo.core.types import JSON
from octavo.database import Database
from octavo.deliver.deliveries import relay
from octavo.intake.sources.definitions import add_source
from octavo.intake.sources.folders import FolderReader
from octavo.intake.sources.places import SourcePlan
from octavo.intake.sources.watching import SourceWatch
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind, Kinds
from octavo.jobs.queue import NewJob, enqueue
from octavo.jobs.worker import Chore, Worker
from octavo.jobs.worker_state import WorkerLimits
from tests.support.engine import engine_on
from tests.support.processes import wait_until

COUNTED = (
    "SELECT (xact_commit + xact_rollback)::integer FROM pg_stat_database WHERE datname = current_database()",
    "SELECT count(*)::integer FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
)
# Backends report what they counted with the next transaction, so the first poll ends the count of the start.
POLL_SECONDS, SETTLE_SECONDS, SECONDS = 2, 3, 6


class WatchedChore:
    """A chore that records when it was called. The pauses after it double while nothing happens: 1, 2, 4 seconds."""

    def __init__(self, chore: Chore) -> None:
        self._chore = chore
        self._calls: list[float] = []

    async def __call__(self, database: Database) -> float:
        pause = await self._chore(database)
        self._calls.append(time.monotonic())
        return pause

    async def is_quiet(self) -> None:
        """Wait for a call after a pause of two seconds, because the next pause takes four."""

        def has_paused() -> bool:
            return len(self._calls) > 1 and self._calls[-1] - self._calls[-2] >= 2

        await asyncio.to_thread(wait_until, has_paused, "the pauses have grown")


@asynccontextmanager
async def working(
    info: str, started: list[float], chores: Sequence[Chore] = (), quiet_seconds: float = 4
) -> AsyncGenerator[Database]:
    async def note(run: Run[None]) -> JSON:
        del run
        started.append(time.monotonic())
        return None

    kinds: Kinds[None] = Kinds()
    kinds.add(JobKind("note", note, time_limit_seconds=60))
    stopping = asyncio.Event()
    async with Database(info, connections=4) as database:
        limits = WorkerLimits(quiet_seconds=quiet_seconds)
        worker = Worker(database, kinds, None, limits, chores=chores)
        running = asyncio.create_task(worker.run(stopping))
        try:
            yield database
        finally:
            stopping.set()
            await running


def count(info: str) -> tuple[int, int]:
    with psycopg.connect(info, autocommit=True) as connection:
        rows = [connection.execute(query).fetchone() for query in COUNTED]
    return rows[0][0] if rows[0] else 0, rows[1][0] if rows[1] else 0


async def test_a_worker_without_jobs_uses_two_connections_and_hardly_a_transaction(database_info: str) -> None:
    async with working(database_info, [], quiet_seconds=POLL_SECONDS):
        await asyncio.sleep(SETTLE_SECONDS)
        before, _ = await asyncio.to_thread(count, database_info)
        await asyncio.sleep(SECONDS)
        after, connections = await asyncio.to_thread(count, database_info)
    # Ten more are for the connections of this test and for autovacuum. A worker that polls makes six in a second.
    assert after - before <= 10 + SECONDS
    assert connections <= 3  # two, and the heartbeat for a moment


async def test_a_quiet_worker_starts_new_and_delayed_jobs_when_they_are_due(database_info: str) -> None:
    started: list[float] = []
    with engine_on(database_info) as engine:
        owner = engine.add_owner()
    async with working(database_info, started) as database:
        await asyncio.sleep(1)
        async with database.transaction() as connection:
            await enqueue(connection, [NewJob("note", owner), NewJob("note", owner, delay_seconds=2)])
        enqueued = time.monotonic()
        await asyncio.to_thread(wait_until, lambda: len(started) == 2, "both jobs started")
    assert started[0] - enqueued < 2
    assert 1.5 < started[1] - enqueued < 4


async def test_a_quiet_worker_relays_events_without_a_job_within_two_seconds(database_info: str) -> None:
    chore, relayed = WatchedChore(relay), "SELECT (SELECT id FROM relay) = max(id) FROM events"
    with engine_on(database_info) as engine:
        owner = engine.add_owner()

        def insert_one() -> float:
            engine.run("INSERT INTO events (process_id, kind, owner_id) VALUES (%s, 'rejected', %s)", owner, owner)
            inserted = time.monotonic()
            wait_until(lambda: engine.one(relayed), "the event was relayed")
            return time.monotonic() - inserted

        async with working(database_info, [], [chore]):
            await chore.is_quiet()
            assert await asyncio.to_thread(insert_one) < 2


async def test_a_quiet_worker_looks_at_a_source_when_it_is_added_and_when_it_is_due(
    database_info: str, tmp_path: Path
) -> None:
    with engine_on(database_info) as engine:
        owner = engine.add_owner()
        settings, inbox = Settings(data_dir=tmp_path / "data"), tmp_path / "inbox"
        inbox.mkdir()
        chore = WatchedChore(SourceWatch(["folder"], FolderReader))
        async with working(database_info, [], [chore]) as database:
            await chore.is_quiet()
            async with database.transaction() as connection:
                await add_source(connection, settings, owner, SourcePlan("folder", str(inbox), every_seconds=4))
            added, looked = time.monotonic(), "SELECT last_run_at FROM sources"
            await asyncio.to_thread(wait_until, lambda: engine.one(looked), "the folder was looked at")
            first, first_look = time.monotonic(), engine.one(looked)
            await asyncio.to_thread(wait_until, lambda: engine.one(looked) != first_look, "it was looked at again")
            second = time.monotonic()
    assert first - added < 2
    assert second - added < 6.5
