"""Nothing is skipped and nothing comes twice, whatever breaks between an event and whoever follows."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from uuid import UUID

import httpx
import psycopg
import pytest

from octavo.client import Client, Event
from octavo.client.transport import RetryPolicy
from octavo.database import connect
from tests.support.instance import fetch
from tests.support.live import PATH, browser_at, process_of, streaming, tell
from tests.support.postgres import Server, open_folder
from tests.support.processes import wait_until
from tests.support.site import Site, site_in

WRITERS = 5
ROUNDS = 12
STOP_SECONDS = 3


@pytest.fixture
def site(newest_server: Server) -> Iterator[Site]:
    """Two web processes on one socket: either may answer."""
    with open_folder() as folder, newest_server.database() as info, site_in(folder, info) as site:
        site.start_web()
        site.start_web()
        wait_until(lambda: answers(site), "it answers")
        yield site


def answers(site: Site) -> bool:
    try:
        return fetch(f"{address_of(site)}/healthz")[0] == 200
    except OSError:
        return False


def address_of(site: Site) -> str:
    return f"http://127.0.0.1:{site.port}"


def patient() -> RetryPolicy:
    return RetryPolicy(pauses=[0.1] * 600)


# Late commits ------------------------------------------------------------------------------------------------------


async def test_an_event_that_commits_late_is_neither_skipped_nor_sent_twice(site: Site) -> None:
    async with (
        await connect(site.database_url) as slow,
        await connect(site.database_url) as quick,
        browser_at(address_of(site)) as (browser, owner),
    ):
        await slow.set_autocommit(False)
        async with streaming(browser) as stream:
            early = await tell(slow, owner)
            late = await tell(quick, owner)
            await slow.commit()
            assert await stream.take(2) == [early, late]
        async with streaming(browser, **{"last-event-id": stream.seen[1].id}) as again:
            assert await again.take(1) == [late]
            await slow.execute(b"SELECT pg_current_xact_id()")  # begins first, tells last
            of_quick = await tell(quick, owner)
            of_slow = await tell(slow, owner)
            await slow.commit()
            assert await again.take(2) == [of_quick, of_slow]
        async with streaming(browser, **{"last-event-id": again.seen[-1].id}) as last:
            only = await tell(quick, owner)
            assert await last.take(1) == [only]


async def write(info: str, owner: UUID, seed: int, written: list[UUID]) -> None:
    """Transactions that are open for a different time each, so that they commit out of the order of their ids."""
    chance = random.Random(seed)
    async with await connect(info) as connection:
        for number in range(ROUNDS):
            async with connection.transaction(force_rollback=chance.random() < 0.1) as transaction:
                mine = [await tell(connection, owner, number) for _ in range(chance.randint(1, 4))]
                await connection.execute(b"SELECT pg_sleep(%s)", [chance.random() / 20])
            if not transaction.force_rollback:
                written.extend(mine)


async def follow(browser: httpx.AsyncClient, begin: str, seed: int, wanted: asyncio.Future[int]) -> list[str]:
    """As a browser does it, over connections that break after any number of events."""
    chance = random.Random(seed)
    seen: list[str] = []
    position, got = begin, list[UUID]()
    while not (wanted.done() and len(got) >= wanted.result()):
        async with streaming(browser, **{"last-event-id": position}) as stream:
            for _ in range(chance.randint(0, 15)):
                if wanted.done() and len(got) >= wanted.result():
                    break
                try:
                    message = await stream.next(2)
                except TimeoutError:
                    break
                got.append(process_of(message))
                seen.append(message.id)
                position = message.id
    return seen


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
async def test_connections_that_break_at_random_miss_nothing(site: Site, seed: int) -> None:
    written: list[UUID] = []
    wanted: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    async with browser_at(address_of(site)) as (browser, owner):
        async with streaming(browser) as stream:
            begin = stream.seen[0].id
        reading = [asyncio.create_task(follow(browser, begin, seed * 10 + one, wanted)) for one in range(3)]
        await asyncio.gather(*(write(site.database_url, owner, seed * 100 + one, written) for one in range(WRITERS)))
        wanted.set_result(len(written))
        read = await asyncio.gather(*reading)
    expected = expected_order(site.database_url, owner)
    assert len(expected) == len(written)
    assert [seen == expected for seen in read] == [True] * 3


def expected_order(info: str, owner: UUID) -> list[str]:
    query = b"SELECT format('%%s-%%s', epoch, id) FROM events WHERE owner_id = %s ORDER BY epoch, id"
    with psycopg.connect(info) as connection:
        return [row[0] for row in connection.execute(query, [owner])]


# Killed servers ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def following(client: Client, after: str) -> AsyncGenerator[AsyncGenerator[Event]]:
    async with aclosing(client.events(after=after)) as events:
        yield events


async def test_a_program_follows_over_killed_servers(site: Site) -> None:
    """The client opens its stream again, and either process goes on where the other was."""
    async with (
        browser_at(address_of(site)) as (browser, owner),
        await connect(site.database_url) as database,
        Client(address_of(site), session=browser.cookies["octavo_session"], retry_policy=patient()) as client,
        following(client, await client.latest_event()) as events,
    ):
        told: list[UUID] = []
        heard: list[UUID] = []
        for _ in range(3):
            for process in list(site.started):
                told += [await tell(database, owner) for _ in range(5)]
                heard += [(await anext(events)).process_id for _ in range(3)]
                process.send_signal(signal.SIGKILL)
                process.wait()
                site.started.remove(process)
                site.start_web()
                told += [await tell(database, owner) for _ in range(5)]
                heard += [(await anext(events)).process_id for _ in range(7)]
        assert heard == told


async def test_a_stopping_server_ends_its_streams_immediately(newest_server: Server) -> None:
    """Also the one of somebody who takes nothing of what is sent."""
    took = await stop_amid_streams(newest_server)
    assert took < STOP_SECONDS or await stop_amid_streams(newest_server) < STOP_SECONDS  # the machine may be busy


async def stop_amid_streams(server: Server) -> float:
    with open_folder() as folder, server.database() as info, site_in(folder, info) as site:
        web = site.start_web()
        wait_until(lambda: answers(site), "it answers")
        async with AsyncExitStack() as stack:
            browser, owner = await stack.enter_async_context(browser_at(address_of(site)))
            streams = [await stack.enter_async_context(streaming(browser)) for _ in range(5)]
            stack.enter_context(stream_without_reading(site, browser))
            fill_all_buffers(info, owner)
            for stream in streams:
                await stream.take(2)
            began = time.monotonic()
            web.terminate()
            for stream in streams:
                await stream.rest()
            assert await asyncio.to_thread(web.wait, 20) == -signal.SIGTERM  # it ends by the signal, after all else
            took = time.monotonic() - began
        said = site.log.read_text()
        assert not any(words in said for words in ("Traceback", "without completing", "shutdown exceeded"))
        return took


def stream_without_reading(site: Site, browser: httpx.AsyncClient) -> socket.socket:
    lazy = socket.create_connection(("127.0.0.1", site.port))
    cookie = f"Cookie: octavo_session={browser.cookies['octavo_session']}"
    lazy.sendall(f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n{cookie}\r\n\r\n".encode())
    assert lazy.recv(4) == b"HTTP"
    return lazy


def fill_all_buffers(info: str, owner: UUID) -> None:
    with psycopg.connect(info, autocommit=True) as connection:
        connection.execute(
            b"INSERT INTO events (process_id, kind, owner_id, detail) SELECT gen_random_uuid(), 'test', %s, "
            b"jsonb_build_object('much', repeat('x', 10000000)) FROM generate_series(1, 2)",
            [owner],
        )
