"""Octavo in the contest: the worker as it is in production, with all its invariants, caps and events on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from benchmarks.engine.contestants.protocol import Contestant, Tally, serve
from octavo.core.types import JSON
from octavo.database import Connection, Database, connect, migrate
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind, Kinds, sync_kinds
from octavo.jobs.queue import NewJob, enqueue
from octavo.jobs.worker import Worker
from octavo.jobs.worker_state import WorkerLimits
from octavo.ops.logs import configure_logs
from octavo.owners import ensure_local_owner

AT_ONCE = 5000
STAGES = ("one", "two", "three", "four", "five")
UNFINISHED = b"SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing')"


def kinds_of(tally: Tally) -> Kinds[None]:
    async def plain(run: Run[None]) -> JSON:  # noqa: ARG001
        tally.record()

    async def staged(run: Run[None]) -> JSON:
        tally.record()
        for stage in STAGES:
            await run.stage(stage, nothing)

    kinds: Kinds[None] = Kinds()
    kinds.add(JobKind("plain", plain, time_limit_seconds=600))
    kinds.add(JobKind("staged", staged, time_limit_seconds=600))
    return kinds


async def nothing() -> JSON:
    return None


class Octavo(Contestant):
    library = "octavo"
    can_checkpoint = True
    choices = (
        "The production worker: fencing, an event for every transition, invariants and caps checked, leases renewed.",
        "A visit claims at most as many jobs as the batch size; one at a time has one slot, tens have three times ten.",
    )

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url)
        self._runner = asyncio.Runner()

    def prepare(self, batch: int) -> None:  # noqa: ARG002
        self._runner.run(self._prepare())

    async def _prepare(self) -> None:
        await migrate(self.database_url)
        self._connection: Connection = await connect(self.database_url)
        async with self._connection.transaction():
            await ensure_local_owner(self._connection)
            await sync_kinds(self._connection, kinds_of(Tally()))
        row = await (await self._connection.execute(b"SELECT id FROM owners")).fetchone()
        assert row
        self._owner = row[0]

    def enqueue(self, kind: str, count: int) -> None:
        for start in range(0, count, AT_ONCE):
            jobs = [NewJob(kind, self._owner) for _ in range(min(AT_ONCE, count - start))]
            self._runner.run(enqueue(self._connection, jobs))

    def offer(self) -> None:
        self._runner.run(enqueue(self._connection, [NewJob("plain", self._owner)]))

    def unfinished(self) -> int:
        async def count() -> int:
            row = await (await self._connection.execute(UNFINISHED)).fetchone()
            return int(row[0]) if row else 0

        return self._runner.run(count())

    def work(self, batch: int, tally: Tally, wait_for_start: Callable[[], None]) -> None:
        configure_logs("warning", "json")
        self._runner.run(self._work(batch, tally, wait_for_start))

    async def _work(self, batch: int, tally: Tally, wait_for_start: Callable[[], None]) -> None:
        async with Database(self.database_url, connections=batch + 4) as database:
            async with database.connection():
                wait_for_start()
            slots = batch if batch == 1 else 3 * batch
            worker = Worker(database, kinds_of(tally), None, WorkerLimits(slots=slots, batch=batch))
            await worker.run(asyncio.Event())


if __name__ == "__main__":
    serve(Octavo)
