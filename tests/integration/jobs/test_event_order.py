"""Whoever follows the events sees every one of them once, however late its transaction commits."""

from __future__ import annotations

import asyncio
import random
from uuid import UUID, uuid4

import pytest

from octavo.database import Connection, Database, connect, migrate
from octavo.jobs.views import Cursor, Event, is_known, latest_cursor, read_events
from tests.support.engine import engine_on
from tests.support.postgres import Server
from tests.support.processes import PATIENCE_SECONDS
from tests.support.schema import migrations_before

INSERT = (
    b"INSERT INTO events (process_id, kind, owner_id, detail) VALUES (%s, 'test', %s, jsonb_build_object('n', %s::int))"
)
OWNER = uuid4()


async def tell(connection: Connection, number: int) -> UUID:
    process = uuid4()
    await connection.execute(INSERT, [process, OWNER, number])
    return process


class Reader:
    """As a stream does it: from a cursor that survives a lost connection."""

    def __init__(self, connection: Connection, limit: int = 100) -> None:
        self.connection = connection
        self.limit = limit
        self.cursor: Cursor | None = None
        self.seen: list[Event] = []

    async def read(self) -> list[UUID]:
        new: list[Event] = []
        while page := await read_events(self.connection, self.cursor, self.limit):
            new += page
            self.cursor = page[-1].cursor
        self.seen += new
        return [event.process_id for event in new]


async def test_an_event_that_commits_late_is_not_skipped(any_database_info: str) -> None:
    slow, quick = await connect(any_database_info), await connect(any_database_info)
    async with slow, quick, await connect(any_database_info) as connection:
        reader = Reader(connection)
        await slow.set_autocommit(False)
        early_id = await tell(slow, 1)
        late_id = await tell(quick, 2)
        assert await reader.read() == []
        await slow.commit()
        assert await reader.read() == [early_id, late_id]
        assert await reader.read() == []


async def test_a_later_transaction_with_an_earlier_id_is_not_skipped(any_database_info: str) -> None:
    """The transaction began first, but writes its event after the other one has committed."""
    first, second = await connect(any_database_info), await connect(any_database_info)
    async with first, second, await connect(any_database_info) as connection:
        reader = Reader(connection)
        await first.set_autocommit(False)
        await first.execute(b"SELECT pg_current_xact_id()")
        of_second = await tell(second, 1)
        of_first = await tell(first, 2)
        assert await reader.read() == [of_second]
        await first.commit()
        assert await reader.read() == [of_first]


async def test_a_transaction_that_tells_nothing_holds_up_nobody_in_whichever_database(newest_server: Server) -> None:
    """Its transaction id is older than that of every later event."""
    with newest_server.database() as info, newest_server.database() as other:
        async with await connect(info) as here, await connect(other) as elsewhere, await connect(info) as connection:
            reader = Reader(connection)
            for idle in (here, elsewhere):
                await idle.set_autocommit(False)
                await idle.execute(b"CREATE TABLE written_to (n int)")
            told = [await tell(connection, number) for number in range(3)]
            assert await reader.read() == told


async def test_an_event_that_is_rolled_back_holds_up_nobody(any_database_info: str) -> None:
    slow, quick = await connect(any_database_info), await connect(any_database_info)
    async with slow, quick, await connect(any_database_info) as connection:
        reader = Reader(connection)
        await slow.set_autocommit(False)
        await tell(slow, 1)
        kept = await tell(quick, 2)
        await slow.rollback()
        assert await reader.read() == [kept]


async def test_a_process_that_stops_in_a_transaction_holds_events_back_for_a_limited_time(
    database_info: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was stopped by a signal, or whose machine lost its network."""
    monkeypatch.setattr("octavo.database.pool.IDLE_IN_TRANSACTION", b"SET idle_in_transaction_session_timeout = 100")
    async with (
        Database(database_info) as database,
        await connect(database_info) as quick,
        database.connection() as stopped,
    ):
        await stopped.execute(b"BEGIN")
        await tell(stopped, 1)
        kept = await tell(quick, 2)
        reader = Reader(quick)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (read := await reader.read()):  # noqa: ASYNC110 - the server ends the other connection
                await asyncio.sleep(0.01)
        assert read == [kept]


async def test_what_happened_to_one_job_is_read_in_the_order_it_happened(any_database_info: str) -> None:
    """The later step is made by a transaction that began earlier: a worker that waited for a cap before it claimed."""
    with engine_on(any_database_info) as engine:
        (job,) = engine.put(engine.add_owner())
        first = engine.claim_one()
        with engine_on(any_database_info) as other:
            other.connection.autocommit = False
            other.one("SELECT pg_current_xact_id()")
            engine.hand_back(first)
            other.claim_one()
            other.connection.commit()
        assert engine.status(job) == "processing"
    async with await connect(any_database_info) as connection:
        reader = Reader(connection)
        await reader.read()
        assert [event.state_after for event in reader.seen if event.process_id == job] == [
            *("queued", "processing", "queued", "processing")
        ]


async def test_a_reader_beside_many_writers_sees_everything_once(any_database_info: str) -> None:
    """Every writer keeps its transactions open for a different time; the reader reconnects now and then."""
    writers = [await connect(any_database_info) for _ in range(6)]
    written: list[UUID] = []

    async def write(connection: Connection, seed: int) -> None:
        chance = random.Random(seed)
        for number in range(15):
            async with connection.transaction():
                mine = [await tell(connection, number) for _ in range(chance.randint(1, 3))]
                await connection.execute(b"SELECT pg_sleep(%s)", [chance.random() / 50])
            written.extend(mine)

    writing = asyncio.gather(*(write(connection, seed) for seed, connection in enumerate(writers)))
    cursor: Cursor | None = None
    seen: list[Event] = []
    while True:
        over = writing.done()
        async with await connect(any_database_info) as connection:
            reader = Reader(connection, limit=4)
            reader.cursor = cursor
            await reader.read()
            cursor = reader.cursor
            seen += reader.seen
        if over:
            break
    await writing
    for connection in writers:
        await connection.close()
    assert sorted(event.process_id for event in seen) == sorted(written)
    assert len({event.id for event in seen}) == len(seen)
    assert [event.cursor for event in seen] == sorted(event.cursor for event in seen)
    assert {(event.kind, event.state_after, event.owner_id, event.document_id) for event in seen} == {
        ("test", None, OWNER, None)
    }


# Epochs ------------------------------------------------------------------------------------------------------------


async def test_cursors_of_the_version_before_epochs_stay_valid(
    newest_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their events were read in the order of transactions, which is not that of the ids."""
    before = migrations_before("event_order")
    with newest_server.database(migrated=False) as info:
        with monkeypatch.context() as patched:
            patched.setattr("octavo.database.migrator.known_migrations", lambda: before)
            patched.setattr("octavo.database.migrator.EVENTS.begin_epoch", b"SELECT 1", raising=False)
            await migrate(info)
        first, second = await connect(info), await connect(info)
        async with first, second, await connect(info) as connection:
            await first.set_autocommit(False)
            await first.execute(b"SELECT pg_current_xact_id()")
            of_second = await tell(second, 1)
            of_first = await tell(first, 2)
            await first.commit()
            query = b"SELECT xid::text::bigint, id FROM events WHERE process_id = %s"
            old = [await (await connection.execute(query, [one])).fetchone() for one in (of_first, of_second)]
        await migrate(info)
        async with await connect(info) as connection:
            reader = Reader(connection)
            new = await tell(connection, 3)
            for row, expected in zip(old, ([of_second, new], [new]), strict=True):
                assert row
                reader.cursor = Cursor(*row)
                assert await is_known(connection, reader.cursor)
                assert await reader.read() == expected


async def test_in_another_cluster_the_events_go_on_in_a_new_epoch(database_info: str) -> None:
    async with await connect(database_info) as connection:
        reader = Reader(connection)
        await tell(connection, 1)
        await reader.read()
        known, last = reader.cursor, reader.seen[-1]
        assert known
        lost = Cursor(known.epoch, known.id + 1)
        await connection.execute(b"UPDATE event_epochs SET cluster = 'another one'")
        await migrate(database_info)
        start = await latest_cursor(connection)
        assert start > lost
        new = await tell(connection, 2)
        assert await reader.read() == [new]
        assert reader.seen[-1].epoch == last.epoch + 1
        assert reader.seen[-1].id > last.id + 10**6
        assert [await is_known(connection, one) for one in (known, start, reader.seen[-1].cursor)] == [True] * 3
        assert not await is_known(connection, lost)
        await migrate(database_info)
        assert (await latest_cursor(connection)).epoch == start.epoch
