"""HTTP code that clients and servers share: the server's URL, dates, Retry-After, server-sent events and cursors.

A cursor points to the last item of a page of results; the next page starts after it.
"""

from __future__ import annotations

import json
import math
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from octavo.core.settings import Settings
import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Generic, TypeVar
from uuid import UUID

from octavo.core.errors import BadInput

EVENT_STREAM = "text/event-stream"
EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - only compared with the setting
# An IP address reserved for documentation. Connecting a UDP socket to it selects a network interface and sends nothing.
_ELSEWHERE = "192.0.2.1", 9
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")


def shown_address(settings: Settings, address: str) -> str:
    """Return the URL at which people reach the web server. `address` is its URL for programs on this machine."""
    if settings.public_url:
        return settings.public_url
    if settings.host not in EVERY_ADDRESS:
        return address
    name = settings.hosts[0] if settings.hosts else _network_address()
    return f"http://{name}:{urlsplit(address).port}" if name else address


def _network_address() -> str | None:
    """Return this machine's IP address on its local network. Returns None if the machine has no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError:
            return None
        return probe.getsockname()[0]


def read_http_date(text: str) -> datetime | None:
    """Parse a date from an HTTP header. Returns None if it is invalid. A date without a time zone is UTC."""
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def read_retry_after(header: str | None, clock: datetime | None, *, longest: float = math.inf) -> float | None:
    """Parse a `Retry-After` header. Returns the number of seconds to wait, at most `longest`.

    Returns None if the header is missing or invalid. If the header contains a date, the time until then is counted from
    `clock`. Pass the Date header of the response as `clock`, because the server's clock may differ from the local one.
    """
    text = (header or "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), longest)
    at = read_http_date(text)
    if at is None or clock is None:
        return None
    return min(max((at - clock).total_seconds(), 0.0), longest)


def requested_wait(headers: Mapping[str, str], *, longest: float = math.inf) -> float | None:
    """Return how many seconds the client should wait, according to the `Retry-After` response header.

    Returns None if the header is missing or invalid. A date in the header is compared with the server's clock.
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


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: list[Item]
    next_cursor: str | None


def make_cursor(at: datetime, item: UUID) -> str:
    """Make a cursor that points to the last item of a page of results. Clients send it back unchanged."""
    return make_text_cursor(at.isoformat(), item)


def read_cursor(cursor: str) -> tuple[datetime, UUID]:
    at, item = read_text_cursor(cursor)
    try:
        return datetime.fromisoformat(at).astimezone(UTC), item
    except (ValueError, OverflowError):
        raise _refusal() from None


def make_text_cursor(text: str, item: UUID) -> str:
    """Make a cursor for a list that is sorted by a text field."""
    return urlsafe_b64encode(f"{item} {text}".encode()).decode().rstrip("=")


def read_text_cursor(cursor: str) -> tuple[str, UUID]:
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        item, _, text = urlsafe_b64decode(padded).decode().partition(" ")
        if "\0" in text:
            raise _refusal()
        return text, UUID(item)
    except (ValueError, binascii.Error):
        raise _refusal() from None


def _refusal() -> BadInput:
    return BadInput("Invalid cursor. Use the next_cursor of the previous page.")
