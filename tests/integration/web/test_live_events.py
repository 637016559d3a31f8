"""Whoever follows the events gets all of their own, in order, each once, and nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from octavo.database import Connection, connect
from octavo.jobs.views import EVENT_QUERIES
from octavo.web.live import MOST_MISSED, MOST_OF_OWNER, StreamIntervals
from tests.support.live import (
    PATH,
    Served,
    browser_at,
    serving_live,
    streaming,
    tell,
    tell_many,
)
from tests.support.passwords import PASSWORD
from tests.support.postgres import Server, open_folder
from tests.support.processes import wait_until

JSON = {"accept": "application/json"}


@pytest.fixture(scope="module")
def served(newest_server: Server) -> Iterator[Served]:
    with open_folder() as folder, newest_server.database() as info, serving_live(info, folder) as one:
        yield one
        wait_until(lambda: one.streams() == 0, "nobody follows any more")


@pytest.fixture
async def database(served: Served) -> AsyncIterator[Connection]:
    async with await connect(served.info) as connection:
        yield connection


async def until(condition: Any, what: str) -> None:  # noqa: ANN401
    await asyncio.to_thread(wait_until, condition, what)


def refused(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


# What is sent ------------------------------------------------------------------------------------------------------


async def test_an_event_has_the_fields_that_were_promised(served: Served, database: Connection) -> None:
    async with browser_at(served.address) as (browser, owner), streaming(browser) as stream:
        process = await tell(database, owner, 7)
        message = await stream.next()
        told = message.json()
        assert message.name == "message"
        assert set(told) == {"id", "at", "kind", "process_id", "document_id", "state_after", "detail"}
        assert (told["process_id"], told["kind"], told["detail"]) == (str(process), "test", {"n": 7})
        assert message.id.endswith(f"-{told['id']}")
        assert abs((datetime.now(UTC) - datetime.fromisoformat(told["at"])).total_seconds()) < 60


async def test_nobody_on_the_way_keeps_a_stream_back(served: Served) -> None:
    async with browser_at(served.address) as (browser, _), browser.stream("GET", PATH) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-store", "no")
        heard = b""
        async for piece in answer.aiter_bytes():
            heard += piece
            if heard.endswith(b"\n\n:\n\n"):  # nothing happens, and that is said
                break
        assert heard.startswith(b": events\nretry: 2000\n\n")


async def test_an_event_arrives_soon(database_info: str, folder: Path) -> None:
    """At the pace that is used, not the one of the other tests."""
    with serving_live(database_info, folder, StreamIntervals()) as served:
        async with (
            await connect(database_info) as database,
            browser_at(served.address) as (browser, owner),
            streaming(browser) as stream,
        ):
            took: list[float] = []
            for _ in range(8):
                await tell(database, owner)
                began = time.monotonic()
                await stream.next()
                took.append(time.monotonic() - began)
    print(f"events arrived after {min(took):.3f} to {max(took):.3f} s")  # noqa: T201 - for who wants to know
    assert sorted(took)[len(took) // 2] < 1


async def test_events_about_edits_contain_only_field_names(served: Served) -> None:
    async with browser_at(served.address) as (browser, _), streaming(browser) as stream:
        named = {"x-upload-filename": "hidden.md"}
        made = (await browser.post("/api/v1/documents", content=b"hidden text", headers=named)).json()
        path = f"/api/v1/documents/{made['document_id']}"
        await browser.patch(path, json={"title": "hidden", "tags": ["hidden"], "collection": "hidden"})
        (collection,) = (await browser.get("/api/v1/collections")).json()["items"]
        await browser.patch(f"/api/v1/collections/{collection['id']}", json={"name": "hidden too"})
        await browser.delete(f"/api/v1/collections/{collection['id']}")
        await browser.get(f"{path}/source")
        await browser.post(f"/api/v1/jobs/{made['process_id']}/cancel")
        await browser.post(f"{path}/retry")
        await browser.delete(path)
        await browser.post(f"{path}/restore")
        await browser.delete(path, params={"purge": True})
        await browser.post("/api/v1/documents", content=b"", headers=named)
        kinds: list[str] = []
        while "rejected" not in kinds:
            kinds.append((await stream.next()).json()["kind"])
    assert kinds == [
        *("created", "collection", "created", "edited", "collection", "collection", "downloaded", "cancelled", "retry"),
        *("cancelled", "cancelled", "deleted", "retry", "restored", "purged", "cancelled", "rejected"),
    ]
    assert "hidden" not in "".join(message.data for message in stream.seen)
    edited = next(one.json() for one in stream.seen if one.name == "message" and one.json()["kind"] == "edited")
    assert edited["detail"] == {"fields": ["title", "tags", "collection"]}


# Whose it is -------------------------------------------------------------------------------------------------------


async def test_a_stranger_gets_nothing(served: Served, database: Connection) -> None:
    async with (
        browser_at(served.address) as (ada, owner),
        browser_at(served.address) as (eve, stranger),
        streaming(ada) as hers,
        streaming(eve) as theirs,
    ):
        mine = [await tell(database, owner) for _ in range(3)]
        other = await tell(database, stranger)
        assert await theirs.take(1) == [other]
        assert await hers.take(3) == mine
        stolen = await eve.get(PATH, params={"after": "1-1", "format": "json"})
        assert [one["process_id"] for one in stolen.json()["items"]] == [str(other)]


async def test_without_an_account_where_visitors_are_not_let_in(database_info: str, folder: Path) -> None:
    with serving_live(database_info, folder, anonymous=False) as served:
        async with httpx.AsyncClient(base_url=served.address, trust_env=False) as nobody:
            assert refused(await nobody.get(PATH)) == (401, "UNAUTHENTICATED")
            wrong = {"authorization": "Bearer octavo_wrong"}
            assert refused(await nobody.get(PATH, headers=wrong)) == (401, "UNAUTHENTICATED")


async def test_a_new_visitor_can_follow_events_immediately(served: Served, database: Connection) -> None:
    async with httpx.AsyncClient(base_url=served.address, trust_env=False) as browser, streaming(browser) as stream:
        me = (await browser.get("/api/v1/session")).json()
        process = await tell(database, UUID(me["owner_id"]))
        assert await stream.take(1) == [process]


async def test_the_stream_of_a_revoked_key_ends(served: Served, database: Connection) -> None:
    """Revoked elsewhere, so that this process learns of it only by looking again."""
    async with browser_at(served.address) as (browser, _):
        person = {"email": "key@example.org", "password": PASSWORD}
        (await browser.post("/api/v1/account", json=person)).raise_for_status()
        made = (await browser.post("/api/v1/keys", json={"name": "k", "scope": "read"})).raise_for_status().json()
        async with (
            browser_at(served.address, authorization=f"Bearer {made['key']}") as (program, owner),
            streaming(program) as stream,
            streaming(browser) as kept,
        ):
            await database.execute(b"UPDATE api_keys SET revoked_at = now() WHERE id = %s", [made["id"]])
            assert await stream.rest() == []
            process = await tell(database, owner)
            assert await kept.take(1) == [process]
            assert refused(await program.get(PATH)) == (401, "UNAUTHENTICATED")


async def test_a_stream_ends_when_its_browser_signs_out(served: Served) -> None:
    async with browser_at(served.address) as (browser, _), streaming(browser) as stream:
        (await browser.delete("/api/v1/session")).raise_for_status()
        assert await stream.rest() == []


async def test_after_signing_in_the_next_stream_is_the_persons(database_info: str, folder: Path) -> None:
    """At once: nobody would look again for an hour."""
    slow = StreamIntervals(poll_seconds=0.02, check_seconds=3600)
    person = {"email": "ada@example.org", "password": PASSWORD}
    with serving_live(database_info, folder, slow) as served:
        async with await connect(database_info) as database, browser_at(served.address) as (first, _):
            (await first.post("/api/v1/account", json=person)).raise_for_status()
            home = UUID((await first.get("/api/v1/session")).json()["owner_id"])
            async with browser_at(served.address) as (browser, visitor):
                async with streaming(browser) as stream:
                    (await browser.post("/api/v1/session", json=person)).raise_for_status()
                    assert await stream.rest() == []
                async with streaming(browser) as stream:
                    await tell(database, visitor)
                    process = await tell(database, home)
                    assert await stream.take(1) == [process]


async def test_reading_a_stream_does_not_renew_the_session_behind_the_browsers_back(
    served: Served, database: Connection
) -> None:
    async with browser_at(served.address) as (browser, owner), streaming(browser) as stream:
        shorten = b"UPDATE sessions SET expires_at = now() + interval '10 days' WHERE owner_id = %s"
        await database.execute(shorten, [owner])
        await tell(database, owner)
        await stream.next()
        await asyncio.sleep(0.3)  # three looks at who it is
        answer = await browser.get("/api/v1/session")
        assert "octavo_session" in answer.headers.get("set-cookie", "")


# Coming back -------------------------------------------------------------------------------------------------------


async def test_missed_events_come_first_and_none_twice(served: Served, database: Connection) -> None:
    async with browser_at(served.address) as (browser, owner):
        async with streaming(browser) as stream:
            seen = await tell(database, owner)
            assert await stream.take(1) == [seen]
        last = stream.seen[-1].id
        missed = [await tell(database, owner, number) for number in range(30)]
        tell_many(served.info, owner, 1500)  # more than one page
        async with streaming(browser, **{"last-event-id": last}) as again:
            assert again.seen[0].id == last
            assert await again.take(30) == missed
            assert [(await again.next()).json()["detail"]["n"] for _ in range(1500)] == list(range(1, 1501))
            new = await tell(database, owner)
            assert await again.take(1) == [new]


async def test_who_never_got_an_event_can_come_back_too(served: Served, database: Connection) -> None:
    async with browser_at(served.address) as (browser, owner):
        before = await tell(database, owner)
        async with streaming(browser) as stream:
            pass
        missed = await tell(database, owner)
        async with streaming(browser, f"?after={stream.seen[0].id}") as again:
            assert await again.take(1) == [missed]
        assert before != missed


async def test_where_a_browser_is_wins_over_where_it_began(served: Served, database: Connection) -> None:
    """A browser asks for the same address again, with the id of the last event in a header."""
    async with browser_at(served.address) as (browser, owner):
        async with streaming(browser) as stream:
            processes = [await tell(database, owner) for _ in range(3)]
            await stream.take(3)
        begin, last = stream.seen[0].id, stream.seen[2].id
        async with streaming(browser, f"?after={begin}", **{"last-event-id": last}) as again:
            assert await again.take(1) == processes[2:]


@pytest.mark.parametrize("header", ["", "nonsense", "1", "-1-1", "1-1-1", "9" * 40 + "-1", "1-x"])
async def test_a_header_that_says_nothing_is_ignored(served: Served, database: Connection, header: str) -> None:
    async with browser_at(served.address) as (browser, owner):
        await tell(database, owner)
        async with streaming(browser, **{"last-event-id": header}) as stream:
            process = await tell(database, owner)
            assert await stream.take(1) == [process]


@pytest.mark.parametrize("after", ["", "nonsense", "1", "-1-1", "1-1-1", "9" * 40 + "-1", "1-x", "²-1"])
@pytest.mark.parametrize("form", ["json", "stream"])
async def test_a_place_that_is_none_is_refused(served: Served, after: str, form: str) -> None:
    async with browser_at(served.address) as (browser, _):
        answer = await browser.get(PATH, params={"after": after, "format": form})
        assert refused(answer) == (422, "BAD_CURSOR")


async def test_a_client_that_is_too_far_behind_must_reload(served: Served) -> None:
    async with browser_at(served.address) as (browser, owner):
        async with streaming(browser) as stream:
            begin = stream.seen[0].id
        tell_many(served.info, owner, MOST_MISSED)
        async with streaming(browser, **{"last-event-id": begin}) as again:
            assert (await again.next()).json()["detail"]["n"] == 1
        tell_many(served.info, owner, 1)
        answer = await browser.get(PATH, headers={"last-event-id": begin})
        assert refused(answer) == (410, "TOO_FAR_BEHIND")
    await until(lambda: served.streams() == 0, "the refused stream takes no place")


async def test_a_place_that_is_still_to_come_is_one_of_another_database(served: Served) -> None:
    async with browser_at(served.address) as (browser, _):
        for form in ("json", "stream"):
            answer = await browser.get(PATH, params={"after": f"{10**17}-1", "format": form})
            assert refused(answer) == (410, "TOO_FAR_BEHIND")


# Asking now and then -----------------------------------------------------------------------------------------------


async def test_a_client_without_a_stream_polls(served: Served, database: Connection) -> None:
    async with browser_at(served.address) as (browser, owner):
        await tell(database, owner)
        begin = (await browser.get(PATH, headers=JSON)).json()
        assert begin["items"] == []
        processes = [str(await tell(database, owner, number)) for number in range(5)]
        first = (await browser.get(PATH, params={"after": begin["cursor"], "limit": 3}, headers=JSON)).json()
        second = (await browser.get(PATH, params={"after": first["cursor"]}, headers=JSON)).json()
        assert [one["process_id"] for one in first["items"] + second["items"]] == processes
        third = (await browser.get(PATH, params={"after": second["cursor"]}, headers=JSON)).json()
        assert third == {"items": [], "cursor": second["cursor"]}
        async with streaming(browser, f"?after={first['cursor']}") as stream:  # both know the same places
            assert await stream.take(2) == [UUID(one) for one in processes[3:]]


async def test_a_late_commit_is_not_skipped_by_a_polling_client(served: Served, database: Connection) -> None:
    async with browser_at(served.address) as (browser, owner), await connect(served.info) as slow:
        cursor = (await browser.get(PATH, headers=JSON)).json()["cursor"]
        await slow.set_autocommit(False)
        early = await tell(slow, owner)
        late = await tell(database, owner)
        meanwhile = (await browser.get(PATH, params={"after": cursor}, headers=JSON)).json()
        assert meanwhile["items"] == []
        await slow.commit()
        after = (await browser.get(PATH, params={"after": meanwhile["cursor"]}, headers=JSON)).json()
        assert [one["process_id"] for one in after["items"]] == [str(early), str(late)]


async def test_an_open_transaction_that_writes_no_events_holds_no_stream_back(
    served: Served, database: Connection
) -> None:
    """In this database and in any other one of the server."""
    elsewhere = make_conninfo(served.info, dbname="postgres")
    async with (
        browser_at(served.address) as (browser, owner),
        await connect(served.info) as here,
        await connect(elsewhere) as there,
    ):
        for connection in (here, there):
            await connection.set_autocommit(False)
            await connection.execute(b"SELECT pg_current_xact_id()")
        cursor = (await browser.get(PATH, headers=JSON)).json()["cursor"]
        async with streaming(browser) as stream:
            process = await tell(database, owner)
            assert await stream.take(1) == [process]
        page = (await browser.get(PATH, params={"after": cursor}, headers=JSON)).json()
        assert [one["process_id"] for one in page["items"]] == [str(process)]


# Room --------------------------------------------------------------------------------------------------------------


async def test_an_owner_has_a_stream_limit_and_a_closed_stream_frees_its_slot(served: Served) -> None:
    async with browser_at(served.address) as (browser, _), browser_at(served.address) as (other, _):
        async with AsyncExitStack() as stack:
            for _ in range(MOST_OF_OWNER - 1):
                await stack.enter_async_context(streaming(browser))
            async with streaming(browser):
                answer = await browser.get(PATH)
                assert refused(answer) == (429, "TOO_MANY_STREAMS")
                assert int(answer.headers["retry-after"]) > 0
                async with streaming(other):  # somebody else is not kept out
                    pass
            await until(lambda: served.held_slots() == MOST_OF_OWNER - 1, "the place is free")
            async with streaming(browser):
                pass
        await until(lambda: served.held_slots() == 0, "all places are free")


async def test_nothing_is_read_while_nobody_follows(served: Served) -> None:
    async with browser_at(served.address) as (browser, _):
        async with streaming(browser), streaming(browser):
            assert served.services.live.is_reading
        await until(lambda: not served.services.live.is_reading, "the reader rests")


async def test_a_client_that_does_not_read_is_disconnected_and_misses_nothing(
    served: Served, database: Connection
) -> None:
    """Buffers of the system are large, so the events are too."""
    place = urlsplit(served.address)
    insert = (
        b"INSERT INTO events (process_id, kind, owner_id, detail) SELECT gen_random_uuid(), 'test', %s, "
        b"jsonb_build_object('n', n, 'much', repeat('x', 10000)) FROM generate_series(1, 4000) AS n"
    )
    async with browser_at(served.address) as (browser, owner):
        lazy = socket.socket()
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect((place.hostname, place.port))
        cookie = browser.cookies["octavo_session"]
        head = f"GET {PATH} HTTP/1.1\r\nHost: {place.netloc}\r\nCookie: octavo_session={cookie}\r\n\r\n"
        lazy.sendall(head.encode())
        await until(lambda: served.streams() == 1, "it follows")
        async with streaming(browser) as quick:
            begin = quick.seen[0].id
        await database.execute(insert, [owner])
        await until(lambda: served.streams() == 0, "it is cut off")
        with lazy, contextlib.suppress(ConnectionError):
            while lazy.recv(1 << 20):
                pass
        async with streaming(browser, **{"last-event-id": begin}) as again:
            assert [(await again.next()).json()["detail"]["n"] for _ in range(4000)] == list(range(1, 4001))


async def test_streams_outlive_lost_connections_to_the_database(served: Served, database: Connection) -> None:
    async with browser_at(served.address) as (browser, owner), streaming(browser) as stream:
        await database.execute(
            b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            b"WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        process = await tell(database, owner)
        assert await stream.take(1) == [process]


# What it costs -----------------------------------------------------------------------------------------------------


def read_whole(plan: dict[str, Any]) -> int:
    """How many rows were read from tables that were read from the first row to the last."""
    here = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) if plan["Node Type"] == "Seq Scan" else 0
    return here + sum(read_whole(one) for one in plan.get("Plans", []))


def test_missed_events_of_one_owner_are_read_without_those_of_others(database_info: str) -> None:
    owner, others = UUID(int=1), UUID(int=2)
    tell_many(database_info, others, 20_000)
    tell_many(database_info, owner, 100)
    with psycopg.connect(database_info, autocommit=True) as connection:
        connection.execute(b"ANALYZE events")
        values = {"owner": owner, "epoch": 1, "id": 1, "horizon": 10**9, "limit": 50, "most": 50}
        for query in (EVENT_QUERIES.read_of, EVENT_QUERIES.count_of):
            explained = connection.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query, values).fetchone()
            assert explained
            plan = explained[0][0]["Plan"]
            assert read_whole(plan) == 0, query  # other months are empty
            assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 150, query
