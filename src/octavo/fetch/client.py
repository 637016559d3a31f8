"""The client for URLs that come from users or from other sites. It connects only to public servers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import httpcore
import httpx

from octavo import __version__
from octavo.core.errors import NetworkFailed, TimedOut, TooLarge
from octavo.core.formatting import format_bytes
from octavo.fetch.connect import GuardedBackend, Resolve, SystemResolver
from octavo.fetch.errors import CertificateRefused, TooManyRedirects
from octavo.fetch.responses import ACCEPTED, Body, FetchLimits, FetchResponse
from octavo.fetch.urls import Target, join_url, parse_url

USER_AGENT = f"Octavo/{__version__}"
CONNECTIONS = 100
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
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl_context or httpx.create_ssl_context(trust_env=False),
            max_connections=CONNECTIONS,
            keepalive_expiry=5.0,
            network_backend=GuardedBackend(allow, resolve or self._names or SystemResolver()),
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
        """Fetch a URL. Each redirect is checked like the first URL. Responses with any status are returned."""
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
        """Send a request body. Redirects are not followed, because the body must not go to another address."""
        async with _within(limits):
            return await self._exchange("POST", parse_url(url), body, headers, limits)

    async def _exchange(
        self, method: str, target: Target, body: bytes | None, headers: Mapping[str, str], limits: FetchLimits
    ) -> FetchResponse:
        try:
            return await self._send(method, target, body, headers, limits)
        except (httpcore.ConnectError, httpcore.NetworkError) as error:
            if _is_tls_failure(error):
                raise CertificateRefused from None
            raise NetworkFailed from None
        except httpcore.TimeoutException:
            raise TimedOut from None
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol):
            raise NetworkFailed("The response is not valid HTTP.") from None

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


def _is_tls_failure(error: BaseException) -> bool:
    """Whether the error, or any error in its chain of causes, is a TLS failure."""
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


@asynccontextmanager
async def _within(limits: FetchLimits) -> AsyncGenerator[None]:
    """Limit the time of the whole fetch. Raises `TimedOut`."""
    try:
        async with asyncio.timeout(limits.seconds):
            yield
    except TimeoutError:
        raise TimedOut from None
