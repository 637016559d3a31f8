"""The pages that a link to a document or a collection opens.

They show only the shared documents, and nothing can be changed on them.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response, StreamingResponse

from octavo.core.errors import NotFound, OctavoError
from octavo.database import Connection, see_everything
from octavo.library.errors import NeverReady, NotReady
from octavo.library.files import find_file, is_pictured, known_figures
from octavo.library.shares import OpenShare, open_share, shared_document, shared_documents
from octavo.owners import Caller
from octavo.records.documents import Document
from octavo.web.context.callers import OptionalCaller
from octavo.web.context.page_pictures import FigureRequest, PageRequest
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import Cursor
from octavo.web.markdown.render import Block, render_plain, render_window
from octavo.web.markdown.windows import make_plan
from octavo.web.shell.frame import back_to, render


async def _show_to_everybody(caller: OptionalCaller) -> None:
    """Lift the restrictions of limited members for this request, so that the link shows the same documents to
    everybody.
    """
    del caller
    see_everything()


router = APIRouter(include_in_schema=False, prefix="/shared/{token}", dependencies=[Depends(_show_to_everybody)])
Token = Annotated[str, Path(max_length=200)]
Number = Annotated[int, Path(ge=1, le=1_000_000)]
Part = Annotated[int, Query(ge=1, le=1_000_000)]
MOST_BYTES = 64 << 20
PICTURE_WIDTH = 1600
PICTURES = 10
PRIVATE = {"cache-control": "no-store", "x-robots-tag": "noindex"}
_FIGURE = re.compile(r"\]\(figures/([1-9][0-9]{0,5})\.png\)")


class SignInFirst(OctavoError):
    """Sign in to open this link."""

    code = "UNAUTHENTICATED"
    status = 401


async def _open(connection: Connection, caller: Caller | None, token: str) -> OpenShare:
    """Return the share that a link opens. Raises `SignInFirst` if the caller must sign in to open it."""
    opened = await open_share(connection, token)
    if opened.sign_in and (caller is None or caller.is_anonymous):
        raise SignInFirst
    return opened


@router.get("")
async def first_page(
    request: Request, services: ServicesOf, caller: OptionalCaller, token: Token, cursor: Cursor = None
) -> Response:
    """Show the documents of a shared collection, or redirect to the shared document."""
    try:
        async with services.database.connection() as connection:
            opened = await _open(connection, caller, token)
            page = await shared_documents(connection, opened, cursor)
    except SignInFirst:
        return back_to(f"/sign-in?{urlencode({'next': f'/shared/{token}'})}")
    if opened.document_id:
        return back_to(f"/shared/{token}/{opened.document_id}")
    more = f"/shared/{token}?{urlencode({'cursor': page.next_cursor})}" if page.next_cursor else None
    values = {"name": opened.collection, "documents": page.items, "more": more, "token": token}
    return _render(request, "shared_collection.html", **values)


@router.get("/{document}")
async def document_page(
    request: Request, services: ServicesOf, caller: OptionalCaller, token: Token, document: UUID, part: Part = 1
) -> Response:
    """Show one window (section) of the text of a shared document."""
    async with services.database.connection() as connection:
        opened = await _open(connection, caller, token)
        found = await shared_document(connection, opened, document)
    markdown = await _read_text(services, opened, document)
    text = (
        await _open_part(services, opened, document, markdown, part, f"/shared/{token}/{document}")
        if markdown
        else None
    )
    values = {"document": found, "text": text, "token": token, "collection": opened.collection}
    return _render(request, "shared_document.html", **values, pictured=is_pictured(found))


@dataclass(frozen=True, slots=True)
class TextPart:
    """One window (section) of a text, as HTML."""

    number: int
    parts: int
    blocks: list[Block]


async def _open_part(
    services: Services, opened: OpenShare, document: UUID, markdown: str, part: int, here: str
) -> TextPart:
    """Render one window (section) of the text as HTML.

    The paths of its pictures begin with `here`.
    """
    plan = await asyncio.to_thread(make_plan, markdown, [])
    window = plan.windows[min(part, len(plan.windows)) - 1]
    start = max(window.start, plan.front_end)
    text = markdown[start : window.end]
    numbers = sorted({int(number) for number in _FIGURE.findall(text)})
    async with services.database.connection() as connection:
        known = await known_figures(connection, opened.owner_id, document, numbers)
    shown = {number: replace(one, path=f"{here}/figures/{number}.png") for number, one in known.items()}
    if window.plain:
        blocks = await asyncio.to_thread(render_plain, text, start)
    else:
        blocks = await asyncio.to_thread(render_window, text, start, plan.references, shown)
    return TextPart(window.number, len(plan.windows), blocks)


def _render(request: Request, template: str, **values: object) -> Response:
    """Render a page that a link opens. A response header tells search engines not to index the page."""
    answer = render(request, template, None, 200, **values)
    answer.headers["x-robots-tag"] = "noindex"
    return answer


async def _read_text(services: Services, opened: OpenShare, document: UUID) -> str | None:
    try:
        async with services.database.connection() as connection:
            file = await find_file(connection, opened.owner_id, document, "markdown")
    except (NotReady, NeverReady):
        return None
    return (await services.bucket.read(file.key, limit=MOST_BYTES)).decode()


@router.get("/{document}/pages")
async def picture_pages(
    request: Request, services: ServicesOf, caller: OptionalCaller, token: Token, document: UUID, first: Part = 1
) -> Response:
    """Show pictures of the pages of a document, a limited number at a time."""
    async with services.database.connection() as connection:
        opened = await _open(connection, caller, token)
        found = await shared_document(connection, opened, document)
    if not is_pictured(found) or first > _page_count(found):
        raise NotFound
    last = min(first + PICTURES - 1, _page_count(found))
    more = last + 1 if last < _page_count(found) else None
    return _render(request, "shared_pages.html", document=found, numbers=range(first, last + 1), token=token, more=more)


def _page_count(document: Document) -> int:
    return document.page_count or 0


@router.get("/{document}/pages/{number}.png")
async def page_picture(
    services: ServicesOf, caller: OptionalCaller, token: Token, document: UUID, number: Number
) -> Response:
    opened = await _shown(services, caller, token, document)
    _, stream = await services.pictures.stream(PageRequest(opened.owner_id, document, number, PICTURE_WIDTH))
    return StreamingResponse(stream, media_type="image/png", headers=PRIVATE)


@router.get("/{document}/figures/{number}.png")
async def figure_picture(
    services: ServicesOf, caller: OptionalCaller, token: Token, document: UUID, number: Number
) -> Response:
    opened = await _shown(services, caller, token, document)
    wanted = FigureRequest(opened.owner_id, document, number, PICTURE_WIDTH)
    _, stream = await services.pictures.stream_figure(wanted)
    return StreamingResponse(stream, media_type="image/png", headers=PRIVATE)


@router.get("/{document}/markdown")
async def markdown(services: ServicesOf, caller: OptionalCaller, token: Token, document: UUID) -> Response:
    """Download the text of a document."""
    opened = await _shown(services, caller, token, document)
    text = await _read_text(services, opened, document)
    if text is None:
        raise NotFound
    headers = {**PRIVATE, "content-disposition": 'attachment; filename="document.md"'}
    return Response(text, media_type="text/markdown; charset=utf-8", headers=headers)


async def _shown(services: Services, caller: Caller | None, token: str, document: UUID) -> OpenShare:
    """Return the share that a link opens. Raises `NotFound` if it does not include this document."""
    async with services.database.connection() as connection:
        opened = await _open(connection, caller, token)
        await shared_document(connection, opened, document)
    return opened
