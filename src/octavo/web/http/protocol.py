"""Lets clients close connections first, and drops clients that send too slowly or too much.

The side that closes a connection first keeps its port in TIME_WAIT for a minute. If the server closed first, other
programs could not use the port right after the server stops. So the server waits: a client that knows the length of a
response closes the connection as soon as it has read the whole response.

A client that sends its headers or body extremely slowly (slow loris) would occupy a connection and memory forever.
Headers therefore have a time limit. A body has a minimum rate instead, because uploading a large file over a slow
connection is legitimate.

This module also measures the time of every request, and records the request as a span if tracing is enabled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import Enum
from typing import Any, cast

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from octavo.core.instruments import HEADER, HTTP_REQUESTS, is_tracing, span

LINGER_SECONDS = 1.0
MOST_HEADER_BYTES = 64 << 10
LEAST_BODY_RATE = 256  # bytes per second
# After a refusal, the rest of the body is read and discarded within these limits, so that the client sees the response.
DISCARD_SECONDS = 5.0
DISCARD_BYTES = 64 << 20
# The key in the ASGI scope of a function that drops the connection without waiting for the caller.
DROP = "octavo.drop"


class PatientTransport:
    """Wraps a network transport and delays `close`. All other calls are passed through."""

    def __init__(self, transport: asyncio.Transport, may_wait: Callable[[], bool]) -> None:
        self._transport = transport
        self._may_wait = may_wait
        self._timer: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of the transport
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._timer is not None or self._transport.is_closing()

    def close(self) -> None:
        if self.is_closing():
            return
        if self._may_wait():
            self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.close)
        else:
            self._transport.close()

    def forget(self) -> None:
        if self._timer:
            self._timer.cancel()


class Phase(Enum):
    """The data that the server expects next on a connection, such as headers or a body."""

    HEADERS = "headers"
    BODY = "body"
    DISCARDED_BODY = "discarded body"
    NOTHING = "nothing"


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 with delayed closing and limits for slow clients.

    HTTP/1.0 connections are closed immediately, because closing may be the only sign that the response is complete.
    """

    header_seconds = 15.0
    body_seconds = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._patient = PatientTransport(transport, self._answer_is_framed)
        super().connection_made(cast("asyncio.Transport", self._patient))
        self._limit: asyncio.TimerHandle | None = None
        self._expect(Phase.HEADERS, self.header_seconds)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)[DROP] = self.transport.abort
        if self._phase is not Phase.HEADERS:
            self._expect(Phase.HEADERS, self.header_seconds)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._expect(Phase.BODY, self.body_seconds)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._expect(Phase.NOTHING)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._phase is Phase.BODY:
            self._expect(Phase.DISCARDED_BODY, DISCARD_SECONDS)

    def data_received(self, data: bytes) -> None:
        if self._patient.is_closing():
            return
        self._received += len(data)
        super().data_received(data)
        if self._phase is Phase.HEADERS and self._received > MOST_HEADER_BYTES:
            self._refuse(431)
        elif self._phase is Phase.DISCARDED_BODY and self._received > DISCARD_BYTES:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._patient.forget()
        self._expect(Phase.NOTHING)
        super().connection_lost(exc)

    def _expect(self, phase: Phase, seconds: float | None = None) -> None:
        """Start waiting for more data from the client, with a time limit.

        If `seconds` is None, there is no limit.
        """
        self._phase, self._received = phase, 0
        if self._limit:
            self._limit.cancel()
        self._limit = self.loop.call_later(seconds, self._time_is_up) if seconds is not None else None

    def _time_is_up(self) -> None:
        if self._phase is Phase.BODY and self._body_arrives():
            self._expect(Phase.BODY, self.body_seconds)
        elif self._phase is Phase.DISCARDED_BODY or self._patient.is_closing():
            self.transport.abort()
        else:
            self._refuse(408)

    def _body_arrives(self) -> bool:
        """Whether the request body arrives fast enough. Also true while the client is waiting for the server."""
        cycle = self._current()
        waits = self.flow.read_paused or (cycle is not None and cycle.waiting_for_100_continue)
        return waits or self._received >= LEAST_BODY_RATE * self.body_seconds

    def _refuse(self, status: int) -> None:
        """Close the connection. If no response is being sent, first send one without a body."""
        cycle = self._current()
        unanswered = cycle is not None and not cycle.response_complete
        if cycle is None or not (unanswered and cycle.response_started):
            self.transport.write(STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self._expect(Phase.NOTHING)
        self.transport.close()
        if cycle is not None and unanswered:
            cycle.disconnected = True
            cycle.message_event.set()

    def shutdown(self) -> None:
        """Abort the connection if it is idle. Otherwise, close it after the current response."""
        cycle = self._current()
        if cycle is None or cycle.response_complete:
            self.transport.abort()
        else:
            cycle.keep_alive = False

    def _answer_is_framed(self) -> bool:
        cycle = self._current()
        return cycle is not None and cycle.response_complete and self.scope["http_version"] == "1.1"

    def _current(self) -> RequestResponseCycle | None:
        return self.cycle  # None before the first request, although its type excludes None


def protocol_for(header_seconds: float, body_seconds: float) -> type[PatientProtocol]:
    """Return a protocol class with these limits.

    The limits are class attributes, because the web server passes no arguments when it creates the object for a
    connection.
    """
    limits = {"header_seconds": header_seconds, "body_seconds": body_seconds}
    return type("LimitedProtocol", (PatientProtocol,), limits)


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Recorded instead of the path of a request that matches no route, because the number of such paths is unlimited.
NO_ROUTE = "none"


class Timing:
    """Measures the time from a request to the start of its response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started = time.monotonic()
        method = scope["method"] if scope["method"] in METHODS else "other"

        async def send_and_time(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = str(message["status"])
                HTTP_REQUESTS.labels(method, route_of(scope), status).observe(time.monotonic() - started)
            await send(message)

        if not is_tracing():
            return await self._app(scope, receive, send_and_time)
        with span(f"request {method}", parent=Headers(scope=scope).get(HEADER)) as opened:
            try:
                await self._app(scope, receive, send_and_time)
            finally:
                if opened:
                    opened.update_name(f"{method} {route_of(scope)}")
        return None


def route_of(scope: Scope) -> str:
    """Return the pattern of the route that a request matched, such as `/documents/{document}`."""
    route = scope.get("route")
    return str(route.path) if route is not None else "/static" if scope.get("root_path") == "/static" else NO_ROUTE
