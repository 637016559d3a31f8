"""Reading what happened, in an order in which nothing is ever skipped.

Ids are given out before transactions commit, so a later id can be visible before an earlier one. Readers therefore
follow (transaction, id) and stop below the oldest transaction that is still open.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from octavo.database import Connection, load_queries

QUERIES = load_queries("events")


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """How far a reader is; everything up to here was seen."""

    xid: int
    id: int


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    xid: int
    at: datetime
    process_id: UUID
    kind: str
    state_after: str | None
    owner_id: UUID
    document_id: UUID | None
    detail: dict[str, Any]

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.xid, self.id)


async def read_events(connection: Connection, after: Cursor | None = None, limit: int = 1000) -> list[Event]:
    """The next events of everybody; a reader that wants one owner's picks them out."""
    start = after or Cursor(0, 0)
    async with connection.cursor(row_factory=class_row(Event)) as cursor:
        await cursor.execute(QUERIES.read, {"xid": str(start.xid), "id": start.id, "limit": limit})
        return await cursor.fetchall()


async def latest_cursor(connection: Connection) -> Cursor:
    """Where a reader begins that wants only what comes from now on."""
    row = await (await connection.execute(QUERIES.latest)).fetchone()
    return Cursor(row[0], 0) if row else Cursor(0, 0)
