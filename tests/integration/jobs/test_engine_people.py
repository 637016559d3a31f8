"""What people do with jobs: cancel with all that follows, start again from any stage; and what nobody can do."""

from __future__ import annotations

import re
import threading
from uuid import UUID, uuid4

import psycopg
import pytest

from octavo.core.errors import ErrorClass
from octavo.jobs.queue import NewJob
from tests.support.engine import Engine
from tests.support.processes import wait_until

STAGES = ["extracted", "chunked", "enriched", "embedded"]


# Cancel -----------------------------------------------------------------------------------------------------------


def test_cancel_takes_all_descendants_along_and_moves_their_tokens(engine: Engine, owner: UUID) -> None:
    (parent,) = engine.put(owner)
    children = engine.put(owner, count=3, parent_id=parent, cap_key="few", cap=1)
    grandchild = engine.put(owner, parent_id=children[0])[0]
    (stranger,) = engine.put(owner)
    running = engine.claim(slots=10)
    tokens = {job.id: engine.job(job.id)["lease_token"] for job in running}
    assert engine.cancel(parent) == 5
    assert engine.statuses() == {"cancelled": 5, "processing": 1}
    assert engine.status(stranger) == "processing"
    family = {parent, *children, grandchild}
    assert engine.lost(*running) == family & set(tokens)
    assert all(engine.job(job)["lease_token"] > token for job, token in tokens.items() if job in family)
    assert engine.taken("few") == 0


def test_cancel_leaves_finished_children_as_they_are(engine: Engine, owner: UUID) -> None:
    (parent,) = engine.put(owner)
    done, broken, dead, waiting = (engine.put(owner, parent_id=parent, max_attempts=1)[0] for _ in range(4))
    by_id = {job.id: job for job in engine.claim(slots=4)}
    engine.complete(by_id[done])
    engine.fail(by_id[broken], ErrorClass.PERMANENT)
    engine.fail(by_id[dead], ErrorClass.TRANSIENT)
    assert engine.cancel(parent) == 3
    assert [engine.status(job) for job in (done, broken, dead, waiting)] == [
        *("complete", "failed", "cancelled", "cancelled")
    ]


def test_a_child_that_its_parent_makes_at_the_last_moment_is_cancelled_too(engine: Engine, owner: UUID) -> None:
    """The parent's worker is inside the transaction of a stage when somebody cancels."""
    (parent,) = engine.put(owner)
    running = engine.claim_one()
    child = NewJob("demo", owner, parent_id=parent)
    worker = Engine(engine.info)
    with worker.connection:
        worker.connection.autocommit = False
        assert worker.one("SELECT hold_lease(%s, %s)", parent, running.lease_token)
        worker.enqueue(child)
        thread = threading.Thread(target=engine.cancel, args=(parent,))
        thread.start()
        watcher = Engine(engine.info)
        with watcher.connection:
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            wait_until(lambda: watcher.one(waiting), "the cancel waits for the worker")
        worker.connection.commit()
        thread.join()
    assert (engine.status(parent), engine.status(child.id)) == ("cancelled", "cancelled")


def test_a_complete_job_cannot_be_cancelled(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    engine.complete(engine.claim_one())
    with pytest.raises(psycopg.errors.CheckViolation):
        engine.cancel(job)
    assert engine.status(job) == "complete"


def test_a_cancelled_job_is_not_cancelled_again(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    assert engine.cancel(job) == 1
    with pytest.raises(psycopg.errors.CheckViolation):
        engine.cancel(job)
    assert [event["state_after"] for event in engine.events(job)] == ["queued", "cancelled"]


# Requeue ----------------------------------------------------------------------------------------------------------


def failed_after(engine: Engine, owner: UUID, stages: list[str]) -> UUID:
    (job,) = engine.put(owner)
    claimed = engine.claim_one()
    for stage in stages:
        assert engine.finish_stage(claimed, stage)
    engine.fail(claimed, ErrorClass.PERMANENT)
    return job


@pytest.mark.parametrize(
    ("from_stage", "kept"),
    [(None, STAGES), ("embedded", STAGES[:3]), ("chunked", STAGES[:1]), ("extracted", []), ("", [])],
)
def test_requeue_from_a_stage_redoes_that_and_later_ones_only(
    engine: Engine, owner: UUID, from_stage: str | None, kept: list[str]
) -> None:
    job = failed_after(engine, owner, STAGES)
    other = failed_after(engine, owner, STAGES)
    assert engine.requeue(job, from_stage)
    assert [stage for stage, _ in engine.stages(job)] == kept
    assert [stage for stage, _ in engine.stages(other)] == STAGES
    row = engine.job(job)
    assert (row["status"], row["stage"], row["failures"]) == ("queued", kept[-1] if kept else None, 0)
    assert engine.events(job)[-1]["detail"]["error_before"] == "PERMANENT"


def test_requeue_from_a_stage_with_parts_redoes_all_its_parts(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    claimed = engine.claim_one()
    for stage, part in [("extracted", ""), ("pages", "1"), ("pages", "2"), ("joined", "")]:
        engine.finish_stage(claimed, stage, part)
    engine.fail(claimed, ErrorClass.PERMANENT)
    engine.requeue(job, "pages")
    assert engine.stages(job) == [("extracted", 1)]


def test_requeue_from_a_stage_that_was_never_finished_changes_nothing(engine: Engine, owner: UUID) -> None:
    job = failed_after(engine, owner, STAGES)
    with pytest.raises(psycopg.errors.NoDataFound):
        engine.requeue(job, "nonsense")
    assert (engine.status(job), len(engine.stages(job))) == ("failed", 4)


@pytest.mark.parametrize("from_stage", [None, "extracted"])
def test_a_running_or_complete_job_cannot_be_requeued(engine: Engine, owner: UUID, from_stage: str | None) -> None:
    (job,) = engine.put(owner)
    claimed = engine.claim_one()
    engine.finish_stage(claimed, "extracted")
    for end in (lambda: None, lambda: engine.complete(claimed)):
        end()
        before = engine.job(job)
        with pytest.raises(psycopg.errors.CheckViolation):
            engine.requeue(job, from_stage)
        assert engine.job(job) == before
        assert engine.stages(job) == [("extracted", 1)]


def test_a_requeued_dead_letter_of_crashes_is_still_suspected(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    for _ in range(10):
        engine.claim_one(lease=1)
        engine.advance(2)
        engine.pass_time()
        engine.advance(60)
    assert engine.claim() == []
    engine.requeue(job)
    row = engine.job(job)
    assert (row["alone"], row["taken_from"]) == (True, [])


# What the database refuses ----------------------------------------------------------------------------------------

HELD = "status = 'processing', leased_by = gen_random_uuid(), lease_expires_at = now(), deadline_at = now()"
BROKEN = {
    "an unknown state": ("status_is_known", "status = 'strange', admitted = false"),
    "output while queued": ("output_only_when_complete", "output = '1'"),
    "an error while queued": ("error_only_when_failed", "error_code = 'UNKNOWN', error_message = 'It failed.'"),
    "failed without an error": ("error_only_when_failed", "status = 'failed', failed_at = now(), admitted = false"),
    "a code without a message": (
        "message_with_its_code",
        "status = 'failed', failed_at = now(), error_code = 'UNKNOWN', admitted = false",
    ),
    "a message without a code": ("message_with_its_code", "error_message = 'It failed.'"),
    "processing without a lease": ("lease_only_when_processing", "status = 'processing', started_at = now()"),
    "a holder while queued": ("lease_only_when_processing", "leased_by = gen_random_uuid()"),
    "a lease while queued": ("lease_only_when_processing", "lease_expires_at = now()"),
    "a deadline while queued": ("lease_only_when_processing", "deadline_at = now()"),
    "queued without its time": ("queued_has_its_time", "queued_at = NULL"),
    "processing without its time": (
        "processing_has_its_time",
        HELD,
    ),
    "complete without its time": ("complete_has_its_time", "status = 'complete', admitted = false"),
    "completed while queued": ("complete_has_its_time", "completed_at = now()"),
    "failed without its time": (
        "failed_has_its_time",
        "status = 'failed', error_code = 'UNKNOWN', error_message = 'It failed.', admitted = false",
    ),
    "failed while queued": ("failed_has_its_time", "failed_at = now()"),
    "processing without a slot": (
        "slot_only_when_wanted",
        f"admitted = false, started_at = now(), {HELD}",
    ),
    "a slot while backing off": ("slot_only_when_wanted", "run_after = now()"),
    "waiting for nothing": ("slot_only_when_wanted", "admitted = false"),
    "a slot while paused": ("slot_only_when_wanted", "status = 'paused'"),
    "due while paused": ("slot_only_when_wanted", "status = 'paused', admitted = false, run_after = now()"),
    "a priority out of range": ("jobs_priority_check", "priority = 20"),
    "no attempts at all": ("jobs_max_attempts_check", "max_attempts = 0"),
}


def test_every_constraint_of_the_table_is_tried(engine: Engine) -> None:
    checks = "SELECT conname FROM pg_constraint WHERE conrelid = 'jobs'::regclass AND contype = 'c'"
    invariants = engine.one("SELECT prosrc FROM pg_proc WHERE proname = 'broken_invariant'")
    known = {row["conname"] for row in engine.rows(checks)} | set(re.findall(r"THEN '(\w+)'", invariants))
    assert known == {name for name, _ in BROKEN.values()}


def test_the_database_refuses_what_cannot_be(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    for what, (constraint, change) in BROKEN.items():
        with pytest.raises(psycopg.errors.CheckViolation) as refused:
            engine.run(f"UPDATE jobs SET {change} WHERE id = %s", job)
        assert refused.value.diag.constraint_name == constraint, what
    assert len(engine.events(job)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET kind = 'never'",
        "DELETE FROM events",
        "TRUNCATE events",
        "UPDATE events_default SET kind = 'never'",
        "TRUNCATE events_default",
    ],
)
def test_events_are_never_changed(engine: Engine, owner: UUID, statement: str) -> None:
    engine.put(owner)
    engine.run(
        "INSERT INTO events (process_id, kind, owner_id, at) VALUES (%s, 'old', %s, '2001-01-01')", uuid4(), owner
    )
    with pytest.raises(psycopg.errors.RestrictViolation):
        engine.run(statement)
    assert engine.one("SELECT count(*) FROM events") == 2


def test_every_transition_is_recorded_once_with_the_state_after_it(engine: Engine, owner: UUID) -> None:
    (job,) = engine.put(owner)
    engine.fail(engine.claim_one(), ErrorClass.TRANSIENT)
    engine.advance(10)
    engine.hand_back(engine.claim_one())
    claimed = engine.claim_one()
    engine.renew(claimed)
    engine.progress(claimed, 3)
    engine.finish_stage(claimed, "extracted")
    engine.pause(job)
    engine.requeue(job)
    engine.complete(engine.claim_one())
    told = [(event["kind"], event["state_after"]) for event in engine.events(job)]
    retry, started = ("retry", "queued"), ("processing", "processing")
    assert told == [
        *(("created", "queued"), started, retry, started, retry, started),
        *(("progress", None), ("stage", None)),
        *(("paused", "paused"), retry, started, ("complete", "complete")),
    ]
