"""How far a job is gets told while it runs, but not more often than anybody looks."""

from __future__ import annotations

from uuid import UUID

from tests.support.engine import Engine


def told(engine: Engine, job: UUID) -> list[int]:
    return [event["detail"]["done"] for event in engine.events(job) if event["kind"] == "progress"]


def test_progress_is_reported_at_most_every_two_seconds_and_at_the_end(engine: Engine, owner: UUID) -> None:
    engine.put(owner)
    job = engine.claim_one()
    for done in range(1, 5):
        assert engine.progress(job, done)
        assert engine.progress(job, done)
        engine.advance(2)
    seen = told(engine, job.id)
    assert sorted(set(seen)) == [1, 2, 3, 4]
    assert len(seen) <= 5  # a test that is slow may see one boundary more
    assert engine.progress(job, 10)
    assert told(engine, job.id)[-1] == 10
    last = engine.events(job.id)[-1]
    assert last["detail"] == {"done": 10, "total": 10, "unit": "pages"}
    assert (last["owner_id"], last["state_after"]) == (owner, None)
    assert engine.complete(job) == [job.id]
    assert [event["kind"] for event in sorted(engine.events(job.id), key=lambda one: (one["epoch"], one["id"]))][
        -2:
    ] == ["progress", "complete"]


def test_the_count_of_a_stage_ends_with_it(engine: Engine, owner: UUID) -> None:
    engine.put(owner)
    job = engine.claim_one()
    engine.progress(job, 7)
    engine.finish_stage(job, "read")
    row = engine.job(job.id)
    assert (row["done"], row["total"], row["unit"]) == (0, None, None)
    engine.progress(job, 2)
    assert engine.job(job.id)["done"] == 2


def test_the_count_never_goes_back_within_a_stage(engine: Engine, owner: UUID) -> None:
    engine.put(owner)
    job = engine.claim_one()
    engine.progress(job, 7)
    engine.progress(job, 3)
    assert engine.job(job.id)["done"] == 7
    assert max(told(engine, job.id)) == told(engine, job.id)[-1]


def test_who_lost_the_lease_tells_nothing(engine: Engine, owner: UUID) -> None:
    engine.put(owner)
    job = engine.claim_one()
    engine.hand_back(job)
    assert not engine.progress(job, 1)
    assert told(engine, job.id) == []
