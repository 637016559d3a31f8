"""A real web server process on a real database, and houses: the real application in this process."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import preloaded
from tests.support.instance import fetch, free_port
from tests.support.passwords import hash_fast
from tests.support.postgres import Server, as_url, open_folder
from tests.support.processes import PATIENCE_SECONDS, octavo_environment, wait_until
from tests.support.visitors import House, OpenHouse, house_on


@dataclass(frozen=True, slots=True)
class Web:
    address: str
    database_info: str
    folder: Path


@pytest.fixture(scope="module")
def web(newest_server: Server) -> Iterator[Web]:
    with open_folder() as folder, newest_server.database() as info:
        port = free_port()
        environment = octavo_environment(folder / "data", port=port, database_url=as_url(info))
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
            process = preloaded.start(["web"], environment, nowhere.fileno())
        address = f"http://127.0.0.1:{port}"
        try:
            wait_until(lambda: answers(address), "the web server answers")
            yield Web(address, info, folder)
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def answers(address: str) -> bool:
    try:
        return fetch(f"{address}/healthz")[0] == 200
    except OSError:
        return False


@pytest.fixture
async def open_house(database_info: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[OpenHouse]:
    """On a fresh database, with settings of the test's choice."""
    hash_fast(monkeypatch)
    async with AsyncExitStack() as stack:

        async def open_one(**settings: Any) -> House:  # noqa: ANN401 - whatever a setting is
            return await stack.enter_async_context(house_on(database_info, folder, **settings))

        yield open_one


@pytest.fixture
async def house(open_house: OpenHouse) -> House:
    return await open_house()
