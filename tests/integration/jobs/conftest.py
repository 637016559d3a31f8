"""An engine on every major version, as if just migrated, and what most tests need on it."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.support.engine import Engine, engine_on
from tests.support.postgres import Server


@pytest.fixture(scope="module")
def engine_database(any_server: Server) -> Iterator[str]:
    with any_server.database() as info:
        yield info


@pytest.fixture
def engine(engine_database: str) -> Iterator[Engine]:
    """After every test the invariants hold, whatever it did."""
    with engine_on(engine_database) as one:
        one.clear()
        one.add_kind("demo")
        yield one
        one.check_invariants()


@pytest.fixture
def owner(engine: Engine) -> UUID:
    return engine.add_owner()
