"""A worker that is killed or stopped at the worst moment costs the stage in flight, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from uuid import UUID

import pytest

from octavo.jobs.job_run import POINTS
from tests.support.engine import Engine, Workers, wait_for_end
from tests.support.processes import PATIENCE_SECONDS, takes_at_most, wait_until

LEASE = 1
# Of those who live on: a busy machine must not take it from them.
LONG_LEASE = 6
STAGES = 3
# Where it dies, and which stage is begun a second time because of it.
AGAIN = {
    "claim.after": None,
    "stage.work.before": None,
    "stage.commit.before": "stage-2",
    "stage.commit.after": None,
    "complete.before": None,
    "complete.after": None,
    "fail.before": "stage-1",
    "fail.after": "stage-1",
    "heartbeat.before": "stage-1",
}
# The first lease of every job is over when it begins, although whoever has it is alive and well.
OVER_AT_ONCE = """
    CREATE FUNCTION over_at_once() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.lease_expires_at := engine_now();
        RETURN NEW;
    END $$;
    CREATE TRIGGER over_at_once BEFORE UPDATE ON jobs FOR EACH ROW
    WHEN (NEW.status = 'processing' AND NEW.attempt = 1) EXECUTE FUNCTION over_at_once()"""
REGISTERED = "SELECT EXISTS (SELECT FROM workers WHERE pid = %s)"
CASES = [(point, number) for point in POINTS for number in ([1, 2, 3] if point.startswith("stage.commit") else [1])]


def demo_input(point: str) -> dict[str, object]:
    if point.startswith("fail"):
        return {"stages": STAGES, "fail": "transient", "fail_times": 1}
    return {"stages": STAGES, "seconds": 0.6 * LEASE if point.startswith("heartbeat") else 0}


@pytest.mark.parametrize(("point", "number"), CASES)
def test_a_killed_worker_costs_the_stage_in_flight_only(
    engine: Engine, owner: UUID, workers: Workers, point: str, number: int
) -> None:
    (job,) = engine.put(owner, input=demo_input(point))
    victim = workers.start(lease_seconds=LEASE, faults=f"{point}@{number}=kill")
    assert victim.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    survivor = workers.start(lease_seconds=LONG_LEASE)
    if engine.status(job) == "processing":
        wait_until(lambda: engine.status(job) != "processing" or engine.job(job)["attempt"] > 1, "it is taken over")
    if point.startswith("fail"):
        engine.advance(10)
    wait_until(lambda: engine.status(job) == "complete", "the job completes")
    begun = Counter(stage for one, stage, _ in workers.executions() if one == job)
    again = (AGAIN[point] or "").replace("2", str(number))
    assert begun == {f"stage-{n}": 2 if f"stage-{n}" == again else 1 for n in range(1, STAGES + 1)}
    assert [stage for stage, _ in engine.stages(job)] == [f"stage-{n}" for n in range(1, STAGES + 1)]
    assert len(set(workers.executions())) == len(workers.executions())
    assert [event["kind"] for event in engine.events(job)].count("complete") == 1
    survivor.kill()


def test_a_job_is_taken_over_within_five_seconds_of_its_lease(engine: Engine, owner: UUID, workers: Workers) -> None:
    def take_over() -> float:
        (job,) = engine.put(owner)
        assert workers.start(lease_seconds=LEASE, faults="claim.after@1=kill").wait(PATIENCE_SECONDS) == -signal.SIGKILL
        survivor = workers.start(lease_seconds=LEASE)
        wait_until(lambda: engine.one(REGISTERED, survivor.pid), "the next worker is there")
        there = time.monotonic()
        wait_until(lambda: engine.job(job)["attempt"] > 1, "it is taken over")
        took = time.monotonic() - there
        survivor.kill()
        return took

    assert takes_at_most(LEASE + 5, take_over)


def test_the_cases_are_all_points() -> None:
    assert set(AGAIN) == set(POINTS)


def test_a_stopped_worker_that_wakes_up_late_writes_nothing(engine: Engine, owner: UUID, workers: Workers) -> None:
    jobs = engine.put(owner, count=3, input={"stages": 3, "seconds": 2})
    sleeper = workers.start(lease_seconds=LEASE)
    wait_until(lambda: len(workers.executions()) == 3, "all have begun")
    os.kill(sleeper.pid, signal.SIGSTOP)
    asleep_until = time.monotonic() + 2
    engine.run("""UPDATE jobs SET input = '{"stages": 3, "seconds": 0.2}'""")
    helper = workers.start(lease_seconds=LONG_LEASE)
    # One that is not taken over yet when the first wakes up would be renewed, and would not be lost.
    wait_until(lambda: all(engine.job(job)["attempt"] > 1 for job in jobs), "the other has taken over all of them")
    wait_until(lambda: time.monotonic() > asleep_until, "what the first was at is late")
    os.kill(sleeper.pid, signal.SIGCONT)
    wait_for_end(engine)
    assert engine.statuses() == {"complete": 3}
    wait_until(lambda: workers.log.read_text().count("lease lost") >= 3, "the first has seen that it lost them")
    for job in jobs:
        told = engine.events(job)
        assert [event["kind"] for event in told].count("complete") == 1
        assert [stage for stage, _ in engine.stages(job)] == ["stage-1", "stage-2", "stage-3"]
        assert {attempt for _, attempt in engine.stages(job)} == {engine.job(job)["attempt"]}
        stages = [event["detail"]["stage"] for event in told if event["kind"] == "stage"]
        assert stages == ["stage-1", "stage-2", "stage-3"]
    assert sleeper.poll() is None
    assert helper.poll() is None


def test_a_worker_with_a_late_heartbeat_is_no_longer_suspected_of_a_crash(
    engine: Engine, owner: UUID, workers: Workers
) -> None:
    (job,) = engine.put(owner, input={"stages": 1, "seconds": 600})
    sleeper = workers.start(lease_seconds=LEASE)
    wait_until(workers.executions, "it has begun")
    os.kill(sleeper.pid, signal.SIGSTOP)
    helper = workers.start(lease_seconds=LONG_LEASE)
    wait_until(lambda: engine.job(job)["attempt"] == 2, "the other has taken over")
    assert len(engine.job(job)["taken_from"]) == 1
    os.kill(sleeper.pid, signal.SIGCONT)
    wait_until(lambda: not engine.job(job)["taken_from"], "the accusation is undone")
    row = engine.job(job)
    assert (row["status"], row["failures"], row["attempt"]) == ("processing", 0, 2)
    assert [worker.poll() for worker in (sleeper, helper)] == [None, None]


def test_a_stopped_worker_that_wakes_up_before_anyone_took_over_goes_on(
    engine: Engine, owner: UUID, workers: Workers
) -> None:
    """Its lease was over, but nobody wanted the job; renewing it late makes it good again."""
    (job,) = engine.put(owner, input={"stages": 2, "seconds": 1})
    sleeper = workers.start(lease_seconds=LEASE)
    wait_until(workers.executions, "it has begun")
    os.kill(sleeper.pid, signal.SIGSTOP)
    over = "SELECT lease_expires_at < engine_now() FROM jobs"
    wait_until(lambda: engine.one(over), "the lease is over")
    os.kill(sleeper.pid, signal.SIGCONT)
    wait_until(lambda: engine.status(job) == "complete", "it completes")
    assert [attempt for _, _, attempt in workers.executions()] == [1, 1]


@pytest.mark.long
def test_a_starved_worker_keeps_its_jobs(engine: Engine, owner: UUID, workers: Workers) -> None:
    """Three workers, and twenty programs that want all of the machine."""
    for _ in range(3):
        workers.start(lease_seconds=10, worker_slots=5)
    wait_until(lambda: engine.one("SELECT count(*) FROM workers") == 3, "all are there")
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(20)]
    try:
        jobs = engine.put(owner, count=45, input={"stages": 2, "seconds": 6})
        wait_for_end(engine, 600)
    finally:
        for one in busy:
            one.kill()
            one.wait()
    assert engine.statuses() == {"complete": len(jobs)}
    assert engine.one("SELECT max(attempt) FROM jobs") == 1
    assert len(workers.executions()) == 2 * len(jobs)


def test_every_job_delivered_twice_is_done_once(engine: Engine, owner: UUID, workers: Workers) -> None:
    """All first leases are over at once, so that every job is begun again while the first attempt goes on."""
    engine.run(OVER_AT_ONCE)
    jobs = engine.put(owner, count=10, max_attempts=9, input={"stages": 2, "seconds": 0.3})
    for _ in range(2):
        workers.start(lease_seconds=30, worker_slots=10)
    wait_for_end(engine)
    assert engine.statuses() == {"complete": 10}
    assert len({job for job, _, attempt in workers.executions() if attempt > 1}) >= 7
    for job in jobs:
        assert [stage for stage, _ in engine.stages(job)] == ["stage-1", "stage-2"]
        assert [event["kind"] for event in engine.events(job)].count("complete") == 1


def test_a_poison_job_harms_itself_only(engine: Engine, owner: UUID, workers: Workers) -> None:
    """It ends ten workers, and then it is given up; those beside it complete."""
    engine.put(owner, count=50, input={"stages": 2, "seconds": 0.01})
    (poison,) = engine.put(owner, input={"stages": 3, "crash_at": 2})
    engine.put(owner, count=49, input={"stages": 2, "seconds": 0.01})
    deaths = 0
    worker = workers.start(lease_seconds=LONG_LEASE)
    deadline = time.monotonic() + 100
    while engine.one("SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing')"):
        assert time.monotonic() < deadline
        if worker.poll() is not None:
            deaths += 1
            engine.bury(worker)
            engine.pass_time()
            engine.run("UPDATE jobs SET run_after = engine_now() WHERE run_after IS NOT NULL")
            worker = workers.start(lease_seconds=LONG_LEASE)
        time.sleep(0.02)
    row = engine.job(poison)
    assert (row["status"], row["error_code"], row["failures"], deaths) == ("dead_letter", "CRASHED", 0, 10)
    assert engine.stages(poison) == [("stage-1", 1)]
    assert engine.statuses() == {"complete": 99, "dead_letter": 1}
