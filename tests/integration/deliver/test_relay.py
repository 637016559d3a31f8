"""Every event that somebody wants to know is put in their line once, in order, however late it commits."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import UUID

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from octavo.core.errors import ErrorClass
from octavo.database import Connection, connect
from octavo.deliver.deliveries import relay_once
from octavo.deliver.messages import EVENT_TYPES
from tests.support.deliveries import PostOffice
from tests.support.engine import Engine, engine_on


def types(line: list[dict[str, object]]) -> list[object]:
    return [row["type"] for row in line]


async def test_events_of_a_job_are_delivered_in_order(office: PostOffice, engine: Engine, owner: UUID) -> None:
    subscriber = office.subscribe(owner)
    engine.put(owner)
    job = engine.claim_one()
    engine.finish_stage(job, "one")
    engine.complete(job)
    await office.relay()
    assert types(office.line(subscriber)) == ["job.created", "job.processing", "job.stage", "job.completed"]


async def test_only_the_requested_objects_of_the_owner_are_returned(
    office: PostOffice, engine: Engine, owner: UUID
) -> None:
    mine = office.subscribe(owner, events=["job.completed"])
    stranger = office.subscribe(engine.add_owner())
    stopped = office.subscribe(owner)
    engine.run("UPDATE subscribers SET active = false WHERE id = %s", stopped)
    engine.put(owner)
    engine.complete(engine.claim_one())
    await office.relay()
    assert types(office.line(mine)) == ["job.completed"]
    assert office.line(stranger) == office.line(stopped) == []


async def test_a_new_subscriber_hears_nothing_of_the_past(office: PostOffice, engine: Engine, owner: UUID) -> None:
    engine.put(owner)
    late = office.subscribe(owner)
    (job,) = engine.put(owner)
    await office.relay()
    (waiting,) = engine.rows("SELECT process_id FROM outgoing WHERE subscriber_id = %s", late)
    assert waiting["process_id"] == job


async def test_the_administrator_hears_of_everybodys_failures(office: PostOffice, engine: Engine, owner: UUID) -> None:
    admin = office.subscribe(owner, "ops@example.org", ["job.dead_letter"], channel="mail", everybodys=True)
    for someone in (owner, engine.add_owner()):
        engine.put(someone, max_attempts=1)
        engine.fail(engine.claim_one(), ErrorClass.TRANSIENT)
    await office.relay()
    assert types(office.line(admin)) == ["job.dead_letter", "job.dead_letter"]


# Lines -------------------------------------------------------------------------------------------------------------


def begun(office: PostOffice, subscriber: UUID) -> list[bool]:
    return [row["job_id"] is not None for row in office.line(subscriber)]


@pytest.mark.parametrize("end", ["complete", "failed", "dead_letter", "cancelled"])
async def test_the_next_goes_when_the_one_before_is_over_and_not_before(
    office: PostOffice, engine: Engine, owner: UUID, end: str
) -> None:
    subscriber = office.subscribe(owner)
    engine.put(owner)
    engine.complete(engine.claim_one())
    await office.relay()
    assert begun(office, subscriber) == [True, False, False]
    first = engine.claim_one(kinds=["deliver"])
    engine.fail(first, ErrorClass.TRANSIENT)
    await office.relay()
    assert begun(office, subscriber) == [True, False, False]  # backing off
    engine.advance(3600)
    again = engine.claim_one(kinds=["deliver"])
    assert again.id == first.id
    match end:
        case "complete":
            engine.complete(again)
        case "failed":
            engine.fail(again, ErrorClass.PERMANENT)
        case "dead_letter":
            engine.run("UPDATE jobs SET max_attempts = 1 WHERE id = %s", again.id)
            engine.fail(again, ErrorClass.TRANSIENT)
        case _:
            engine.cancel(again.id)
    assert engine.status(again.id) == end
    await office.relay()
    assert types(office.line(subscriber)) == ["job.processing", "job.completed"]
    assert begun(office, subscriber) == [True, False]


async def test_lines_of_different_processes_and_subscribers_do_not_wait_for_each_other(
    office: PostOffice, engine: Engine, owner: UUID
) -> None:
    subscribers = [office.subscribe(owner) for _ in range(2)]
    engine.put(owner, count=3)
    for job in engine.claim(slots=3):
        engine.complete(job)
    await office.relay()
    for subscriber in subscribers:
        assert sum(begun(office, subscriber)) == 3
    per_line = "SELECT count(*) AS n FROM outgoing WHERE job_id IS NOT NULL GROUP BY subscriber_id, process_id"
    assert {row["n"] for row in engine.rows(per_line)} == {1}


async def test_deliveries_make_no_deliveries(office: PostOffice, engine: Engine, owner: UUID) -> None:
    """Not when they start, not when they fail, and not as notifications."""
    subscriber = office.subscribe(owner, events=EVENT_TYPES)
    engine.put(owner)
    await office.relay()
    job = engine.claim_one(kinds=["deliver"])
    engine.run("UPDATE jobs SET max_attempts = 1 WHERE id = %s", job.id)
    engine.fail(job, ErrorClass.TRANSIENT)
    assert engine.status(job.id) == "dead_letter"
    await office.relay()
    assert office.line(subscriber) == []
    assert engine.rows("SELECT * FROM notifications") == []


async def test_a_deleted_subscriber_leaves_nothing_in_line(office: PostOffice, engine: Engine, owner: UUID) -> None:
    subscriber = office.subscribe(owner)
    engine.put(owner)
    engine.complete(engine.claim_one())
    await office.relay()
    engine.run("DELETE FROM subscribers WHERE id = %s", subscriber)
    assert engine.one("SELECT count(*) FROM outgoing") == 0
    engine.complete(engine.claim_one(kinds=["deliver"]))
    await office.relay()


async def test_the_log_cannot_be_changed(office: PostOffice, engine: Engine, owner: UUID) -> None:
    subscriber = office.subscribe(owner)
    engine.run(
        "INSERT INTO deliveries (id, subscriber_id, job_id, attempt, type, status, seconds)"
        " VALUES (gen_random_uuid(), %s, gen_random_uuid(), 1, 'job.completed', 'delivered', 0)",
        subscriber,
    )
    with pytest.raises(psycopg.errors.RestrictViolation):
        engine.run("UPDATE deliveries SET attempt = 2")


# Exactly once ------------------------------------------------------------------------------------------------------

TELL = b"INSERT INTO events (process_id, kind, owner_id, detail) VALUES (%s, 'stage', %s, '{}')"


async def tell(connection: Connection, process: UUID, owner: UUID) -> None:
    await connection.execute(TELL, [process, owner])


async def test_an_event_that_commits_late_is_not_skipped(
    office: PostOffice, engine: Engine, owner: UUID, database_info: str
) -> None:
    subscriber = office.subscribe(owner)
    first, second = engine.put(owner, count=2)
    await office.relay()
    async with await connect(database_info) as slow, await connect(database_info) as quick:
        await slow.set_autocommit(False)
        await tell(slow, first, owner)
        await tell(quick, second, owner)
        while await relay_once(office.database):
            pass
        assert types(office.line(subscriber)).count("job.stage") == 0
        await slow.commit()
    await office.relay()
    rows = engine.rows("SELECT process_id FROM outgoing WHERE type = 'job.stage' ORDER BY place")
    assert [row["process_id"] for row in rows] == [first, second]


async def test_an_event_that_a_long_transaction_writes_last_is_not_skipped(
    office: PostOffice, engine: Engine, owner: UUID, database_info: str
) -> None:
    """Its transaction id is older than those of events that were read meanwhile."""
    subscriber = office.subscribe(owner, events=["job.stage"])
    first, second = engine.put(owner, count=2)
    async with await connect(database_info) as slow, await connect(database_info) as quick:
        await slow.set_autocommit(False)
        await slow.execute(b"SELECT pg_current_xact_id()")
        await tell(quick, first, owner)
        await office.relay()
        assert len(office.line(subscriber)) == 1
        await tell(slow, second, owner)
        await slow.commit()
    await office.relay()
    rows = engine.rows("SELECT process_id FROM outgoing WHERE type = 'job.stage' ORDER BY place")
    assert [row["process_id"] for row in rows] == [first, second]


@pytest.mark.parametrize("last_id", [2**31 - 2, 2**40 - 1])
async def test_an_event_that_commits_late_is_not_skipped_after_any_number_of_events(
    office: PostOffice, engine: Engine, owner: UUID, database_info: str, last_id: int
) -> None:
    """Only the last bits of an id fit into the key of a lock."""
    subscriber = office.subscribe(owner, events=["job.stage"])
    (process,) = engine.put(owner)
    await office.relay()
    engine.run("SELECT setval('events_id_seq', %s)", last_id)
    async with await connect(database_info) as slow, await connect(database_info) as quick:
        await tell(quick, process, owner)
        await slow.set_autocommit(False)
        await tell(slow, process, owner)
        await tell(quick, process, owner)
        while await relay_once(office.database):
            pass
        assert len(office.line(subscriber)) == 1
        await slow.commit()
    await office.relay()
    assert [row["event_id"] for row in office.line(subscriber)] == [last_id + 1, last_id + 2, last_id + 3]


async def test_an_open_transaction_that_writes_no_events_holds_nothing_back(
    office: PostOffice, engine: Engine, owner: UUID, database_info: str
) -> None:
    """In this database and in any other one of the server."""
    subscriber = office.subscribe(owner, events=["job.created"])
    elsewhere = make_conninfo(database_info, dbname="postgres")
    async with await connect(database_info) as here, await connect(elsewhere) as there:
        for connection in (here, there):
            await connection.set_autocommit(False)
            await connection.execute(b"SELECT pg_current_xact_id()")
        engine.put(owner)
        while await relay_once(office.database):
            pass
        assert types(office.line(subscriber)) == ["job.created"]


async def test_many_relays_beside_many_writers_put_everything_in_line_once(
    office: PostOffice, engine: Engine, owner: UUID, database_info: str
) -> None:
    subscribers = [office.subscribe(owner, events=["job.stage"]) for _ in range(3)]
    processes = engine.put(owner, count=5)
    writers = [await connect(database_info) for _ in range(5)]

    async def write(connection: Connection, process: UUID) -> None:
        for number in range(20):
            async with connection.transaction():
                await tell(connection, process, owner)
                await connection.execute(b"SELECT pg_sleep(%s)", [(number % 4) / 200])

    writing = asyncio.gather(*map(write, writers, processes))
    while not writing.done():
        await asyncio.gather(*(relay_once(office.database, batch=7) for _ in range(4)))
    await writing
    await office.relay(batch=7)
    told = [row["id"] for row in engine.rows("SELECT id FROM events WHERE kind = 'stage' ORDER BY epoch, id")]
    assert len(told) == 100
    for subscriber in subscribers:
        line = [row["event_id"] for row in office.line(subscriber)]
        assert line == told
    jobs = Counter(row["key"] for row in engine.rows("SELECT key FROM jobs WHERE kind = 'deliver'"))
    assert set(jobs.values()) == {1}
    assert len(jobs) == 15
    for connection in writers:
        await connection.close()


async def test_a_relay_that_dies_in_the_middle_loses_and_doubles_nothing(
    office: PostOffice, engine: Engine, owner: UUID, database_info: str
) -> None:
    subscriber = office.subscribe(owner, events=["job.created"])
    engine.put(owner, count=3)
    with engine_on(database_info) as dying:
        dying.connection.autocommit = False
        assert dying.one("SELECT events_read FROM relay_events(100, '{}', '{}')") > 0
        assert await relay_once(office.database) == 0  # somebody is at it
    # The server notices a moment later that its caller is gone.
    while not await relay_once(office.database):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert len(office.line(subscriber)) == 3


async def test_the_cost_of_a_relay_step_does_not_depend_on_the_backlog(
    office: PostOffice, engine: Engine, owner: UUID
) -> None:
    """A receiver that is away lets a line grow; nobody walks along it."""
    office.subscribe(owner, events=["job.stage"])
    (process,) = engine.put(owner)
    engine.run(
        "INSERT INTO events (process_id, kind, owner_id) SELECT %s, 'stage', %s FROM generate_series(1, 3000)",
        *(process, owner),
    )
    await office.relay()
    assert engine.one("SELECT count(*) FROM outgoing") == 3000
    engine.complete(engine.claim_one(kinds=["deliver"]))
    walked = "SELECT sum(seq_tup_read) FROM pg_stat_xact_user_tables WHERE relname = 'outgoing'"
    with engine.connection.transaction():
        before = engine.one(walked)
        step = engine.rows("SELECT events_read, due FROM relay_events(1, '{}', '{}')")[0]
        assert (step["events_read"], len(step["due"])) == (1, 1)  # the end was seen, and the next one goes
        assert engine.one(walked) == before


async def test_a_relay_with_nothing_to_do_leaves_no_trace(office: PostOffice, engine: Engine, owner: UUID) -> None:
    """An installation at rest writes nothing and uses up no transaction ids."""
    office.subscribe(owner)
    engine.put(owner)
    await office.relay()
    with engine.connection.transaction():
        assert engine.one("SELECT relay_has_work()") is False
        assert engine.one("SELECT pg_current_xact_id_if_assigned()") is None
