"""An engine on every major version, as if just migrated, and what most tests need on it.

The short form runs the files in ON_EVERY_VERSION on every version, and the others on the newest one only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.engine import Engine, engine_on
from tests.support.postgres import Server

HERE = Path(__file__).parent
# The state machine walks through every transition, and the order of events rests on transaction numbers and snapshots.
ON_EVERY_VERSION = {"test_engine.py", "test_engine_state_machine.py", "test_event_order.py"}
OLDER = "postgresql16"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE and item.path.name not in ON_EVERY_VERSION and OLDER in item.name:
            item.add_marker(pytest.mark.long)


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
