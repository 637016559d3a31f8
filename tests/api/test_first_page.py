"""The first routes over a real socket: health, readiness, the first page, sign-in, signed downloads."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx
import pytest

from octavo.database import connect
from octavo.owners import make_sign_in_link
from octavo.storage import open_bucket
from tests.api.conftest import Web
from tests.support.processes import PATIENCE_SECONDS, takes_at_most
from tests.support.visitors import OpenHouse

CONTENT = b"A document, as it came in. " * 50_000
SHEET = "/static/any/shell/css/base.css"


def new_link(web: Web) -> str:
    async def make() -> str:
        async with await connect(web.database_info) as connection:
            return await make_sign_in_link(connection)

    return asyncio.run(make())


def signed_path(web: Web, key: str, seconds: int = 60) -> str:
    async def make() -> str:
        bucket = open_bucket((web.folder / "data/objects").as_uri())
        if await bucket.stat(key) is None:
            await bucket.put(key, CONTENT)
        link = await bucket.sign_get(
            key, now=datetime.now(UTC), seconds=seconds, filename="Ärger „1“.html", content_type="text/html"
        )
        await bucket.aclose()
        return link

    return asyncio.run(make())


@pytest.fixture
def client(web: Web) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=web.address, trust_env=False, timeout=PATIENCE_SECONDS) as one:
        yield one


def test_it_is_alive_and_ready(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert [check["name"] for check in ready.json()["checks"]] == ["database", "connections", "storage", "disk"]


async def test_it_is_not_ready_when_all_connections_are_stuck(open_house: OpenHouse) -> None:
    house = await open_house(database_connections=3)
    client, database = await house.browser(), house.app.state.services.database
    async with database.connection(), database.connection(), database.connection():
        assert (await client.get("/readyz")).status_code == 200
        database._full_since -= 5  # as if five seconds had passed
        answer = await client.get("/readyz")
        failed = {check["name"]: check["detail"] for check in answer.json()["checks"] if not check["ok"]}
        assert answer.status_code == 503
        in_use = re.search(
            "All connections of this process have been in use for (\\d+) seconds", failed.pop("connections")
        )
        assert in_use  # longer if the first request of this process was slow
        assert int(in_use[1]) >= 5
        assert not failed
        assert (await client.get("/healthz")).status_code == 200
    assert (await client.get("/readyz")).status_code == 200


async def test_it_is_not_ready_when_the_disk_is_full(open_house: OpenHouse) -> None:
    client = await (await open_house(free_disk_bytes=1 << 60)).browser()
    answer = await client.get("/readyz")
    assert answer.status_code == 503
    (failed,) = (check for check in answer.json()["checks"] if not check["ok"])
    assert failed["name"] == "disk"
    assert "Free some space" in failed["detail"]


def test_it_is_not_ready_on_a_schema_that_is_behind(client: httpx.Client, web: Web) -> None:
    async def rename(old: str, new: str) -> None:
        async with await connect(web.database_info) as connection:
            await connection.execute(f"ALTER TABLE {old} RENAME TO {new}".encode())

    asyncio.run(rename("schema_migrations", "hidden"))
    try:
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert "octavo migrate" in json.dumps(answer.json())
        assert client.get("/healthz").status_code == 200
    finally:
        asyncio.run(rename("hidden", "schema_migrations"))
    assert client.get("/readyz").status_code == 200


def test_scripts_and_styles_are_cached_forever_and_compressed_if_accepted(client: httpx.Client) -> None:
    plain = client.get(SHEET, headers={"accept-encoding": "identity"})
    small = client.get(SHEET, headers={"accept-encoding": "gzip"})

    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert int(small.headers["content-length"]) < len(plain.content)
    assert small.content == plain.content
    assert small.headers["vary"] == "accept-encoding"
    assert "immutable" in small.headers["cache-control"]
    assert client.post(SHEET).status_code == 405


@pytest.mark.parametrize("path", ["/", "/library", "/healthz", SHEET, "/nowhere", "/api/openapi.json", "/sign-in"])
def test_every_answer_carries_the_security_headers(client: httpx.Client, path: str) -> None:
    headers = client.get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


def test_the_first_page_needs_nothing_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/library").text
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert loaded
    for address in loaded:
        assert address.startswith(("/", "#"))
        if address.startswith("/"):
            assert client.get(address, follow_redirects=True).status_code == 200, address
    assert " style=" not in page
    assert "<script>" not in page


def test_a_stranger_learns_nothing_about_the_machine(client: httpx.Client, web: Web) -> None:
    page = client.get("/library").text
    assert str(web.folder) not in page
    assert "PostgreSQL" not in page


def test_a_link_signs_one_browser_in_once(web: Web) -> None:
    link = new_link(web)
    with httpx.Client(trust_env=False) as first, httpx.Client(trust_env=False) as second:
        answer = first.post(f"{web.address}/sign-in", data={"token": link})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert all(part in cookie for part in ("octavo_session=", "HttpOnly", "SameSite=lax"))
        assert "This machine" in first.get(f"{web.address}/library").text
        refused = second.post(f"{web.address}/sign-in", data={"token": link})
        assert refused.status_code == 403
        assert "set-cookie" not in refused.headers
        assert "This machine" not in second.get(f"{web.address}/library").text


def test_twenty_browsers_race_for_one_link_and_one_wins(web: Web) -> None:
    link = new_link(web)

    async def race() -> list[int]:
        async with httpx.AsyncClient(trust_env=False) as client:
            clicks = [client.post(f"{web.address}/sign-in", data={"token": link}) for _ in range(20)]
            return [answer.status_code for answer in await asyncio.gather(*clicks)]

    assert sorted(asyncio.run(race())) == [303, *[403] * 19]


@pytest.mark.parametrize("token", ["", "guess", "ä" * 3000])
def test_a_guessed_link_is_refused(client: httpx.Client, token: str) -> None:
    assert client.get("/sign-in", params={"token": token}).status_code == 403
    assert client.post("/sign-in", data={"token": token}).status_code in {403, 422}


def test_a_link_that_is_too_old_is_refused(web: Web) -> None:
    link = new_link(web)

    async def age() -> None:
        async with await connect(web.database_info) as connection:
            await connection.execute(b"UPDATE sign_in_links SET expires_at = clock_timestamp()")

    asyncio.run(age())
    assert httpx.get(f"{web.address}/sign-in", params={"token": link}, trust_env=False).status_code == 403
    assert httpx.post(f"{web.address}/sign-in", data={"token": link}, trust_env=False).status_code == 403


def test_the_database_keeps_no_secret_that_signs_in(web: Web) -> None:
    link = new_link(web)
    with httpx.Client(trust_env=False) as browser:
        secret = browser.post(f"{web.address}/sign-in", data={"token": link}).cookies["octavo_session"]

    async def rows() -> str:
        async with await connect(web.database_info) as connection:
            links = await (await connection.execute(b"SELECT * FROM sign_in_links")).fetchall()
            return repr([links, await (await connection.execute(b"SELECT * FROM sessions")).fetchall()])

    kept = asyncio.run(rows())
    assert secret not in kept
    assert link not in kept


def test_a_signed_link_downloads_and_never_shows(client: httpx.Client, web: Web) -> None:
    answer = client.get(signed_path(web, "sources/one"))
    assert answer.content == CONTENT
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"] == "sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_altered_or_old_signed_link_is_refused(client: httpx.Client, web: Web) -> None:
    path = signed_path(web, "sources/one")
    signed_path(web, "sources/two")
    altered = [
        path.replace("sources/one", "sources/two"),
        path.replace("text%2Fhtml", "text%2Fplain"),
        re.sub(r"expires=\d+", "expires=99999999999", path),
        path.partition("?")[0],
        path[:-2],
        signed_path(web, "sources/one", seconds=0),
        "/objects/../../etc/passwd",
    ]
    for one in altered:
        assert client.get(one).status_code in {403, 404}, one


def test_the_client_closes_first_so_that_the_port_is_not_held(web: Web) -> None:
    """After an answer with a length the server waits for the client's end of the connection."""

    def is_still_open() -> bool:
        with connection_to(web) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += plain.recv(4096)
            plain.settimeout(0.3)
            try:
                plain.recv(1)
            except TimeoutError:
                return True
        return False

    assert any(is_still_open() for _ in range(3))  # a busy machine may come back to it too late


def test_an_old_client_that_reads_to_the_end_is_not_kept_waiting(web: Web) -> None:
    def read_to_the_end() -> float:
        began, answer = time.monotonic(), b""
        with connection_to(web) as plain:
            plain.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            while more := plain.recv(4096):
                answer += more
        assert answer.endswith(b"}")
        return time.monotonic() - began

    assert takes_at_most(0.9, read_to_the_end)


def connection_to(web: Web) -> socket.socket:
    parts = urlsplit(web.address)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)
