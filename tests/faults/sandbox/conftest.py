"""One sandbox for all tests of a module: a child is never used twice, so tests cannot disturb each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from octavo.sandbox import Sandbox

CHILDREN = Path(__file__).parent / "children"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(readable=[CHILDREN]) as started:
        yield started
