"""The interface that all model providers implement, and the HTTP client for requests to them.

Each request is sent once, with a time limit. Every failure becomes a `ProviderFault`.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import struct
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar, runtime_checkable
from uuid import UUID
from zlib import crc32

import httpx
from pydantic import BaseModel, ValidationError

from octavo import __version__
from octavo.ai.calls import ModelRequest
from octavo.ai.faults import Fault, ProviderFault, TokenUsage, classify_error
from octavo.core.http import EVENT_STREAM, ServerSentEvent, read_events, read_http_date, read_retry_after


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A complete answer of a model. If an answer is incomplete, `ProviderFault` is raised instead."""

    text: str
    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class EmbeddingReply:
    """The embeddings of texts: one vector of length 1 per text, in order."""

    vectors: list[list[float]]
    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class VisionLimits:
    """Limits on the pictures and PDFs in one call: the longest side of a picture in pixels, the page count, and whether
    PDFs can be sent.
    """

    pixels: int
    pages: int
    pdfs: bool = True

    def intersect(self, other: VisionLimits) -> VisionLimits:
        """Combine two sets of limits: return the stricter value of each limit."""
        return VisionLimits(min(self.pixels, other.pixels), min(self.pages, other.pages), self.pdfs and other.pdfs)


# Called with the answer so far while a model writes it.
OnText = Callable[[str], None]
ReadText = Callable[[ServerSentEvent], str]


class Provider(Protocol):
    vision_limits: ClassVar[VisionLimits]

    async def generate(
        self, model: str, request: ModelRequest, owner: UUID, seconds: float, on_text: OnText | None = None
    ) -> ModelReply:
        """Call the model once. Raises only `ProviderFault`.

        If `on_text` is set and the provider supports streaming, the answer is streamed to `on_text`.
        """
        ...


@runtime_checkable
class Embedder(Protocol):
    async def embed(self, model: str, texts: Sequence[str], seconds: float) -> EmbeddingReply:
        """Embed texts. Raises only `ProviderFault`."""
        ...


def follow_text(on_text: OnText | None, read: ReadText) -> OnEvent | None:
    """Return a handler for the events of a streamed answer, which calls `on_text` with the whole text so far.

    Returns None if `on_text` is None.
    """
    if on_text is None:
        return None
    parts: list[str] = []

    def add(event: ServerSentEvent) -> None:
        try:
            text = read(event)
        except ValidationError:  # the whole answer is refused later
            return
        if text:
            parts.append(text)
            on_text("".join(parts))

    return add


def unit_vector(vector: Sequence[float]) -> list[float]:
    """Scale a vector to length 1, so that cosine similarity is a dot product.

    Some providers do not return unit vectors.
    """
    length = math.sqrt(math.fsum(one * one for one in vector))
    return [one / length for one in vector] if length else list(vector)


CONNECT_SECONDS = 10.0
CONNECTIONS = 100
MAX_BYTES = 64 << 20
MAX_ERROR_BYTES = 20_000
MAX_RETRY_AFTER = 3600.0
# Gemini reports the delay in the body.
_RETRY_DELAY = re.compile(r'"retryDelay":\s*"([\d.]+)s"')

# The last event of an OpenAI stream.
END_OF_STREAM = "[DONE]"

Form = TypeVar("Form", bound=BaseModel)


OnEvent = Callable[[ServerSentEvent], None]


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A provider's response. If the provider streamed it, `events` contains all events, and the body is empty."""

    headers: Mapping[str, str]
    body: bytes
    events: tuple[ServerSentEvent, ...] = ()

    def read_events_as(self, form: type[Form]) -> list[Form]:
        """Parse the data of all events, in the same way as `read_as`."""
        return [HttpReply({}, one.data.encode()).read_as(form) for one in self.events if one.data != END_OF_STREAM]

    def read_as(self, form: type[Form]) -> Form:
        """Parse the body as JSON.

        Raises a fault if the body does not match `form`. The `usage` of that fault is None (unknown), because the call
        may have been billed although its answer is unusable.
        """
        try:
            return form.model_validate_json(self.body)
        except ValidationError:
            raise ProviderFault(Fault.MALFORMED, usage=None) from None


class HttpClient:
    """An HTTP client for all providers. Ignores proxies and credentials in the environment. Follows no redirects."""

    def __init__(self) -> None:
        limits = httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=5.0)
        timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)
        self._client = httpx.AsyncClient(
            limits=limits, timeout=timeout, trust_env=False, headers={"user-agent": f"Octavo/{__version__}"}
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def post(
        self,
        provider: str,
        url: str,
        body: object,
        headers: Mapping[str, str],
        seconds: float,
        on_event: OnEvent | None = None,
    ) -> HttpReply:
        """Send a POST request with a JSON body. `provider` selects the patterns that classify an error response.

        If the response is streamed, `on_event` is called with each event.
        """
        all_headers = {"content-type": "application/json", **headers}
        return await self.send(provider, "POST", url, json.dumps(body).encode(), all_headers, seconds, on_event)

    async def send(
        self,
        provider: str,
        method: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        seconds: float,
        on_event: OnEvent | None = None,
    ) -> HttpReply:
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream(method, url, content=body, headers=dict(headers)) as response,
            ):
                read_stream = STREAMS.get(response.headers.get("content-type", "").partition(";")[0].strip())
                if on_event and response.is_success and read_stream:
                    found = await _follow_stream(read_stream(_read(response)), on_event)
                    return HttpReply(response.headers, b"", found)
                content = b"".join([part async for part in _read(response)])
        except TimeoutError:
            raise ProviderFault(Fault.TIMED_OUT, usage=None) from None
        except (httpx.ReadError, httpx.RemoteProtocolError, httpx.DecodingError):
            raise ProviderFault(Fault.CUT_OFF, usage=None) from None
        except (httpx.TransportError, httpx.InvalidURL):  # the request was not sent, so nothing is billed
            raise ProviderFault(Fault.UNREACHABLE) from None
        if response.is_success:
            return HttpReply(response.headers, content)
        text = content[:MAX_ERROR_BYTES].decode(errors="replace")
        fault = classify_error(provider, response.status_code, text)
        raise ProviderFault(fault, retry_after=_retry_after(response.headers, text), status=response.status_code)


async def _read(response: httpx.Response) -> AsyncGenerator[bytes]:
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_BYTES:
            raise ProviderFault(Fault.MALFORMED, usage=None)
        yield part


async def _follow_stream(stream: AsyncGenerator[ServerSentEvent], on_event: OnEvent) -> tuple[ServerSentEvent, ...]:
    events: list[ServerSentEvent] = []
    async for event in stream:
        events.append(event)
        on_event(event)
    return tuple(events)


# Amazon's binary form of events: the length of the message, the length of its headers, and the checksum of both. After
# the headers and the content follows the checksum of the message.
_PRELUDE, _CHECKSUM = struct.Struct(">III"), struct.Struct(">I")
_TEXT_HEADER = 7
MAX_EVENT_BYTES = 16 << 20


async def read_amazon_events(chunks: AsyncIterable[bytes]) -> AsyncGenerator[ServerSentEvent]:
    """Parse a stream of events in Amazon's event-stream format. An incomplete event at the end is dropped.

    Raises a fault if an event is damaged.
    """
    held = bytearray()
    async for chunk in chunks:
        held += chunk
        while len(held) >= _PRELUDE.size:
            size, _, _ = _PRELUDE.unpack_from(held)
            if not _PRELUDE.size + _CHECKSUM.size <= size <= MAX_EVENT_BYTES:
                raise ProviderFault(Fault.MALFORMED, usage=None)
            if len(held) < size:
                break
            try:
                event = _read_amazon_event(bytes(held[:size]))
            except (ValueError, IndexError):
                raise ProviderFault(Fault.MALFORMED, usage=None) from None
            yield event
            del held[:size]


def _read_amazon_event(message: bytes) -> ServerSentEvent:
    _, header_bytes, checksum = _PRELUDE.unpack_from(message)
    whole = _CHECKSUM.unpack_from(message, len(message) - _CHECKSUM.size)[0]
    end = _PRELUDE.size + header_bytes
    if (
        crc32(message[: _PRELUDE.size - _CHECKSUM.size]) != checksum
        or crc32(message[: -_CHECKSUM.size]) != whole
        or end > len(message) - _CHECKSUM.size
    ):
        raise ValueError("a checksum differs")
    headers = _read_headers(message[_PRELUDE.size : end])
    name = headers.get(":exception-type") or headers.get(":event-type", "")
    return ServerSentEvent(name, "", message[end : -_CHECKSUM.size].decode())


def _read_headers(block: bytes) -> dict[str, str]:
    """Parse the headers of an Amazon event-stream message.

    Each header is encoded as name length, name, value type, value length, value.
    """
    headers: dict[str, str] = {}
    at = 0
    while at < len(block):
        value_at = at + 4 + block[at]
        name, kind = block[at + 1 : value_at - 3], block[value_at - 3]
        end = value_at + int.from_bytes(block[value_at - 2 : value_at])
        if kind != _TEXT_HEADER or end > len(block):
            raise ValueError("an unknown type of header")
        headers[name.decode()] = block[value_at:end].decode()
        at = end
    return headers


# How a streamed response is read, by its media type.
STREAMS = {EVENT_STREAM: read_events, "application/vnd.amazon.eventstream": read_amazon_events}


def _retry_after(headers: Mapping[str, str], body: str) -> float | None:
    """Return the number of seconds until the provider accepts requests again, from the header or the body.

    Returns None if neither contains it. If the provider sends a date, it is compared with the `Date` header of the same
    response.
    """
    in_body = _RETRY_DELAY.search(body)
    header = headers.get("retry-after") or (in_body[1] if in_body else None)
    return read_retry_after(header, read_http_date(headers.get("date", "")), longest=MAX_RETRY_AFTER)
