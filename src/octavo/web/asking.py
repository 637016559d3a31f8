"""An answer as a stream: each statement as it is known, then what it rests on. Who leaves stops the work on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from octavo.ask import Answer, with_marks
from octavo.core.errors import OctavoError
from octavo.web.streams import HEADERS, HEARTBEAT, first_of, send_body, wait_for_leaving

HEARTBEAT_SECONDS = 15.0


async def tell(make: Callable[[], Awaitable[Answer]]) -> AsyncGenerator[bytes]:
    """Statements, then their citations, then the end; what goes wrong meanwhile is told as the last event."""
    try:
        answer = await make()
    except OctavoError as error:
        problem = {"status": error.status, "code": error.code, "title": error.title, "detail": error.detail}
        yield frame("error", problem)
        return
    for said in answer.statements:
        text = f"{with_marks(said, answer.citations)}\n"
        yield frame("text", {"text": text, "citations": said.citations, "verified": said.verified})
    rest = {"found": answer.found, "made_by": answer.made_by, "cost_usd": answer.cost_usd}
    yield frame("citations", {"citations": [asdict(one) for one in answer.citations], **rest})
    yield frame("done", {})


def frame(name: str, data: dict[str, Any]) -> bytes:
    """One server-sent event; JSON has no line breaks of its own."""
    return f"event: {name}\ndata: {json.dumps(data, default=str)}\n\n".encode()


class AnswerStream(Response):
    """Sends until all is said or the caller leaves; then what is being asked of a model is given up at once."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        leaving = asyncio.create_task(wait_for_leaving(receive))
        try:
            await first_of(leaving, self._send_all(send))
            if not leaving.done():
                await send_body(send, b"", more=False)
        finally:
            leaving.cancel()

    async def _send_all(self, send: Send) -> None:
        """With a sign of life while a model thinks."""
        async with aclosing(self._events) as events:
            while True:
                coming = asyncio.ensure_future(anext(events, b""))
                try:
                    while not (await asyncio.wait([coming], timeout=HEARTBEAT_SECONDS))[0]:
                        await send_body(send, HEARTBEAT)
                    event = coming.result()
                finally:
                    coming.cancel()
                    await asyncio.wait([coming])
                if not event:
                    return
                await send_body(send, event)
