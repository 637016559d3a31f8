"""A worker and a transaction that locks many jobs, as the deletion of documents does, never wait for each other."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import UUID

import psycopg

from tests.support.engine import Engine
from tests.support.processes import wait_until

LOCK = "SELECT FROM jobs WHERE id = %s FOR UPDATE"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


@contextmanager
def deletion(info: str) -> Generator[psycopg.Connection]:
    """A transaction of another process. It fails, rather than waits, if it meets a worker that waits for it."""
    with psycopg.connect(info) as connection:
        connection.execute("SET lock_timeout = '2s'")
        yield connection


def test_a_worker_waits_for_its_jobs_before_it_locks_others(engine: Engine, engine_database: str, owner: UUID) -> None:
    running = engine.put(owner)[0]
    job = engine.claim_one()
    assert job.id == running
    queued = engine.put(owner)[0]
    with ThreadPoolExecutor(1) as pool, deletion(engine_database) as other:
        other.execute(LOCK, [running])
        exchanged = pool.submit(engine.claim, finished=[job])
        wait_until(lambda: engine_waits(engine_database), "the worker waits for its job")
        other.execute(LOCK, [queued])
        other.commit()
        assert [one.id for one in exchanged.result()] == [queued]


def test_a_worker_with_a_cap_does_not_wait_for_a_job_and_the_job_is_admitted_later(
    engine: Engine, engine_database: str, owner: UUID
) -> None:
    first, second = (engine.put(owner, cap_key="analysis:1", cap=1)[0] for _ in range(2))
    job = engine.claim_one()
    assert job.id == first
    with deletion(engine_database) as other:
        other.execute(LOCK, [second])
        engine.run("SET lock_timeout = '2s'")
        engine.complete(job)
        other.rollback()
    assert engine.taken("analysis:1") == 0
    engine.pass_time()
    assert engine.claim_one().id == second


def engine_waits(info: str) -> bool:
    with psycopg.connect(info, autocommit=True) as connection:
        row = connection.execute(WAITING).fetchone()
    return bool(row and row[0])
