"""The API for reading: pages with their regions, figures and pictures, search in the text, reading positions and
highlights.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Self
from uuid import UUID

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, model_validator

from octavo.core.http import Page
from octavo.extract.extracted import Box
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.library import highlights
from octavo.library.documents import show_document
from octavo.library.files import find_boxes, list_figures, list_pages, list_regions
from octavo.records.documents import (
    FigureView,
    Highlight,
    HighlightColour,
    PageView,
    ReadingPosition,
    RegionView,
    TextMatches,
)
from octavo.web.context.callers import EditCaller, ReadCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.page_pictures import HEADERS, MEDIA_TYPE, PICTURE, UNCHANGED, FigureRequest, PageRequest, Width
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.downloads import is_known
from octavo.web.http.parameters import (
    IF_GIVEN,
    WHOLE,
    Cursor,
    IfMatch,
    Limit,
    check_match,
    etag_of,
    lock_edit,
    problems,
)
from octavo.web.rooms.reader.text import MOST_WORDS, find_in_text, find_text, page_at

router = APIRouter(prefix="/api/v1/documents", tags=["documents"])
MOST_BOXES, MOST_PLACE = 100, 2**31 - 2
TextPlace = Annotated[int, Field(ge=0, le=MOST_PLACE), WHOLE]
_STORABLE = r"^[^\x00]*$"  # PostgreSQL cannot store the null character
_SIDE = r"[0-9]{1,6}(\.[0-9]{1,3})?"
WrittenBox = Annotated[str, Field(pattern=rf"^({_SIDE},){{3}}{_SIDE}$")]


Boxes = Annotated[
    list[WrittenBox],
    Query(
        default_factory=list,
        max_length=MOST_BOXES,
        description="A box to draw: left,top,right,bottom in points from the top left corner of the page.",
    ),
]


@router.get(
    "/{document}/pages/{number}.png",
    response_class=Response,
    responses={**PICTURE, **UNCHANGED, **problems(401, 404, 409, 413, 422)},
)
async def page_picture(
    services: ServicesOf,
    caller: ReadCaller,
    document: UUID,
    number: Annotated[int, Path(ge=1, le=1_000_000)],
    box: Boxes,
    width: Annotated[Width, Query(description="Maximum width in pixels.")] = Width.LARGE,
    chunk: Annotated[UUID | None, Query(description="Id of a chunk to mark on the page.")] = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Return a picture of a page of a PDF or image, optionally with boxes drawn on it."""
    wanted = PageRequest(caller.owner_id, document, number, width)
    boxes = [Box(*map(float, one.split(","))) for one in box]
    if chunk:
        async with services.database.connection() as connection:
            boxes += [Box(*one) for one in await find_boxes(connection, caller.owner_id, document, chunk, number)]
    picture = await services.pictures.find(wanted)
    etag = f'"{_digest(picture.sha256, boxes)}"'
    headers = {"etag": etag, **HEADERS}
    if is_known(etag, if_none_match):
        return Response(status_code=304, headers=headers)
    return await _answer(services, wanted, boxes, headers)


@router.get("/{document}/pages", responses=problems(401, 404, 422))
async def pages(
    services: ServicesOf, caller: ReadCaller, document: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[PageView]:
    """List the pages of a document. If the text of a page may be wrong, the reason is included."""
    async with services.database.connection() as connection:
        return await list_pages(connection, caller.owner_id, document, cursor=cursor, limit=limit)


@router.get("/{document}/regions", responses=problems(401, 404, 422))
async def regions(
    services: ServicesOf, caller: ReadCaller, document: UUID, page: Annotated[int, Query(ge=1, le=1_000_000)]
) -> Page[RegionView]:
    """List the regions of a page with their kinds, in reading order. Boxes are in points from the upper left corner."""
    async with services.database.connection() as connection:
        return Page(await list_regions(connection, caller.owner_id, document, page), None)


@router.get("/{document}/figures", responses=problems(401, 404, 422))
async def figures(
    services: ServicesOf, caller: ReadCaller, document: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[FigureView]:
    """List the figures of a document with their captions, in the order of the text."""
    async with services.database.connection() as connection:
        return await list_figures(connection, caller.owner_id, document, cursor=cursor, limit=limit)


@router.get(
    "/{document}/figures/{number}.png",
    response_class=Response,
    responses={**PICTURE, **UNCHANGED, **problems(401, 404, 409, 413, 422)},
)
async def figure_picture(
    services: ServicesOf,
    caller: ReadCaller,
    document: UUID,
    number: Annotated[int, Path(ge=1, le=1_000_000)],
    width: Annotated[Width, Query(description="Maximum width in pixels.")] = Width.LARGE,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Return the picture of a figure."""
    wanted = FigureRequest(caller.owner_id, document, number, width)
    picture = await services.pictures.find_figure(wanted)
    headers = {"etag": f'"{picture.sha256}"', **HEADERS}
    if is_known(headers["etag"], if_none_match):
        return Response(status_code=304, headers=headers)
    _, stream = await services.pictures.stream_figure(wanted)
    return StreamingResponse(
        stream, headers=headers | {"content-length": str(stream.info.bytes)}, media_type=MEDIA_TYPE
    )


async def _answer(services: Services, wanted: PageRequest, boxes: list[Box], headers: dict[str, str]) -> Response:
    if boxes:
        return Response(await services.pictures.mark(wanted, boxes), headers=headers, media_type=MEDIA_TYPE)
    _, stream = await services.pictures.stream(wanted)
    length = {"content-length": str(stream.info.bytes)}
    return StreamingResponse(stream, headers=headers | length, media_type=MEDIA_TYPE)


def _digest(picture: str, boxes: list[Box]) -> str:
    """Compute a checksum for the picture with its boxes, without rendering it."""
    return sha256(f"{picture} {boxes}".encode()).hexdigest() if boxes else picture


# Reading ------------------------------------------------------------------------------------------------------------


@router.get("/{document}/find", responses=problems(401, 404, 422))
async def find(
    services: ServicesOf,
    caller: ReadCaller,
    document: UUID,
    q: Annotated[str, Query(min_length=1, max_length=MOST_WORDS, description="Words to find, in this order.")],
    cursor: Annotated[
        str | None,
        Query(pattern=r"^[0-9]{1,9}$", description="`next_cursor` of the previous page.", examples=["1200"]),
        IF_GIVEN,
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
) -> TextMatches:
    """Find words in the text of a document, ignoring case, accents and white space."""
    async with services.database.connection() as connection:
        await show_document(connection, caller.owner_id, document)
    after = int(cursor) if cursor else -1
    return await find_in_text(services, caller.owner_id, document, q, after=after, limit=limit)


class PositionRequest(BaseModel):
    """The position where you stopped reading, as a character position in the document's Markdown."""

    model_config = ConfigDict(extra="forbid")

    start: TextPlace


@router.put("/{document}/position", status_code=204, responses=problems(401, 404, 422))
async def keep_position(services: ServicesOf, caller: ReadCaller, document: UUID, wanted: PositionRequest) -> None:
    """Save the reading position. The reading view opens the document at this position."""
    async with services.database.transaction() as connection:
        await highlights.keep_position(connection, caller.owner_id, document, caller.user_id, wanted.start)


@router.get("/{document}/position", responses=problems(401, 404, 422))
async def read_position(services: ServicesOf, caller: ReadCaller, document: UUID) -> ReadingPosition:
    """Return your reading position. It is 0 if you have not started reading."""
    async with services.database.connection() as connection:
        await show_document(connection, caller.owner_id, document)
        start = await highlights.read_position(connection, caller.owner_id, document, caller.user_id) or 0
        stored = await find_text(connection, caller.owner_id, document)
    return ReadingPosition(start, page_at(stored.sheets, start) if stored else None)


# Highlights ---------------------------------------------------------------------------------------------------------


marking = APIRouter(prefix="/api/v1", tags=["highlights"])
Note = Annotated[str, Field(max_length=highlights.MOST_NOTE, pattern=_STORABLE)]


class HighlightRequest(BaseModel):
    """A passage to highlight: its `quote`, or its `start` and `end` in the document's Markdown.

    If the text contains the quote several times, `text_before` (the text before the quote) selects one of the
    occurrences. If several occurrences match `text_before`, the one nearest to `start` is used.
    """

    model_config = ConfigDict(extra="forbid")

    quote: Annotated[str, Field(min_length=1, max_length=highlights.MOST_QUOTE, pattern=_STORABLE)] | None = None
    text_before: Annotated[str, Field(max_length=highlights.MOST_QUOTE, pattern=_STORABLE)] = ""
    start: TextPlace | None = None
    end: TextPlace | None = None
    colour: HighlightColour = "yellow"
    note: Note = ""

    @model_validator(mode="after")
    def _names_a_passage(self) -> Self:
        if self.quote is None and (self.start is None or self.end is None or self.end <= self.start):
            raise ValueError("quote is required, or start and a greater end")
        return self


class HighlightEdit(BaseModel):
    """Changes to a highlight. Only the fields that are sent are changed."""

    model_config = ConfigDict(extra="forbid")

    note: Note | None = None
    colour: HighlightColour | None = None


@marking.get("/documents/{document}/highlights", responses=problems(401, 404, 422))
async def document_highlights(
    services: ServicesOf, caller: ReadCaller, document: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[Highlight]:
    """List the highlights of a document in the order of its text. Lost highlights come last."""
    async with services.database.connection() as connection:
        return await highlights.list_highlights(connection, caller.owner_id, document, cursor=cursor, limit=limit)


@marking.post("/documents/{document}/highlights", status_code=201, responses=problems(400, 401, 403, 404, 409, 422))
async def add_highlight(
    services: ServicesOf,
    caller: EditCaller,
    document: UUID,
    wanted: HighlightRequest,
    idempotency: IdempotencyOf,
    response: Response,
) -> Highlight:
    """Highlight a passage of a document. White space and Markdown in the quote do not matter.

    The passage is found again when the document is processed again or has a new version.
    """
    new = highlights.NewHighlight(**wanted.model_dump())
    async with services.database.transaction() as connection:
        added = await highlights.add_highlight(connection, caller.owner_id, document, caller.user_id, new)
        await idempotency.keep(connection, added)
    response.headers["etag"] = highlight_etag(added)
    return added


@marking.get("/highlights", responses=problems(401, 422))
async def find_highlights(
    services: ServicesOf,
    caller: ReadCaller,
    q: Annotated[
        str | None,
        Query(max_length=500, pattern=_STORABLE, description="Words in the quote or the note."),
        IF_GIVEN,
    ] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Highlight]:
    """List the highlights of all your documents, newest first."""
    async with services.database.connection() as connection:
        return await highlights.find_highlights(connection, caller.owner_id, q, cursor=cursor, limit=limit)


@marking.patch("/highlights/{highlight}", responses=problems(400, 401, 403, 404, 422))
async def edit_highlight(
    services: ServicesOf,
    caller: EditCaller,
    highlight: UUID,
    wanted: HighlightEdit,
    response: Response,
    if_match: IfMatch = None,
) -> Highlight:
    """Change the note or the colour of a highlight."""
    async with services.database.transaction() as connection:
        if if_match is not None:
            await lock_edit(connection, if_match, highlight)
            # An edit that changes nothing returns the current values.
            now = await highlights.edit_highlight(connection, caller.owner_id, highlight, None, None)
            check_match(if_match, highlight_etag(now))
        edited = await highlights.edit_highlight(connection, caller.owner_id, highlight, wanted.note, wanted.colour)
    response.headers["etag"] = highlight_etag(edited)
    return edited


def highlight_etag(highlight: Highlight) -> str:
    return etag_of(highlight.note, highlight.colour)


@marking.delete("/highlights/{highlight}", status_code=204, responses=problems(401, 403, 404, 422))
async def delete_highlight(services: ServicesOf, caller: EditCaller, highlight: UUID) -> None:
    """Delete a highlight and its note."""
    async with services.database.transaction() as connection:
        await highlights.delete_highlight(connection, caller.owner_id, highlight)
