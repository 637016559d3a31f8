"""Records what people do as events, for the audit page."""

from __future__ import annotations

from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.database import Connection, load_queries

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
    """Record an action in the transaction of the change. `thing` is the id of the person or object.

    The actor is the caller of the request, unless it is given. Details must not contain secrets or addresses.
    """
    values = {"owner": owner_id, "kind": kind, "process": thing, "detail": Jsonb(detail), "actor": actor}
    await connection.execute(QUERIES.record, values)
