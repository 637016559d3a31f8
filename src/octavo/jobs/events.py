"""Reads events in an order that never skips one.

Ids are assigned before transactions commit, so an event can become visible after an event with a greater id. Readers
therefore first read the horizon: the highest id up to which no open transaction can still add events. In a second
statement, they read only events up to the horizon. Events are sorted by (epoch, id); a new epoch begins when a backup
is restored into another PostgreSQL cluster.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from octavo.core.errors import BadInput
from octavo.database import Connection, load_queries

QUERIES = load_queries("events")
# At most 18 digits, so that both numbers fit into a bigint.
_CURSOR = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


class BadCursor(BadInput):
    """Invalid event cursor. Send the id of an event, or a cursor from an earlier response."""

    code = "BAD_CURSOR"


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """How far a reader has read. All events up to this position have been read."""

    epoch: int
    id: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.id}"


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    epoch: int
    at: datetime
    process_id: UUID
    kind: str
    state_after: str | None
    owner_id: UUID
    document_id: UUID | None
    detail: dict[str, Any]

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.epoch, self.id)


def parse_cursor(text: str) -> Cursor:
    found = _CURSOR.fullmatch(text)
    if not found:
        raise BadCursor
    return Cursor(int(found[1]), int(found[2]))


async def read_events(connection: Connection, after: Cursor | None = None, limit: int = 1000) -> list[Event]:
    """Return the next events of all owners (accounts)."""
    return await _read(connection, QUERIES.read, {**await _place(connection, after), "limit": limit})


async def read_owner_events(connection: Connection, owner: UUID, after: Cursor, limit: int = 1000) -> list[Event]:
    """Return the next events of one owner (account)."""
    values = {**await _place(connection, after), "owner": owner, "limit": limit}
    return await _read(connection, QUERIES.read_of, values)


async def keep_seen(connection: Connection, events: Sequence[Event]) -> list[Event]:
    """Return the events of documents that the connection shows. For connections of a limited member."""
    wanted = list({event.document_id for event in events if event.document_id})
    rows = await (await connection.execute(QUERIES.seen_documents, {"documents": wanted})).fetchall()
    seen = {row[0] for row in rows}
    return [event for event in events if event.document_id in seen]


async def count_owner_events(connection: Connection, owner: UUID, after: Cursor, most: int) -> int:
    """Count the events of one account after a cursor, up to `most`."""
    values = {**await _place(connection, after), "owner": owner, "most": most}
    row = await (await connection.execute(QUERIES.count_of, values)).fetchone()
    return row[0] if row else 0


async def latest_cursor(connection: Connection) -> Cursor:
    """Return a cursor after the last event, for a reader that needs only new events."""
    row = await (await connection.execute(QUERIES.latest)).fetchone()
    return Cursor(*row) if row else Cursor(0, 0)


async def is_known(connection: Connection, cursor: Cursor) -> bool:
    """Whether the cursor comes from this database.

    False if it comes from another database, or if this database was restored from a backup that is older than the
    cursor.
    """
    values = {"epoch": cursor.epoch, "id": cursor.id}
    row = await (await connection.execute(QUERIES.is_known, values)).fetchone()
    return row is not None and bool(row[0])


async def _read(connection: Connection, query: bytes, values: dict[str, Any]) -> list[Event]:
    async with connection.cursor(row_factory=class_row(Event)) as cursor:
        await cursor.execute(query, values)
        return await cursor.fetchall()


async def _place(connection: Connection, after: Cursor | None) -> dict[str, Any]:
    row = await (await connection.execute(QUERIES.horizon)).fetchone()
    start = after or Cursor(0, 0)
    return {"epoch": start.epoch, "id": start.id, "horizon": row[0] if row else 0}
