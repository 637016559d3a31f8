"""A house of its own for each test: the real application on a fresh database."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.support.passwords import hash_fast
from tests.support.visitors import House, house_on

OpenHouse: TypeAlias = Callable[..., Awaitable[House]]


@pytest.fixture
async def open_house(database_info: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[OpenHouse]:
    """With settings of the test's choice."""
    hash_fast(monkeypatch)
    async with AsyncExitStack() as stack:

        async def open_one(**settings: Any) -> House:  # noqa: ANN401 - whatever a setting is
            return await stack.enter_async_context(house_on(database_info, folder, **settings))

        yield open_one


@pytest.fixture
async def house(open_house: OpenHouse) -> House:
    return await open_house()
