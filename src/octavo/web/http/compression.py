"""Compresses pages, JSON and other texts with gzip.

Only responses to GET requests whose body is sent in one part are compressed. Event streams, exports and downloads are
sent in several parts and pass through unchanged, so byte ranges always refer to the uncompressed file.

This module also prevents the BREACH attack, in which another site makes the browser load a page repeatedly with
guesses, and learns a secret on the page from the compressed length. Responses to requests from other sites are
therefore not compressed. Responses to POST requests, the only ones that show a new API key or webhook secret, are not
compressed either. No page contains a CSRF token: forms are protected by the Origin and Sec-Fetch-Site headers.
"""

from __future__ import annotations

import asyncio
import gzip

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEAST_BYTES = 500
LEVEL = 6
# Larger responses are compressed in a thread, so that other requests do not wait.
THREAD_BYTES = 256 << 10
TYPES = frozenset(
    {
        *("text/html", "text/css", "text/javascript", "text/plain", "text/markdown", "image/svg+xml"),
        *("application/json", "application/problem+json", "application/xml"),
    }
)


def accepts_gzip(headers: Headers) -> bool:
    """Whether the Accept-Encoding header names gzip with a weight above zero."""
    for choice in headers.get("accept-encoding", "").split(","):
        name, _, weight = choice.partition(";")
        if name.strip().lower() == "gzip":
            return weight.strip().lower() not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


def is_own_request(headers: Headers) -> bool:
    """Whether a user, a program or an Octavo page sent this request. False if another site made the browser send it."""
    return headers.get("sec-fetch-site") in {None, "none", "same-origin"}


class Compression:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        compress = accepts_gzip(headers) and is_own_request(headers)
        return await self._app(scope, receive, _Response(send, compress=compress).send)


class _Response:
    """Delays the headers of a response until the first part of the body shows whether more parts follow."""

    def __init__(self, send: Send, *, compress: bool) -> None:
        self._send = send
        self._compress = compress
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_text(message):
            MutableHeaders(scope=message).add_vary_header("accept-encoding")
            if self._compress:
                self._start = message
                return
        if self._start is not None:
            start, self._start = self._start, None
            message = await _compressed(start, message)
            await self._send(start)
        await self._send(message)


def _is_text(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    unchanged = {"content-encoding", "content-range", "content-disposition", "etag"}
    return start["status"] != 206 and media_type in TYPES and not unchanged & set(headers.keys())  # noqa: PLR2004


async def _compressed(start: Message, message: Message) -> Message:
    """Compress a response whose body is sent in one part, and adjust its headers.

    Small responses and responses in several parts stay unchanged.
    """
    body: bytes = message.get("body", b"")
    if message["type"] != "http.response.body" or message.get("more_body") or len(body) < LEAST_BYTES:
        return message
    packed = await asyncio.to_thread(_gzip, body) if len(body) > THREAD_BYTES else _gzip(body)
    headers = MutableHeaders(scope=start)
    headers["content-encoding"] = "gzip"
    headers["content-length"] = str(len(packed))
    return {**message, "body": packed}


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, LEVEL, mtime=0)
