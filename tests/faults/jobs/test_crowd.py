"""Many claimers at once, some of which die: caps hold at every moment, and every slot comes back."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.errors import DeadlockDetected
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.database import Connection, connect, newest_known
from octavo.jobs.job_run import ClaimedJob
from tests.support.engine import FROM_THE_BEGINNING, QUERIES, Engine, leases, most_at_once

CLAIMERS = 40
KEYS = 20
CAP = 5
ABANDONED = 0.03


async def claimer(info: str, seed: int, left: list[int], met: list[UUID]) -> None:
    """Takes, finishes and now and then forgets jobs, until all are complete."""
    chance, worker = random.Random(seed), uuid4()
    held: list[ClaimedJob] = []
    async with await connect(info) as connection:
        while left[0] > 0:
            finished, held = held, []
            try:
                claimed = await exchange(connection, worker, finished)
            except DeadlockDetected:  # two met, and one of them comes again, as a worker does
                held = finished
                met.append(worker)
                continue
            for job in claimed:
                if chance.random() < ABANDONED and job.attempt < 3:
                    await connection.execute(b"UPDATE jobs SET lease_expires_at = engine_now() WHERE id = %s", [job.id])
                else:
                    held.append(job)
            if not held:
                values = {"taking_over": True, "newest_known": newest_known(), "worker": worker}
                await connection.execute(QUERIES.pass_time, values)
                row = await (
                    await connection.execute(b"SELECT count(*) FROM jobs WHERE status <> 'complete'")
                ).fetchone()
                left[0] = row[0] if row else 0


async def exchange(connection: Connection, worker: UUID, finished: list[ClaimedJob]) -> list[ClaimedJob]:
    values: dict[str, Any] = {"worker": worker, "kinds": ["demo"], "slots": 3, "lease": 60}
    values |= {"outputs": Jsonb([{} for _ in finished]), **leases(finished), **FROM_THE_BEGINNING}
    async with connection.cursor(row_factory=class_row(ClaimedJob)) as cursor:
        await cursor.execute(QUERIES.exchange, values)
        return await cursor.fetchall()


async def crowd(engine: Engine, owner: UUID, jobs: int) -> None:
    for key in range(KEYS):
        engine.put(owner, count=jobs // KEYS, cap_key=f"key-{key}", cap=CAP, max_attempts=9)
    left = [jobs]
    met: list[UUID] = []
    async with asyncio.timeout(300):
        await asyncio.gather(*(claimer(engine.info, seed, left, met) for seed in range(CLAIMERS)))
    assert engine.statuses() == {"complete": jobs}
    assert len(met) <= jobs // 1000
    most = most_at_once(engine)
    assert len(most) == KEYS
    assert max(most.values()) <= CAP
    assert engine.one("SELECT sum(taken) FROM caps") == 0
    assert engine.one("SELECT count(*) FROM jobs WHERE attempt > 1") > jobs // 100


@pytest.mark.parametrize("jobs", [1000, pytest.param(5000, marks=pytest.mark.long)])
async def test_caps_hold_over_forty_claimers(engine: Engine, owner: UUID, jobs: int) -> None:
    """Fifty jobs for each of the twenty keys; the long form has more."""
    await crowd(engine, owner, jobs)
