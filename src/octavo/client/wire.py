"""Requests to one server: made again where that is safe, and every failure turned into an error with a code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self, cast

import httpx

from octavo.client.address import is_loopback, read_address
from octavo.client.errors import NotOctavo, RemoteProblem, Unreachable
from octavo.client.patience import Patience, Tries
from octavo.core.http import read_http_date, read_retry_after

PREFIX = "/api/v1"
SESSION_COOKIE = "octavo_session"
CONNECT_SECONDS = 10.0
# A large file is hashed, stored and flushed to disk before its upload is answered.
ANSWER_SECONDS = 120.0
# Nothing was sent yet, so that any call may be made again.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
LATER = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}


# A name with several values is said once for each.
Query = Mapping[str, str | list[str]]


@dataclass(frozen=True, slots=True)
class Ask:
    """One call. `repeatable`: made twice, it does no more than made once; `body` makes a new one for each try."""

    method: str
    path: str
    repeatable: bool = False
    query: Query = field(default_factory=dict[str, str | list[str]])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    json: object = None
    body: Callable[[], AsyncIterable[bytes]] | None = None


class Wire:
    """Connections to one address, kept open between calls; nothing is ever sent elsewhere."""

    def __init__(
        self, address: str, *, headers: Mapping[str, str], connections: int, patience: Patience, hint: str
    ) -> None:
        self.address = read_address(address)
        self._patience = patience
        self._hint = hint
        self._http = httpx.AsyncClient(
            base_url=self.address + PREFIX,
            headers={"accept": "application/json", **headers},
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS, pool=None),
            trust_env=not is_loopback(self.address),
            follow_redirects=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def call(self, ask: Ask) -> Any:  # noqa: ANN401 - whatever JSON the server answers
        """The answer's JSON, None where it is empty; a refusal is raised."""
        answer = await self.answer(ask)
        return read_json(answer) if answer else None

    async def answer(self, ask: Ask) -> httpx.Response | None:
        """The answer as it came; None where something to delete was gone already."""
        tries = self._patience.begin()
        while True:
            answer = await self._send(ask, tries)
            if answer is None:
                continue
            if answer.is_success:
                return answer
            if ask.method == "DELETE" and tries.repeated and answer.status_code == HTTPStatus.NOT_FOUND:
                return None  # an earlier try did it, and only its answer was lost
            wait = seconds_to_wait(ask, answer)
            if wait is None or not await tries.wait(wait):
                raise read_problem(answer)

    @asynccontextmanager
    async def open(self, ask: Ask, *, silence_seconds: float) -> AsyncGenerator[httpx.Response]:
        """An answer that is read as it comes; it is made once, whatever it says."""
        timeout = httpx.Timeout(silence_seconds, connect=CONNECT_SECONDS)
        try:
            async with self._http.stream(
                ask.method, ask.path, headers=dict(ask.headers), json=ask.json, timeout=timeout
            ) as answer:
                yield answer
        except httpx.RequestError as error:
            raise Unreachable(self._explain(error)) from error

    async def _send(self, ask: Ask, tries: Tries) -> httpx.Response | None:
        """The answer; None after a pause when the connection broke and the call may be made again."""
        request = self._http.build_request(
            ask.method,
            ask.path,
            params=dict(ask.query) or None,
            headers=dict(ask.headers),
            json=ask.json,
            content=ask.body() if ask.body else None,
        )
        try:
            return await self._http.send(request)
        except httpx.RequestError as error:
            if (ask.repeatable or isinstance(error, NOT_SENT)) and await tries.pause():
                return None
            raise Unreachable(self._explain(error)) from error

    def _explain(self, error: httpx.RequestError) -> str:
        if isinstance(error, httpx.ConnectError):
            reason = f"{self.address} does not take connections ({error})."
        elif isinstance(error, httpx.TimeoutException):
            reason = f"{self.address} does not answer in time."
        else:
            reason = f"The connection to {self.address} broke ({error or type(error).__name__})."
        return f"{reason} {self._hint}"


def seconds_to_wait(ask: Ask, answer: httpx.Response) -> float | None:
    """How long to wait before asking again; None when there is no use in it."""
    refused = answer.status_code == HTTPStatus.TOO_MANY_REQUESTS  # and so not done
    if answer.status_code not in LATER or not (refused or ask.repeatable):
        return None
    clock = read_http_date(answer.headers.get("date", ""))
    wanted = read_retry_after(answer.headers.get("retry-after"), clock)
    return 1.0 if wanted is None else wanted


def read_json(answer: httpx.Response) -> Any:  # noqa: ANN401 - whatever JSON the server answers
    if not answer.content:
        return None
    try:
        return answer.json()
    except ValueError:
        raise NotOctavo(f"{answer.url} answered no JSON.") from None


def read_problem(answer: httpx.Response) -> RemoteProblem | NotOctavo:
    """The server's own words; whoever answers in another form is not Octavo but something before it."""
    status = answer.status_code
    if answer.is_redirect:
        return NotOctavo(f"{answer.url} leads to {answer.headers.get('location')}.")
    try:
        body: object = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict) or "code" not in body:
        return NotOctavo(f"{answer.url} answered {status} {answer.reason_phrase}.")
    said = cast("dict[str, Any]", body)
    return RemoteProblem(status, str(said["code"]), str(said.get("title", "")), said.get("detail"))
