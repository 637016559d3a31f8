"""Records the actions of people as events, and lists them for the audit page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.core.http import Page
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.jobs.views import Cursor, parse_cursor
from octavo.records.account import AuditEntry

QUERIES = load_queries("audit")


async def record(
    connection: Connection,
    owner_id: UUID,
    kind: str,
    thing: UUID,
    *,
    actor: UUID | None = None,
    **detail: str,
) -> None:
    """Record an action of a person or a program. Call this in the transaction that performs the action.

    `thing` is the id of the person or object that the action is about. The actor is the caller of the request, unless
    another one is passed. `detail` must not contain secrets or addresses.
    """
    values = {"owner": owner_id, "kind": kind, "process": thing, "detail": Jsonb(detail), "actor": actor}
    await connection.execute(QUERIES.record, values)


# The audit page ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Selects actions by person, by kind, and by time, from `since` up to `until` (exclusive)."""

    person: UUID | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None


async def list_actions(
    connection: Connection, owner_id: UUID, wanted: AuditFilter, *, cursor: str | None = None, limit: int = 50
) -> Page[AuditEntry]:
    """List the actions of people and programs in an account, newest first."""
    before = parse_cursor(cursor) if cursor else None
    values = {**asdict(wanted), "owner": owner_id, "most": limit + 1}
    values |= {"before_epoch": before.epoch if before else None, "before_id": before.id if before else None}
    rows = await fetch_rows(connection, QUERIES.actions, values)
    more = str(Cursor(rows[limit - 1]["epoch"], rows[limit - 1]["id"])) if len(rows) > limit else None
    return Page([_as_entry(row) for row in rows[:limit]], more)


def _as_entry(row: Row) -> AuditEntry:
    return AuditEntry(**{name: value for name, value in row.items() if name != "epoch"})
