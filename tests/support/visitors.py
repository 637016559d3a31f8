"""Browsers and programs that talk to the real application, in this process and on a real database."""

# pyright: reportPrivateUsage=false
# Nothing but a test has several applications in one process.

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import psycopg
from fastapi import FastAPI
from psycopg.rows import TupleRow
from pydantic import SecretStr

from octavo.core.instruments import HTTP_REQUESTS
from octavo.core.settings import Settings
from octavo.ops.metrics import COUNTS
from octavo.web.app import create_app
from tests.support.clock import Clock
from tests.support.passwords import PASSWORD
from tests.support.postgres import as_url

ADDRESS = "http://127.0.0.1:8400"
REQUESTS = "octavo_http_request_duration_seconds"


@dataclass(slots=True)
class House:
    """The application, its database, its clock, and as many clients as a test likes."""

    app: FastAPI
    database: psycopg.AsyncConnection[TupleRow]
    clock: Clock
    stack: AsyncExitStack = field(repr=False)

    async def browser(self, base_url: str = ADDRESS, address: str = "127.0.0.1") -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, client=(address, 5000))
        return await self.stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url=base_url))

    async def program(self, key: str) -> httpx.AsyncClient:
        client = await self.browser()
        client.headers["authorization"] = f"Bearer {key}"
        return client

    async def person(self, email: str, base_url: str = ADDRESS) -> httpx.AsyncClient:
        browser = await self.browser(base_url)
        answer = await browser.post("/api/v1/account", json={"email": email, "password": PASSWORD})
        assert answer.status_code == 201, answer.text
        return browser

    async def pass_time(self, seconds: float) -> None:
        """In this process and in the database."""
        self.clock.now += seconds
        await self.run("UPDATE engine_clock SET shift = shift + make_interval(secs => %s)", seconds)

    async def rows(self, statement: str, *values: object) -> list[TupleRow]:
        return await (await self.database.execute(statement.encode(), values)).fetchall()

    async def run(self, statement: str, *values: object) -> int:
        return (await self.database.execute(statement.encode(), values)).rowcount


# Opens one with settings of the test's choice.
OpenHouse: TypeAlias = Callable[..., Awaitable["House"]]


@asynccontextmanager
async def house_on(connection_info: str, folder: Path, **settings: Any) -> AsyncGenerator[House]:  # noqa: ANN401
    clock = Clock()
    database_url = SecretStr(as_url(connection_info))
    app = create_app(Settings(data_dir=folder / "data", database_url=database_url, **settings), clock=clock)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            await psycopg.AsyncConnection.connect(connection_info, autocommit=True)
        )
        await stack.enter_async_context(app.router.lifespan_context(app))
        yield House(app, database, clock, stack)
    forget_requests()


def forget_requests() -> None:
    """What one application has counted would be read whenever another one starts and ends: a third of all the time."""
    if COUNTS._is_adding:
        return
    for series in [series for series in COUNTS._added if series[0].startswith(REQUESTS)]:
        del COUNTS._added[series]
    HTTP_REQUESTS.clear()


def session_of(browser: httpx.AsyncClient) -> str:
    return browser.cookies["octavo_session"]


async def me(browser: httpx.AsyncClient) -> dict[str, Any]:
    answer = await browser.get("/api/v1/session")
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """A refusal in the one form that all have."""
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    return answer.json()
