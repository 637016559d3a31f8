"""Serves scripts, styles and fonts, and compresses responses with gzip.

The URLs of scripts, styles and fonts contain a hash, so that browsers can cache the files forever. The URLs mirror the
folders of `octavo.web`. The files are few and small, so they are kept in memory.

Pages, JSON and other texts are compressed, but only in responses to GET requests whose body is sent in one part. Event
streams, exports and downloads are sent in several parts and pass through unchanged, so byte ranges always refer to the
uncompressed file.

This module also prevents the BREACH attack: another site makes the browser load a page repeatedly with guesses for a
secret on the page, and recognises a correct guess by the compressed length. Responses to requests from other sites are
therefore not compressed. Responses to POST requests are not compressed either, because they are the only ones that show
a new API key or webhook secret. No page contains a CSRF token: forms are protected by the Origin and Sec-Fetch-Site
headers.
"""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass
from functools import cached_property
from gzip import compress
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
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


FOLDER = Path(__file__).parents[1]
SERVED = frozenset({".js", ".css", ".svg", ".woff2"})
FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class Asset:
    content: bytes
    media_type: str

    @cached_property
    def compressed(self) -> bytes:
        """The content compressed with gzip. Fonts are returned unchanged, because they are already compressed."""
        return compress(self.content, mtime=0) if self.media_type.startswith(("text/", "image/svg")) else self.content


def _read(folder: Path) -> dict[str, Asset]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix in SERVED)
    return {
        path.relative_to(folder).as_posix(): Asset(path.read_bytes(), guess_type(path)[0] or "application/octet-stream")
        for path in paths
    }


FILES = _read(FOLDER)
VERSION = sha256(b"".join(name.encode() + one.content for name, one in FILES.items())).hexdigest()[:12]


def asset(name: str) -> str:
    """Return the URL of a script, style or font, for templates.

    Scripts and styles refer to each other by relative URLs instead.
    """
    return f"/static/{VERSION}/{name}"


class Assets:
    """Serves scripts, styles and fonts.

    A URL with any hash returns the current file, so that pages opened before an update still work.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if request.method not in {"GET", "HEAD"}:
            raise HTTPException(405, headers={"allow": "GET, HEAD"})
        below = scope["path"].removeprefix(scope.get("root_path", "")).lstrip("/")
        found = FILES.get(below.partition("/")[2])
        if found is None:
            raise HTTPException(404)
        await _answer(found, zipped=accepts_gzip(request.headers))(scope, receive, send)


def _answer(found: Asset, *, zipped: bool) -> Response:
    headers = {"cache-control": FOREVER, "vary": "accept-encoding"}
    content = found.compressed if zipped else found.content
    if content is not found.content:
        headers["content-encoding"] = "gzip"
    return Response(content, media_type=found.media_type, headers=headers)
