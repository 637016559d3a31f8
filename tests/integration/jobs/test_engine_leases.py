"""Whoever does not hold the lease cannot write; what failed is tried again at the right time, and not for ever."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest

from octavo.core.errors import RETRY_RULES, DatabaseUnavailable, ErrorClass
from octavo.jobs.job_run import ClaimedJob
from tests.support.engine import QUERIES, Engine

CHARGED = [one for one, rule in RETRY_RULES.items() if rule and rule.charged]
WAITS = [one for one, rule in RETRY_RULES.items() if rule and not rule.charged]
FINAL = [one for one, rule in RETRY_RULES.items() if rule is None]
DAY = 24 * 3600
Write = Callable[[Engine, ClaimedJob], object]
WRITES: dict[str, Write] = {
    "finish_stage": lambda engine, job: engine.finish_stage(job, "late"),
    "complete": lambda engine, job: engine.complete(job),
    "fail": lambda engine, job: engine.fail(job, ErrorClass.PERMANENT),
    "fail for a while": lambda engine, job: engine.fail(job, ErrorClass.RATE_LIMIT),
    "progress": lambda engine, job: engine.progress(job, 7),
    "renew": lambda engine, job: engine.renew(job),
    "hand back": lambda engine, job: engine.hand_back(job),
    "pause": lambda engine, job: engine.pause(job.id, job.lease_token),
    "hold": lambda engine, job: engine.one("SELECT hold_lease(%s, %s)", job.id, job.lease_token),
}
LOSSES: dict[str, Write] = {
    "taken over": lambda engine, _: (engine.advance(61), engine.claim_one()),
    "taken over and not claimed": lambda engine, _: (engine.advance(61), engine.pass_time()),
    "cancelled": lambda engine, job: engine.cancel(job.id),
    "cancelled and started again": lambda engine, job: (engine.cancel(job.id), engine.requeue(job.id)),
    "paused": lambda engine, job: engine.pause(job.id),
    "handed back": lambda engine, job: engine.hand_back(job),
    "handed back and claimed": lambda engine, job: (engine.hand_back(job), engine.claim_one()),
    "failed": lambda engine, job: engine.fail(job, ErrorClass.PERMANENT),
    "failed for a while": lambda engine, job: engine.fail(job, ErrorClass.TRANSIENT),
    "complete": lambda engine, job: engine.complete(job),
}


def due_in(engine: Engine, job: UUID) -> float:
    """Seconds from its last transition until it is tried again."""
    row = engine.job(job)
    wait: timedelta = row["run_after"] - row["queued_at"]
    return wait.total_seconds()


def fail_again(engine: Engine, error: ErrorClass) -> str | None:
    """Move the clock until the job is due, and fail it once more."""
    engine.run("UPDATE engine_clock SET shift = shift + (SELECT max(run_after) - engine_now() FROM jobs)")
    return engine.fail(engine.claim_one(), error)


# Fencing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_a_worker_without_its_lease_cannot_write(engine: Engine, owner: UUID, loss: str) -> None:
    engine.put(owner, cap_key="few", cap=2)
    job = engine.claim_one()
    LOSSES[loss](engine, job)
    before, told, taken = engine.job(job.id), engine.events(job.id), engine.taken("few")
    for name, write in WRITES.items():
        assert not write(engine, job), name
        assert engine.job(job.id) == before, name
    assert (engine.events(job.id), engine.stages(job.id), engine.taken("few")) == (told, [], taken)
    assert engine.lost(job) == {job.id}


def test_an_expired_lease_that_nobody_took_is_renewed(engine: Engine, owner: UUID) -> None:
    engine.put(owner)
    job = engine.claim_one()
    engine.advance(120)
    assert engine.renew(job) == {job.id}
    assert engine.claim() == []
    assert engine.complete(job) == [job.id]


def test_an_expired_lease_that_nobody_took_may_still_write(engine: Engine, owner: UUID) -> None:
    engine.put(owner)
    job = engine.claim_one()
    engine.advance(120)
    assert engine.finish_stage(job, "extracted")
    assert engine.lost(job) == set()


def test_renewing_tells_which_are_still_held(engine: Engine, owner: UUID) -> None:
    engine.put(owner, count=3)
    jobs = engine.claim(slots=3)
    engine.cancel(jobs[1].id)
    assert engine.renew(*jobs) == {jobs[0].id, jobs[2].id}


def test_a_heartbeat_changes_nothing_but_the_lease(engine: Engine, owner: UUID) -> None:
    engine.put(owner)
    job = engine.claim_one()
    before = engine.job(job.id)
    engine.advance(15)
    engine.renew(job)
    after = engine.job(job.id)
    assert {name for name in before if before[name] != after[name]} == {"lease_expires_at", "version"}


# Time limit -------------------------------------------------------------------------------------------------------


def test_heartbeats_do_not_extend_the_time_limit(engine: Engine, owner: UUID) -> None:
    engine.add_kind("demo", limit=100)
    engine.put(owner)
    job = engine.claim_one()
    for _ in range(4):
        engine.advance(24)
        assert engine.renew(job, lease=30) == {job.id}
    engine.advance(5)
    assert engine.renew(job, lease=30) == set()
    engine.advance(30)
    engine.pass_time()
    assert engine.status(job.id) == "queued"


@pytest.mark.parametrize("renewed", [True, False])
def test_progress_renews_the_time_limit_as_well(engine: Engine, owner: UUID, renewed: bool) -> None:
    engine.add_kind("demo", limit=100, renewed=renewed)
    engine.put(owner)
    job = engine.claim_one(lease=1000)
    engine.advance(90)
    assert engine.progress(job, 3)
    engine.advance(90)
    assert engine.renew(job) == ({job.id} if renewed else set())


@pytest.mark.parametrize("renewed", [True, False])
def test_a_stage_renews_the_time_limit_of_kinds_that_say_so(engine: Engine, owner: UUID, renewed: bool) -> None:
    engine.add_kind("demo", limit=100, renewed=renewed)
    engine.put(owner)
    job = engine.claim_one()
    engine.advance(90)
    engine.finish_stage(job, "extracted")
    engine.advance(20)
    assert engine.renew(job) == ({job.id} if renewed else set())


# Retries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", CHARGED + WAITS)
def test_each_class_of_error_has_its_own_growing_delay(engine: Engine, owner: UUID, error: ErrorClass) -> None:
    (job,) = engine.put(owner, max_attempts=9)
    rule = RETRY_RULES[error]
    assert rule
    engine.fail(engine.claim_one(), error)
    for number in range(3):
        expected = min(900, rule.first_delay_seconds * rule.factor**number)
        assert 0.9 * expected <= due_in(engine, job) <= 1.1 * expected
        fail_again(engine, error)


def test_what_failed_together_does_not_come_back_together(engine: Engine, owner: UUID) -> None:
    engine.put(owner, count=50)
    pauses: set[float] = set()
    for job in engine.claim(slots=50):
        engine.fail(job, ErrorClass.RATE_LIMIT)
        pauses.add(due_in(engine, job.id))
    assert len(pauses) == 50
    assert max(pauses) - min(pauses) > 2


@pytest.mark.parametrize("error", CHARGED + WAITS)
def test_retry_after_is_obeyed(engine: Engine, owner: UUID, error: ErrorClass) -> None:
    (job,) = engine.put(owner)
    engine.fail(engine.claim_one(), error, retry_after=1234)
    assert due_in(engine, job) == pytest.approx(1234)


def test_a_short_retry_after_does_not_shorten_the_pause(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    engine.fail(engine.claim_one(), ErrorClass.RATE_LIMIT, retry_after=1)
    assert due_in(engine, job) >= 27


@pytest.mark.parametrize("error", FINAL)
def test_an_error_that_a_retry_cannot_solve_fails_immediately(engine: Engine, owner: UUID, error: ErrorClass) -> None:
    (job,) = engine.put(owner)
    assert engine.fail(engine.claim_one(), error) == "failed"
    row = engine.job(job)
    assert (row["status"], row["error_code"], row["run_after"]) == ("failed", error.upper(), None)


@pytest.mark.parametrize("error", CHARGED)
def test_a_dead_letter_is_made_when_the_failures_reach_the_limit(
    engine: Engine, owner: UUID, error: ErrorClass
) -> None:
    (job,) = engine.put(owner)
    assert engine.fail(engine.claim_one(), error) == "queued"
    assert fail_again(engine, error) == "queued"
    assert fail_again(engine, error) == "dead_letter"
    row = engine.job(job)
    assert (row["attempt"], row["failures"], row["error_code"]) == (3, 3, error.upper())


# The end of a worker ----------------------------------------------------------------------------------------------


def vanish(engine: Engine, times: int = 1, slots: int = 1) -> None:
    """Workers that claim and are never heard of again, each when the job is due again."""
    for _ in range(times):
        engine.advance(60)
        engine.claim(slots=slots, lease=1)
        engine.advance(2)
        engine.pass_time()


def add_worker(engine: Engine, seconds: float = 1) -> UUID:
    worker = uuid4()
    values = {"id": worker, "host": "here", "pid": 1, "kinds": ["demo"], "slots": 5, "seconds": seconds}
    engine.connection.execute(QUERIES.register_worker, values)
    return worker


def beat(engine: Engine, worker: UUID) -> None:
    engine.connection.execute(QUERIES.worker_heartbeat, {"id": worker, "running": 0, "seconds": 1})


def release(engine: Engine, worker: UUID, *, suspicious: bool) -> None:
    values = {"ended": [worker], "because": "worker_killed", "suspicious": suspicious}
    engine.connection.execute(QUERIES.release_workers, values)


def test_the_end_of_a_worker_is_not_a_failure_of_its_jobs(engine: Engine, owner: UUID) -> None:
    """Only attempts that fail count, and those of before count on."""
    (job,) = engine.put(owner)
    engine.fail(engine.claim_one(), ErrorClass.TRANSIENT)
    engine.advance(30)
    vanish(engine, 9)
    row = engine.job(job)
    assert (row["status"], row["failures"], row["attempt"]) == ("queued", 1, 10)
    engine.advance(60)
    assert engine.fail(engine.claim_one(), ErrorClass.TRANSIENT) == "queued"


def test_a_job_that_ends_its_workers_fails_for_good_after_ten(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    vanish(engine, 9)
    assert engine.status(job) == "queued"
    vanish(engine)
    row = engine.job(job)
    assert (row["status"], row["error_code"], row["failures"]) == ("dead_letter", "CRASHED", 0)
    assert row["error_message"] == "The worker ended 10 times while it ran this job."


def test_a_suspected_job_waits_longer_each_time_and_a_minute_at_most(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    pauses: list[float] = []
    for _ in range(9):
        vanish(engine)
        pauses.append(due_in(engine, job) if engine.job(job)["run_after"] else 0)
    assert pauses == pytest.approx([0, 2, 4, 8, 16, 32, 60, 60, 60], abs=0.5)


def test_neighbours_of_a_job_that_ends_its_workers_never_fail_for_good(engine: Engine, owner: UUID) -> None:
    """Only the culprit is left with the blame: suspected jobs never run in the same worker."""
    (poison,) = engine.put(owner, priority=4)
    others = engine.put(owner, count=20)
    while engine.status(poison) != "dead_letter":
        engine.advance(60 if engine.job(poison)["run_after"] else 0)
        worker = uuid4()
        claimed = engine.claim(worker, slots=5, lease=1)
        if poison in {one.id for one in claimed}:
            engine.advance(2)
            engine.pass_time()
        else:
            engine.complete(*claimed)
    assert max(len(engine.job(job)["taken_from"]) for job in others) <= 2
    engine.advance(60)
    while left := engine.claim(slots=5):
        engine.complete(*left)
    assert engine.statuses() == {"complete": 20, "dead_letter": 1}


def test_a_kill_from_outside_costs_the_jobs_nothing(engine: Engine, owner: UUID) -> None:
    """The supervisor has seen it: the lease is over at once, and nobody is suspected, however often."""
    (job,) = engine.put(owner)
    for _ in range(30):
        worker = add_worker(engine, 60)
        engine.claim_one(worker)
        release(engine, worker, suspicious=False)
    row = engine.job(job)
    assert (row["status"], row["failures"], row["alone"], row["taken_from"]) == ("queued", 0, False, [])
    assert engine.events(job)[-1]["detail"]["reason"] == "worker_killed"
    assert engine.one("SELECT count(*) FROM workers WHERE expires_at > engine_now()") == 0


def test_a_released_worker_cannot_write(engine: Engine, owner: UUID) -> None:
    engine.put(owner)
    worker = add_worker(engine, 60)
    job = engine.claim_one(worker)
    release(engine, worker, suspicious=True)
    assert not engine.finish_stage(job, "late")
    assert engine.job(job.id)["taken_from"] == [worker]


def test_a_late_heartbeat_undoes_the_accusation(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    vanish(engine)
    slow = add_worker(engine)
    engine.claim_one(slow, lease=1)
    engine.advance(2)
    engine.pass_time()
    assert engine.job(job)["alone"]
    beat(engine, slow)
    row = engine.job(job)
    assert (row["alone"], len(row["taken_from"])) == (False, 1)


def test_a_job_that_failed_for_good_because_of_a_slow_worker_is_queued_again(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    vanish(engine, 9)
    engine.advance(60)
    slow = add_worker(engine)
    engine.claim_one(slow, lease=1)
    engine.advance(2)
    engine.pass_time()
    assert engine.status(job) == "dead_letter"
    beat(engine, slow)
    assert engine.status(job) == "queued"


def test_a_heartbeat_in_time_undoes_nothing(engine: Engine, owner: UUID) -> None:
    """A worker that lives and holds a job beyond its time limit is not slow."""
    engine.add_kind("demo", limit=10)
    (job,) = engine.put(owner)
    worker = add_worker(engine, 600)
    engine.claim_one(worker, lease=20)
    engine.advance(30)
    engine.pass_time()
    beat(engine, worker)
    assert engine.job(job)["taken_from"] == [worker]


def test_a_job_that_is_being_written_does_not_keep_others_from_being_renewed(engine: Engine, owner: UUID) -> None:
    engine.put(owner, count=3)
    jobs = engine.claim(slots=3, lease=1)
    with psycopg.connect(engine.info) as other:
        other.execute(b"SELECT hold_lease(%s, %s)", [jobs[0].id, jobs[0].lease_token])
        assert engine.renew(*jobs) == {jobs[1].id, jobs[2].id}
    assert engine.renew(*jobs) == {job.id for job in jobs}


# Waiting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", WAITS)
def test_waits_charge_nothing_and_end_after_a_day(engine: Engine, owner: UUID, error: ErrorClass) -> None:
    (job,) = engine.put(owner)
    engine.fail(engine.claim_one(), error)
    began = engine.one("SELECT engine_now()")
    while engine.status(job) == "queued":
        assert engine.job(job)["failures"] == 0
        fail_again(engine, error)
    row = engine.job(job)
    assert (row["status"], row["failures"]) == ("dead_letter", 0)
    assert timedelta(seconds=DAY) <= row["failed_at"] - began <= timedelta(seconds=DAY + 1000)


def test_lost_database_connections_do_not_count_as_failures(engine: Engine, owner: UUID) -> None:
    """A backend killed ten times within minutes once sent a job to the dead letters."""
    (job,) = engine.put(owner, max_attempts=3)
    engine.fail(engine.claim_one(), DatabaseUnavailable.error_class)
    for _ in range(5):
        fail_again(engine, DatabaseUnavailable.error_class)
    row = engine.job(job)
    assert (row["status"], row["failures"]) == ("queued", 0)
    assert due_in(engine, job) < 300


def test_a_provider_that_is_away_for_ten_minutes_costs_nothing(engine: Engine, owner: UUID) -> None:
    engine.put(owner, count=20)
    end = engine.one("SELECT engine_now() + interval '10 minutes'")
    while engine.one("SELECT engine_now() < %s", end):
        for job in engine.claim(slots=20):
            assert engine.fail(job, ErrorClass.RATE_LIMIT) == "queued"
        engine.advance(10)
    engine.advance(900)
    engine.complete(*engine.claim(slots=20))
    assert engine.statuses() == {"complete": 20}
    assert engine.one("SELECT max(failures) FROM jobs") == 0


def test_failures_count_since_the_last_finished_stage(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    engine.fail(engine.claim_one(), ErrorClass.TRANSIENT)
    fail_again(engine, ErrorClass.TRANSIENT)
    engine.advance(900)
    claimed = engine.claim_one()
    engine.finish_stage(claimed, "extracted")
    assert engine.fail(claimed, ErrorClass.TRANSIENT) == "queued"
    row = engine.job(job)
    assert (row["attempt"], row["failures"]) == (3, 1)
    assert 4.5 <= due_in(engine, job) <= 5.5


def test_the_attempt_never_goes_back(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    attempts: list[int] = []
    leaves: list[Callable[[ClaimedJob], object]] = [
        engine.hand_back,
        lambda one: engine.fail(one, ErrorClass.TRANSIENT),
        lambda one: engine.fail(one, ErrorClass.PERMANENT) and engine.requeue(job),
        lambda one: engine.pause(one.id) and engine.requeue(job),
        lambda one: engine.cancel(one.id) and engine.requeue(job, ""),
        lambda _: None,
    ]
    for leave in leaves:
        claimed = engine.claim_one()
        attempts.append(claimed.attempt)
        leave(claimed)
        engine.advance(100)
    assert [*attempts, engine.claim_one().attempt] == [1, 2, 3, 4, 5, 6, 7]


def test_a_returned_job_counts_no_failure_and_keeps_its_stages(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    claimed = engine.claim_one()
    engine.finish_stage(claimed, "extracted")
    assert engine.hand_back(claimed) == 1
    row = engine.job(job)
    assert (row["status"], row["failures"], row["alone"], row["admitted"]) == ("queued", 0, False, True)
    assert engine.stages(job) == [("extracted", 1)]
