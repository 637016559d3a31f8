"""Files that were opened with a password: kept beside the source, which stays as it came in."""

from __future__ import annotations

from uuid import UUID

from octavo.core.errors import BadInput, NotFound
from octavo.core.ids import new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.library.changes import SourceGone, hold
from octavo.storage import Stored

QUERIES = load_queries("unlocked")


async def find_locked(connection: Connection, owner: UUID, document: UUID) -> str:
    """The key of the file that came in; only of a PDF, because nothing else is opened with a password."""
    rows = await fetch_rows(connection, QUERIES.source, {"owner": owner, "document": document})
    if not rows:
        raise NotFound(f"Document {document}.")
    if rows[0]["source_type"] != "pdf":
        raise BadInput("A password opens PDFs that were added as files, and nothing else.")
    if rows[0]["key"] is None:
        raise SourceGone
    return rows[0]["key"]


async def keep_unlocked(connection: Connection, owner: UUID, document: UUID, stored: Stored) -> list[str]:
    """From now on the document is processed from this. Answers keys of objects to be removed after the commit."""
    await hold(connection, owner, [document])
    before = await fetch_rows(connection, QUERIES.delete_unlocked, {"document": document})
    await connection.execute(QUERIES.insert_object, {"key": stored.key, "bytes": stored.bytes, "sha256": stored.sha256})
    await connection.execute(QUERIES.insert_unlocked, {"id": new_id(), "document": document, "key": stored.key})
    unused = await fetch_rows(connection, QUERIES.delete_unused_objects, {"keys": [row["key"] for row in before]})
    return [row["key"] for row in unused]
