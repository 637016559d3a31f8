"""Finds the files of a document: its source, an unlocked copy of the source, and its artifacts.

Also finds the files from which images of pages and figures are made, and stores these images.

An image is made only when it is first requested, because most figures in a long document are never viewed, and drawing
one takes as long as reading twenty pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, TypeAlias
from uuid import UUID

from psycopg.rows import class_row

from octavo.core.errors import AlreadyStored, BadInput, NoPagePictures, NotFound, PageMissing
from octavo.core.http import Page
from octavo.core.types import new_id
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.library.changes import lock_documents
from octavo.library.documents import show_document
from octavo.library.errors import NeverReady, NotReady, SourceGone
from octavo.records.documents import Document, FigureView, PageView, RegionView
from octavo.storage import Bucket, Stored

QUERIES = load_queries("documents")
UNLOCKED = load_queries("unlocked")
FETCHED_ENDINGS = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/xhtml+xml": ".html",
    "text/html": ".html",
    "text/plain": ".txt",
}
# The width of the pictures of figures in exports, in pixels.
FIGURE_WIDTH = 1600
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
    """Find a file of the current revision. Missing documents and those of other accounts cause the same error.

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
    """Find the sources of many documents, and increase their download counts.

    Documents without a stored file are left out.
    """
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
    """Save an unlocked copy of the file. From then on, the document is processed from this copy.

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


PICTURE_QUERIES = load_queries("pictures")
PICTURED = frozenset({"pdf", "image"})
KEPT_DAYS = 30
AT_ONCE = 500
MOST_DIGITS = 9
Box = tuple[float, float, float, float]
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Picture:
    key: str
    sha256: str


@dataclass(frozen=True, slots=True)
class PageSource:
    """A page and its file. `key` is the storage key of the file.

    `page_width` is in points. It is None until the file has been extracted.
    """

    source_type: str
    key: str
    revision: int
    page_width: float | None
    picture: Picture | None


def is_pictured(document: Document) -> bool:
    """Whether page images of a document are shown. This is only possible after extraction has counted the pages."""
    return document.source_type in PICTURED and bool(document.page_count) and not document.deleted_at


def picture_name(number: int, width: int) -> str:
    return f"{number}-{width}"


async def find_page(connection: Connection, owner: UUID, document: UUID, number: int, width: int) -> PageSource:
    """Find a page in an account's document.

    Before extraction the number of pages is unknown, so a missing page is detected only when it is rendered.
    """
    values = {"owner": owner, "document": document, "number": number, "name": picture_name(number, width)}
    rows = await fetch_rows(connection, PICTURE_QUERIES.page, values)
    if not rows:
        raise NotFound
    row = rows[0]
    if row["source_type"] not in PICTURED:
        raise NoPagePictures
    if row["page_count"] is not None and number > row["page_count"]:
        raise PageMissing(f"The last page is {row['page_count']}.")
    picture = Picture(row["picture_key"], row["picture_sha256"]) if row["picture_key"] else None
    return PageSource(row["source_type"], row["key"], row["revision"], row["page_width"], picture)


async def keep_picture(connection: Connection, document: UUID, revision: int, name: str, stored: Stored) -> list[str]:
    """Insert the database row of a page image.

    If another request has already stored the image, or the document was deleted, no row is inserted. In that case,
    returns the storage key of the unused image, which must be deleted after the commit.
    """
    values = {"key": stored.key, "bytes": stored.bytes, "sha256": stored.sha256}
    await connection.execute(PICTURE_QUERIES.insert_object, values)
    place = {"id": new_id(), "document": document, "revision": revision, "name": name, "key": stored.key}
    await connection.execute(PICTURE_QUERIES.insert_picture, place)
    return await _forget(connection, [stored.key])


async def find_boxes(connection: Connection, owner: UUID, document: UUID, chunk: UUID, number: int) -> list[Box]:
    """Return the areas on a page that contain the text of a chunk."""
    rows = await fetch_rows(connection, PICTURE_QUERIES.boxes, {"owner": owner, "document": document, "chunk": chunk})
    if not rows:
        raise NotFound(f"Chunk {chunk}.")
    boxes: list[list[Any]] = rows[0]["boxes"]
    return [(left, top, right, bottom) for page, left, top, right, bottom in boxes if page == number]


async def forget_pictures(database: Database, bucket: Bucket, days: int = KEPT_DAYS) -> int:
    """Delete old page images. They are rendered again when needed."""
    forgotten = 0
    while True:
        async with database.transaction() as connection:
            rows = await fetch_rows(connection, PICTURE_QUERIES.delete_old_pictures, {"days": days, "most": AT_ONCE})
            unused = await _forget(connection, [row["key"] for row in rows])
        await bucket.delete(unused)
        forgotten += len(rows)
        if len(rows) < AT_ONCE:
            return forgotten


async def _forget(connection: Connection, keys: Sequence[str]) -> list[str]:
    rows = await fetch_rows(connection, PICTURE_QUERIES.delete_unused_objects, {"keys": list(keys)})
    return [row["key"] for row in rows]


# Pages, regions and figures -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShownFigure:
    """The path of a figure's picture, and its caption."""

    path: str
    caption: str


@dataclass(frozen=True, slots=True)
class FigureSource:
    """A figure and its file.

    The figure is either an area of a page (`page` and `box`) or a file embedded in the document's file (`member`).
    """

    source_type: str
    key: str
    revision: int
    page: int | None
    box: Sequence[float] | None
    member: str | None
    picture: Picture | None


def figure_path(document: UUID, number: int) -> str:
    return f"/api/v1/documents/{document}/figures/{number}.png"


async def list_figures(
    connection: Connection, owner: UUID, document: UUID, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[FigureView]:
    """List a document's figures in text order."""
    await show_document(connection, owner, document)
    values = {"owner": owner, "document": document, "after": _number(cursor), "most": limit + 1}
    rows = await fetch_rows(connection, PICTURE_QUERIES.figures, values)
    figures = [FigureView(url=figure_path(document, row["number"]), **_with_box(row)) for row in rows[:limit]]
    return Page(figures, str(figures[-1].number) if len(rows) > limit else None)


async def list_pages(
    connection: Connection, owner: UUID, document: UUID, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[PageView]:
    """List a document's pages. The list is empty if the file type has no pages."""
    await show_document(connection, owner, document)
    values = {"owner": owner, "document": document, "after": _number(cursor), "most": limit + 1}
    rows = await fetch_rows(connection, PICTURE_QUERIES.pages, values)
    pages = [PageView(**row) for row in rows[:limit]]
    return Page(pages, str(pages[-1].number) if len(rows) > limit else None)


async def list_regions(connection: Connection, owner: UUID, document: UUID, page: int) -> list[RegionView]:
    """List the regions of a page in reading order. Only files whose page layout was analysed have regions."""
    await show_document(connection, owner, document)
    rows = await fetch_rows(connection, PICTURE_QUERIES.regions, {"owner": owner, "document": document, "page": page})
    return [RegionView(page=page, **_with_box(row)) for row in rows]


async def known_figures(
    connection: Connection, owner: UUID, document: UUID, numbers: Sequence[int]
) -> dict[int, ShownFigure]:
    """Map the given figure numbers to figures in the document. Unknown numbers are left out."""
    values = {"owner": owner, "document": document, "numbers": list(numbers)}
    rows = await fetch_rows(connection, PICTURE_QUERIES.known_figures, values) if numbers else []
    return {row["number"]: ShownFigure(figure_path(document, row["number"]), row["caption"]) for row in rows}


async def first_figures(connection: Connection, documents: Sequence[UUID]) -> dict[UUID, str]:
    """Return the path of the picture of each document's first figure. For a book, this is the cover."""
    rows = (
        await fetch_rows(connection, PICTURE_QUERIES.first_figures, {"documents": list(documents)}) if documents else []
    )
    return {row["document_id"]: figure_path(row["document_id"], row["number"]) for row in rows}


async def find_figure(connection: Connection, owner: UUID, document: UUID, number: int, width: int) -> FigureSource:
    """Find a figure in an account's document. If a picture of this width is stored, the result includes it."""
    values = {"owner": owner, "document": document, "number": number, "name": picture_name(number, width)}
    rows = await fetch_rows(connection, PICTURE_QUERIES.figure, values)
    if not rows:
        raise NotFound(f"Figure {number}.")
    row = dict(rows[0])
    key, sha256 = row.pop("picture_key"), row.pop("picture_sha256")
    return FigureSource(picture=Picture(key, sha256) if key else None, **row)


async def keep_figure(connection: Connection, document: UUID, revision: int, name: str, stored: Stored) -> list[str]:
    """Insert the database row of a figure's picture.

    If another request has already stored the picture, or the document's text was replaced, no row is inserted and the
    storage key of the unused picture is returned. Delete that object after the commit.
    """
    values = {"key": stored.key, "bytes": stored.bytes, "sha256": stored.sha256}
    await connection.execute(PICTURE_QUERIES.insert_object, values)
    place = {"id": new_id(), "document": document, "revision": revision, "name": name, "key": stored.key}
    await connection.execute(PICTURE_QUERIES.insert_figure, place)
    rows = await fetch_rows(connection, PICTURE_QUERIES.delete_unused_objects, {"keys": [stored.key]})
    return [row["key"] for row in rows]


async def store_figure(
    database: Database, bucket: Bucket, document: UUID, revision: int, name: str, drawn: bytes
) -> None:
    """Store the picture of a figure with its document.

    The file is named after the checksum of the picture, so that identical pictures share a file.
    """
    digest = sha256(drawn).hexdigest()
    key = f"figures/{document}/{revision}/{digest}.png"
    try:
        stored = await bucket.put(key, drawn)
    except AlreadyStored:
        stored = Stored(key, len(drawn), digest)
    async with database.transaction() as connection:
        unused = await keep_figure(connection, document, revision, name, stored)
    await bucket.delete(unused)


def _with_box(row: Row) -> Row:
    return {**row, "box": tuple(row["box"]) if row["box"] else None}


def _number(cursor: str | None) -> int:
    if not cursor:
        return 0
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > MOST_DIGITS:
        raise BadInput("Invalid cursor. Use the next_cursor of the previous page.")
    return int(cursor)
