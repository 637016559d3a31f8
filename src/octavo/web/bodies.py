"""Requests have an end: all but those that bring files in are small, and are refused before they are read."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo.core.errors import TooLarge
from octavo.web.problems import problem

MOST_BYTES = 1 << 20
# These are read as they come, and have limits of their own.
_FILES = re.compile(
    r"/api/v1/(documents|conversions|uploads/[^/]+/content)|/actions/(upload|documents/[^/]+/(replace|version))"
    r"|/conversions|/settings/mappings/try"
)


class SmallBodies:
    """A length that is too large is refused at once; a body without one is cut off where it gets too long."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _FILES.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        error = TooLarge(f"At most {MOST_BYTES:,} bytes are read here.")
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and int(length) > MOST_BYTES:
            await problem(error.status, error.code, error.title, error.detail)(scope, receive, send)
            return
        taken = 0

        async def receive_some() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise error
            return message

        await self._app(scope, receive_some, send)
