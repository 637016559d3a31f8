"""What somebody does by hand is never behind their import, and an import never stops for good."""

from __future__ import annotations

import threading
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from octavo.core.errors import ErrorClass, NotFound
from octavo.core.types import Lane
from octavo.database import Connection, connect
from octavo.jobs.job_run import ClaimedJob
from octavo.jobs.queue import IllegalTransition, pause_imports, prioritise_jobs, resume_imports, retry_jobs
from octavo.jobs.views import show_job
from octavo.jobs.worker_state import BULK_TURN, LaneClaims, RunningJob, Slots, WorkerLimits
from tests.support.engine import FROM_THE_BEGINNING, QUERIES, Engine, engine_on


def claimed(engine: Engine, count: int) -> list[UUID]:
    """One after the other, because a claim of several has no order."""
    return [job.id for _ in range(count) for job in engine.claim()]


def test_an_interactive_job_runs_before_the_same_owners_import(engine: Engine, owner: UUID) -> None:
    bulk = engine.put(owner, count=50, lane=Lane.BULK)
    (mine,) = engine.put(owner)
    (later,) = engine.put(owner, priority=9)
    assert claimed(engine, 3) == [mine, later, bulk[0]]


def test_owners_take_turns_in_the_bulk_lane(engine: Engine, owner: UUID) -> None:
    other = engine.add_owner()
    first = engine.put(owner, count=5, lane=Lane.BULK)
    second = engine.put(other, count=2, lane=Lane.BULK)
    assert set(claimed(engine, 4)) == {*first[:2], *second}


def test_follow_ups_use_the_lane_of_their_document(engine: Engine, owner: UUID) -> None:
    imported, by_hand = uuid4(), uuid4()
    engine.put(owner, document_id=imported, lane=Lane.BULK)
    engine.put(owner, document_id=by_hand)
    (after_import,) = engine.put(owner, document_id=imported, priority=6)
    (after_hand,) = engine.put(owner, document_id=by_hand, priority=6)
    assert [engine.job(job)["priority"] for job in (after_import, after_hand)] == [16, 6]


def bulk_first(engine: Engine, slots: int, bulk_most: int = 1000) -> list[UUID]:
    values: dict[str, Any] = {"worker": uuid4(), "kinds": ["demo"], "held": [], "tokens": [], "outputs": "[]"}
    values |= {"slots": slots, "lease": 60, **FROM_THE_BEGINNING, "bulk_first": True, "bulk_most": bulk_most}
    return [row[0] for row in engine.connection.execute(QUERIES.exchange, values).fetchall()]


def test_the_bulk_lane_advances_while_interactive_jobs_wait(engine: Engine, owner: UUID) -> None:
    bulk = engine.put(owner, count=3, lane=Lane.BULK)
    mine = engine.put(owner, count=3)
    assert set(bulk_first(engine, 2)) == {bulk[0], mine[0]}
    assert bulk_first(engine, 1) == [bulk[1]]
    assert bulk_first(engine, 1, bulk_most=0) == [mine[1]]


def test_a_worker_takes_a_bulk_job_first_after_some_interactive_ones(engine: Engine, owner: UUID) -> None:
    engine.put(owner)
    job, claims = engine.claim_one(), LaneClaims()
    for _ in range(BULK_TURN):
        assert not claims.values(0)["bulk_first"]
        claims.add([job], 0)
    assert claims.values(0)["bulk_first"]
    claims.add([job], 0)  # there was no bulk job
    assert not claims.values(0)["bulk_first"]


def test_imports_leave_slots_free_for_the_next_interactive_job(engine: Engine, owner: UUID) -> None:
    engine.put(owner, count=10, lane=Lane.BULK)
    slots = Slots(WorkerLimits(slots=10))
    taken = engine.claim(slots=slots.free_for_bulk)
    slots.running.update({(job.id, job.lease_token): RunningJob(job) for job in taken})
    assert 0 < len(taken) < 10
    assert slots.free_for_bulk == 0
    assert slots.free == 10 - len(taken)


def test_a_worker_with_one_slot_also_runs_imports() -> None:
    assert Slots(WorkerLimits(slots=1)).free_for_bulk == 1


# Moving up ---------------------------------------------------------------------------------------------------------


async def test_a_job_that_was_moved_up_runs_next_and_says_so_once(
    engine: Engine, owner: UUID, connection: Connection
) -> None:
    *_, last = engine.put(owner, count=20, lane=Lane.BULK)
    assert (await show_job(connection, owner, last)).lane is Lane.BULK
    assert [await prioritise_jobs(connection, owner, [last]) for _ in range(2)] == [1, 0]
    assert (await show_job(connection, owner, last)).lane is Lane.INTERACTIVE
    assert [event["kind"] for event in engine.events(last)] == ["created", "prioritised"]
    assert claimed(engine, 1) == [last]


async def test_a_job_of_somebody_else_cannot_be_moved(engine: Engine, owner: UUID, connection: Connection) -> None:
    (job,) = engine.put(owner, lane=Lane.BULK)
    with pytest.raises(NotFound):
        await prioritise_jobs(connection, engine.add_owner(), [job])
    assert engine.job(job)["priority"] == 15


async def test_a_finished_job_cannot_be_moved(engine: Engine, owner: UUID, connection: Connection) -> None:
    (job,) = engine.put(owner, lane=Lane.BULK)
    engine.complete(engine.claim_one())
    with pytest.raises(IllegalTransition):
        await prioritise_jobs(connection, owner, [job])


async def test_the_retry_of_a_single_job_is_interactive(engine: Engine, owner: UUID, connection: Connection) -> None:
    one, two = engine.put(owner, count=2, lane=Lane.BULK)
    for job in engine.claim(slots=2):
        engine.fail(job, ErrorClass.UNSUPPORTED)
    await retry_jobs(connection, owner, [one])
    assert [engine.job(job)["priority"] for job in (one, two)] == [5, 15]


# Pausing -----------------------------------------------------------------------------------------------------------


async def test_paused_imports_wait_and_say_why(engine: Engine, owner: UUID, connection: Connection) -> None:
    before = engine.put(owner, count=2, lane=Lane.BULK)
    assert (await pause_imports(connection, owner)).waiting == 2
    after = engine.put(owner, lane=Lane.BULK)
    (mine,) = engine.put(owner)
    (others,) = engine.put(engine.add_owner(), lane=Lane.BULK)
    for job in (*before, *after):
        waiting = (await show_job(connection, owner, job)).waiting_because
        assert waiting is not None
        assert (waiting.reason, waiting.detail) == ("imports_paused", "imports are paused")
    assert claimed(engine, 10) == [mine, others]
    assert (await pause_imports(connection, owner)).paused_at is not None
    assert (await resume_imports(connection, owner)).paused_at is None
    assert (await resume_imports(connection, owner)).paused_at is None
    assert claimed(engine, 10) == [*before, *after]
    kinds = [event["kind"] for event in engine.events(owner)]
    assert kinds == ["imports.paused", "imports.resumed"]


async def test_a_paused_import_gives_back_the_slots_of_its_caps(
    engine: Engine, owner: UUID, connection: Connection
) -> None:
    engine.put(owner, count=3, lane=Lane.BULK, cap_key="few", cap=1)
    (other,) = engine.put(engine.add_owner(), cap_key="few", cap=1)
    await pause_imports(connection, owner)
    assert claimed(engine, 5) == [other]
    await resume_imports(connection, owner)
    engine.check_invariants()


async def test_a_paused_job_can_be_moved_up(engine: Engine, owner: UUID, connection: Connection) -> None:
    job, _ = engine.put(owner, count=2, lane=Lane.BULK)
    await pause_imports(connection, owner)
    await prioritise_jobs(connection, owner, [job])
    assert claimed(engine, 5) == [job]


async def test_a_job_that_failed_while_imports_are_paused_waits_too(
    engine: Engine, owner: UUID, connection: Connection
) -> None:
    engine.put(owner, lane=Lane.BULK)
    running = engine.claim_one()
    await pause_imports(connection, owner)
    engine.fail(running, ErrorClass.TRANSIENT)
    engine.advance(3600)
    assert claimed(engine, 5) == []
    await resume_imports(connection, owner)
    assert claimed(engine, 5) == [running.id]


def test_no_job_is_left_behind_if_many_pause_resume_enqueue_and_claim(engine: Engine, owner: UUID) -> None:
    """Each with its own connection: whatever the order, every job runs once in the end."""
    done: list[ClaimedJob] = []
    errors: list[BaseException] = []

    def work(what: str) -> None:
        try:
            with engine_on(engine.info) as mine:
                for _ in range(40):
                    if what == "enqueue":
                        mine.put(owner, count=3, lane=Lane.BULK)
                    elif what == "claim":
                        taken = mine.claim(slots=4)
                        mine.complete(*taken)
                        done.extend(taken)
                    else:
                        mine.one("SELECT pause_imports(%s)", owner)
                        mine.one("SELECT resume_imports(%s)", owner)
        except (psycopg.Error, AssertionError) as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[what]) for what in ("enqueue", "claim", "pause", "claim", "pause")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert engine.one("SELECT count(*) FROM jobs WHERE run_after = 'infinity'") == 0
    while rest := engine.claim(slots=50):
        engine.complete(*rest)
        done.extend(rest)
    assert len(done) == len({job.id for job in done}) == 120


@pytest.fixture
async def connection(engine: Engine) -> Any:  # noqa: ANN401 - a generator of one connection
    async with await connect(engine.info) as one:
        yield one
