"""The split view: two documents side by side, each opened at a passage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from octavo.connect.connections import show_connection
from octavo.core.errors import NotFound
from octavo.database import Connection
from octavo.library.documents import show_document
from octavo.records.documents import Document
from octavo.records.search import Connection as ConnectionView
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.reader.pages import Position, language_tag, open_document
from octavo.web.rooms.reader.text import ChunkPosition, OpenText, find_place, format_moment, moment_address
from octavo.web.shell.forms import read_number
from octavo.web.shell.frame import LibraryFrame, render

router = APIRouter(include_in_schema=False)
Short = Annotated[str, Field(max_length=100)]
SIDES = ("left", "right")


class SplitQuery(BaseModel):
    """Query parameters of the split view. `left` and `right` are chunks of the two documents.

    `connection` is a connection between them, whose quotes are marked. `from_left` and `from_right` are character
    positions in the two texts, which select the windows to show. Without them, the windows with the two chunks are
    shown.
    """

    left: Short = ""
    right: Short = ""
    connection: UUID | None = None
    from_left: Short = ""
    from_right: Short = ""

    def address(self, one: UUID, other: UUID, **changed: object) -> str:
        """Return the path of this view with some query parameters changed."""
        query = {name: value for name, value in (self.model_dump() | changed).items() if value not in {None, ""}}
        return f"/documents/{one}/beside/{other}" + (f"?{urlencode(query)}" if query else "")

    def swapped(self) -> SplitQuery:
        return SplitQuery(
            left=self.right,
            right=self.left,
            connection=self.connection,
            from_left=self.from_right,
            from_right=self.from_left,
        )


@dataclass(frozen=True, slots=True)
class Pane:
    """One of the two documents. It is opened at the chunk in `cited`, in which the text of `quote` is marked."""

    side: str
    document: Document
    cited: ChunkPosition | None
    quote: str
    text: OpenText | None

    @property
    def page(self) -> int | None:
        return self.text.plan.page_at(self.cited.start) if self.text and self.cited else None

    @property
    def language(self) -> str | None:
        return language_tag(self.document.language)

    def moment_address(self, seconds: float | None) -> str | None:
        return moment_address(self.document, seconds)

    @property
    def address(self) -> str:
        """The path of the normal reading page for this document, opened at the same chunk."""
        place = f"?c={self.cited.id}#c-{self.cited.id}" if self.cited else ""
        return f"/documents/{self.document.id}{place}"


@router.get("/documents/{document}/beside/{other}")
async def split_view(
    request: Request,
    services: ServicesOf,
    frame: LibraryFrame,
    document: UUID,
    other: UUID,
    asked: Annotated[SplitQuery, Query()],
) -> Response:
    """Show two documents side by side, each opened at a passage. The URL contains both positions."""
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        joined = await _connection(connection, owner, asked.connection, document, other)
    quotes = (joined.source.quote, joined.target.quote) if joined else ("", "")
    chunks = (asked.left or _chunk(joined, 0), asked.right or _chunk(joined, 1))
    starts = (asked.from_left, asked.from_right)
    panes = [
        await _pane(services, owner, side, ident, chunk, quote, start)
        for side, ident, chunk, quote, start in zip(SIDES, (document, other), chunks, quotes, starts, strict=True)
    ]
    return render(
        request,
        "beside.html",
        frame,
        panes=panes,
        joined=joined,
        address=partial(asked.address, document, other),
        swapped=asked.swapped().address(other, document),
        format_moment=format_moment,
    )


async def _connection(
    connection: Connection, owner: UUID, ident: UUID | None, document: UUID, other: UUID
) -> ConnectionView | None:
    """Return the connection between the two documents, with the left document as its source.

    Returns None if the connection no longer exists or connects other documents.
    """
    try:
        found = await show_connection(connection, owner, ident) if ident else None
    except NotFound:
        return None
    if found is None or {found.source.document_id, found.target.document_id} != {document, other}:
        return None
    return found if found.source.document_id == document else _turned(found)


def _turned(one: ConnectionView) -> ConnectionView:
    return ConnectionView(
        one.id, one.engine, one.strength, one.status, one.target, one.source, one.explanation, one.kind, one.made_by
    )


def _chunk(joined: ConnectionView | None, side: int) -> str:
    return str((joined.source, joined.target)[side].chunk_id) if joined else ""


async def _pane(services: Services, owner: UUID, side: str, document: UUID, chunk: str, quote: str, start: str) -> Pane:
    async with services.database.connection() as connection:
        shown = await show_document(connection, owner, document)
        cited = await find_place(connection, owner, document, chunk)
    position = read_number(start)
    wanted = Position(at=position if position is not None else cited.start if cited else None)
    _, text = await open_document(services, owner, document, wanted)
    return Pane(side, shown, cited, quote, text)
