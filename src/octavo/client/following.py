"""Follows the events of an owner for as long as somebody wants, over any number of broken connections."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from octavo.client.errors import NotOctavo, Unreachable
from octavo.client.patience import Patience
from octavo.client.wire import Ask, Wire, read_problem, seconds_to_wait
from octavo.core.http import EVENT_STREAM, ServerSentEvent, read_events

# The server says something every quarter of a minute.
SILENCE_SECONDS = 45.0
# A stream that lasted is no failed try.
LASTED_SECONDS = 5.0


def read_data(event: ServerSentEvent) -> Any:  # noqa: ANN401 - any JSON
    try:
        return event.json()
    except ValueError:
        raise NotOctavo(f"The event {event.id} is not JSON.") from None


async def follow(wire: Wire, patience: Patience, after: str | None) -> AsyncGenerator[ServerSentEvent]:
    """Every message after a place, once; a stream that ends is opened again where it was."""
    position, tries = after, patience.begin()
    while True:
        headers = {"accept": EVENT_STREAM} | ({"last-event-id": position} if position else {})
        ask = Ask("GET", "/events", repeatable=True, headers=headers)
        began = time.monotonic()
        try:
            async with wire.open(ask, silence_seconds=SILENCE_SECONDS) as answer:
                if not answer.is_success:
                    await answer.aread()
                    wait = seconds_to_wait(ask, answer)
                    if wait is None or not await tries.wait(wait):
                        raise read_problem(answer)
                    continue
                async with aclosing(read_events(answer.aiter_bytes())) as messages:
                    async for message in messages:
                        position = message.id or position
                        yield message
            broken = Unreachable(f"{wire.address} ends every stream.")
        except Unreachable as error:
            broken = error
        if time.monotonic() - began > LASTED_SECONDS:
            tries = patience.begin()
        if not await tries.pause():
            raise broken
