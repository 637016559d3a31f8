"""Pages for highlights: the list next to the text, the page with all highlights, and the forms on both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from octavo.core.texts import mark
from octavo.database import Connection
from octavo.library.documents import show_document
from octavo.library.highlights import (
    MOST_NOTE,
    MOST_QUOTE,
    NewHighlight,
    add_highlight,
    delete_highlight,
    edit_highlight,
    find_highlights,
    list_highlights,
)
from octavo.owners.grants import writable_collections
from octavo.records.documents import Highlight, HighlightColour
from octavo.web.context.callers import EditCaller, ReadCaller
from octavo.web.context.services import ServicesOf
from octavo.web.shell.forms import Back, done, read_id
from octavo.web.shell.frame import Frame, FrameFor, back_to, render

router = APIRouter(include_in_schema=False)
HighlightsFrame = Annotated[Frame, Depends(FrameFor("highlights"))]
COLOURS: tuple[HighlightColour, ...] = get_args(HighlightColour)
COLOUR_NAMES = (mark("Yellow"), mark("Green"), mark("Blue"), mark("Pink"))
# The most highlights that the reader marks in a text, and the most on one page of the list.
MOST_MARKED, MOST_LISTED = 500, 50


async def list_marked(connection: Connection, owner: UUID, document: UUID) -> list[Highlight]:
    return (await list_highlights(connection, owner, document, limit=MOST_MARKED)).items


# All highlights ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MarkedDocument:
    """A document in the list of highlights, with its highlights on this page of the list."""

    document_id: UUID
    title: str
    items: list[Highlight] = field(default_factory=list[Highlight])


@router.get("/highlights")
async def highlights_page(
    request: Request,
    services: ServicesOf,
    frame: HighlightsFrame,
    q: Annotated[str, Query(max_length=500)] = "",
    cursor: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    """Show the highlights of all documents, newest first, grouped by document."""
    words = q.replace("\0", "").strip()
    async with services.database.connection() as connection:
        found = await find_highlights(
            connection, frame.caller.owner_id, words, cursor=cursor or None, limit=MOST_LISTED
        )
    more = f"/highlights?{urlencode({'q': words, 'cursor': found.next_cursor})}" if found.next_cursor else None
    groups = group(found.items)
    return render(request, "highlights.html", frame, groups=groups, q=words, more=more, cursor=cursor)


def group(items: list[Highlight]) -> list[MarkedDocument]:
    groups: dict[UUID, MarkedDocument] = {}
    for one in items:
        groups.setdefault(one.document_id, MarkedDocument(one.document_id, one.title)).items.append(one)
    return list(groups.values())


@router.post("/actions/highlights/{highlight}/delete")
async def delete(
    request: Request, services: ServicesOf, caller: EditCaller, highlight: UUID, back: Back = "/highlights"
) -> Response:
    async with services.database.transaction() as connection:
        await delete_highlight(connection, caller.owner_id, highlight)
    return done(request, back)


# Next to the text --------------------------------------------------------------------------------------------------


@router.get("/documents/{document}/highlights")
async def highlights_fragment(request: Request, services: ServicesOf, caller: ReadCaller, document: UUID) -> Response:
    """Return the highlights panel as an HTML fragment."""
    async with services.database.connection() as connection:
        found = await show_document(connection, caller.owner_id, document)
        marked = await list_marked(connection, caller.owner_id, document)
        changes = caller.limited and found.collection in await writable_collections(connection, caller)
    return render(
        request,
        "reader_highlights.html",
        None,
        d=found,
        highlights=marked,
        colours=COLOURS,
        may_write=caller.may_write or (caller.may_edit and changes),
    )


@router.post("/documents/{document}/highlights")
async def mark_passage(
    services: ServicesOf,
    caller: EditCaller,
    document: str,
    quote: Annotated[str, Form(max_length=MOST_QUOTE)],
    colour: Annotated[HighlightColour, Form()] = "yellow",
    note: Annotated[str, Form(max_length=MOST_NOTE)] = "",
) -> Response:
    """Highlight a passage, for browsers without scripts."""
    ident = read_id(document)
    new = NewHighlight(quote.replace("\0", ""), colour=colour, note=_clean(note))
    async with services.database.transaction() as connection:
        made = await add_highlight(connection, caller.owner_id, ident, caller.user_id, new)
    return back_to(f"/documents/{ident}?c={made.chunk_id}&panel=highlights#c-{made.chunk_id}")


@router.post("/documents/{document}/highlights/{highlight}")
async def change_highlight(
    services: ServicesOf,
    caller: EditCaller,
    document: str,
    highlight: UUID,
    verb: Annotated[Literal["save", "delete"], Form()],
    colour: Annotated[HighlightColour | None, Form()] = None,
    note: Annotated[str, Form(max_length=MOST_NOTE)] = "",
) -> Response:
    """Change or delete a highlight, for browsers without scripts."""
    async with services.database.transaction() as connection:
        if verb == "delete":
            await delete_highlight(connection, caller.owner_id, highlight)
        else:
            await edit_highlight(connection, caller.owner_id, highlight, _clean(note), colour)
    return back_to(f"/documents/{read_id(document)}?panel=highlights")


def _clean(note: str) -> str:
    """Normalise the line breaks of a note from a form. Browsers send them as CR LF."""
    return note.replace("\0", "").replace("\r\n", "\n").strip()
