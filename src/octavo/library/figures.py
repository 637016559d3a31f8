"""Pages, regions and figures of a document, and the stored pictures of its figures.

A picture is made when it is first requested. Most figures in a long document are never viewed, and drawing one takes as
long as reading twenty pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

from octavo.core.errors import BadInput, NotFound
from octavo.core.ids import new_id
from octavo.core.pagination import Page
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.library.documents import show_document
from octavo.library.pictures import Picture, picture_name
from octavo.records.documents import FigureView, PageView, RegionView
from octavo.storage import Stored

QUERIES = load_queries("pictures")
MOST_DIGITS = 9
Row: TypeAlias = dict[str, Any]


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
    rows = await fetch_rows(connection, QUERIES.figures, values)
    figures = [FigureView(url=figure_path(document, row["number"]), **_with_box(row)) for row in rows[:limit]]
    return Page(figures, str(figures[-1].number) if len(rows) > limit else None)


async def list_pages(
    connection: Connection, owner: UUID, document: UUID, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[PageView]:
    """List a document's pages. The list is empty if the file type has no pages."""
    await show_document(connection, owner, document)
    values = {"owner": owner, "document": document, "after": _number(cursor), "most": limit + 1}
    rows = await fetch_rows(connection, QUERIES.pages, values)
    pages = [PageView(**row) for row in rows[:limit]]
    return Page(pages, str(pages[-1].number) if len(rows) > limit else None)


async def list_regions(connection: Connection, owner: UUID, document: UUID, page: int) -> list[RegionView]:
    """List the regions of a page in reading order. Only files that are read by their layout have regions."""
    await show_document(connection, owner, document)
    rows = await fetch_rows(connection, QUERIES.regions, {"owner": owner, "document": document, "page": page})
    return [RegionView(page=page, **_with_box(row)) for row in rows]


async def known_figures(
    connection: Connection, owner: UUID, document: UUID, numbers: Sequence[int]
) -> dict[int, ShownFigure]:
    """Map the given figure numbers to figures in the document. Unknown numbers are left out."""
    values = {"owner": owner, "document": document, "numbers": list(numbers)}
    rows = await fetch_rows(connection, QUERIES.known_figures, values) if numbers else []
    return {row["number"]: ShownFigure(figure_path(document, row["number"]), row["caption"]) for row in rows}


async def first_figures(connection: Connection, documents: Sequence[UUID]) -> dict[UUID, str]:
    """Return the path of a thumbnail of each document's first figure."""
    rows = await fetch_rows(connection, QUERIES.first_figures, {"documents": list(documents)}) if documents else []
    return {row["document_id"]: f"{figure_path(row['document_id'], row['number'])}?width=120" for row in rows}


async def find_figure(connection: Connection, owner: UUID, document: UUID, number: int, width: int) -> FigureSource:
    """Find a figure in an account's document. The result includes its stored picture of this width, if there is one."""
    values = {"owner": owner, "document": document, "number": number, "name": picture_name(number, width)}
    rows = await fetch_rows(connection, QUERIES.figure, values)
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
    await connection.execute(QUERIES.insert_object, values)
    place = {"id": new_id(), "document": document, "revision": revision, "name": name, "key": stored.key}
    await connection.execute(QUERIES.insert_figure, place)
    rows = await fetch_rows(connection, QUERIES.delete_unused_objects, {"keys": [stored.key]})
    return [row["key"] for row in rows]


def _with_box(row: Row) -> Row:
    return {**row, "box": tuple(row["box"]) if row["box"] else None}


def _number(cursor: str | None) -> int:
    if not cursor:
        return 0
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > MOST_DIGITS:
        raise BadInput("Invalid cursor. Use the next_cursor of the previous page.")
    return int(cursor)
