"""Sends requests to one server, retries them if that is safe, and converts every failure to an error with a code."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar, cast
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
from pydantic import TypeAdapter, ValidationError

from octavo.core.errors import BadInput, ErrorClass, OctavoError, StorageFailed
from octavo.core.http import Page, read_http_date, read_retry_after

PREFIX = "/api/v1"
# Paths without the prefix.
SERVER_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
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
IDEMPOTENCY_KEY = "idempotency-key"
# The first request with the same Idempotency-Key is still running.
KEY_IN_USE = "IDEMPOTENCY_KEY_IN_USE"

# A parameter with several values is repeated.
Query = Mapping[str, str | list[str]]
Record = TypeVar("Record")
OnProgress = Callable[[int], None]


# Errors -------------------------------------------------------------------------------------------------------------


class RemoteProblem(OctavoError):
    """The server refused the request."""

    def __init__(self, status: int, code: str, title: str, detail: str | None = None) -> None:
        # The server repeats the title where it has no detail.
        super().__init__(detail if detail != title else None)
        self.title = title
        self.args = (self.line,)
        self.__dict__.update(status=status, code=code)  # set on this instance, not on the class


class BadAddress(BadInput):
    """A server address must look like https://docs.example.org or http://127.0.0.1:8400."""

    code = "BAD_ADDRESS"


class BadKey(BadInput):
    """This is not an API key. Create one with `octavo keys add`."""

    code = "BAD_KEY"


class Unreachable(OctavoError):
    """The server could not be reached."""

    code = "NETWORK"
    error_class = ErrorClass.NETWORK
    status = 502


class NotOctavo(OctavoError):
    """This is not a response from Octavo. Check the address and the server's version."""

    code = "NOT_OCTAVO"
    status = 502


class FileChanged(BadInput):
    """The file was truncated during the upload. Add it again."""

    code = "FILE_CHANGED"


class Damaged(OctavoError):
    """The file was damaged in transit: the server received different bytes. Add it again."""

    code = "DAMAGED"
    error_class = ErrorClass.TRANSIENT
    status = 502


# Requests -----------------------------------------------------------------------------------------------------------


class Repeat(Enum):
    """Whether a request can be sent again if its response was lost."""

    SAFE = "twice has the same effect as once"
    KEY = "the server recognises the second request by its Idempotency-Key"
    NEVER = "it would be executed twice"


DEFAULT_REPEAT = {"POST": Repeat.KEY}


@dataclass(frozen=True, slots=True)
class Request:
    """One API call. `body` creates the content for each attempt.

    `repeat` says whether the request can be sent again. By default, a POST can be repeated because it has an
    Idempotency-Key, and all other requests can be repeated without one.
    """

    method: str
    path: str
    repeat: Repeat | None = None
    query: Query = field(default_factory=dict[str, str | list[str]])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    json: object = None
    body: Callable[[], AsyncIterable[bytes]] | None = None

    @property
    def is_repeatable(self) -> bool:
        return self.repeat is not Repeat.NEVER

    def with_key(self) -> Request:
        """Return the request with a new Idempotency-Key, if it needs one. All attempts have the same key."""
        if (self.repeat or DEFAULT_REPEAT.get(self.method)) is not Repeat.KEY:
            return self
        return replace(self, headers={**self.headers, IDEMPOTENCY_KEY: str(uuid4())})

    def from_byte(self, start: int, etag: str | None) -> Request:
        """Return the request for the rest of a partly downloaded file, starting at byte `start`.

        Without an ETag, returns the request for the whole file, because the file may have changed.
        """
        more = {"accept-encoding": "identity"}
        if start and etag:
            more |= {"range": f"bytes={start}-", "if-range": etag}
        return replace(self, headers={**self.headers, **more})


class Transport:
    """Sends requests over connections that stay open between calls. Redirects to other servers are not followed."""

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
        self.retry_policy = retry_policy
        self._hint = hint
        self._http = httpx.AsyncClient(
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
        """Send the request and return the JSON of the response. Returns None if the response is empty.

        Raises an error if the server refuses the request.
        """
        response = await self.send(request)
        return read_json(response) if response else None

    async def send(self, request: Request) -> httpx.Response | None:
        """Send the request, with retries, and return the raw response.

        Returns None if a repeated DELETE finds that an earlier attempt has already deleted the object.
        """
        request, retries = request.with_key(), self.retry_policy.begin()
        while True:
            response = await self._try(request, retries)
            if response is None:
                continue
            if response.is_success:
                return response
            if request.method == "DELETE" and retries.repeated and response.status_code == HTTPStatus.NOT_FOUND:
                return None  # an earlier attempt deleted it, and only its response was lost
            if not await may_retry(request, response, retries):
                raise read_problem(response)

    async def save(self, request: Request, to: Path, on_progress: OnProgress | None = None) -> int:
        """Write a response to a file, and return its size. The file gets its final name when it is complete.

        After a broken connection, the download is resumed where it stopped. If the server does not support that, the
        whole file is downloaded again. `on_progress` is called with the number of bytes received so far.
        """
        part = to.with_name(f"{to.name}.part")
        try:
            with await asyncio.to_thread(part.open, "wb") as file:
                size = await self._receive(request, file, on_progress)
            await asyncio.to_thread(part.replace, to)
        except OSError as error:
            raise StorageFailed(f"{to}: {error.strerror}.") from error
        finally:
            with suppress(OSError):
                await asyncio.to_thread(part.unlink)
        return size

    async def _receive(self, request: Request, file: BinaryIO, on_progress: OnProgress | None) -> int:
        retries, etag = self.retry_policy.begin(), None
        while True:
            begin = file.tell()
            try:
                async with self.open(request.from_byte(begin, etag), silence_seconds=RESPONSE_SECONDS) as response:
                    if not response.is_success:
                        await response.aread()
                        if await may_retry(request, response, retries):
                            continue
                        raise read_problem(response)
                    if response.status_code != HTTPStatus.PARTIAL_CONTENT:
                        file.seek(0)
                        file.truncate()
                    etag = response.headers.get("etag")
                    return await write_pieces(response, file, on_progress)
            except Unreachable:
                if file.tell() > begin:
                    retries = self.retry_policy.begin()
                if not await retries.pause():
                    raise

    @asynccontextmanager
    async def open(self, request: Request, *, silence_seconds: float) -> AsyncGenerator[httpx.Response]:
        """Send a request, and yield the response before its body has arrived. A failed request is not retried."""
        timeout = httpx.Timeout(silence_seconds, connect=CONNECT_SECONDS)
        try:
            async with self._http.stream(
                request.method,
                self._url(request),
                params=dict(request.query) or None,
                headers=dict(request.headers),
                json=request.json,
                timeout=timeout,
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
            self._url(request),
            params=dict(request.query) or None,
            headers=dict(request.headers),
            json=request.json,
            content=request.body() if request.body else None,
        )
        try:
            return await self._http.send(sent)
        except httpx.RequestError as error:
            if (request.is_repeatable or isinstance(error, NOT_SENT)) and await retries.pause():
                return None
            raise Unreachable(self._explain(error)) from error

    def _url(self, request: Request) -> str:
        return f"{self.address}{'' if request.path in SERVER_PATHS else PREFIX}{request.path}"

    def _explain(self, error: httpx.RequestError) -> str:
        if isinstance(error, httpx.ConnectError):
            reason = f"{self.address} does not accept connections ({error})."
        elif isinstance(error, httpx.TimeoutException):
            reason = f"{self.address} did not respond in time."
        else:
            reason = f"The connection to {self.address} broke ({error or type(error).__name__})."
        return f"{reason} {self._hint}"


async def write_pieces(response: httpx.Response, file: BinaryIO, on_progress: OnProgress | None) -> int:
    async for piece in response.aiter_bytes():
        await asyncio.to_thread(file.write, piece)
        if on_progress:
            on_progress(file.tell())
    return file.tell()


async def may_retry(request: Request, response: httpx.Response, retries: Retries) -> bool:
    """Return whether to retry a request.

    Before returning True, wait for the time in `Retry-After`, or with increasing delays. Returns False without waiting
    if a retry is not safe, would not help, or exceeds the limits of the retry policy.
    """
    if not is_temporary(request, response):
        return False
    clock = read_http_date(response.headers.get("date", ""))
    seconds = read_retry_after(response.headers.get("retry-after"), clock)
    return await (retries.pause() if seconds is None else retries.wait(seconds))


def is_temporary(request: Request, response: httpx.Response) -> bool:
    """Whether a retry can succeed and is safe.

    The server does not execute a request that exceeds a rate limit, so such a request can always be retried.
    """
    if response.status_code == HTTPStatus.CONFLICT and IDEMPOTENCY_KEY in request.headers:
        return getattr(read_problem(response), "code", None) == KEY_IN_USE
    if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return True
    return response.status_code == HTTPStatus.SERVICE_UNAVAILABLE and request.is_repeatable


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
    """Validate an API key. Because the key is sent in a header, it must not contain characters that headers do not
    allow.
    """
    key = text.strip()
    if not _KEY.fullmatch(key):
        raise BadKey
    return key


def is_loopback(address: str) -> bool:
    """Whether a server's URL points to this machine. Requests to this machine must not go through a proxy."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and when failed requests are retried.

    `pauses` are the seconds to wait before each retry after a broken connection. If the server itself requests a delay,
    `longest_wait` limits each such delay, and `all_waits` limits their sum.
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
