"""Streams of events as a browser reads them, and servers in this process that a test sets the pace of."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
from fastapi import FastAPI
from pydantic import SecretStr

from octavo.core.http import ServerSentEvent, read_events
from octavo.core.settings import Settings
from octavo.database import Connection
from octavo.web.app import create_app, server_of
from octavo.web.context.services import Services
from octavo.web.live import StreamIntervals
from tests.support.postgres import as_url
from tests.support.processes import PATIENCE_SECONDS, wait_until

PATH = "/api/v1/events"
QUICK = StreamIntervals(poll_seconds=0.02, heartbeat_seconds=0.2, check_seconds=0.1)
TELL = (
    b"INSERT INTO events (process_id, kind, owner_id, detail) VALUES (%s, 'test', %s, jsonb_build_object('n', %s::int))"
)


# What happens ------------------------------------------------------------------------------------------------------


async def tell(connection: Connection, owner: UUID, number: int = 0) -> UUID:
    """Let something happen to an owner; answers its process, by which it is known again."""
    process = uuid4()
    await connection.execute(TELL, [process, owner, number])
    return process


def tell_many(info: str, owner: UUID, count: int) -> None:
    with psycopg.connect(info, autocommit=True) as connection:
        connection.execute(
            b"INSERT INTO events (process_id, kind, owner_id, detail) SELECT gen_random_uuid(), 'test', %s, "
            b"jsonb_build_object('n', n, 'much', repeat('x', 500)) FROM generate_series(1, %s) AS n",
            [owner, count],
        )


# Reading -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Stream:
    """One open stream, with all that came over it."""

    answer: httpx.Response
    _messages: AsyncGenerator[ServerSentEvent]
    seen: list[ServerSentEvent] = field(default_factory=list[ServerSentEvent])

    async def next(self, seconds: float = PATIENCE_SECONDS) -> ServerSentEvent:
        async with asyncio.timeout(seconds):
            message = await anext(self._messages)
        self.seen.append(message)
        return message

    async def take(self, count: int) -> list[UUID]:
        """The processes of the next events."""
        return [process_of(await self.next()) for _ in range(count)]

    async def rest(self) -> list[ServerSentEvent]:
        """All that comes until the server ends the stream."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            found = [message async for message in self._messages]
        self.seen += found
        return found


def process_of(message: ServerSentEvent) -> UUID:
    return UUID(message.json()["process_id"])


@asynccontextmanager
async def streaming(client: httpx.AsyncClient, query: str = "", **headers: str) -> AsyncGenerator[Stream]:
    """An open stream; its first message, which says where it begins, is read."""
    async with client.stream("GET", f"{PATH}{query}", headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        stream = Stream(answer, read_events(answer.aiter_bytes()))
        hello = await stream.next()
        assert hello.name == "hello"
        assert hello.json() == {"cursor": hello.id}
        yield stream


@asynccontextmanager
async def browser_at(address: str, **headers: str) -> AsyncGenerator[tuple[httpx.AsyncClient, UUID]]:
    """Somebody who just came, and the owner that they act for."""
    async with httpx.AsyncClient(base_url=address, headers=headers, trust_env=False, timeout=PATIENCE_SECONDS) as one:
        me = (await one.get("/api/v1/session")).raise_for_status().json()
        yield one, UUID(me["owner_id"])


# Serving -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Served:
    address: str
    info: str
    app: FastAPI

    @property
    def services(self) -> Services:
        return self.app.state.services

    def streams(self) -> int:
        return len(self.services.live)

    def held_slots(self) -> int:
        """How many streams all web processes count. A closed stream gives its slot back a moment after it is gone."""
        with psycopg.connect(self.info) as connection:
            row = connection.execute("SELECT coalesce(sum(number), 0)::int FROM slots").fetchone()
        assert row
        return row[0]


@contextmanager
def serving_live(info: str, folder: Path, pace: StreamIntervals = QUICK, **settings: Any) -> Generator[Served]:  # noqa: ANN401
    """The real server on a socket, in a thread of this process."""
    chosen = Settings(data_dir=folder / "data", database_url=SecretStr(as_url(info)), **settings)
    app = create_app(chosen, pace=pace)
    server = server_of(app, chosen)
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listener:
        running = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        running.start()
        try:
            wait_until(lambda: server.started or not running.is_alive(), "the server starts")
            yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", info, app)
        finally:
            server.should_exit = True
            running.join(30)


def as_json(text: str) -> dict[str, Any]:
    return json.loads(text)
