"""The files of a document: its source as it came in, and what was made from it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from octavo.database import Connection, load_queries
from octavo.library.documents import show_document
from octavo.model.errors import BadInput

QUERIES = load_queries("documents")


class NotReady(BadInput):
    """This is not there yet. It comes when the document has been processed."""

    code = "NOT_READY"
    status = 409


@dataclass(frozen=True, slots=True)
class File:
    key: str
    content_type: str
    bytes: int
    sha256: str
    filename: str
    process_id: UUID


async def find_file(connection: Connection, owner: UUID, document: UUID, kind: str, name: str = "") -> File:
    """One file of the revision that is read; missing and foreign documents answer alike."""
    async with connection.cursor(row_factory=class_row(File)) as cursor:
        await cursor.execute(QUERIES.artifact, {"owner": owner, "document": document, "kind": kind, "name": name})
        file = await cursor.fetchone()
    if file is None:
        await show_document(connection, owner, document)
        raise NotReady
    return file


async def count_download(connection: Connection, document: UUID) -> None:
    """Told as an event too."""
    await connection.execute(QUERIES.count_download, {"document": document})
