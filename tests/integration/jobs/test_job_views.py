"""What people are told about a job: why it waits, how far it is, how long it may take, and whose it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from octavo.core.errors import BadInput, ErrorClass, NotFound
from octavo.core.http import make_cursor, read_cursor
from octavo.core.types import JobStatus
from octavo.database import Connection, connect, load_queries
from octavo.jobs import queue, views
from octavo.jobs.queue import IllegalTransition
from octavo.jobs.views import SENTENCES, explain_waiting, list_jobs, ordinal, show_job
from octavo.records.jobs import WaitingBecause
from tests.support.engine import Engine, engine_on
from tests.support.postgres import Server

QUERIES = load_queries("job_views")


@pytest.fixture
async def connection(engine: Engine) -> AsyncIterator[Connection]:
    async with await connect(engine.info) as one:
        await one.execute(b"SET timezone = 'Asia/Kolkata'")  # a server's zone must not show anywhere
        yield one


@pytest.fixture
def worker(engine: Engine) -> UUID:
    return add_worker(engine)


def add_worker(engine: Engine, *kinds: str) -> UUID:
    return engine.one(
        "INSERT INTO workers SELECT %s, 'host', 1, %s, 10, 0, at, at, at + interval '60 s' FROM engine_now() at"
        " RETURNING id",
        uuid4(),
        list(kinds or ("demo",)),
    )


async def waiting(connection: Connection, job: UUID) -> WaitingBecause:
    because = (await show_job(connection, None, job)).waiting_because
    assert because
    return because


# Why it waits ------------------------------------------------------------------------------------------------------


async def test_without_a_worker_nothing_else_matters(engine: Engine, owner: UUID, connection: Connection) -> None:
    (job,) = engine.put(owner, delay_seconds=3600)
    because = await waiting(connection, job)
    assert (because.reason, because.detail) == ("no_worker", "no worker is running")


async def test_a_worker_of_other_kinds_does_not_count(engine: Engine, owner: UUID, connection: Connection) -> None:
    add_worker(engine, "other")
    (job,) = engine.put(owner)
    assert (await waiting(connection, job)).detail == "no running worker supports this job kind"


async def test_a_worker_that_is_silent_does_not_count(
    engine: Engine, owner: UUID, connection: Connection, worker: UUID
) -> None:
    (job,) = engine.put(owner)
    assert (await waiting(connection, job)).reason == "behind"
    engine.advance(61)
    assert (await waiting(connection, job)).reason == "no_worker"
    assert [one.alive for one in await views.list_workers(connection)] == [False]


async def test_the_place_in_line_is_the_order_in_which_jobs_are_claimed(
    engine: Engine, owner: UUID, connection: Connection, worker: UUID
) -> None:
    jobs = engine.put(owner, count=5)
    urgent = engine.put(engine.add_owner(), count=2, priority=1)
    engine.put(owner, priority=9)
    other = engine.put(engine.add_owner())  # owners take turns, so it comes after the first owner's first
    places = {job: (await waiting(connection, job)).facts["position"] for job in [*jobs, *urgent, *other]}
    claimed = [engine.claim_one(worker).id for _ in places]
    assert sorted(places, key=lambda job: places[job]) == claimed
    assert sorted(places.values()) == list(range(1, 9))


async def test_the_place_in_line_is_not_counted_beyond_a_thousand(
    engine: Engine, owner: UUID, connection: Connection, worker: UUID
) -> None:
    engine.put(owner, count=1002)
    jobs = [row["id"] for row in engine.rows("SELECT id FROM jobs ORDER BY virtual_time")]
    assert (await waiting(connection, jobs[999])).detail == "1000th in the queue"
    assert (await waiting(connection, jobs[1000])).detail == "behind 1,000+ others"
    assert (await waiting(connection, jobs[1001])).facts == {"position": 1001}


async def test_a_job_that_backs_off_says_until_when_and_after_what(
    engine: Engine, owner: UUID, connection: Connection, worker: UUID
) -> None:
    (job,) = engine.put(owner)
    engine.fail(engine.claim_one(worker), ErrorClass.TRANSIENT)
    because = await waiting(connection, job)
    assert because.reason == "backing_off"
    assert because.facts["error"] == {"code": "TRANSIENT", "message": "It failed."}
    assert (because.facts["failures"], because.facts["max_attempts"]) == (1, 3)
    assert datetime.fromisoformat(because.facts["run_after"]).utcoffset() == timedelta(0)
    assert because.detail.endswith("UTC (attempt 2 of 3) after TRANSIENT")
    engine.advance(10)  # due, although nobody has looked yet
    assert (await waiting(connection, job)).reason == "behind"


async def test_a_job_with_a_delay_starts_later(
    engine: Engine, owner: UUID, connection: Connection, worker: UUID
) -> None:
    (job,) = engine.put(owner, delay_seconds=3 * 24 * 3600)
    because = await waiting(connection, job)
    expected = datetime.now(UTC) + timedelta(days=3)
    assert because.reason == "backing_off"
    assert because.detail.startswith(f"starts {expected:%Y-%m-}")


async def test_a_cap_names_its_group_and_how_many_run(
    engine: Engine, owner: UUID, connection: Connection, worker: UUID
) -> None:
    engine.put(owner, count=3, cap_key="analysis:7", cap=2)
    job = engine.one("SELECT id FROM jobs WHERE NOT admitted")
    because = await waiting(connection, job)
    assert (because.reason, because.detail) == ("cap", "2 of this analysis already running")
    assert because.facts == {"cap_key": "analysis:7", "most": 2, "taken": 2}


async def test_a_paused_job_says_why(engine: Engine, owner: UUID, connection: Connection) -> None:
    (job,) = engine.put(owner)
    engine.pause(job)
    because = await waiting(connection, job)
    assert (because.reason, because.detail) == ("paused", "over budget")
    assert because.facts == {"code": "OVER_BUDGET", "message": "Nothing left."}


async def test_a_suspected_job_says_so(engine: Engine, owner: UUID, connection: Connection) -> None:
    (job,) = engine.put(owner)
    for _ in range(2):
        engine.claim_one()
        engine.advance(61)
        engine.pass_time()
        engine.advance(2)
        engine.pass_time()
    add_worker(engine)
    because = await waiting(connection, job)
    assert (because.reason, because.facts) == ("alone", {"position": 1})


async def test_a_job_that_runs_or_rests_does_not_wait(
    engine: Engine, owner: UUID, connection: Connection, worker: UUID
) -> None:
    running, complete, failed, cancelled = engine.put(owner, count=4)
    claimed = engine.claim(worker, 4)
    engine.complete(claimed[1])
    engine.fail(claimed[2], ErrorClass.PERMANENT)
    engine.cancel(cancelled)
    for job in (running, complete, failed, cancelled):
        assert (await show_job(connection, owner, job)).waiting_because is None
    assert engine.one("SELECT count(*) FROM job_waiting") == 0


@pytest.mark.parametrize(
    ("number", "said"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd"), (113, "113th")]
)
def test_places_are_said_as_people_say_them(number: int, said: str) -> None:
    assert ordinal(number) == said


@pytest.mark.parametrize(
    ("reason", "facts", "said"),
    [
        ("cap", {"cap_key": "kind:demo", "taken": 5}, "5 of this kind already running"),
        ("cap", {"cap_key": "bulk", "taken": 1}, "1 of bulk already running"),
        ("paused", {"code": "ASKED", "message": "By you."}, "By you."),
        ("paused", {}, "paused"),
    ],
)
def test_reasons_are_explained_in_words(reason: str, facts: dict[str, Any], said: str) -> None:
    assert explain_waiting(reason, facts) == said


def test_every_reason_of_the_view_has_words(engine: Engine) -> None:
    written = engine.one("SELECT pg_get_viewdef('job_waiting'::regclass)")
    reasons = {
        word for word in written.split("'") if f"THEN '{word}'::text" in written or f"ELSE '{word}'::text" in written
    }
    assert reasons == set(SENTENCES)


# How long it takes -------------------------------------------------------------------------------------------------


def complete_some(engine: Engine, owner: UUID, count: int, seconds: float) -> None:
    for _ in range(count):
        engine.put(owner)
        job = engine.claim_one()
        engine.advance(seconds)
        engine.complete(job)


async def test_an_estimate_needs_five_jobs_of_the_kind(engine: Engine, owner: UUID, connection: Connection) -> None:
    complete_some(engine, owner, 4, 10)
    (job,) = engine.put(owner)
    claimed = engine.claim_one()
    assert (await show_job(connection, owner, job)).eta is None
    engine.hand_back(claimed)
    complete_some(engine, owner, 1, 10)  # the same job: it was first in line
    engine.put(owner)
    (later,) = engine.claim()
    engine.advance(4)
    eta = (await show_job(connection, owner, later.id)).eta
    assert eta
    assert 5 < eta.low_seconds <= eta.high_seconds < 6.5


async def test_a_job_that_takes_longer_than_others_has_no_estimate(
    engine: Engine, owner: UUID, connection: Connection
) -> None:
    complete_some(engine, owner, 5, 2)
    (job,) = engine.put(owner)
    engine.claim()
    engine.advance(5)
    assert (await show_job(connection, owner, job)).eta is None


async def test_parts_that_are_finished_say_how_long_the_rest_takes(
    engine: Engine, owner: UUID, connection: Connection
) -> None:
    (job,) = engine.put(owner)
    claimed = engine.claim_one()
    engine.progress(claimed, 0)
    for part in ("1", "2", "3", "4"):
        engine.advance(0.5)
        engine.finish_stage(claimed, "read", part)
    found = await show_job(connection, owner, job)
    assert (found.progress.done, found.progress.total, found.progress.unit) == (4, 10, "pages")
    assert found.eta
    assert found.eta.low_seconds == found.eta.high_seconds == pytest.approx(3.0, abs=0.2)


async def test_parts_that_run_beside_each_other_take_less(engine: Engine, owner: UUID, connection: Connection) -> None:
    (job,) = engine.put(owner)
    claimed = engine.claim_one()
    engine.progress(claimed, 0)
    for part in ("1", "2", "3", "4"):
        engine.finish_stage(claimed, "read", part)
    eta = (await show_job(connection, owner, job)).eta
    assert eta
    assert eta.high_seconds < 1.5  # six left, half a second each, four at once


async def test_a_job_never_shows_more_than_its_total(engine: Engine, owner: UUID, connection: Connection) -> None:
    engine.put(owner)
    job = engine.claim_one()
    engine.finish_stage(job, "part", part="1")
    engine.progress(job, 10)
    engine.finish_stage(job, "part", part="2")
    assert engine.job(job.id)["done"] == 11
    (listed,) = (await list_jobs(connection, owner)).items
    shown = (await show_job(connection, owner, job.id)).progress
    assert (shown.done, shown.total) == (listed.progress.done, listed.progress.total) == (10, 10)


async def test_two_parts_are_too_few(engine: Engine, owner: UUID, connection: Connection) -> None:
    (job,) = engine.put(owner)
    claimed = engine.claim_one()
    engine.progress(claimed, 0)
    engine.finish_stage(claimed, "read", "1")
    engine.finish_stage(claimed, "read", "2")
    assert (await show_job(connection, owner, job)).eta is None


async def test_stages_of_earlier_attempts_count_in_the_elapsed_time(
    engine: Engine, owner: UUID, connection: Connection
) -> None:
    complete_some(engine, owner, 5, 10)
    (job,) = engine.put(owner)
    first = engine.claim_one()
    engine.finish_stage(first, "read")  # took half a second
    engine.hand_back(first)
    engine.advance(100)  # in line, which is not work
    engine.claim_one()
    eta = (await show_job(connection, owner, job)).eta
    assert eta
    assert eta.low_seconds == pytest.approx(9.5, abs=0.3)


# Reading -----------------------------------------------------------------------------------------------------------


async def test_pages_are_stable_while_jobs_are_added(engine: Engine, owner: UUID, connection: Connection) -> None:
    jobs = engine.put(owner, count=7)
    found: list[UUID] = []
    cursor: str | None = None
    for _ in range(4):
        page = await list_jobs(connection, owner, limit=2, cursor=cursor)
        found += [job.id for job in page.items]
        cursor = page.next_cursor
        engine.put(owner)
    assert found == list(reversed(jobs))
    assert cursor is None


async def test_lists_are_filtered_and_are_the_owners_alone(engine: Engine, owner: UUID, connection: Connection) -> None:
    document = uuid4()
    engine.add_kind("other")
    (plain,) = engine.put(owner)
    (about,) = engine.put(owner, document_id=document)
    (other,) = engine.put(owner, kind="other")
    engine.cancel(other)
    (foreign,) = engine.put(engine.add_owner(), document_id=document)

    async def ids(owner_id: UUID | None, **filters: Any) -> set[UUID]:  # noqa: ANN401
        return {job.id for job in (await list_jobs(connection, owner_id, **filters)).items}

    assert await ids(owner) == {plain, about, other}
    assert await ids(None) == {plain, about, other, foreign}
    assert await ids(owner, document_id=document) == {about}
    assert await ids(owner, kind="other") == {other}
    assert await ids(owner, status=JobStatus.QUEUED) == {plain, about}
    with pytest.raises(NotFound):
        await show_job(connection, owner, foreign)
    assert await views.list_events_of_job(connection, owner, foreign) == []


async def test_a_job_tells_all_it_finished_and_a_list_only_whole_stages(
    engine: Engine, owner: UUID, connection: Connection
) -> None:
    (job,) = engine.put(owner)
    claimed = engine.claim_one()
    engine.finish_stage(claimed, "read", "page 1")
    engine.finish_stage(claimed, "save")
    found = await show_job(connection, owner, job)
    assert [(one.stage, one.part, one.attempt) for one in found.stages] == [("read", "page 1", 1), ("save", None, 1)]
    assert found.started_at
    assert found.started_at.tzinfo is UTC
    (listed,) = (await list_jobs(connection, owner)).items
    assert [one.stage for one in listed.stages] == ["save"]
    events = await views.list_events_of_job(connection, owner, job)
    assert [event.kind for event in events] == ["created", "processing", "stage", "stage"]


async def test_an_error_is_reported_only_when_a_job_ended_with_it(
    engine: Engine, owner: UUID, connection: Connection
) -> None:
    (job,) = engine.put(owner, max_attempts=2)
    engine.fail(engine.claim_one(), ErrorClass.TRANSIENT)
    assert (await show_job(connection, owner, job)).error is None
    engine.advance(60)
    engine.fail(engine.claim_one(), ErrorClass.TRANSIENT)
    found = await show_job(connection, owner, job)
    assert found.status == JobStatus.DEAD_LETTER
    assert found.error == views.JobError("TRANSIENT", "It failed.")
    assert [one.id for one in (await views.dead_letters(connection)).items] == [job]
    assert await views.count_jobs(connection) == {"dead_letter": 1}


@pytest.mark.parametrize(
    "cursor",
    ["x", "é", "\x00", "====", "bm90IGEgY3Vyc29y", make_cursor(datetime(2026, 1, 2, tzinfo=UTC), UUID(int=1))[:-9]],
)
def test_a_cursor_that_is_none_is_refused(cursor: str) -> None:
    with pytest.raises(BadInput):
        read_cursor(cursor)


def test_a_cursor_says_where_it_was_to_the_microsecond() -> None:
    at, job = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), uuid4()
    assert read_cursor(make_cursor(at, job)) == (at, job)


# Asking ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["queued", "processing", "complete"])
async def test_only_what_rests_is_retried(engine: Engine, owner: UUID, connection: Connection, status: str) -> None:
    (job,) = engine.put(owner, cap_key="group", cap=1)
    if status != "queued":
        claimed = engine.claim_one()
        if status == "complete":
            engine.complete(claimed)
    before = engine.job(job)
    with pytest.raises(IllegalTransition, match=f"is {status}"):
        async with connection.transaction():
            await queue.retry_jobs(connection, owner, [job], from_stage="")
    assert engine.job(job) == before


async def test_many_are_changed_together_or_not_at_all(engine: Engine, owner: UUID, connection: Connection) -> None:
    first, second, complete = engine.put(owner, count=3)
    engine.cancel(first)
    engine.cancel(second)
    engine.complete(engine.claim_one())
    with pytest.raises(IllegalTransition):
        async with connection.transaction():
            await queue.retry_jobs(connection, owner, [first, second, complete])
    assert engine.statuses() == {"cancelled": 2, "complete": 1}
    assert await queue.retry_jobs(connection, owner, [first, first, second]) == 2


async def test_nobody_can_change_the_data_of_others(engine: Engine, owner: UUID, connection: Connection) -> None:
    (job,) = engine.put(owner)
    stranger = engine.add_owner()
    with pytest.raises(NotFound):
        await queue.cancel_jobs(connection, stranger, [job])
    assert engine.status(job) == "queued"


# Cost --------------------------------------------------------------------------------------------------------------

MANY = 100_000


@pytest.fixture(scope="module")
def long_line(newest_server: Server) -> Iterator[tuple[Engine, UUID]]:
    """100,000 jobs in line; without their events, which would take longer than all the other tests."""
    with newest_server.database() as info, engine_on(info) as engine:
        add_worker(engine)
        engine.run("ALTER TABLE jobs DISABLE TRIGGER USER")
        engine.run(
            "INSERT INTO jobs (id, kind, owner_id, virtual_time, status, max_attempts, admitted, created_at, queued_at)"
            " SELECT gen_random_uuid(), 'demo', %s, n, 'queued', 3, true, now() + n * interval '1 ms', now()"
            " FROM generate_series(1, %s) AS n",
            owner := engine.add_owner(),
            MANY,
        )
        engine.run("ANALYZE jobs")
        yield engine, owner


def plan_of(engine: Engine, query: bytes, **values: object) -> dict[str, Any]:
    explained = engine.connection.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query, values).fetchone()
    assert explained
    return explained[0][0]["Plan"]


def read_whole(plan: dict[str, Any]) -> set[str]:
    """The tables that were read from the first row to the last."""
    here = {plan["Relation Name"]} if plan["Node Type"] == "Seq Scan" else set[str]()
    return here.union(*(read_whole(one) for one in plan.get("Plans", [])))


def pages_read(plan: dict[str, Any]) -> int:
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def test_why_one_job_waits_is_found_without_reading_the_others(long_line: tuple[Engine, UUID]) -> None:
    engine, _ = long_line
    job = engine.one("SELECT id FROM jobs WHERE virtual_time = %s", MANY // 2)
    plan = plan_of(engine, QUERIES.waiting, jobs=[job])
    assert read_whole(plan) <= {"workers"}
    assert pages_read(plan) < 100


@pytest.mark.parametrize("filters", [{}, {"status": "queued"}, {"kind": "demo"}, {"job": uuid4()}])
def test_a_page_is_read_without_reading_the_rest(long_line: tuple[Engine, UUID], filters: dict[str, Any]) -> None:
    engine, owner = long_line
    unset = dict.fromkeys(("job", "jobs", "status", "kind", "document", "before_at", "before_id"))
    plan = plan_of(engine, QUERIES.jobs, **unset | filters, owner=owner, most=51)
    assert read_whole(plan) == set()
    assert pages_read(plan) < 100
