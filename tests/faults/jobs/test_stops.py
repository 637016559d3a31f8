"""Workers that are asked to stop, jobs that are cancelled, and a database that goes away and comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from octavo.database import migrate
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from tests.support.engine import Engine, Workers, engine_on, wait_for_end, workers_in
from tests.support.processes import takes_at_most, wait_until

EXIT_SECONDS = 30


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    """A database of this test's own, which it may treat as badly as it likes."""
    one = EmbeddedPostgres(DataFolder(folder / "database"))
    try:
        asyncio.run(migrate(one.start()))
        yield one
    finally:
        one.stop()


def crash_database(server: EmbeddedPostgres) -> None:
    """As `pg_ctl stop -m immediate` does: every connection is gone at once, and the server recovers at its start."""
    pid = server.pid()
    assert pid
    os.kill(pid, signal.SIGQUIT)
    wait_until(lambda: server.pid() is None, "the server is gone")


# Asked to stop ----------------------------------------------------------------------------------------------------


def test_a_worker_that_is_asked_to_stop_charges_nothing(engine: Engine, owner: UUID, workers: Workers) -> None:
    engine.put(owner, count=50, input={"stages": 2, "seconds": 7})
    worker = workers.start(worker_slots=50, lease_seconds=60)
    wait_until(lambda: len(workers.executions()) == 50, "all have begun")
    asked = time.monotonic()
    worker.terminate()
    assert worker.wait(EXIT_SECONDS + 10) == 0
    assert time.monotonic() - asked <= EXIT_SECONDS
    assert engine.statuses() == {"queued": 50}
    assert engine.rows("SELECT FROM workers") == []
    engine.run("""UPDATE jobs SET input = '{"stages": 2}'""")
    workers.start(worker_slots=50)
    wait_for_end(engine)
    assert engine.statuses() == {"complete": 50}
    assert engine.rows("SELECT FROM jobs WHERE failures > 0 OR attempt <> 2") == []


def test_jobs_that_end_within_the_grace_are_finished(engine: Engine, owner: UUID, workers: Workers) -> None:
    engine.put(owner, count=10, input={"stages": 1, "seconds": 1})
    worker = workers.start()
    wait_until(lambda: len(workers.executions()) == 10, "all have begun")
    worker.terminate()
    assert worker.wait(EXIT_SECONDS) == 0
    assert engine.statuses() == {"complete": 10}
    assert engine.one("SELECT max(attempt) FROM jobs") == 1


def test_a_worker_whose_database_is_away_stops_too(server: EmbeddedPostgres, folder: Path) -> None:
    with workers_in(folder, server.connection_info()) as workers:
        with engine_on(server.connection_info()) as engine:
            engine.put(engine.add_owner(), input={"stages": 1, "seconds": 60})
            worker = workers.start()
            wait_until(workers.executions, "it has begun")
        crash_database(server)
        wait_until(lambda: "leases not renewed" in workers.log.read_text(), "it has noticed")
        worker.terminate()
        worker.wait(EXIT_SECONDS)


# Cancelled --------------------------------------------------------------------------------------------------------


def test_a_cancelled_job_is_stopped_within_two_seconds(engine: Engine, owner: UUID, workers: Workers) -> None:
    """Its slot is free again, so the next job begins; the lease is the ordinary one."""
    workers.start(worker_slots=1, lease_seconds=60)

    def cancel_one() -> float:
        (job,) = engine.put(owner, input={"stages": 1, "seconds": 60})
        wait_until(lambda: workers.executions()[-1:] == [(job, "stage-1", 1)], "it has begun")
        (following,) = engine.put(owner, input={"stages": 1})
        engine.cancel(job)
        asked = time.monotonic()
        wait_until(lambda: str(job) in workers.log.read_text(), "its worker stops it")
        took = time.monotonic() - asked
        wait_until(lambda: engine.status(following) == "complete", "the next one runs")
        assert (engine.status(job), engine.stages(job)) == ("cancelled", [])
        return took

    assert takes_at_most(2, cancel_one)
    assert "lease lost" in workers.log.read_text()


# The database away ------------------------------------------------------------------------------------------------


def test_five_restarts_of_the_database_lose_and_double_nothing(server: EmbeddedPostgres, folder: Path) -> None:
    info = server.connection_info()
    with workers_in(folder, info, lease_seconds=5) as workers:
        with engine_on(info) as engine:
            jobs = engine.put(engine.add_owner(), count=250, input={"stages": 2, "seconds": 0.1})
        processes = [workers.start(), workers.start()]
        for number in range(1, 6):
            wait_until(lambda least=number * 60: len(workers.executions()) >= least, "work goes on")
            crash_database(server)
            server.start()
        with engine_on(info) as engine:
            wait_for_end(engine)
            assert engine.statuses() == {"complete": 250}
            assert engine.one("SELECT count(*) FROM job_stages") == 500
            doubled = (
                "SELECT FROM events WHERE kind = 'stage' GROUP BY process_id, detail ->> 'stage' HAVING count(*) > 1"
            )
            assert engine.rows(doubled) == []
            assert len({job for job, _, _ in workers.executions()}) == len(jobs)
            engine.check_invariants()
        assert [process.poll() for process in processes] == [None, None]


def away(server: EmbeddedPostgres, folder: Path, seconds: float) -> None:
    info = server.connection_info()
    with workers_in(folder, info, lease_seconds=2) as workers:
        with engine_on(info) as engine:
            engine.put(engine.add_owner(), count=40, input={"stages": 4, "seconds": 0.2})
            processes = [workers.start(), workers.start()]
            wait_until(lambda: engine.one("SELECT count(*) FROM workers") == len(processes), "both are there")
        wait_until(lambda: len(workers.executions()) >= 25, "work goes on")
        crash_database(server)
        back = time.monotonic() + seconds
        wait_until(lambda: time.monotonic() > back, "time passes", seconds=seconds + 1)
        server.start()
        with engine_on(info) as engine:
            wait_for_end(engine)
            assert engine.statuses() == {"complete": 40}
            assert engine.one("SELECT count(*) FROM job_stages") == 160
            engine.check_invariants()
        assert [process.poll() for process in processes] == [None, None]


def test_a_database_that_is_away_for_a_while_is_waited_for(server: EmbeddedPostgres, folder: Path) -> None:
    away(server, folder, 3)  # longer than the lease


@pytest.mark.long
def test_a_database_that_is_away_for_long_is_waited_for(server: EmbeddedPostgres, folder: Path) -> None:
    away(server, folder, 30)


def test_an_outage_is_nobodys_failure(server: EmbeddedPostgres, folder: Path) -> None:
    """Leases that ran out while nobody could renew them say nothing about the jobs."""
    info = server.connection_info()
    with workers_in(folder, info, lease_seconds=2, worker_slots=5) as workers:
        with engine_on(info) as engine:
            engine.put(engine.add_owner(), count=10, input={"stages": 1, "seconds": 6})
        workers.start()
        workers.start()
        wait_until(lambda: len(workers.executions()) == 10, "all have begun")
        crash_database(server)
        back = time.monotonic() + 3
        wait_until(lambda: time.monotonic() > back, "time passes", seconds=5)
        server.start()
        with engine_on(info) as engine:
            first = "SELECT count(*) FROM jobs WHERE status = 'processing' AND attempt = 1"
            wait_until(lambda: engine.one(first) == 0, "all were handed back")
            assert engine.one("SELECT max(failures) FROM jobs") == 0
