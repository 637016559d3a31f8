"""Distributes live events. Each web process has one database reader, which serves any number of streams.

All events are read from the database, so it does not matter which process wrote them. A stream first subscribes. Then
it reads the database to get the events that it missed, and continues with the events that the reader delivered in the
meantime. It ends when the caller disconnects or loses access.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass
from datetime import UTC
from typing import Any, TypeVar
from uuid import UUID

import psycopg
import structlog
from pydantic import TypeAdapter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from octavo.core.errors import BadInput, DatabaseUnavailable, RateLimited
from octavo.core.http import EVENT_STREAM, write_event
from octavo.database import Database, explain, is_cancelled
from octavo.jobs.views import (
    Cursor,
    Event,
    count_owner_events,
    is_known,
    keep_seen,
    latest_cursor,
    read_events,
    read_owner_events,
)
from octavo.records.jobs import LiveEvent
from octavo.web.http.limits import Slots
from octavo.web.http.protocol import DROP

log = structlog.get_logger()
MOST_OF_OWNER = 20
MOST_OF_PROCESS = 1000
# A stream with more pending events is ended; the client continues from its last event.
MOST_WAITING = 1000
PAGE = 1000


class TooManyStreams(RateLimited):
    """Too many open event streams. Close some pages or programs."""

    code = "TOO_MANY_STREAMS"
    retry_after_seconds = 30.0


class TooFarBehind(BadInput):
    """Too many events since this cursor. Reload everything and continue with a new cursor."""

    code = "TOO_FAR_BEHIND"
    status = 410


@dataclass(frozen=True, slots=True)
class StreamIntervals:
    """How often event streams read the database, send heartbeats, and check whether their callers still have access."""

    poll_seconds: float = 0.25
    heartbeat_seconds: float = 15.0
    check_seconds: float = 30.0


class Subscription:
    """The queue of events for one open stream, and the signal that the stream must end.

    While a stream is still reading missed events from the database, it takes nothing from the queue. If the queue
    overflows in the meantime, the stream does not end: it also reads the dropped events from the database.
    """

    def __init__(self, *, is_behind: bool = False) -> None:
        self._waiting: asyncio.Queue[Event] = asyncio.Queue(MOST_WAITING)
        self._is_behind = is_behind
        self._has_dropped = False
        self.ended = asyncio.Event()
        self.recheck = asyncio.Event()
        self.is_slow = False

    def offer(self, event: Event) -> None:
        if not self._waiting.full():
            self._waiting.put_nowait(event)
        elif self._is_behind:
            self._waiting = asyncio.Queue(MOST_WAITING)
            self._has_dropped = True
        else:
            self.is_slow = True
            self.ended.set()

    def catch_up(self) -> bool:
        """Whether the queue contains all events that the stream has not read yet. Called after reading missed events.

        If false, the stream must read the database again.
        """
        self._is_behind, self._has_dropped = self._has_dropped, False
        return not self._is_behind

    async def take(self) -> list[Event]:
        """Wait until there is an event, and return all pending events."""
        taken = [await self._waiting.get()]
        while not self._waiting.empty():
            taken.append(self._waiting.get_nowait())
        return taken


class Hub:
    """Delivers each event to all open streams of its account. While no stream is open, the database is not read."""

    def __init__(
        self,
        database: Database,
        pace: StreamIntervals | None = None,
        slots: Slots | None = None,
        most_of_owner: int = MOST_OF_OWNER,
    ) -> None:
        self.database = database
        self.pace = pace or StreamIntervals()
        self._slots = slots or Slots(database)
        self._most_of_owner = most_of_owner
        self._subscriptions: dict[UUID, set[Subscription]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._closed = False

    def __len__(self) -> int:
        return sum(map(len, self._subscriptions.values()))

    @property
    def is_reading(self) -> bool:
        return self._reading is not None

    @asynccontextmanager
    async def subscribe(self, owner: UUID, *, is_behind: bool = False) -> AsyncGenerator[Subscription]:
        """Subscribe one stream to all new events of this account."""
        if len(self) >= MOST_OF_PROCESS:
            raise TooManyStreams
        async with self._slots.hold(f"streams {owner}", self._most_of_owner, TooManyStreams()):
            subscription = Subscription(is_behind=is_behind)
            self._subscriptions.setdefault(owner, set()).add(subscription)
            if self._closed:
                subscription.ended.set()
            try:
                await self._start()
                yield subscription
            finally:
                self._leave(owner, subscription)

    def recheck(self, owner: UUID) -> None:
        """Make all streams of this account check their access now. Called when credentials have changed."""
        for subscription in self._subscriptions.get(owner, ()):
            subscription.recheck.set()

    def close(self) -> None:
        """End all open streams. Streams that are opened later end immediately."""
        self._closed = True
        for subscriptions in self._subscriptions.values():
            for subscription in subscriptions:
                subscription.ended.set()

    async def _start(self) -> None:
        async with self._starting:
            if self._reading is None:
                async with self.database.connection() as connection:
                    position = await latest_cursor(connection)
                # The reader serves all callers, so it must not act for the caller that happened to start it.
                self._reading = asyncio.create_task(self._read(position), context=Context())

    def _leave(self, owner: UUID, subscription: Subscription) -> None:
        self._subscriptions[owner].discard(subscription)
        if not self._subscriptions[owner]:
            del self._subscriptions[owner]
        if not self._subscriptions and self._reading:
            self._reading.cancel()
            self._reading = None

    async def _read(self, position: Cursor) -> None:
        away = False
        while not is_cancelled():
            await asyncio.sleep(self.pace.poll_seconds)
            try:
                position = await self._read_from(position)
                away = False
            except (DatabaseUnavailable, psycopg.Error) as error:
                if not away:
                    log.warning("cannot read events", reason=explain(error))
                away = True

    async def _read_from(self, position: Cursor) -> Cursor:
        full = True
        while full:
            async with self.database.connection() as connection:
                page = await read_events(connection, position, PAGE)
            if is_cancelled():
                break  # another reader has started
            # Delivered without awaiting, so that a subscription gets a page completely or not at all.
            for event in page:
                for subscription in self._subscriptions.get(event.owner_id, ()):
                    subscription.offer(event)
            position = page[-1].cursor if page else position
            full = len(page) == PAGE
        return position


MOST_MISSED = 20_000
REPLAY_PAGE = 500
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
    """The account whose events are streamed, and the cursor after which the stream starts.

    Without a cursor, only new events are sent. A `limited` member gets only the events of documents that they can see.
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
                page = await read_owner_events(connection, self._follower.owner, position, REPLAY_PAGE)
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
    """Run `work`. If the caller disconnects, cancel it and raise `ClientDisconnect`.

    Read the request body before calling this function.
    """
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
