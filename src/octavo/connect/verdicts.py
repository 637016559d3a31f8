"""What people say about connections: remembered by what the two sides say, so it holds for all that say the same."""

from __future__ import annotations

from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.connect.views import Connection, show_connection
from octavo.core.errors import NotFound
from octavo.database import Connection as Database
from octavo.database import fetch_rows, load_queries

QUERIES = load_queries("connection_views")
DOCUMENTS = load_queries("documents")


class Decision(StrEnum):
    CONFIRM = "confirm"
    DISMISS = "dismiss"
    UNDO = "undo"


VERDICTS = {Decision.CONFIRM: "confirmed", Decision.DISMISS: "dismissed"}


async def decide(connection: Database, owner: UUID, ident: UUID, decision: Decision) -> Connection:
    """In the caller's transaction, with an event of both documents; answers the connection as it is now."""
    found = await fetch_rows(connection, QUERIES.document_of, {"owner": owner, "connection": ident})
    if not found:
        raise NotFound(f"Connection {ident}.")
    values: dict[str, Any] = {"owner": owner, "digest": found[0]["digest"]}
    if decision is Decision.UNDO:
        await connection.execute(QUERIES.undecide, values)
    else:
        await connection.execute(QUERIES.decide, values | {"verdict": VERDICTS[decision]})
    told = {
        "kind": "connection_judged",
        "documents": [found[0]["source_document"], found[0]["target_document"]],
        "detail": Jsonb({"connection": str(ident), "decision": decision}),
    }
    await connection.execute(DOCUMENTS.record, told)
    return await show_connection(connection, owner, ident)
