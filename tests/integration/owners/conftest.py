"""People and their browsers, by the functions that routes call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from uuid import UUID

import pytest

from octavo.database import Connection, Database
from octavo.owners import Caller, read_session
from octavo.owners.accounts import sign_up


@dataclass(frozen=True, slots=True)
class People:
    """Every call is a transaction of its own, as in a route."""

    database: Database

    async def sign_up(self, email: str, *, replacing: str | None = None) -> str:
        async with self.database.transaction() as connection:
            return await sign_up(connection, email, "hash", replacing=replacing)

    async def add(self, email: str) -> Caller:
        return await self.caller(await self.sign_up(email))

    async def caller(self, secret: str) -> Caller:
        found = await self.find(secret)
        assert found
        return found

    async def find(self, secret: str) -> Caller | None:
        async with self.database.connection() as connection:
            opened = await read_session(connection, secret)
            return opened.caller if opened else None

    async def one(self, statement: str, *values: object) -> object:
        async with self.database.connection() as connection:
            row = await (await connection.execute(statement.encode(), values)).fetchone()
            return row[0] if row else None

    async def run(self, statement: str, *values: object) -> None:
        async with self.database.connection() as connection:
            await connection.execute(statement.encode(), values)


@pytest.fixture
async def people(database_info: str) -> AsyncGenerator[People]:
    async with Database(database_info) as database:
        yield People(database)


@pytest.fixture
async def connection(people: People) -> AsyncGenerator[Connection]:
    async with people.database.connection() as one:
        yield one


def user_of(caller: Caller) -> UUID:
    assert caller.user_id
    return caller.user_id
