"""The parts of HTTP that clients and servers share: dates, Retry-After and server-sent events."""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

EVENT_STREAM = "text/event-stream"
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")


def read_http_date(text: str) -> datetime | None:
    """Parse a date from an HTTP header. Returns None if it is invalid. A date without a time zone is UTC."""
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def read_retry_after(header: str | None, clock: datetime | None, *, longest: float = math.inf) -> float | None:
    """Read a `Retry-After` header and return the seconds to wait, or None if it is missing or invalid.

    The header contains a number of seconds or a date. The time until a date is counted from `clock`: pass the Date
    header of the response, because the server's clock may differ from the local one.
    """
    text = (header or "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), longest)
    at = read_http_date(text)
    if at is None or clock is None:
        return None
    return min(max((at - clock).total_seconds(), 0.0), longest)


def requested_wait(headers: Mapping[str, str], *, longest: float = math.inf) -> float | None:
    """Return how many seconds the server asks the client to wait, or None if it does not say.

    A date in `Retry-After` is compared with the server's own clock.
    """
    return read_retry_after(headers.get("retry-after"), read_http_date(headers.get("date", "")), longest=longest)


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    name: str
    id: str
    data: str

    def json(self) -> Any:  # noqa: ANN401 - any JSON
        return json.loads(self.data)


def write_event(data: str, *, name: str = "", event_id: str = "") -> bytes:
    """Encode a server-sent event. `data` is JSON and must not contain line breaks."""
    head = (f"event: {name}\n" if name else "") + (f"id: {event_id}\n" if event_id else "")
    return f"{head}data: {data}\n\n".encode()


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncGenerator[ServerSentEvent]:
    """Parse a stream of server-sent events. An incomplete event at the end is dropped."""
    held: list[bytes] = []
    async for chunk in chunks:
        held.append(chunk)
        if b"\n" not in chunk:
            continue  # the middle of a long line
        *blocks, rest = b"".join(held).replace(b"\r\n", b"\n").split(b"\n\n")
        held = [rest]
        for block in blocks:
            if event := read_event(block.decode(errors="replace")):
                yield event


def read_event(block: str) -> ServerSentEvent | None:
    """Parse one event. Returns None if the block has no data, such as a comment or a retry interval."""
    fields: dict[str, list[str]] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        fields.setdefault(name, []).append(value.removeprefix(" "))
    if "data" not in fields:
        return None
    return ServerSentEvent(fields.get("event", ["message"])[-1], fields.get("id", [""])[-1], "\n".join(fields["data"]))
