"""Sends requests to one server, retries them where it is safe, and turns every failure into an error with a code."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Self, TypeVar, cast
from urllib.parse import urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from octavo.client.errors import BadAddress, BadKey, NotOctavo, RemoteProblem, Unreachable
from octavo.core.http import read_http_date, read_retry_after
from octavo.core.pagination import Page

PREFIX = "/api/v1"
SESSION_COOKIE = "octavo_session"
_KEY = re.compile(r"[\x21-\x7e]+")
CONNECT_SECONDS = 10.0
# The server hashes, stores and flushes a large file to disk before it responds to the upload.
RESPONSE_SECONDS = 120.0
PAUSES = (0.1, 0.3, 1.0, 2.0)
# If the server asks for a longer wait, the error is reported to the user instead.
LONGEST_WAIT_SECONDS = 60.0
ALL_WAITS_SECONDS = 300.0
# With these errors nothing was sent, so any call can be repeated.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
RETRIED_STATUSES = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}

# A parameter with several values is repeated.
Query = Mapping[str, str | list[str]]
Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Request:
    """One API call.

    `repeatable`: whether sending it twice has the same effect as sending it once. `body` creates the content for each
    attempt.
    """

    method: str
    path: str
    repeatable: bool = False
    query: Query = field(default_factory=dict[str, str | list[str]])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    json: object = None
    body: Callable[[], AsyncIterable[bytes]] | None = None


class Transport:
    """Connections to one server, kept open between calls. Redirects to other servers are not followed."""

    def __init__(
        self,
        address: str,
        *,
        headers: Mapping[str, str],
        connections: int,
        retry_policy: RetryPolicy,
        hint: str,
        http: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.address = read_address(address)
        self._retry_policy = retry_policy
        self._hint = hint
        self._http = httpx.AsyncClient(
            base_url=self.address + PREFIX,
            headers={"accept": "application/json", **headers},
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            timeout=httpx.Timeout(RESPONSE_SECONDS, connect=CONNECT_SECONDS, pool=None),
            trust_env=not is_loopback(self.address),
            follow_redirects=False,
            transport=http,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def call(self, request: Request) -> Any:  # noqa: ANN401 - any JSON
        """Send the request and return the JSON of the response, or None if the response is empty.

        Raises an error if the server refuses the request.
        """
        response = await self.send(request)
        return read_json(response) if response else None

    async def get(self, path: str, query: Query | None = None) -> Any:  # noqa: ANN401 - any JSON
        return await self.call(Request("GET", path, repeatable=True, query=query or {}))

    async def send(self, request: Request) -> httpx.Response | None:
        """Send the request, with retries, and return the raw response.

        Returns None if a repeated DELETE finds that an earlier attempt has already deleted the object.
        """
        retries = self._retry_policy.begin()
        while True:
            response = await self._try(request, retries)
            if response is None:
                continue
            if response.is_success:
                return response
            if request.method == "DELETE" and retries.repeated and response.status_code == HTTPStatus.NOT_FOUND:
                return None  # an earlier attempt deleted it, and only its response was lost
            wait = seconds_to_wait(request, response)
            if wait is None or not await retries.wait(wait):
                raise read_problem(response)

    @asynccontextmanager
    async def open(self, request: Request, *, silence_seconds: float) -> AsyncGenerator[httpx.Response]:
        """Send a request, and yield the response before its body has arrived. A failed request is not retried."""
        timeout = httpx.Timeout(silence_seconds, connect=CONNECT_SECONDS)
        try:
            async with self._http.stream(
                request.method, request.path, headers=dict(request.headers), json=request.json, timeout=timeout
            ) as response:
                yield response
        except httpx.RequestError as error:
            raise Unreachable(self._explain(error)) from error

    async def _try(self, request: Request, retries: Retries) -> httpx.Response | None:
        """Send the request once.

        If the connection breaks and a retry is safe, pause and return None, so that the caller retries.
        """
        sent = self._http.build_request(
            request.method,
            request.path,
            params=dict(request.query) or None,
            headers=dict(request.headers),
            json=request.json,
            content=request.body() if request.body else None,
        )
        try:
            return await self._http.send(sent)
        except httpx.RequestError as error:
            if (request.repeatable or isinstance(error, NOT_SENT)) and await retries.pause():
                return None
            raise Unreachable(self._explain(error)) from error

    def _explain(self, error: httpx.RequestError) -> str:
        if isinstance(error, httpx.ConnectError):
            reason = f"{self.address} does not accept connections ({error})."
        elif isinstance(error, httpx.TimeoutException):
            reason = f"{self.address} did not respond in time."
        else:
            reason = f"The connection to {self.address} broke ({error or type(error).__name__})."
        return f"{reason} {self._hint}"


def seconds_to_wait(request: Request, response: httpx.Response) -> float | None:
    """Return how many seconds to wait before a retry; None if a retry is not safe or not useful."""
    rate_limited = response.status_code == HTTPStatus.TOO_MANY_REQUESTS  # so it was not executed
    if response.status_code not in RETRIED_STATUSES or not (rate_limited or request.repeatable):
        return None
    clock = read_http_date(response.headers.get("date", ""))
    wanted = read_retry_after(response.headers.get("retry-after"), clock)
    return 1.0 if wanted is None else wanted


def read_json(response: httpx.Response) -> Any:  # noqa: ANN401 - any JSON
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        raise NotOctavo(f"{response.url} did not return JSON.") from None


def read_problem(response: httpx.Response) -> RemoteProblem | NotOctavo:
    """Return the error that the server reported.

    Returns `NotOctavo` if the response is not from Octavo but, for example, from a proxy.
    """
    status = response.status_code
    if response.is_redirect:
        return NotOctavo(f"{response.url} redirects to {response.headers.get('location')}.")
    try:
        body: object = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict) or "code" not in body:
        return NotOctavo(f"{response.url} returned {status} {response.reason_phrase}.")
    problem = cast("dict[str, Any]", body)
    return RemoteProblem(status, str(problem["code"]), str(problem.get("title", "")), problem.get("detail"))


# Responses as records. Unknown fields of a newer server are ignored -------------------------------------------------


def read_record(record: type[Record], body: object) -> Record:
    return _validate(_reader(record), body)


def read_page(record: type[Record], body: object) -> Page[Record]:
    return _validate(_page_reader(record), body)


def _validate(reader: TypeAdapter[Record], body: object) -> Record:
    try:
        return reader.validate_python(body)
    except ValidationError as error:
        wrong = ", ".join(sorted({".".join(map(str, one["loc"])) for one in error.errors()}))
        raise NotOctavo(f"Missing or invalid: {wrong or 'the whole body'}.") from None


@cache
def _reader(record: type[Record]) -> TypeAdapter[Record]:
    return TypeAdapter(record)


@cache
def _page_reader(record: type[Record]) -> TypeAdapter[Page[Record]]:
    return TypeAdapter(Page[record])  # pyright: ignore[reportInvalidTypeForm] - known only at run time


def read_address(text: str) -> str:
    """Validate and normalise a server address. It can have a path, but no credentials, query or fragment."""
    address = text.strip()
    try:
        parts = urlsplit(address)
        reachable = bool(httpx.URL(address).host) and parts.port != 0
    except (ValueError, httpx.InvalidURL):
        raise BadAddress from None
    has_more = "@" in parts.netloc or parts.query or parts.fragment or " " in address
    if parts.scheme not in {"http", "https"} or not reachable or has_more:
        raise BadAddress
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def read_key(text: str) -> str:
    """Validate an API key. The key is sent in a header, and headers do not allow every character."""
    key = text.strip()
    if not _KEY.fullmatch(key):
        raise BadKey
    return key


def is_loopback(address: str) -> bool:
    """Whether the address is on this machine. Requests to this machine must not go through a proxy."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and when failed requests are retried.

    `pauses`: the seconds to wait before each retry after a broken connection. Delays that the server requests are
    limited separately: each one by `longest_wait`, their sum by `all_waits`.
    """

    pauses: Sequence[float] = PAUSES
    longest_wait: float = LONGEST_WAIT_SECONDS
    all_waits: float = ALL_WAITS_SECONDS
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def begin(self) -> Retries:
        return Retries(self)


class Retries:
    """Counts the remaining retries of one call."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._pauses = list(policy.pauses)
        self._waited = 0.0
        self.repeated = False

    async def pause(self) -> bool:
        """Pause before the next attempt. Returns False if no attempts are left."""
        if not self._pauses:
            return False
        await self._sleep(self._pauses.pop(0))
        return True

    async def wait(self, seconds: float) -> bool:
        """Wait as long as the server requests. If the policy does not allow that, return False without waiting."""
        if seconds > self._policy.longest_wait or self._waited + seconds > self._policy.all_waits:
            return False
        self._waited += seconds
        await self._sleep(seconds)
        return True

    async def _sleep(self, seconds: float) -> None:
        self.repeated = True
        await self._policy.sleep(seconds)
