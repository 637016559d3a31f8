"""A database with owners, jobs and subscribers, and a relay that runs when the test says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from uuid import UUID

import pytest

from octavo.database import Database
from tests.support.deliveries import PostOffice
from tests.support.engine import Engine, engine_on


@pytest.fixture
def engine(database_info: str) -> Iterator[Engine]:
    with engine_on(database_info) as one:
        one.add_kind("deliver", attempts=12)
        yield one
        one.check_invariants()


@pytest.fixture
def owner(engine: Engine) -> UUID:
    return engine.add_owner()


@pytest.fixture
async def office(engine: Engine, database_info: str) -> AsyncIterator[PostOffice]:
    async with Database(database_info, connections=12) as database:
        yield PostOffice(engine, database)
