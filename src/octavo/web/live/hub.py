"""Distributes live events. Each web process has one database reader, which serves any number of streams.

All events are read from the database, so it does not matter which process wrote them. A stream first subscribes, then
reads the events it missed from the database, and then continues with the events that the reader delivered in the
meantime.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass
from uuid import UUID

import psycopg
import structlog

from octavo.core.errors import BadInput, DatabaseUnavailable, RateLimited
from octavo.database import Database, explain, is_cancelled
from octavo.jobs.events import Cursor, Event, latest_cursor, read_events
from octavo.web.http.limits import Slots

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
    """Time intervals for event streams: how often to read the database, send heartbeats, and check whether callers
    still have access.
    """

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
        """Whether the queue contains all events that the stream has not read yet.

        If not, the stream must read the database again.
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
        """End all streams, including those opened later."""
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
