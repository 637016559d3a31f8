"""Who follows the events live: one reader of the database for each web process, however many streams are open.

Everything is read from the database, so it does not matter which process a stream is in, or which one made an event.
A stream first takes its seat, then reads what it missed, and then goes on with what the reader handed to its seat
meanwhile: whatever was handed out before it sat down is what it reads for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import psycopg
import structlog

from octavo.core.errors import BadInput, DatabaseUnavailable, RateLimited
from octavo.database import Database, explain, is_cancelled
from octavo.jobs.events import Cursor, Event, latest_cursor, read_events

log = structlog.get_logger()
MOST_OF_OWNER = 20
MOST_OF_PROCESS = 1000
# A stream that is behind by more than this is ended, and goes on where it was when it comes back.
MOST_WAITING = 1000
PAGE = 1000


class TooManyStreams(RateLimited):
    """Too many pages and programs follow what happens. Close some of them."""

    code = "TOO_MANY_STREAMS"
    retry_after_seconds = 30.0


class TooFarBehind(BadInput):
    """Too much has happened since. Load everything anew, and follow from there."""

    code = "TOO_FAR_BEHIND"
    status = 410


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the database is asked, silence is broken, and it is asked again who a caller is."""

    poll_seconds: float = 0.25
    heartbeat_seconds: float = 15.0
    check_seconds: float = 30.0


class Seat:
    """The place of one stream: what it has to send, and whether it has to end.

    A stream that still reads what it missed takes nothing from here. What does not fit meanwhile is no reason to end
    it, since it reads that for itself as well.
    """

    def __init__(self, *, is_behind: bool = False) -> None:
        self._waiting: asyncio.Queue[Event] = asyncio.Queue(MOST_WAITING)
        self._is_behind = is_behind
        self._has_dropped = False
        self.ended = asyncio.Event()
        self.doubted = asyncio.Event()
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
        """Whether all that its stream did not read is here; if something was dropped, it has to read once more."""
        self._is_behind, self._has_dropped = self._has_dropped, False
        return not self._is_behind

    async def take(self) -> list[Event]:
        """All that there is to send; waits until there is something."""
        taken = [await self._waiting.get()]
        while not self._waiting.empty():
            taken.append(self._waiting.get_nowait())
        return taken


class Hub:
    """Hands every event to the seats of its owner; reads nothing while nobody is there."""

    def __init__(self, database: Database, pace: Pace | None = None) -> None:
        self.database = database
        self.pace = pace or Pace()
        self._seats: dict[UUID, set[Seat]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._closed = False

    def __len__(self) -> int:
        return sum(map(len, self._seats.values()))

    @property
    def is_reading(self) -> bool:
        return self._reading is not None

    @asynccontextmanager
    async def seat(self, owner: UUID, *, is_behind: bool = False) -> AsyncGenerator[Seat]:
        """A place for one stream; from here on all that happens to the owner is handed to it."""
        if len(self) >= MOST_OF_PROCESS or len(self._seats.get(owner, ())) >= MOST_OF_OWNER:
            raise TooManyStreams
        seat = Seat(is_behind=is_behind)
        self._seats.setdefault(owner, set()).add(seat)
        if self._closed:
            seat.ended.set()
        try:
            await self._start()
            yield seat
        finally:
            self._leave(owner, seat)

    def doubt(self, owner: UUID) -> None:
        """Somebody who acted for this owner signed in or out: who follows it is asked at once who they are."""
        for seat in self._seats.get(owner, ()):
            seat.doubted.set()

    def close(self) -> None:
        """End all streams, and those that still come."""
        self._closed = True
        for seats in self._seats.values():
            for seat in seats:
                seat.ended.set()

    async def _start(self) -> None:
        async with self._starting:
            if self._reading is None:
                async with self.database.connection() as connection:
                    position = await latest_cursor(connection)
                self._reading = asyncio.create_task(self._read(position))

    def _leave(self, owner: UUID, seat: Seat) -> None:
        self._seats[owner].discard(seat)
        if not self._seats[owner]:
            del self._seats[owner]
        if not self._seats and self._reading:
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
                    log.warning("events cannot be read", reason=explain(error))
                away = True

    async def _read_from(self, position: Cursor) -> Cursor:
        full = True
        while full:
            async with self.database.connection() as connection:
                page = await read_events(connection, position, PAGE)
            if is_cancelled():
                break  # another one reads already
            # Handed out without a pause, so that a seat has either all of a page or none of it.
            for event in page:
                for seat in self._seats.get(event.owner_id, ()):
                    seat.offer(event)
            position = page[-1].cursor if page else position
            full = len(page) == PAGE
        return position
