"""Connections come back by themselves; what is half done is never there."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from contextlib import AsyncExitStack

import psycopg
import pytest
from pydantic import SecretStr

from octavo.core.errors import DatabaseUnavailable
from octavo.core.settings import Settings
from octavo.database import Connection, Database, connect
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.database.pool import LOST_NETWORK
from octavo.ops.instance import open_database
from tests.support.postgres import as_url, open_folder


async def test_a_restart_of_the_server_is_not_noticed_by_the_next_caller() -> None:
    with open_folder() as root:
        server = EmbeddedPostgres(DataFolder(root / "data"))
        try:
            async with Database(await asyncio.to_thread(server.start), connections=3) as database:
                async with database.transaction() as connection:
                    await connection.execute(b"CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
                for _ in range(3):
                    await asyncio.to_thread(server.stop)
                    await asyncio.to_thread(server.start)
                    async with database.connection() as connection:
                        row = await (await connection.execute(b"SELECT n FROM kept")).fetchone()
                        assert row == (1,)
        finally:
            await asyncio.to_thread(server.stop)


async def test_a_server_that_was_away_is_used_again_soon_after_it_is_back() -> None:
    with open_folder() as root:
        server = EmbeddedPostgres(DataFolder(root / "data"))
        try:
            async with Database(await asyncio.to_thread(server.start)) as database:
                async with database.connection() as connection:
                    await connection.execute(b"SELECT 1")
                await asyncio.to_thread(server.stop)
                with pytest.raises(DatabaseUnavailable, match="No response"):
                    async with database.connection(wait_seconds=5):
                        pass
                await asyncio.to_thread(server.start)
                back = time.monotonic()
                async with database.connection() as connection:
                    await connection.execute(b"SELECT 1")
                assert time.monotonic() - back < 5
        finally:
            await asyncio.to_thread(server.stop)


async def test_an_error_inside_a_transaction_undoes_all_of_it(database_info: str) -> None:
    async with Database(database_info) as database:
        async with database.connection() as connection:
            await connection.execute(b"CREATE TABLE things (n int)")
        with pytest.raises(psycopg.errors.DivisionByZero):
            async with database.transaction() as connection:
                await connection.execute(b"INSERT INTO things VALUES (1)")
                await connection.execute(b"SELECT 1 / 0")
        async with database.connection() as connection:
            row = await (await connection.execute(b"SELECT count(*) FROM things")).fetchone()
    assert row == (0,)


async def test_a_connection_that_is_cut_is_reported_as_such(database_info: str) -> None:
    async with Database(database_info, connections=2) as database, await connect(database_info) as other:
        with pytest.raises(DatabaseUnavailable, match="was lost"):
            async with database.transaction() as connection:
                pid = connection.info.backend_pid
                await other.execute(b"SELECT pg_terminate_backend(%s)", [pid])
                await connection.execute(b"SELECT 1")
        async with database.connection() as connection:
            assert await (await connection.execute(b"SELECT 1")).fetchone() == (1,)


async def test_callers_that_are_cancelled_at_any_moment_cost_no_connection(database_info: str) -> None:
    """People leave while their request waits for a connection, uses one or returns it; workers cancel twice."""
    chance = random.Random(1)
    async with Database(database_info, connections=3) as database:

        async def use() -> None:
            async with database.connection():
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)

        for _ in range(400):
            callers = [asyncio.create_task(use()) for _ in range(12)]
            while callers := [one for one in callers if not one.done()]:
                for one in chance.sample(callers, min(len(callers), chance.randrange(4))):
                    one.cancel()
                await asyncio.sleep(0)
        async with AsyncExitStack() as stack:
            for _ in range(database.most_connections):
                await stack.enter_async_context(database.connection(wait_seconds=2))


@pytest.mark.filterwarnings("error")
async def test_a_connection_whose_caller_is_cancelled_while_it_is_made_is_closed(database_info: str) -> None:
    """psycopg warns of one that is forgotten while it is open, and pytest makes that an error."""
    tried = 60
    async with await connect(database_info) as watcher:
        for number in range(tried):
            making = asyncio.create_task(connect(database_info))
            for _ in range(number % 12):
                await asyncio.sleep(0.0002)
            making.cancel()
            (made,) = await asyncio.gather(making, return_exceptions=True)
            if not isinstance(made, BaseException):
                await made.close()
            del made, making
        gc.collect()
        async with asyncio.timeout(10):
            while await _count_others(watcher):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def _count_others(watcher: Connection) -> int:
    others = b"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    row = await (await watcher.execute(others)).fetchone()
    return row[0] if row else 0


async def test_a_pool_that_was_made_smaller_is_exhausted_sooner(database_info: str) -> None:
    async with Database(database_info, connections=5) as database:
        await database.resize(1)
        assert not database.seconds_exhausted()
        async with database.connection():
            assert database.seconds_exhausted() > 0


@pytest.mark.parametrize(("wanted", "fits"), [(10, True), (400, False)])
async def test_the_pools_of_all_processes_fit_into_the_server(database_info: str, wanted: int, fits: bool) -> None:
    url = SecretStr(as_url(database_info))
    settings = Settings(database_url=url, database_connections=wanted, web=3, workers=1)
    async with open_database(settings) as database, database.connection() as connection:
        row = await (await connection.execute(b"SHOW max_connections")).fetchone()
        assert row
        assert 4 * database.most_connections < int(row[0])
        assert (database.most_connections == wanted) is fits


async def test_a_connection_that_only_listens_notices_a_lost_network(database_info: str) -> None:
    async with Database(database_info) as database, await database.connect_unpooled() as connection:
        used = connection.info.get_parameters()
    assert {name: int(used[name]) for name in LOST_NETWORK} == LOST_NETWORK


@pytest.mark.parametrize("prepared", [True, False])
async def test_statements_are_prepared_only_if_the_setting_allows_it(database_info: str, *, prepared: bool) -> None:
    async with Database(database_info, prepared=prepared) as database, await database.connect_unpooled() as unpooled:
        async with database.connection() as pooled:
            for connection in (pooled, unpooled):
                for _ in range(10):
                    await connection.execute("SELECT 1")
                kept = await (await connection.execute("SELECT count(*) FROM pg_prepared_statements")).fetchone()
                assert kept == (int(prepared),)
        with database.connect_in_thread() as in_thread:
            assert (in_thread.prepare_threshold is None) is not prepared
