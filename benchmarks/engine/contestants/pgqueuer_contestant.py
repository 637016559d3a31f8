"""pgqueuer in the contest: set up as its performance page and its own benchmark tool do it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.engine.contestants.protocol import Contestant, Tally, serve

UNFINISHED = "SELECT count(*) AS jobs FROM pgqueuer"


class Pgqueuer(Contestant):
    library = "pgqueuer"
    choices = (
        "asyncpg on uvloop and one direct connection per worker, as its benchmark tool does and its checklist says.",
        "`optimize_autovacuum` after the installation (its checklist); durability `durable` (its default).",
        (
            "`batch_size` is 1 or 10. There is no limit on concurrent tasks: a limit makes its fetch slower, "
            "and it refuses one below twice the batch size."
        ),
        "It writes the ends of jobs in groups, up to 0.1 s later; until then a job that has run may run again.",
    )

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url)
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)

    def prepare(self, batch: int) -> None:  # noqa: ARG002
        self._runner.run(self._prepare())

    async def _prepare(self) -> None:
        self._queries = Queries(AsyncpgDriver(await asyncpg.connect(self.database_url)))
        await self._queries.install()
        await self._queries.optimize_autovacuum()

    def enqueue(self, kind: str, count: int) -> None:
        self._runner.run(self._queries.enqueue([kind] * count, [None] * count, [0] * count))

    def offer(self) -> None:
        self._runner.run(self._queries.enqueue("plain", None))

    def unfinished(self) -> int:
        return int(self._runner.run(self._queries.driver.fetch(UNFINISHED))[0]["jobs"])

    def work(self, batch: int, tally: Tally, wait_for_start: Callable[[], None]) -> None:
        self._runner.run(self._work(batch, tally, wait_for_start))

    async def _work(self, batch: int, tally: Tally, wait_for_start: Callable[[], None]) -> None:
        queuer = PgQueuer.from_asyncpg_connection(await asyncpg.connect(self.database_url))

        @queuer.entrypoint("plain")
        async def run_job(job: Job) -> None:  # noqa: ARG001
            tally.record()

        wait_for_start()
        await queuer.run(batch_size=batch)


if __name__ == "__main__":
    serve(Pgqueuer)
