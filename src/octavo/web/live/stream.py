"""One open event stream: missed events first, then live ones, until the caller disconnects or loses access."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import UTC
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from pydantic import TypeAdapter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from octavo.core.errors import DatabaseUnavailable
from octavo.core.http import EVENT_STREAM, write_event
from octavo.database import is_cancelled
from octavo.jobs.events import (
    Cursor,
    Event,
    count_owner_events,
    is_known,
    keep_seen,
    latest_cursor,
    read_owner_events,
)
from octavo.records.jobs import LiveEvent
from octavo.web.http.protocol import DROP
from octavo.web.live.hub import Hub, Subscription, TooFarBehind

MOST_MISSED = 20_000
PAGE = 500
RETRY_MILLISECONDS = 2000
# A caller that does not read the end of the stream in this time is disconnected.
END_SECONDS = 1.0
HEARTBEAT = b":\n\n"
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


Result = TypeVar("Result")
_FORM = TypeAdapter(LiveEvent)


def public_form(event: Event) -> LiveEvent:
    at = event.at.astimezone(UTC)
    return LiveEvent(event.id, at, event.kind, event.process_id, event.document_id, event.state_after, event.detail)


@dataclass(frozen=True, slots=True)
class Follower:
    """The account whose events are streamed, and the cursor to start after.

    Without a cursor, only new events are sent. A `limited` member gets only the events of documents that they see.
    """

    owner: UUID
    after: Cursor | None
    is_still_allowed: Callable[[], Awaitable[bool]]
    limited: bool = False


class EventStream(Response):
    """Sends events until the caller disconnects, loses access or is too slow, or the server stops."""

    media_type = EVENT_STREAM

    def __init__(self, hub: Hub, follower: Follower) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._hub = hub
        self._follower = follower

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._hub.subscribe(
            self._follower.owner, is_behind=self._follower.after is not None
        ) as subscription:
            start = await self._find_start()
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            leaving = asyncio.create_task(wait_for_leaving(receive))
            try:
                await first_of(
                    leaving,
                    self._send_events(subscription, start, send),
                    self._watch(subscription),
                    subscription.ended.wait(),
                )
                if not leaving.done():
                    await _end(subscription, scope, send, leaving)
            finally:
                leaving.cancel()

    async def _find_start(self) -> Cursor:
        async with self._hub.database.connection() as connection:
            after = self._follower.after
            if after is None:
                return await latest_cursor(connection)
            known = await is_known(connection, after)
            missed = await count_owner_events(connection, self._follower.owner, after, MOST_MISSED + 1)
        if missed > MOST_MISSED or not known:
            raise TooFarBehind
        return after

    async def _send_events(self, subscription: Subscription, start: Cursor, send: Send) -> None:
        await send_body(send, hello(start))
        position = start
        async for events in self._events(subscription, start):
            fresh = [event for event in events if event.cursor > position]
            if fresh:
                await send_body(send, b"".join(map(frame, fresh)))
                position = fresh[-1].cursor
            elif not events:
                await send_body(send, HEARTBEAT)

    async def _events(self, subscription: Subscription, start: Cursor) -> AsyncGenerator[Iterable[Event]]:
        """Yield missed events page by page, then live events. An empty list means that a heartbeat is due."""
        position, has_all = start, self._follower.after is None
        while not has_all and not is_cancelled():
            async with self._hub.database.connection() as connection:
                page = await read_owner_events(connection, self._follower.owner, position, PAGE)
            if page:
                yield page
                position = page[-1].cursor
            else:
                has_all = subscription.catch_up()
        while not is_cancelled():
            try:
                async with asyncio.timeout(self._hub.pace.heartbeat_seconds):
                    events = await subscription.take()
            except TimeoutError:
                events = []
            if events and self._follower.limited:
                async with self._hub.database.connection() as connection:
                    events = await keep_seen(connection, events)
            yield events

    async def _watch(self, subscription: Subscription) -> None:
        """Wait until the caller has lost access to the account, then return.

        While the database is unavailable, access is kept.
        """
        while not is_cancelled():
            try:
                async with asyncio.timeout(self._hub.pace.check_seconds):
                    await subscription.recheck.wait()
            except TimeoutError:
                pass
            subscription.recheck.clear()
            try:
                if not await self._follower.is_still_allowed():
                    return
            except (DatabaseUnavailable, psycopg.Error):
                continue


def hello(start: Cursor) -> bytes:
    """Encode the first message. It contains the start cursor, so that a caller can reconnect before the first event."""
    begin = f": events\nretry: {RETRY_MILLISECONDS}\n\n"
    return begin.encode() + write_event(f'{{"cursor": "{start}"}}', name="hello", event_id=str(start))


def frame(event: Event) -> bytes:
    return write_event(_FORM.dump_json(public_form(event)).decode(), event_id=str(event.cursor))


async def send_body(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def wait_for_leaving(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work`, and cancel it if the caller disconnects. Read the request body before calling this."""
    leaving = asyncio.create_task(wait_for_leaving(request.receive))
    task = asyncio.create_task(work)
    try:
        await asyncio.wait([leaving, task], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        for one in (leaving, task):
            one.cancel()
        await asyncio.gather(leaving, task, return_exceptions=True)


async def first_of(leaving: asyncio.Task[None], *others: Coroutine[Any, Any, object]) -> None:
    """Run the coroutines until one of them finishes or the caller disconnects, then cancel all others.

    Errors of the coroutines are raised, unless the database is unavailable.
    """
    tasks = [asyncio.create_task(one) for one in others]
    try:
        await asyncio.wait([leaving, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        expected = (asyncio.CancelledError, DatabaseUnavailable, psycopg.OperationalError)
        if isinstance(result, BaseException) and not isinstance(result, expected):
            raise result


async def _end(subscription: Subscription, scope: Scope, send: Send, leaving: asyncio.Task[None]) -> None:
    """End the response properly if the caller is still reading. Otherwise, drop the connection."""
    try:
        async with asyncio.timeout(0 if subscription.is_slow else END_SECONDS):
            await send_body(send, b"", more=False)
    except TimeoutError:
        if drop := scope.get(DROP):
            drop()
            await leaving
