"""Putting jobs in line and taking them: once under a key, in a fair order, never more than there is room for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from octavo.core.errors import ErrorClass
from octavo.jobs.queue import NewJob, enqueue
from tests.support.engine import QUERIES, Engine


def enqueue_on(connection: psycopg.Connection[TupleRow], job: NewJob) -> tuple[UUID, bool]:
    answer = connection.execute(QUERIES.enqueue, {"wanted": Jsonb([job.as_json()])}).fetchone()
    assert answer
    return answer[0], answer[1]


# Enqueue ----------------------------------------------------------------------------------------------------------


def test_a_job_of_a_rolled_back_transaction_was_never_there(engine: Engine, owner: UUID) -> None:
    job = NewJob("demo", owner, cap_key="analysis", cap=2)
    with psycopg.connect(engine.info) as connection:
        enqueue_on(connection, job)
        connection.rollback()
    assert engine.rows("SELECT FROM jobs") == engine.rows("SELECT FROM events") == engine.rows("SELECT FROM caps") == []


def test_nobody_sees_a_job_before_its_transaction_is_committed(engine: Engine, owner: UUID) -> None:
    with psycopg.connect(engine.info) as connection:
        job, _ = enqueue_on(connection, NewJob("demo", owner))
        assert engine.claim() == []
        connection.commit()
    assert engine.claim_one().id == job


def test_a_key_is_put_in_line_once(engine: Engine, owner: UUID) -> None:
    first, again = NewJob("demo", owner, key="chunks:1"), NewJob("demo", owner, key="chunks:1")
    assert engine.enqueue(first, again) == [(first.id, True), (first.id, False)]
    assert engine.enqueue(again) == [(first.id, False)]
    engine.complete(engine.claim_one())
    assert engine.enqueue(again) == [(first.id, False)]
    assert len(engine.events(first.id)) == 3


async def test_many_jobs_are_sent_in_pieces_and_keep_their_order(
    engine: Engine, owner: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("octavo.jobs.queue.AT_ONCE", 2)
    jobs = [NewJob("demo", owner, key=f"chunks:{number % 4}") for number in range(5)]
    async with await psycopg.AsyncConnection.connect(engine.info) as connection:
        made = await enqueue(connection, jobs)
    assert [(one.id, one.made) for one in made] == [*((job.id, True) for job in jobs[:4]), (jobs[0].id, False)]
    assert [engine.claim_one().id for _ in range(4)] == [job.id for job in jobs[:4]]


def test_a_key_is_one_owners_and_one_kinds(engine: Engine, owner: UUID) -> None:
    engine.add_kind("other")
    jobs = [NewJob("demo", owner, key="same"), NewJob("other", owner, key="same")]
    jobs.append(NewJob("demo", engine.add_owner(), key="same"))
    assert [made for _, made in engine.enqueue(*jobs)] == [True, True, True]


def test_twenty_parallel_jobs_with_one_key_are_one_job(engine: Engine, owner: UUID) -> None:
    def enqueue(_: int) -> tuple[UUID, bool]:
        with psycopg.connect(engine.info) as connection:
            return enqueue_on(connection, NewJob("demo", owner, key="once", cap_key="few", cap=1))

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(enqueue, range(20)))
    assert len({job for job, _ in answers}) == 1
    assert sum(made for _, made in answers) == 1
    assert engine.statuses() == {"queued": 1}
    assert len(engine.events(answers[0][0])) == 1


def test_an_unknown_kind_is_refused_by_name(engine: Engine, owner: UUID) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="there is no job kind nonsense"):
        engine.put(owner, "nonsense")


def test_a_delayed_job_is_claimed_when_it_is_due(engine: Engine, owner: UUID) -> None:
    engine.put(owner, delay_seconds=60)
    assert engine.claim() == []
    engine.advance(59)
    assert engine.claim() == []
    engine.advance(2)
    assert len(engine.claim()) == 1


# Order ------------------------------------------------------------------------------------------------------------


def test_priority_goes_before_age(engine: Engine, owner: UUID) -> None:
    jobs = [NewJob("demo", owner, priority=priority) for priority in (9, 5, 0, 5)]
    engine.enqueue(*jobs)
    order = [engine.claim_one().id for _ in jobs]
    assert order == [jobs[2].id, jobs[1].id, jobs[3].id, jobs[0].id]


def test_jobs_of_one_owner_are_claimed_in_the_order_they_came(engine: Engine, owner: UUID) -> None:
    jobs = [engine.put(owner)[0] for _ in range(5)] + engine.put(owner, count=5)
    assert [engine.claim_one().id for _ in jobs] == jobs


def test_a_thousand_jobs_of_one_owner_delay_anothers_single_job_by_one(engine: Engine, owner: UUID) -> None:
    engine.put(owner, count=1000)
    for _ in range(20):
        engine.claim_one()
    single = engine.put(engine.add_owner())[0]
    assert single in [engine.claim_one().id for _ in range(2)]


def test_owners_take_turns(engine: Engine, owner: UUID) -> None:
    other = engine.add_owner()
    engine.put(owner, count=50)
    engine.put(other, count=50)
    claimed = [engine.claim_one().owner_id for _ in range(20)]
    assert claimed.count(owner) == claimed.count(other) == 10


def test_a_retried_job_does_not_overtake_or_starve(engine: Engine, owner: UUID) -> None:
    (retried,) = engine.put(owner)
    engine.fail(engine.claim_one(), ErrorClass.TRANSIENT)
    engine.put(engine.add_owner(), count=100)
    for _ in range(20):
        engine.claim_one()
    engine.advance(10)
    assert retried in [engine.claim_one().id for _ in range(2)]


def test_a_claim_takes_at_most_the_free_slots(engine: Engine, owner: UUID) -> None:
    engine.put(owner, count=12)
    engine.put(owner, count=12, priority=1)
    assert [len(engine.claim(slots=7)) for _ in range(4)] == [7, 7, 7, 3]
    assert engine.claim(slots=0) == []


def test_a_claim_takes_only_kinds_that_the_worker_knows(engine: Engine, owner: UUID) -> None:
    engine.add_kind("other")
    engine.put(owner, "other")
    assert engine.claim() == []
    assert len(engine.claim(kinds=["demo", "other"])) == 1


def test_two_workers_never_get_the_same_job(engine: Engine, owner: UUID) -> None:
    engine.put(owner, count=200)

    def claim_all(_: int) -> list[UUID]:
        client = Engine(engine.info)
        with client.connection:
            return [job.id for _ in range(100) for job in client.claim(slots=3)]

    with ThreadPoolExecutor(6) as pool:
        claimed = [job for jobs in pool.map(claim_all, range(6)) for job in jobs]
    assert len(claimed) == len(set(claimed)) == 200


# Starts per second ------------------------------------------------------------------------------------------------


def test_a_kind_starts_no_faster_than_its_rate(engine: Engine, owner: UUID) -> None:
    engine.add_kind("slow", rate=2)
    engine.put(owner, "slow", 10, cap_key="slow ones", cap=6)
    started = 0
    for _ in range(20):
        claimed = engine.claim(slots=10, kinds=["slow"])
        engine.check_invariants()
        started += len(engine.complete(*claimed))
        engine.advance(0.25)
    assert started == 10
    starts = [row["started_at"] for row in engine.rows("SELECT started_at FROM jobs ORDER BY started_at")]
    assert all(later - earlier >= timedelta(seconds=0.5) for earlier, later in pairwise(starts))


def test_a_fast_rate_is_reached_although_postponed_jobs_are_ready_only_four_times_a_second(
    engine: Engine, owner: UUID
) -> None:
    engine.add_kind("quick", rate=20)
    engine.put(owner, "quick", count=60)
    started = 0
    for _ in range(8):
        started += len(engine.claim(slots=60, kinds=("quick",)))
        engine.advance(0.25)
    assert 35 <= started <= 50


def test_a_rate_holds_up_its_own_kind_only(engine: Engine, owner: UUID) -> None:
    engine.add_kind("slow", rate=1)
    engine.put(owner, "slow", 5)
    engine.put(owner, count=5)
    claimed = [job.kind for job in engine.claim(slots=10, kinds=["slow", "demo"])]
    assert sorted(claimed) == ["demo"] * 5 + ["slow"]


# After a crash ----------------------------------------------------------------------------------------------------


def suspect(engine: Engine, owner: UUID, count: int = 1, **more: Any) -> list[UUID]:  # noqa: ANN401
    """Jobs that two workers claimed and were never heard of again."""
    jobs = engine.put(owner, count=count, **more)
    for _ in range(2):
        engine.claim(slots=count, lease=1)
        engine.advance(2)
    engine.pass_time()
    engine.advance(2)
    engine.pass_time()
    assert all(engine.job(job)["alone"] for job in jobs)
    return jobs


def test_a_suspected_job_takes_one_slot_and_all_others_go_on_beside_it(engine: Engine, owner: UUID) -> None:
    (job,) = suspect(engine, owner)
    others = engine.put(owner, count=20)
    worker = uuid4()
    first = engine.claim(worker, slots=5)
    assert [one.id for one in first] == [job, *others[:4]]
    engine.complete(*first[1:])
    assert [one.id for one in engine.claim(worker, slots=4)] == others[4:8]


def test_a_busy_worker_claims_a_suspected_job_too(engine: Engine, owner: UUID) -> None:
    (job,) = suspect(engine, owner)
    engine.put(owner, count=3, priority=1)
    worker = uuid4()
    assert len(engine.claim(worker, slots=3)) == 3
    assert engine.claim_one(worker, slots=2).id == job


def test_a_worker_runs_one_suspected_job_at_a_time(engine: Engine, owner: UUID) -> None:
    """So that it is known which of them ended the worker."""
    jobs = suspect(engine, owner, 3)
    worker = uuid4()
    (first,) = engine.claim(worker, slots=5)
    assert engine.claim(worker, slots=4) == []
    assert engine.claim_one(slots=5).id == jobs[1]
    engine.complete(first)
    assert engine.claim_one(worker, slots=5).id == jobs[2]


def test_suspected_jobs_do_not_keep_the_queue_behind_them(engine: Engine, owner: UUID) -> None:
    suspect(engine, owner, 30)
    others = engine.put(owner, count=4)
    assert [one.id for one in engine.claim(slots=5)][1:] == others


def test_a_finished_stage_ends_the_suspicion(engine: Engine, owner: UUID) -> None:
    (job,) = suspect(engine, owner)
    claimed = engine.claim_one()
    assert engine.job(job)["alone"]
    engine.finish_stage(claimed, "extracted")
    row = engine.job(job)
    assert (row["alone"], row["taken_from"]) == (False, [])


def test_a_suspected_job_does_not_overtake_higher_priorities(engine: Engine, owner: UUID) -> None:
    (job,) = suspect(engine, owner)
    urgent = engine.put(owner, count=3, priority=1)
    assert [one.id for one in engine.claim(slots=3)] == urgent
    assert engine.claim_one(slots=10).id == job
