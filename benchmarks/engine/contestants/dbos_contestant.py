"""DBOS in the contest: workflows on a queue that is asked as often as it allows."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions, run_dbos_database_migrations

from benchmarks.engine.contestants.protocol import Contestant, Tally, serve

APPLICATION, VERSION, QUEUE = "contest", "1", "contest"
STAGES = 5
# Anything above 0 is allowed; below this, polling takes so much of the processor that fewer jobs are done.
POLLING_SECONDS = 0.003
UNFINISHED = sqlalchemy.text(
    "SELECT count(*) FROM dbos.workflow_status WHERE status NOT IN ('SUCCESS', 'ERROR', 'CANCELLED')"
)


class Dbos(Contestant):
    library = "dbos"
    can_checkpoint = True
    choices = (
        "A job is a `@DBOS.workflow` without steps; a five-stage job is one with five `@DBOS.step`.",
        "Sync workflows: async ones were no faster without steps and a tenth slower with five.",
        (
            f"`worker_concurrency` is 1 or 10 (it has no batches: a fetch fills the free places) and "
            f"`polling_interval_sec={POLLING_SECONDS}`, because queues are polled, not notified."
        ),
        "No queue-wide limit, so that fetches skip locked rows; console log at ERROR.",
        (
            "Its worker cannot connect without starting, so the connections are opened after the start signal, "
            "but before the first job."
        ),
    )

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url)
        self._tally = Tally()
        self._options = EnqueueOptions(
            queue_name=QUEUE, workflow_name="plain", app_version=VERSION, application_name=APPLICATION
        )

    def prepare(self, batch: int) -> None:
        run_dbos_database_migrations(self.database_url)
        self._engine = sqlalchemy.create_engine(self.database_url.replace("postgresql", "postgresql+psycopg", 1))
        self._client = DBOSClient(system_database_url=self.database_url, application_name=APPLICATION)
        self._client.register_queue(QUEUE, worker_concurrency=batch, polling_interval_sec=POLLING_SECONDS)

    def enqueue(self, kind: str, count: int) -> None:
        options = EnqueueOptions(**{**self._options, "workflow_name": kind})
        with self._engine.begin() as connection:
            for _ in range(count):
                self._client.enqueue_in_transaction(connection, options)

    def offer(self) -> None:
        self._client.enqueue(self._options)

    def unfinished(self) -> int:
        with self._engine.connect() as connection:
            return connection.execute(UNFINISHED).scalar_one()

    def work(self, batch: int, tally: Tally, wait_for_start: Callable[[], None]) -> None:  # noqa: ARG002
        self._tally = tally
        config = DBOSConfig(
            name=APPLICATION,
            system_database_url=self.database_url,
            application_version=VERSION,
            executor_id=str(os.getpid()),
            log_level="ERROR",
        )
        DBOS(config=config)
        self._register()
        DBOS.listen_queues([QUEUE])
        wait_for_start()
        DBOS.launch()
        threading.Event().wait()

    def _register(self) -> None:
        @DBOS.workflow(name="plain")
        def run_plain() -> None:
            self._tally.record()

        @DBOS.step()
        def run_stage() -> None:
            pass

        @DBOS.workflow(name="staged")
        def run_staged() -> None:
            self._tally.record()
            for _ in range(STAGES):
                run_stage()


if __name__ == "__main__":
    serve(Dbos)
