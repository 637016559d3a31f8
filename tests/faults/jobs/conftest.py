"""A database, an engine to look at it with, and workers that are gone when the test is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.engine import Engine, Workers, engine_on, workers_in


@pytest.fixture
def engine(database_info: str) -> Iterator[Engine]:
    """After every fault the invariants hold."""
    with engine_on(database_info) as one:
        yield one
        one.check_invariants()


@pytest.fixture
def owner(engine: Engine) -> UUID:
    return engine.add_owner()


@pytest.fixture
def workers(folder: Path, database_info: str) -> Iterator[Workers]:
    with workers_in(folder, database_info) as some:
        yield some
