"""Somebody with a thousand jobs in line delays nobody else."""

from __future__ import annotations

from uuid import UUID

from tests.support.engine import Engine, Workers
from tests.support.processes import wait_until

OVERTAKEN = """
    SELECT count(*) FROM events
    WHERE kind = 'processing' AND owner_id = %s
      AND id > %s
      AND id < (SELECT id FROM events WHERE process_id = %s AND kind = 'processing')
"""


def test_a_single_job_waits_for_one_of_anothers_thousand_at_most(engine: Engine, owner: UUID, workers: Workers) -> None:
    engine.put(owner, count=1000, input={"stages": 1, "seconds": 0.02})
    workers.start(worker_slots=1)
    wait_until(lambda: len(workers.executions()) >= 20, "the thousand are being worked on")
    (single,) = engine.put(engine.add_owner())
    added = engine.one("SELECT max(id) FROM events")  # the job is there for everybody, one claim may have begun before
    wait_until(lambda: engine.job(single)["status"] == "complete", "the other owner's job is done")
    assert engine.one("SELECT count(*) FROM jobs WHERE status = 'queued'") > 500
    assert engine.one(OVERTAKEN, owner, added, single) <= 1
