"""The one way out to other people's servers."""

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
from octavo.fetch.answers import Fetched, FetchLimits
from octavo.fetch.bodies import ACCEPTED, Body
from octavo.fetch.connect import GuardedBackend, Resolve, SystemResolver
from octavo.fetch.errors import CertificateRefused, TooManyRedirects
from octavo.fetch.urls import Target, join_url, parse_url

USER_AGENT = f"Octavo/{__version__}"
CONNECTIONS = 100
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# What another host may see too. Anything else may be a secret that was meant for the first one.
_FOR_ANYBODY = frozenset({"accept", "accept-language", "user-agent"})


class GuardedClient:
    """Reaches public addresses only, and those that `allow` names as `host:port`.

    No proxies, certificates or passwords from the environment, no cookies. `resolve` is replaced in tests only.
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

    async def get(self, url: str, limits: FetchLimits, headers: Mapping[str, str] | None = None) -> Fetched:
        """Follows redirects, each of which is checked like the first address. Any status is an answer."""
        target, sent = parse_url(url), dict(headers or {})
        async with _within(limits):
            for _ in range(limits.redirects + 1):
                answer = await self._exchange("GET", target, None, sent, limits)
                if answer.status not in _REDIRECTS or "location" not in answer.headers:
                    return answer
                following = join_url(target, answer.headers["location"])
                if following.origin != target.origin:
                    sent = {name: value for name, value in sent.items() if name.lower() in _FOR_ANYBODY}
                target = following
        raise TooManyRedirects

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], limits: FetchLimits) -> Fetched:
        """A redirect is an answer like any other: what was meant for one address is not sent to another."""
        async with _within(limits):
            return await self._exchange("POST", parse_url(url), body, headers, limits)

    async def _exchange(
        self, method: str, target: Target, body: bytes | None, headers: Mapping[str, str], limits: FetchLimits
    ) -> Fetched:
        try:
            return await self._send(method, target, body, headers, limits)
        except (httpcore.ConnectError, httpcore.NetworkError) as error:
            if _is_about_safety(error):
                raise CertificateRefused from None
            raise NetworkFailed from None
        except httpcore.TimeoutException:
            raise TimedOut from None
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol):
            raise NetworkFailed("It did not answer as web servers do.") from None

    async def _send(
        self, method: str, target: Target, body: bytes | None, headers: Mapping[str, str], limits: FetchLimits
    ) -> Fetched:
        address = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        sent = {"User-Agent": USER_AGENT, "Accept": "*/*", **headers, "Accept-Encoding": ACCEPTED}
        async with self._pool.stream(method, address, headers=list(sent.items()), content=body) as response:
            received = _plain_headers(response.headers)
            if response.status in _REDIRECTS and method == "GET" and "location" in received:
                return _fetched(target, response.status, received, b"")
            announced = received.get("content-length", "")
            if announced.isdecimal() and int(announced) > limits.bytes:
                raise TooLarge(f"At most {limits.bytes:,} bytes are fetched.")
            whole = await Body(received.get("content-encoding", ""), limits.bytes).read(response.aiter_stream())
            return _fetched(target, response.status, received, whole)


def _is_about_safety(error: BaseException) -> bool:
    """Whether a connection failed because it could not be made safe, however deep that is said."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _fetched(target: Target, status: int, headers: Mapping[str, str], body: bytes) -> Fetched:
    return Fetched(target.url, status, headers.get("content-type", ""), headers, body)


def _plain_headers(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


@asynccontextmanager
async def _within(limits: FetchLimits) -> AsyncGenerator[None]:
    """The time for all of a fetch, whatever it is spent on."""
    try:
        async with asyncio.timeout(limits.seconds):
            yield
    except TimeoutError:
        raise TimedOut from None
