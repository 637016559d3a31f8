"""Measures the time of every request, and records the request as a span if tracing is enabled."""

from __future__ import annotations

import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo.core.instruments import HTTP_REQUESTS
from octavo.core.tracing import HEADER, is_tracing, span

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# The route of requests that match none. Their paths are not used: anybody could invent any number of them.
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
