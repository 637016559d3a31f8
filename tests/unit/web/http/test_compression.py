"""Whole texts are compressed, what streams or is a part of a file is not, and guesses by other sites learn nothing."""

from __future__ import annotations

import gzip
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from octavo.web.http.assets import LEAST_BYTES, THREAD_BYTES, Compression, accepts_gzip

PAGE = "<p>Rain falls on the bog.</p>" * 200
LARGE = "rain " * THREAD_BYTES


async def two_parts() -> AsyncGenerator[bytes]:
    yield b"data: 1\n\n" * 200
    yield b"data: 2\n\n" * 200


async def answer(request: Request) -> Response:
    kind = request.path_params["kind"]
    answers: dict[str, Response] = {
        "page": HTMLResponse(PAGE),
        "large": PlainTextResponse(LARGE),
        "json": JSONResponse({"text": PAGE}),
        "small": HTMLResponse("x" * (LEAST_BYTES - 1)),
        "events": StreamingResponse(two_parts(), media_type="text/event-stream"),
        "streamed": StreamingResponse(two_parts(), media_type="application/json"),
        "range": PlainTextResponse(PAGE, 206, {"content-range": f"bytes 0-{len(PAGE) - 1}/{len(PAGE) * 2}"}),
        "download": PlainTextResponse(PAGE, headers={"content-disposition": "attachment"}),
        "named": JSONResponse({"text": PAGE}, headers={"etag": '"a"'}),
        "packed": Response(gzip.compress(PAGE.encode()), media_type="text/css", headers={"content-encoding": "gzip"}),
        "picture": Response(b"\x89PNG" * 1000, media_type="image/png"),
    }
    return answers[kind]


APP = Compression(Starlette(routes=[Route("/{kind}", answer, methods=["GET", "POST"])]))


async def get(kind: str, method: str = "GET", **headers: str) -> httpx.Response:
    names = {"accept-encoding": "gzip"} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(APP), base_url="http://test") as client:
        return await client.request(method, f"/{kind}", headers=names)


@pytest.mark.parametrize("kind", ["page", "json", "large"])
async def test_whole_texts_are_compressed(kind: str) -> None:
    found = await get(kind)
    plain = await get(kind, accept_encoding="identity")

    assert found.headers["content-encoding"] == "gzip"
    assert int(found.headers["content-length"]) < len(plain.content) / 5
    assert found.content == plain.content
    assert "content-encoding" not in plain.headers
    assert found.headers["vary"] == plain.headers["vary"] == "accept-encoding"


@pytest.mark.parametrize("kind", ["small", "events", "streamed", "range", "download", "named", "picture"])
async def test_everything_else_stays_as_it_is(kind: str) -> None:
    found = await get(kind)
    plain = await get(kind, accept_encoding="identity")

    assert "content-encoding" not in found.headers
    assert found.content == plain.content


async def test_nothing_is_compressed_twice() -> None:
    assert (await get("packed")).text == PAGE


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_other_sites_cannot_learn_from_the_length(site: str) -> None:
    assert "content-encoding" not in (await get("page", sec_fetch_site=site)).headers


async def test_a_page_that_shows_a_new_secret_is_not_compressed() -> None:
    """Keys and secrets are only ever shown in the answer to the form that made them."""
    assert "content-encoding" not in (await get("page", "POST")).headers


@pytest.mark.parametrize("site", ["same-origin", "none"])
async def test_the_browser_itself_gets_compressed_pages(site: str) -> None:
    assert (await get("page", sec_fetch_site=site)).headers["content-encoding"] == "gzip"


async def test_parts_of_a_stream_are_sent_as_they_come() -> None:
    sent: list[Message] = []

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        assert [message["type"] for message in sent] == ["http.response.start"]
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        assert sent[-1]["body"] == b"data: 1\n\n"

    async def keep(message: Message) -> None:
        sent.append(message)

    async def nothing() -> Message:
        return {"type": "http.disconnect"}

    scope: dict[str, Any] = {"type": "http", "method": "GET", "headers": [(b"accept-encoding", b"gzip")]}
    await Compression(stream)(scope, nothing, keep)


@pytest.mark.parametrize(
    ("header", "accepted"),
    [("gzip", True), ("br, gzip;q=0.5", True), ("GZIP", True), ("gzip;q=0", False), ("identity", False), ("", False)],
)
def test_weights_of_encodings_are_read(header: str, *, accepted: bool) -> None:
    assert accepts_gzip(Headers({"accept-encoding": header})) is accepted
