"""The files of a document: its source, an unlocked copy of the source, and its artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from psycopg.rows import class_row

from octavo.core.errors import BadInput, NotFound
from octavo.core.ids import new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.library.changes import lock_documents
from octavo.library.documents import show_document
from octavo.library.errors import NeverReady, NotReady, SourceGone
from octavo.storage import Stored

QUERIES = load_queries("documents")
UNLOCKED = load_queries("unlocked")
FETCHED_ENDINGS = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/xhtml+xml": ".html",
    "text/html": ".html",
    "text/plain": ".txt",
}
# The key prefix of files that jobs create or fetch. Uploads have another prefix.
FETCHED_KEYS = "derived/"


@dataclass(frozen=True, slots=True)
class File:
    key: str
    content_type: str
    bytes: int
    sha256: str
    filename: str
    process_id: UUID


async def find_file(connection: Connection, owner: UUID, document: UUID, kind: str, name: str = "") -> File:
    """Find a file of the current revision. Missing documents and other accounts' documents raise the same error.

    For a link that has been fetched, the source is the fetched page.
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


async def find_sources(connection: Connection, owner: UUID, documents: Sequence[UUID]) -> list[File]:
    """Find the sources of many documents, and count the downloads. Documents without a stored file are left out."""
    async with connection.cursor(row_factory=class_row(File)) as cursor:
        await cursor.execute(QUERIES.source_files, {"owner": owner, "documents": list(documents)})
        files = await cursor.fetchall()
    await connection.execute(QUERIES.count_downloads, {"owner": owner, "documents": list(documents)})
    return [replace(file, filename=_with_ending(file)) for file in files]


def _with_ending(file: File) -> str:
    """Return the file name with an extension.

    Fetched files only have a label, so their extension is derived from the content type.
    """
    ending = FETCHED_ENDINGS.get(file.content_type.partition(";")[0])
    label_only = file.key.startswith(FETCHED_KEYS) and ending and not file.filename.lower().endswith(ending)
    return f"{file.filename}{ending}" if label_only else file.filename


async def count_download(connection: Connection, document: UUID) -> None:
    """Count a download of a document and record an event."""
    await connection.execute(QUERIES.count_download, {"document": document})


async def find_locked(connection: Connection, owner: UUID, document: UUID) -> str:
    """Return the storage key of a PDF that was uploaded as a file.

    Raises `BadInput` for other types, because passwords are supported only for PDFs.
    """
    rows = await fetch_rows(connection, UNLOCKED.source, {"owner": owner, "document": document})
    if not rows:
        raise NotFound(f"Document {document}.")
    if rows[0]["source_type"] != "pdf":
        raise BadInput("Passwords are supported only for PDFs that were added as files.")
    if rows[0]["key"] is None:
        raise SourceGone
    return rows[0]["key"]


async def keep_unlocked(connection: Connection, owner: UUID, document: UUID, stored: Stored) -> list[str]:
    """Save an unlocked copy of the file. The document is processed from this copy from now on.

    Returns the storage keys of earlier copies, to be deleted after the commit.
    """
    await lock_documents(connection, owner, [document])
    before = await fetch_rows(connection, UNLOCKED.delete_unlocked, {"document": document})
    await connection.execute(
        UNLOCKED.insert_object, {"key": stored.key, "bytes": stored.bytes, "sha256": stored.sha256}
    )
    await connection.execute(UNLOCKED.insert_unlocked, {"id": new_id(), "document": document, "key": stored.key})
    unused = await fetch_rows(connection, UNLOCKED.delete_unused_objects, {"keys": [row["key"] for row in before]})
    return [row["key"] for row in unused]
