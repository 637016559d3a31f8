from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from uuid import UUID

import pytest

from octavo.ops.instance import LATER, PRELOAD
from octavo.sandbox import Sandbox
from octavo.storage import open_bucket
from tests.support.library import Desk, open_desk
from tests.support.processing import SharedSandbox


@pytest.fixture
async def desk(database_info: str, folder: Path) -> AsyncIterator[Desk]:
    """One installation's intake with a bucket in a folder, and nobody who works on what comes in."""
    async with aclosing(open_bucket((folder / "objects").as_uri())) as bucket, open_desk(database_info, bucket) as desk:
        yield desk


@pytest.fixture
async def owner(desk: Desk) -> UUID:
    return await desk.new_owner()


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """As a worker has it when it has read a document of each format."""
    shared = SharedSandbox([*PRELOAD, *LATER])
    yield shared
    shared.end()
