"""Page images: which documents have them, their source files, and the stored images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from octavo.core.errors import NoPagePictures, NotFound, PageMissing
from octavo.core.ids import new_id
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.records.documents import Document
from octavo.storage import Bucket, Stored

QUERIES = load_queries("pictures")
PICTURED = frozenset({"pdf", "image"})
KEPT_DAYS = 30
AT_ONCE = 500
Box = tuple[float, float, float, float]


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
    rows = await fetch_rows(connection, QUERIES.page, values)
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

    If another request has already stored the image, or the document was deleted, no row is inserted and the storage key
    of the unused image is returned. Delete that object after the commit.
    """
    values = {"key": stored.key, "bytes": stored.bytes, "sha256": stored.sha256}
    await connection.execute(QUERIES.insert_object, values)
    place = {"id": new_id(), "document": document, "revision": revision, "name": name, "key": stored.key}
    await connection.execute(QUERIES.insert_picture, place)
    return await _forget(connection, [stored.key])


async def find_boxes(connection: Connection, owner: UUID, document: UUID, chunk: UUID, number: int) -> list[Box]:
    """Return the areas on a page that contain the text of a chunk."""
    rows = await fetch_rows(connection, QUERIES.boxes, {"owner": owner, "document": document, "chunk": chunk})
    if not rows:
        raise NotFound(f"Chunk {chunk}.")
    boxes: list[list[Any]] = rows[0]["boxes"]
    return [(left, top, right, bottom) for page, left, top, right, bottom in boxes if page == number]


async def forget_pictures(database: Database, bucket: Bucket, days: int = KEPT_DAYS) -> int:
    """Delete old page images. They are rendered again when needed."""
    forgotten = 0
    while True:
        async with database.transaction() as connection:
            rows = await fetch_rows(connection, QUERIES.delete_old_pictures, {"days": days, "most": AT_ONCE})
            unused = await _forget(connection, [row["key"] for row in rows])
        await bucket.delete(unused)
        forgotten += len(rows)
        if len(rows) < AT_ONCE:
            return forgotten


async def _forget(connection: Connection, keys: Sequence[str]) -> list[str]:
    rows = await fetch_rows(connection, QUERIES.delete_unused_objects, {"keys": list(keys)})
    return [row["key"] for row in rows]
