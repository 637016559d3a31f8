"""Migrations on a real server: once, in order, whoever else migrates at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from octavo.core.errors import DatabaseUnavailable, WrongDatabase
from octavo.database import Database, connect, load_queries, migrate, read_state
from octavo.database.migrator import Migration, create_schema, known_migrations
from octavo.ops.instance import wait_for_schema
from tests.support.postgres import Server, as_url
from tests.support.processes import PATIENCE_SECONDS, octavo_environment, running_octavo, wait_until
from tests.support.schema import (
    FUNCTION,
    SCHEMA,
    dump_schema,
    fixed_rows,
    migrations_before,
    read_schema,
    schema_files,
)

AT_THE_TABLE = b"SELECT count(*) FROM pg_locks WHERE relation = 'relay'::regclass AND mode = 'AccessExclusiveLock'"


async def test_the_schema_is_the_sum_of_the_migrations(any_server: Server) -> None:
    """On every server that we bring; the newest one's program dumps both."""
    with any_server.database(migrated=False) as migrated, any_server.database(migrated=False) as created:
        await migrate(migrated)
        async with await connect(created) as connection:
            await connection.execute(load_queries("migrations").create_table)
            await connection.execute(read_schema().encode())
        assert dump_schema(created) == dump_schema(migrated)
        assert await fixed_rows(created) == await fixed_rows(migrated)


def test_each_schema_file_is_part_of_the_schema() -> None:
    assert {*schema_files(), SCHEMA / "all.sql"} == set(SCHEMA.iterdir())


def test_each_function_is_defined_once() -> None:
    defined = FUNCTION.findall(read_schema())
    assert len(defined) > 50
    assert sorted(defined) == sorted(set(defined))


async def test_an_empty_database_is_migrated_and_then_left_alone(any_server: Server) -> None:
    with any_server.database(migrated=False) as info:
        async with await connect(info) as connection:
            assert len((await read_state(connection)).missing) == len(known_migrations())
            assert (await migrate(info)).applied == len(known_migrations())
            before = await (await connection.execute(b"SELECT * FROM schema_migrations")).fetchall()
            await migrate(info)
            assert await (await connection.execute(b"SELECT * FROM schema_migrations")).fetchall() == before
            assert (await read_state(connection)).missing == ()


async def test_ten_parallel_processes_apply_each_migration_once(any_server: Server) -> None:
    with any_server.database(migrated=False) as info:
        await asyncio.gather(*(migrate(info) for _ in range(10)))
        async with await connect(info) as connection:
            rows = await (await connection.execute(b"SELECT number FROM schema_migrations ORDER BY 1")).fetchall()
    assert [row[0] for row in rows] == [one.number for one in known_migrations()]


async def test_a_migration_that_fails_leaves_nothing_of_itself(
    newest_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Migration(len(known_migrations()) + 1, "broken", "CREATE TABLE half (); SELECT 1 / 0;")
    versions = (*known_migrations(), broken)
    monkeypatch.setattr("octavo.database.migrator.known_migrations", lambda: versions)
    with newest_server.database(migrated=False) as info:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await migrate(info)
        async with await connect(info) as connection:
            assert (await read_state(connection)).missing == ("broken",)
            row = await (await connection.execute(b"SELECT to_regclass('half')")).fetchone()
    assert row == (None,)


async def test_a_migration_that_is_killed_leaves_the_version_before_and_the_next_one_succeeds(
    newest_server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the middle of the migration that changes the table `relay`, when it has changed others."""
    earlier = migrations_before("event_order")
    with newest_server.database(migrated=False) as info, psycopg.connect(info) as reader:
        with monkeypatch.context() as patched:
            patched.setattr("octavo.database.migrator.known_migrations", lambda: earlier)
            patched.setattr("octavo.database.migrator.EVENTS.begin_epoch", b"SELECT 1", raising=False)
            await migrate(info)
        before = dump_schema(info)
        reader.execute(b"SELECT FROM relay")  # an open transaction, for which the migration has to wait
        environment = octavo_environment(folder / "data", database_url=as_url(info))
        with psycopg.connect(info, autocommit=True) as watcher, running_octavo(["migrate"], environment) as process:

            def is_there() -> bool:
                row = watcher.execute(AT_THE_TABLE).fetchone()
                return row is not None and row[0] > 0

            await asyncio.to_thread(wait_until, is_there, "the migration waits for the table")
            process.kill()
            process.wait()
            reader.rollback()
            await asyncio.to_thread(wait_until, lambda: not is_there(), "its connection has ended")
            assert dump_schema(info) == before
            assert (await migrate(info)).applied == len(known_migrations())


async def test_a_supervised_web_process_waits_for_the_migration(newest_server: Server) -> None:
    earlier = {one.number for one in known_migrations()[:-1]}
    with newest_server.database(migrated=False) as info:
        async with Database(info) as database, database.connection() as connection:
            waiting = asyncio.create_task(wait_for_schema(database))
            await create_schema(info, earlier)
            assert (await read_state(connection)).missing
            assert not waiting.done()
            await migrate(info)
            await asyncio.wait_for(waiting, PATIENCE_SECONDS)


async def test_a_database_of_a_newer_version_is_not_touched(database_info: str) -> None:
    async with await connect(database_info) as connection:
        await connection.execute(
            b"INSERT INTO schema_migrations (number, name, digest) VALUES (9999, 'later', repeat('0', 64))"
        )
    with pytest.raises(WrongDatabase, match="newer version of Octavo"):
        await migrate(database_info)


async def test_a_database_user_without_create_permission_is_reported(newest_server: Server) -> None:
    with newest_server.database(migrated=False) as info:
        async with await connect(info) as connection:
            await connection.execute(b"CREATE ROLE weak LOGIN PASSWORD 'weak'")
        try:
            with pytest.raises(WrongDatabase, match="cannot create the schema"):
                await migrate(make_conninfo(info, user="weak", password="weak"))
        finally:
            async with await connect(info) as connection:
                await connection.execute(b"DROP ROLE weak")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://nobody@127.0.0.1:1/none",  # nobody listens there
        "postgresql://nobody@host.invalid/none",  # no such host
        "postgresql://nobody@127.0.0.1:port/none",  # no port
    ],
)
async def test_a_database_that_is_not_there_is_one_clear_line(address: str) -> None:
    with pytest.raises(DatabaseUnavailable) as away:
        await migrate(address)
    assert "\n" not in away.value.line


async def test_a_wrong_password_is_reported_and_not_shown(newest_server: Server) -> None:
    wrong = make_conninfo(newest_server.template, password="canary")
    with pytest.raises(DatabaseUnavailable, match="password authentication failed") as refused:
        await migrate(wrong)
    assert "canary" not in refused.value.line
