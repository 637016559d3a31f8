"""At most so many of a key at once: a slot is passed on by whatever ends a job, never lost and never given twice."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import psycopg
import pytest

from octavo.core.errors import ErrorClass
from octavo.jobs.job_run import ClaimedJob
from octavo.jobs.queue import NewJob
from tests.support.engine import Engine

ENDS: dict[str, Callable[[Engine, ClaimedJob], object]] = {
    "completion": lambda engine, job: engine.complete(job),
    "failure": lambda engine, job: engine.fail(job, ErrorClass.PERMANENT),
    "retry": lambda engine, job: engine.fail(job, ErrorClass.TRANSIENT),
    "wait": lambda engine, job: engine.fail(job, ErrorClass.RATE_LIMIT),
    "cancel": lambda engine, job: engine.cancel(job.id),
    "pause by its worker": lambda engine, job: engine.pause(job.id, job.lease_token),
    "pause by a person": lambda engine, job: engine.pause(job.id),
}


def fill(engine: Engine, owner: UUID, count: int, cap: int, **more: Any) -> list[UUID]:  # noqa: ANN401
    """One by one, so that the order they came in is beyond doubt."""
    return [engine.put(owner, cap_key="analysis:1", cap=cap, **more)[0] for _ in range(count)]


def admitted(engine: Engine) -> int:
    engine.check_invariants()
    return engine.one("SELECT count(*) FROM jobs WHERE admitted")


def test_only_as_many_as_the_cap_are_claimed(engine: Engine, owner: UUID) -> None:
    fill(engine, owner, 20, cap=5)
    assert len(engine.claim(slots=50)) == 5
    assert engine.claim(slots=50) == []
    assert engine.taken("analysis:1") == 5


def test_jobs_without_the_key_are_not_held_up(engine: Engine, owner: UUID) -> None:
    fill(engine, owner, 20, cap=1)
    engine.put(owner, count=3)
    assert len(engine.claim(slots=50)) == 4


@pytest.mark.parametrize("end", ENDS)
def test_a_slot_is_passed_on(engine: Engine, owner: UUID, end: str) -> None:
    fill(engine, owner, 4, cap=1)
    seen: set[UUID] = set()
    for _ in range(4):
        job = engine.claim_one(slots=4)
        ENDS[end](engine, job)
        seen.add(job.id)
        assert admitted(engine) <= 1
    assert len(seen) == 4
    assert engine.taken("analysis:1") == 0


def test_a_slot_is_passed_on_by_a_take_over_after_which_the_job_waits(engine: Engine, owner: UUID) -> None:
    first, second = fill(engine, owner, 2, cap=1)
    for _ in range(2):
        assert engine.claim_one(lease=1).id == first
        engine.advance(2)
    assert engine.claim_one().id == second
    assert engine.job(first)["run_after"]


def test_a_slot_is_passed_on_by_a_take_over_that_gives_up(engine: Engine, owner: UUID) -> None:
    first, second = fill(engine, owner, 2, cap=1)
    engine.run("UPDATE jobs SET taken_from = array_fill(id, ARRAY[9]) WHERE id = %s", first)
    assert engine.claim_one(lease=1).id == first
    engine.advance(2)
    assert engine.claim_one().id == second
    assert engine.status(first) == "dead_letter"


def test_a_take_over_that_tries_again_keeps_its_slot(engine: Engine, owner: UUID) -> None:
    first, _ = fill(engine, owner, 2, cap=1)
    engine.claim_one(lease=1)
    engine.advance(2)
    assert engine.claim_one().id == first
    assert admitted(engine) == 1


def test_a_returned_job_keeps_its_slot(engine: Engine, owner: UUID) -> None:
    first, _ = fill(engine, owner, 2, cap=1)
    engine.hand_back(engine.claim_one())
    assert engine.claim_one().id == first


def test_a_raised_cap_admits_more_jobs_immediately(engine: Engine, owner: UUID) -> None:
    fill(engine, owner, 10, cap=2)
    engine.claim(slots=10)
    engine.one("SELECT set_cap('analysis:1', 5)")
    assert len(engine.claim(slots=10)) == 3
    assert admitted(engine) == 5


def test_a_lowered_cap_is_reached_as_jobs_end(engine: Engine, owner: UUID) -> None:
    fill(engine, owner, 20, cap=5)
    running = engine.claim(slots=10)
    engine.one("SELECT set_cap('analysis:1', 2)")
    for job in running:
        engine.complete(job)
        engine.check_invariants()
    assert len(engine.claim(slots=10)) == 2


def test_jobs_that_back_off_hold_no_slot(engine: Engine, owner: UUID) -> None:
    fill(engine, owner, 3, cap=3)
    for job in engine.claim(slots=3):
        engine.fail(job, ErrorClass.TRANSIENT)
    assert (admitted(engine), engine.taken("analysis:1")) == (0, 0)
    fill(engine, owner, 3, cap=3)
    assert len(engine.claim(slots=10)) == 3
    engine.advance(10)
    assert engine.claim(slots=10) == []
    assert engine.taken("analysis:1") == 3


def test_delayed_jobs_hold_no_slot(engine: Engine, owner: UUID) -> None:
    fill(engine, owner, 3, cap=3, delay_seconds=60)
    assert admitted(engine) == 0
    engine.advance(61)
    assert len(engine.claim(slots=10)) == 3


def test_a_queued_job_that_is_paused_or_cancelled_passes_its_slot_on(engine: Engine, owner: UUID) -> None:
    first, second, third = fill(engine, owner, 3, cap=1)
    engine.pause(first)
    assert engine.job(second)["admitted"]
    engine.cancel(second)
    assert engine.job(third)["admitted"]
    assert admitted(engine) == 1


@pytest.mark.parametrize("rest", ["pause", "cancel", "failure"])
def test_a_requeued_job_waits_for_a_slot_again(engine: Engine, owner: UUID, rest: str) -> None:
    first, second = fill(engine, owner, 2, cap=1)
    ENDS[rest if rest in ENDS else f"{rest} by a person"](engine, engine.claim_one())
    engine.requeue(first)
    assert engine.claim_one(slots=5).id == second
    assert admitted(engine) == 1


@pytest.mark.parametrize("state", ["admitted", "waiting for a slot", "backing off"])
def test_a_job_in_line_cannot_be_requeued_and_keeps_its_slot(engine: Engine, owner: UUID, state: str) -> None:
    """Somebody who is impatient asks for a retry of what waits already."""
    first, second = fill(engine, owner, 2, cap=1)
    if state == "backing off":
        engine.fail(engine.claim_one(), ErrorClass.TRANSIENT)
    with pytest.raises(psycopg.errors.CheckViolation):
        engine.requeue(second if state == "waiting for a slot" else first)
    assert admitted(engine) == 1
    assert len(engine.claim(slots=5)) == 1


# Others' locks ----------------------------------------------------------------------------------------------------


def test_two_workers_that_pass_slots_of_each_others_caps_do_not_lock_each_other_out(
    engine: Engine, owner: UUID
) -> None:
    """Each finishes a job of one cap and, in the same visit, finds one of the other cap that may not start yet."""
    engine.add_kind("slow", rate=0.01)
    engine.put(owner, "slow")
    engine.claim(kinds=["slow"])
    clients = Engine(engine.info), Engine(engine.info)
    with clients[0].connection, clients[1].connection, ThreadPoolExecutor(2) as pool:
        for _ in range(30):
            jobs = [NewJob("demo", owner, cap_key=key, cap=2) for key in ("left", "right")]
            engine.enqueue(*jobs)
            running = {job.id: job for job in engine.claim(slots=2)}
            engine.enqueue(*(NewJob("slow", owner, cap_key=key) for key in ("right", "left")))
            visits = [
                pool.submit(client.claim, kinds=["slow"], finished=[running[job.id]])
                for client, job in zip(clients, jobs, strict=True)
            ]
            assert [visit.result() for visit in visits] == [[], []]


def test_a_job_is_put_in_line_while_a_slot_of_its_cap_is_being_passed_on(engine: Engine, owner: UUID) -> None:
    """A slow transaction that ends a job must not hold up everybody who has more work for the same key."""
    fill(engine, owner, 1, cap=1)
    other = Engine(engine.info)
    with other.connection:
        other.connection.autocommit = False
        other.complete(engine.claim_one())
        engine.run("SET statement_timeout = '20s'")
        engine.put(owner, cap_key="analysis:1", delay_seconds=60)


def is_waiting(engine: Engine) -> bool:
    return engine.one("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0


FREEING: dict[str, Callable[[Engine, UUID, ClaimedJob], object]] = {
    "cancel": lambda engine, _, job: engine.cancel(job.id),
    "higher limit": lambda engine, _owner, _job: engine.rows("SELECT set_cap('analysis:1', 2)"),
    "pause of imports": lambda engine, owner, _: engine.rows("SELECT pause_imports(%s)", owner),
}


@pytest.mark.parametrize("freeing", FREEING)
def test_a_person_who_frees_a_slot_wakes_the_workers(engine: Engine, owner: UUID, freeing: str) -> None:
    fill(engine, owner, 1, cap=1, lane="bulk")
    fill(engine, engine.add_owner(), 1, cap=1)
    job = engine.claim_one()
    with psycopg.connect(engine.info, autocommit=True) as listening:
        listening.execute("LISTEN octavo_jobs")
        FREEING[freeing](engine, owner, job)
        assert list(listening.notifies(timeout=2, stop_after=1))
