"""Reads streams from the server: the events of an account, and answers to questions.

After a broken connection, the stream of events is resumed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from octavo.client.errors import NotOctavo, RemoteProblem, Unreachable
from octavo.client.transport import Request, RetryPolicy, Transport, read_problem, seconds_to_wait
from octavo.core.http import EVENT_STREAM, ServerSentEvent, read_events
from octavo.records.jobs import LiveEvent
from octavo.records.search import AnswerSources, FoundPassages, Statement, ThreadReference

# The server sends a heartbeat every 15 seconds.
SILENCE_SECONDS = 45.0
# A stream that lasted this long counts as a success, so the retries start again.
LASTED_SECONDS = 5.0

AnswerPart = ThreadReference | FoundPassages | Statement | AnswerSources
ANSWER_PARTS: dict[str, type[AnswerPart]] = {
    "thread": ThreadReference,
    "passages": FoundPassages,
    "text": Statement,
    "citations": AnswerSources,
}


@dataclass(frozen=True, slots=True)
class Event(LiveEvent):
    """One server-sent event. `cursor` is the position from which to resume after this event."""

    cursor: str


@dataclass(frozen=True, slots=True)
class EventCursor:
    cursor: str


def read_data(event: ServerSentEvent) -> Any:  # noqa: ANN401 - any JSON
    try:
        return event.json()
    except ValueError:
        raise NotOctavo(f"The event {event.id} is not JSON.") from None


async def follow(transport: Transport, retry_policy: RetryPolicy, after: str | None) -> AsyncGenerator[ServerSentEvent]:
    """Yield every event after a cursor exactly once. A stream that ends is reopened after the last received event."""
    cursor, retries = after, retry_policy.begin()
    while True:
        headers = {"accept": EVENT_STREAM} | ({"last-event-id": cursor} if cursor else {})
        request = Request("GET", "/events", repeatable=True, headers=headers)
        began = time.monotonic()
        try:
            async with transport.open(request, silence_seconds=SILENCE_SECONDS) as response:
                if not response.is_success:
                    await response.aread()
                    wait = seconds_to_wait(request, response)
                    if wait is None or not await retries.wait(wait):
                        raise read_problem(response)
                    continue
                async with aclosing(read_events(response.aiter_bytes())) as events:
                    async for event in events:
                        cursor = event.id or cursor
                        yield event
            broken = Unreachable(f"{transport.address} closes every event stream.")
        except Unreachable as error:
            broken = error
        if time.monotonic() - began > LASTED_SECONDS:
            retries = retry_policy.begin()
        if not await retries.pause():
            raise broken


async def stream_answer(
    transport: Transport, body: Mapping[str, object]
) -> AsyncGenerator[tuple[type[AnswerPart], Any]]:
    """Yield each part of an answer as a pair: its record type and its data. The last part is the sources.

    A broken stream is not retried, because answers cost money.
    """
    request = Request("POST", "/ask", headers={"accept": EVENT_STREAM}, json=body)
    async with transport.open(request, silence_seconds=SILENCE_SECONDS) as response:
        if not response.is_success:
            await response.aread()
            raise read_problem(response)
        async with aclosing(read_events(response.aiter_bytes())) as events:
            async for event in events:
                data = read_data(event)
                if event.name == "error":
                    raise RemoteProblem(int(data["status"]), str(data["code"]), str(data["title"]), data["detail"])
                if record := ANSWER_PARTS.get(event.name):
                    yield record, data
                if event.name == "citations":
                    return
    raise Unreachable(f"{transport.address} closed the connection before the response was complete.")
