"""The files of a document: its source as it came in, and what was made from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from psycopg.rows import class_row

from octavo.core.errors import BadInput
from octavo.database import Connection, load_queries
from octavo.library.documents import show_document

QUERIES = load_queries("documents")
FETCHED_ENDINGS = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/xhtml+xml": ".html",
    "text/html": ".html",
    "text/plain": ".txt",
}
# What jobs make and fetch; what people bring has its own place and its own name.
FETCHED_KEYS = "derived/"


class NotReady(BadInput):
    """Not available until the document has been processed."""

    code = "NOT_READY"
    status = 409


class NeverReady(NotReady):
    """There is none: no text was found, or the file could not be read."""


@dataclass(frozen=True, slots=True)
class File:
    key: str
    content_type: str
    bytes: int
    sha256: str
    filename: str
    process_id: UUID


async def find_file(connection: Connection, owner: UUID, document: UUID, kind: str, name: str = "") -> File:
    """One file of the revision that is read; missing and foreign documents answer alike.

    The source of a link is what it led to, as soon as that was fetched.
    """
    values = {"owner": owner, "document": document}
    async with connection.cursor(row_factory=class_row(File)) as cursor:
        if kind == "source":
            await cursor.execute(QUERIES.source_file, values)
        else:
            await cursor.execute(QUERIES.artifact, values | {"kind": kind, "name": name})
        file = await cursor.fetchone()
    if file is None:
        shown = await show_document(connection, owner, document)
        raise NotReady if shown.status == "pending" else NeverReady
    return replace(file, filename=_with_ending(file)) if kind == "source" else file


def _with_ending(file: File) -> str:
    """What was fetched has only a label; its type says how such files end."""
    ending = FETCHED_ENDINGS.get(file.content_type.partition(";")[0])
    label_only = file.key.startswith(FETCHED_KEYS) and ending and not file.filename.lower().endswith(ending)
    return f"{file.filename}{ending}" if label_only else file.filename


async def count_download(connection: Connection, document: UUID) -> None:
    """Told as an event too."""
    await connection.execute(QUERIES.count_download, {"document": document})
