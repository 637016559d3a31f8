"""Follows the events of an owner for as long as somebody wants, over any number of broken connections."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from octavo.client.errors import NotOctavo, Unreachable
from octavo.client.patience import Patience
from octavo.client.wire import Ask, Wire, read_problem, seconds_to_wait

# The server says something every quarter of a minute.
SILENCE_SECONDS = 45.0
# A stream that lasted is no failed try.
LASTED_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Message:
    """One server-sent event: what it is called, where it stands, and what it says."""

    name: str
    id: str
    data: str

    def read(self) -> Any:  # noqa: ANN401 - any JSON
        try:
            return json.loads(self.data)
        except ValueError:
            raise NotOctavo(f"The event {self.id} is no JSON.") from None


async def follow(wire: Wire, patience: Patience, after: str | None) -> AsyncGenerator[Message]:
    """Every message after a place, once; a stream that ends is opened again where it was."""
    position, tries = after, patience.begin()
    while True:
        headers = {"accept": "text/event-stream"} | ({"last-event-id": position} if position else {})
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
                async with aclosing(read_messages(answer.aiter_bytes())) as messages:
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


async def read_messages(pieces: AsyncIterable[bytes]) -> AsyncGenerator[Message]:
    """What was sent whole; a message that breaks off in the middle was never sent."""
    held: list[bytes] = []
    async for piece in pieces:
        held.append(piece)
        if b"\n" not in piece:
            continue  # the middle of a long line
        *blocks, rest = b"".join(held).replace(b"\r\n", b"\n").split(b"\n\n")
        held = [rest]
        for block in blocks:
            if message := read_message(block.decode(errors="replace")):
                yield message


def read_message(block: str) -> Message | None:
    """None for what is only a comment or a wish."""
    fields: dict[str, list[str]] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        fields.setdefault(name, []).append(value.removeprefix(" "))
    if "data" not in fields:
        return None
    return Message(fields.get("event", ["message"])[-1], fields.get("id", [""])[-1], "\n".join(fields["data"]))
