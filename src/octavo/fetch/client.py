"""An HTTP client for URLs that come from users or from other sites. It connects only to public servers.

For each connection, it resolves the host name, checks all IP addresses of the host, and connects to one of these
addresses. Responses are decompressed as they arrive, up to a size limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self, cast

import httpcore
import httpx

from octavo import __version__
from octavo.core.errors import NetworkFailed, TimedOut, TooLarge
from octavo.core.formatting import format_bytes
from octavo.fetch.urls import (
    AddressRefused,
    AnswerBroken,
    AnswerIncomplete,
    CertificateRefused,
    NameUnknown,
    Target,
    TooManyRedirects,
    is_allowed,
    is_public,
    join_url,
    parse_url,
)

RESOLVE_SECONDS = 10.0
CONNECT_SECONDS = 10.0
# People wait for this lookup. The fetch itself looks the name up again and waits longer.
EARLY_RESOLVE_SECONDS = 2.0
_UNKNOWN = {socket.EAI_NONAME, socket.EAI_NODATA} if hasattr(socket, "EAI_NODATA") else {socket.EAI_NONAME}

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class SystemResolver:
    """Resolves names in separate threads, because a lookup cannot be cancelled and must not delay other work."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="octavo-names")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                found = await loop.run_in_executor(self._threads, _look_up, host, port)
        except TimeoutError:
            raise NetworkFailed("Looking up the address of the server took too long.") from None
        except socket.gaierror as error:
            raise (
                NameUnknown()
                if error.errno in _UNKNOWN
                else NetworkFailed("The address of the server could not be looked up.")
            ) from None
        except UnicodeError:  # a label that is too long
            raise NameUnknown from None
        return found

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> Sequence[str]:
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to public addresses, and to the private servers listed in `allow` (`host:port`)."""

    def __init__(
        self, allow: frozenset[str], resolve: Resolve, network: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._allow = allow
        self._resolve = resolve
        # The cast restores the type that is lost by `or`.
        self._network = network or cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception = NameUnknown()
        for address in await self.checked_addresses(host, port):
            try:
                return await self._network.connect_tcp(
                    address, port, min(timeout or CONNECT_SECONDS, CONNECT_SECONDS), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def checked_addresses(self, host: str, port: int) -> Sequence[str]:
        """Resolve a host name. Raises `AddressRefused` if any address is private and the host is not in `allow`."""
        addresses = await self._resolve(host, port)
        if not is_allowed(self._allow, host, port) and not all(map(is_public, addresses)):
            raise AddressRefused
        return addresses


async def refuse_private_addresses(target: Target, allow: frozenset[str], resolve: Resolve) -> None:
    """Look up a host name early, and raise `AddressRefused` if it has a private address.

    If the lookup fails or is slow, nothing is refused yet, because the fetch checks the address again before it
    connects.
    """
    with contextlib.suppress(NetworkFailed, TimeoutError):
        async with asyncio.timeout(EARLY_RESOLVE_SECONDS):
            await GuardedBackend(allow, resolve).checked_addresses(target.host, target.port)


USER_AGENT = f"Octavo/{__version__}"
CONNECTIONS = 100
_OK = 200
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Headers that are also sent to another host after a redirect. Others could be secrets for the first host.
_FORWARDED_HEADERS = frozenset({"accept", "accept-language", "user-agent"})


class GuardedClient:
    """Connects only to public addresses, and to the servers listed in `allow` (`host:port`).

    Uses no proxies, certificates or passwords from the environment, and no cookies. Tests replace `resolve`.
    """

    def __init__(
        self,
        allow: frozenset[str] = frozenset(),
        *,
        resolve: Resolve | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._names = None if resolve else SystemResolver()
        self._backend = GuardedBackend(allow, resolve or self._names or SystemResolver())
        self.ssl_context = ssl_context or httpx.create_ssl_context(trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=self.ssl_context,
            max_connections=CONNECTIONS,
            keepalive_expiry=5.0,
            network_backend=self._backend,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._pool.aclose()
        if self._names:
            self._names.close()

    async def get(self, url: str, limits: FetchLimits, headers: Mapping[str, str] | None = None) -> FetchResponse:
        """Fetch a URL. Each redirect is checked like the first URL. Responses with an error status are returned too."""
        target, sent = parse_url(url), dict(headers or {})
        async with _within(limits):
            for _ in range(limits.redirects + 1):
                answer = await self._exchange("GET", target, None, sent, limits)
                if answer.status not in _REDIRECTS or "location" not in answer.headers:
                    return answer
                following = join_url(target, answer.headers["location"])
                if following.origin != target.origin:
                    sent = {name: value for name, value in sent.items() if name.lower() in _FORWARDED_HEADERS}
                target = following
        raise TooManyRedirects

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], limits: FetchLimits) -> FetchResponse:
        """Send a POST request. Redirects are not followed, because the body must not be sent to another address."""
        return await self.send("POST", url, body, headers, limits)

    async def send(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], limits: FetchLimits
    ) -> FetchResponse:
        """Send a request with any method. Redirects are not followed."""
        async with _within(limits):
            return await self._exchange(method, parse_url(url), body, headers, limits)

    async def download(self, url: str, headers: Mapping[str, str], limits: FetchLimits) -> AsyncGenerator[bytes]:
        """Yield the body of a file as it arrives. Redirects are not followed. Any status other than 200 is an
        error.
        """
        target = parse_url(url)
        address = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        sent = {"User-Agent": USER_AGENT, "Accept": "*/*", **headers, "Accept-Encoding": "identity"}
        received, until = 0, asyncio.get_running_loop().time() + limits.seconds
        opened = self._pool.stream("GET", address, headers=list(sent.items()))
        async with _named_errors(), AsyncExitStack() as stack:
            async with _until(until):
                response = await stack.enter_async_context(opened)
            if response.status != _OK:
                raise UnexpectedStatus(response.status)
            body = aiter(response.aiter_stream())
            while True:
                # The timeout does not enclose the loop, because it could then expire in the caller, as a cancellation.
                async with _until(until):
                    chunk = await anext(body, None)
                if chunk is None:
                    return
                received += len(chunk)
                if received > limits.bytes:
                    raise TooLarge(f"The limit is {format_bytes(limits.bytes)}.")
                yield chunk

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the IP addresses of a server, for connections with protocols other than HTTP.

        Private addresses are refused, as they are for HTTP.
        """
        return await self._backend.checked_addresses(host, port)

    async def _exchange(
        self, method: str, target: Target, body: bytes | None, headers: Mapping[str, str], limits: FetchLimits
    ) -> FetchResponse:
        async with _named_errors():
            return await self._send(method, target, body, headers, limits)

    async def _send(
        self, method: str, target: Target, body: bytes | None, headers: Mapping[str, str], limits: FetchLimits
    ) -> FetchResponse:
        address = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        sent = {"User-Agent": USER_AGENT, "Accept": "*/*", **headers, "Accept-Encoding": ACCEPTED}
        async with self._pool.stream(method, address, headers=list(sent.items()), content=body) as response:
            received = _plain_headers(response.headers)
            if response.status in _REDIRECTS and method == "GET" and "location" in received:
                return _fetched(target, response.status, received, b"")
            announced = received.get("content-length", "")
            if announced.isdecimal() and int(announced) > limits.bytes:
                raise TooLarge(f"The limit is {format_bytes(limits.bytes)}.")
            whole = await Body(received.get("content-encoding", ""), limits.bytes).read(response.aiter_stream())
            return _fetched(target, response.status, received, whole)


@asynccontextmanager
async def _named_errors() -> AsyncGenerator[None]:
    """Raise Octavo's errors instead of those of the HTTP library."""
    try:
        yield
    except (httpcore.ConnectError, httpcore.NetworkError) as error:
        if _is_tls_failure(error):
            raise CertificateRefused from None
        raise NetworkFailed from None
    except httpcore.TimeoutException:
        raise TimedOut from None
    except (httpcore.ProtocolError, httpcore.UnsupportedProtocol):
        raise NetworkFailed("The response is not valid HTTP.") from None


class UnexpectedStatus(Exception):
    """The server returned an unexpected status. The caller decides what it means."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def _is_tls_failure(error: BaseException) -> bool:
    """Whether the error or one of its causes is a TLS failure."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _fetched(target: Target, status: int, headers: Mapping[str, str], body: bytes) -> FetchResponse:
    return FetchResponse(target.url, status, headers.get("content-type", ""), headers, body)


def _plain_headers(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _within(limits: FetchLimits) -> AbstractAsyncContextManager[None]:
    """Limit the duration of a whole fetch. Raises `TimedOut` when the time is up."""
    return _until(asyncio.get_running_loop().time() + limits.seconds)


@asynccontextmanager
async def _until(time: float) -> AsyncGenerator[None]:
    """Raise `TimedOut` if the block is still running at `time`, a time on the event loop's clock."""
    try:
        async with asyncio.timeout_at(time):
            yield
    except TimeoutError:
        raise TimedOut from None


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The limits of a fetch.

    `bytes` limits the decompressed body; `seconds` limits the whole fetch including redirects.
    """

    bytes: int
    seconds: float
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """A response with any status. `url` is the URL after redirects; header names are in lower case."""

    url: str
    status: int
    content_type: str
    headers: Mapping[str, str]
    body: bytes


ACCEPTED = "gzip, deflate"
_EITHER_HEADER = zlib.MAX_WBITS | 32  # gzip or zlib, detected by its header
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})


class Body:
    """Reads one response body and removes one layer of compression.

    Bytes are counted during decompression, because a small response can expand to a huge one.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        name = encoding.strip().lower()
        if name and name != "identity" and name not in _PACKED:
            raise AnswerBroken(f"Unsupported compression: {name[:40]}.")
        self._limit = limit
        self._bytes = bytearray()
        self._unpacker = zlib.decompressobj(_EITHER_HEADER) if name in _PACKED else None
        self._bare_tried = name != "deflate"

    @property
    def size(self) -> int:
        return len(self._bytes)

    async def read(self, chunks: AsyncIterable[bytes]) -> bytes:
        received = False
        async for chunk in chunks:
            self._bytes += self._unpack(chunk) if self._unpacker else chunk
            if len(self._bytes) > self._limit:
                raise TooLarge(f"The limit is {format_bytes(self._limit)}.")
            received = received or bool(chunk)
        if self._unpacker and received and not self._unpacker.eof:
            raise AnswerIncomplete
        return bytes(self._bytes)

    def _unpack(self, chunk: bytes) -> bytes:
        room = self._limit - len(self._bytes) + 1
        unpacker = self._unpacker
        if unpacker is None or unpacker.eof:
            return b""
        try:
            made = unpacker.decompress(chunk, room)
        except zlib.error:
            if self._bare_tried or self._bytes:
                raise AnswerBroken from None
            # Some servers send deflate without its header.
            self._bare_tried = True
            self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._unpack(chunk)
        return made
