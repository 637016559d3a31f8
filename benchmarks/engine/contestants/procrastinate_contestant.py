"""procrastinate in the contest: an asyncio worker on a psycopg pool, woken by LISTEN/NOTIFY."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from procrastinate import App, PsycopgConnector

from benchmarks.engine.contestants.protocol import Contestant, Tally, serve

UNFINISHED = "SELECT count(*) AS jobs FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
ENQUEUER_CONNECTIONS = 2


class Procrastinate(Contestant):
    library = "procrastinate"
    choices = (
        "It has no batches: every fetch takes one job, so `in tens` is `concurrency=10`.",
        "An async task, because a sync one is handed to a thread.",
        "`listen_notify=True` and `fetch_job_polling_interval=5` (its defaults); finished jobs are kept (its default).",
        (
            "A pool with two connections more than the concurrency, opened before the clock starts; "
            "its connector checks every connection that it takes from the pool, which cannot be turned off there."
        ),
    )

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url)
        self._runner = asyncio.Runner()
        self._tally = Tally()
        self._app = self._make_app(ENQUEUER_CONNECTIONS)

    def _make_app(self, connections: int) -> App:
        app = App(connector=PsycopgConnector(conninfo=self.database_url, min_size=connections, max_size=connections))
        app.task(self._run_job, name="plain")
        return app

    async def _run_job(self) -> None:
        self._tally.record()

    def prepare(self, batch: int) -> None:  # noqa: ARG002
        self._runner.run(self._app.connector.open_async())
        self._runner.run(self._app.schema_manager.apply_schema_async())

    def enqueue(self, kind: str, count: int) -> None:
        self._runner.run(self._app.tasks[kind].batch_defer_async(*({} for _ in range(count))))

    def offer(self) -> None:
        self._runner.run(self._app.tasks["plain"].defer_async())

    def unfinished(self) -> int:
        return self._runner.run(self._app.connector.execute_query_one_async(UNFINISHED))["jobs"]

    def work(self, batch: int, tally: Tally, wait_for_start: Callable[[], None]) -> None:
        self._tally = tally
        self._runner.run(self._work(batch, wait_for_start))

    async def _work(self, batch: int, wait_for_start: Callable[[], None]) -> None:
        app = self._make_app(batch + 2)
        async with app.open_async():
            wait_for_start()
            await app.run_worker_async(concurrency=batch, listen_notify=True, install_signal_handlers=False)


if __name__ == "__main__":
    serve(Procrastinate)
