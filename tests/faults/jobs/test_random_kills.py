"""Workers killed at random moments, hundreds of times: in the end everything is as if nothing had happened."""

from __future__ import annotations

import random
import time
from uuid import UUID

import pytest

from tests.support.engine import Engine, Workers

STAGES = 5
WORKERS = 3
MOST_PAUSE_SECONDS = 1.0


def put(engine: Engine, owner: UUID, count: int) -> list[UUID]:
    return engine.put(owner, count=count, cap_key="few", cap=8, input={"stages": STAGES, "seconds": 0.03})


def unfinished(engine: Engine) -> int:
    return engine.one("SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing')")


def kill_at_random(engine: Engine, owner: UUID, workers: Workers, kills: int, jobs: int) -> None:
    """Jobs come in as workers are killed, and as a supervisor would, the test starts one for each that it killed."""
    chance = random.Random(kills)
    expected = set(put(engine, owner, jobs // 5))
    alive = [workers.start(lease_seconds=1, worker_slots=5) for _ in range(WORKERS)]
    deadline = time.monotonic() + 60 + 3 * jobs
    for number in range(kills, 0, -1):
        time.sleep(chance.random() * MOST_PAUSE_SECONDS)
        place = chance.randrange(WORKERS)
        alive[place].kill()
        alive[place] = workers.start(lease_seconds=1, worker_slots=5)
        expected.update(put(engine, owner, (jobs - len(expected)) // number))
    while unfinished(engine):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert len(expected) == jobs
    assert engine.one("SELECT count(*) FROM events WHERE detail ->> 'reason' = 'lease_expired'") > kills / 10
    rows = engine.rows("SELECT id, status, output FROM jobs")
    assert {(row["id"], row["status"], row["output"]["stages"]) for row in rows} == {
        (job, "complete", STAGES) for job in expected
    }
    wrong = "SELECT job_id FROM job_stages GROUP BY job_id HAVING array_agg(stage ORDER BY finished_at) <> %s"
    assert engine.rows(wrong, [f"stage-{number}" for number in range(1, STAGES + 1)]) == []
    assert engine.one("SELECT count(*) FROM job_stages") == STAGES * jobs
    begun = workers.executions()
    assert len(set(begun)) == len(begun)
    engine.check_invariants()


@pytest.mark.long
@pytest.mark.parametrize(("kills", "jobs"), [(60, 150), (500, 1000)])
def test_random_kills_change_nothing(engine: Engine, owner: UUID, workers: Workers, kills: int, jobs: int) -> None:
    kill_at_random(engine, owner, workers, kills, jobs)
