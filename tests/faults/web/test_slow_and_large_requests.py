"""A client that trickles, never ends or announces too much is refused, and others are served meanwhile."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.live import Served, serving_live
from tests.support.postgres import Server, open_folder
from tests.support.processes import PATIENCE_SECONDS, wait_until

HEADER_SECONDS, BODY_SECONDS = 0.6, 1.0
LIMIT = 100_000
GIGABYTE = 1 << 30
HOST = "Host: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def served(newest_server: Server) -> Iterator[tuple[Served, Path]]:
    limits: dict[str, Any] = {
        "request_header_seconds": HEADER_SECONDS,
        "request_body_seconds": BODY_SECONDS,
        "upload_bytes": LIMIT,
    }
    with open_folder() as folder, newest_server.database() as info, serving_live(info, folder, **limits) as one:
        yield one, folder / "data/objects"


@pytest.fixture
def visitor(served: tuple[Served, Path]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served[0].address, trust_env=False, timeout=PATIENCE_SECONDS) as client:
        client.get("/api/v1/session").raise_for_status()
        yield client


def connect(served: Served) -> socket.socket:
    host, port = served.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), PATIENCE_SECONDS)


def answer(connection: socket.socket) -> bytes:
    """All that the server still sends, until it closes the connection."""
    read = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            read += part
    return read


def trickle(connection: socket.socket, start: str, drop: bytes) -> bytes:
    """Send the start, then a few bytes at a time, for as long as the server lets us."""
    end = time.monotonic() + PATIENCE_SECONDS
    connection.sendall(start.encode())
    connection.settimeout(0.05)
    while time.monotonic() < end:
        try:
            connection.sendall(drop)
            if part := connection.recv(65536):
                connection.settimeout(PATIENCE_SECONDS)
                return part + answer(connection)
        except TimeoutError:
            continue
        except ConnectionError:
            pass
        return b""
    raise AssertionError("the server is still listening")


def cookie(visitor: httpx.Client) -> str:
    return f"Cookie: octavo_session={visitor.cookies['octavo_session']}\r\n"


def test_headers_that_trickle_are_refused_while_others_are_served(
    served: tuple[Served, Path], visitor: httpx.Client
) -> None:
    starts = ["GET / HTTP/1.1\r\n" + HOST + "X-Slow: ", "GET /", "", "POST /api/v1/ask HTTP/1.1\r\n" + HOST]
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(len(starts)) as threads:
        slow = [
            threads.submit(trickle, stack.enter_context(connect(served[0])), start, b"a" if start else b"G")
            for start in starts
        ]
        while not all(one.done() for one in slow):
            assert visitor.get("/api/v1/documents").status_code == 200
        assert all(b" 408 " in one.result() or b" 400 " in one.result() for one in slow)
        assert sum(b" 408 " in one.result() for one in slow) >= 2


def test_a_connection_that_says_nothing_is_closed(served: tuple[Served, Path]) -> None:
    with connect(served[0]) as connection:
        assert b" 408 " in answer(connection)


def test_headers_without_end_are_refused(served: tuple[Served, Path]) -> None:
    with connect(served[0]) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"a" * (1 << 20))
        assert b" 431 " in answer(connection)


@pytest.mark.parametrize("path", ["/api/v1/documents", "/api/v1/mappings/check"])
def test_a_body_that_trickles_is_refused_and_leaves_nothing(
    served: tuple[Served, Path], visitor: httpx.Client, path: str
) -> None:
    one, objects = served
    before = set(objects.rglob("*"))
    start = f"POST {path} HTTP/1.1\r\n{HOST}{cookie(visitor)}X-Upload-Filename: a.txt\r\nContent-Length: 90000\r\n"
    with connect(one) as connection:
        assert b" 408 " in trickle(connection, start + "Content-Type: application/json\r\n\r\n", b"a")
    wait_until(lambda: {path for path in objects.rglob("*") if path.is_file()} <= before, "nothing is left")
    assert visitor.get("/api/v1/documents").json()["items"] == []


def test_a_body_that_comes_slowly_but_steadily_is_taken(served: tuple[Served, Path], visitor: httpx.Client) -> None:
    """Longer than the limit of time in all, and always more than the least rate."""

    def slowly() -> Iterator[bytes]:
        end = time.monotonic() + 2.5 * BODY_SECONDS
        while time.monotonic() < end:
            yield b"some words " * 20
            time.sleep(0.1)  # the client's pace is what is tested

    sent = visitor.post("/api/v1/documents", content=slowly(), headers={"x-upload-filename": "slow.txt"})
    assert sent.status_code == 202, sent.text


BODIES = {
    "raw": ("X-Upload-Filename: a.txt\r\nContent-Type: text/plain\r\n", b""),
    "form": (
        "Content-Type: multipart/form-data; boundary=b\r\n",
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n',
    ),
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("path", ["/api/v1/documents", "/api/v1/conversions"])
def test_ten_gigabytes_are_refused_before_anything_is_stored(
    served: tuple[Served, Path], visitor: httpx.Client, path: str, kind: str
) -> None:
    one, objects = served
    before = set(objects.rglob("*"))
    headers, begin = BODIES[kind]
    start = f"POST {path} HTTP/1.1\r\n{HOST}{cookie(visitor)}{headers}Content-Length: {10 * GIGABYTE}\r\n\r\n"
    with connect(one) as connection:
        connection.sendall(start.encode() + begin + b"%PDF-1.7 a")
        first = connection.recv(65536)
        assert b" 413 " in first
        with pytest.raises(ConnectionError):  # the rest is not read for ever
            while True:
                connection.sendall(b"a" * (1 << 20))
    assert {path for path in objects.rglob("*") if path.is_file()} <= before


def test_a_body_of_unknown_length_ends_at_the_limit(served: tuple[Served, Path], visitor: httpx.Client) -> None:
    one, objects = served
    before = set(objects.rglob("*"))
    headers = BODIES["raw"][0] + "Transfer-Encoding: chunked\r\n\r\n"
    with connect(one) as connection:
        connection.sendall(f"POST /api/v1/documents HTTP/1.1\r\n{HOST}{cookie(visitor)}{headers}".encode())
        with contextlib.suppress(ConnectionError):
            while True:
                connection.sendall(b"10000\r\n" + b"a" * 0x10000 + b"\r\n")
        assert b" 413 " in answer(connection)
    assert {path for path in objects.rglob("*") if path.is_file()} <= before
