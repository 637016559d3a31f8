"""Exports a document as a JSON or ZIP file, or many files as one ZIP file, and makes temporary links to files.

Also contains the settings page for exporting the library or a collection, which explains how to import an export.
"""

from __future__ import annotations

import codecs
import itertools
import json
import tempfile
import zipfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import IO, Annotated, Any, Literal, cast
from urllib.parse import urlencode, urljoin
from uuid import UUID

import structlog
from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from octavo.connect.connections import list_connections
from octavo.convert.conversions import export_conversions
from octavo.core.errors import NotFound, OctavoError, PageNotDrawn
from octavo.core.http import Page
from octavo.jobs.queue import UNFINISHED
from octavo.jobs.views import MOST_LIMIT
from octavo.library.bulk import in_batches
from octavo.library.collections import list_collections
from octavo.library.documents import Filters, list_chunks, show_document
from octavo.library.errors import NotReady, StillProcessed
from octavo.library.exporting import ExportOptions, begin_export, newest_export
from octavo.library.facts import list_facts
from octavo.library.files import find_file, find_sources, list_figures
from octavo.library.highlights import list_highlights
from octavo.records.documents import Document
from octavo.records.exports import KINDS
from octavo.storage import attachment_header
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.page_pictures import FigureRequest, Width
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import problems
from octavo.web.http.protocol import DROP
from octavo.web.rooms.library.api import LINK_SECONDS, link
from octavo.web.shell.forms import read_id
from octavo.web.shell.frame import Frame, LibraryFrame, back_to, render
from octavo.web.shell.settings import SettingsFrame, show

log = structlog.get_logger()
router = APIRouter(prefix="/api/v1/documents", tags=["documents"])
MEDIA_TYPE = "application/json"
MOST_FIGURES = 1000
MOST_TEXT = 256 << 20
BLOCK_BYTES = 1 << 18
LISTS: dict[str, Callable[..., Awaitable[Page[Any]]]] = {
    "chunks": list_chunks,
    "connections": list_connections,
    "figures": list_figures,
    "highlights": list_highlights,
    "conversions": export_conversions,
}
EXPORTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`document`, `facts`, `markdown` (or null), `chunks`, `connections`, `figures`, `highlights`, "
        "`conversions`.",
        "content": {MEDIA_TYPE: {"schema": {"type": "object"}}, "application/zip": {"schema": {"type": "string"}}},
    }
}


@router.get("/{document}/export", responses={**EXPORTED, **problems(401, 404, 409, 422)}, response_class=Response)
async def export(
    request: Request,
    services: ServicesOf,
    caller: ReadCaller,
    document: UUID,
    format: Annotated[Literal["json", "zip"], Query()] = "json",  # noqa: A002 - the name of the query parameter
) -> StreamingResponse:
    """Export a document as JSON: its record, facts, text, chunks, connections, figures, highlights and conversions.

    If `format` is `zip`, export the text as Markdown, with the pictures of the figures that it refers to.
    """
    async with services.database.connection() as connection:
        found = await show_document(connection, caller.owner_id, document)
    if format == "zip":
        return await _bundle(services, caller.owner_id, found)
    headers = {
        "content-disposition": attachment_header(f"{found.filename}.json"),
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
    }
    whole = whole_or_cut(request, Export(services, caller.owner_id, found).parts())
    return StreamingResponse(whole, headers=headers, media_type=MEDIA_TYPE)


async def _bundle(services: Services, owner: UUID, document: Document) -> StreamingResponse:
    """Return a ZIP file with the Markdown and the pictures of its figures.

    Pictures that cannot be rendered are left out.
    """
    async with services.database.connection() as connection:
        file = await find_file(connection, owner, document.id, "markdown")
        figures = (await list_figures(connection, owner, document.id, limit=MOST_FIGURES)).items
    name = document.filename.rpartition(".")[0] or document.filename
    bundle = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the stream
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr(
            _entry("document.md", zipfile.ZIP_DEFLATED), await services.bucket.read(file.key, limit=MOST_TEXT)
        )
        for one in figures:
            with suppress(PageNotDrawn, NotFound, NotReady):
                wanted = FigureRequest(owner, document.id, one.number, Width.LARGE)
                _, stream = await services.pictures.stream_figure(wanted)
                body = b"".join([part async for part in stream])
                archive.writestr(_entry(f"figures/{one.number}.png", zipfile.ZIP_STORED), body)
    headers = {
        "content-disposition": attachment_header(f"{name}.zip"),
        "content-length": str(bundle.tell()),
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
    }
    return StreamingResponse(_read_and_close(bundle), headers=headers, media_type="application/zip")


def _entry(name: str, method: int) -> zipfile.ZipInfo:
    """Create a ZIP entry with a fixed date, so that the same document always gives the same bytes."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = method
    return entry


async def _read_and_close(bundle: IO[bytes]) -> AsyncGenerator[bytes]:
    with bundle:
        bundle.seek(0)
        while part := bundle.read(BLOCK_BYTES):
            yield part


async def whole_or_cut(request: Request, parts: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the parts of an export.

    If an error occurs, the connection is dropped, so that the interrupted export does not look complete.
    """
    try:
        async for part in parts:
            yield part
    except OctavoError as error:
        log.info("export interrupted", path=request.url.path, reason=error.line)
        if drop := request.scope.get(DROP):
            drop()


class ZipBuffer:
    """Collects the output of a ZIP writer, so that it can be sent in parts and is never completely in memory."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def flush(self) -> None:
        """Do nothing. The ZIP writer calls this."""

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


def download_sources(request: Request, services: Services, owner: UUID, documents: Sequence[UUID]) -> StreamingResponse:
    """Return a ZIP file with the sources of these documents. It is sent while it is being written."""
    headers = {
        "content-disposition": attachment_header("documents.zip"),
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
    }
    whole = whole_or_cut(request, _sources(services, owner, documents))
    return StreamingResponse(whole, headers=headers, media_type="application/zip")


async def _sources(services: Services, owner: UUID, documents: Sequence[UUID]) -> AsyncGenerator[bytes]:
    buffer, names = ZipBuffer(), set[str]()
    with zipfile.ZipFile(cast("IO[bytes]", buffer), "w") as archive:
        for batch in in_batches(documents):
            async with services.database.transaction() as connection:
                files = await find_sources(connection, owner, batch)
            for file in files:
                entry = _entry(unused_name(file.filename, names), zipfile.ZIP_STORED)
                with archive.open(entry, "w", force_zip64=True) as target:
                    async for part in await services.bucket.stream(file.key):
                        target.write(part)
                        yield buffer.take()
    yield buffer.take()


def unused_name(filename: str, names: set[str]) -> str:
    """Return this file name without slashes, made unique among `names`, and add it to `names`.

    Repeated names get a number: report.pdf, report (2).pdf.
    """
    name = filename.replace("/", "_").replace("\\", "_").lstrip(".") or "file"
    stem, dot, ending = name.rpartition(".")
    numbered = (f"{stem} ({number}).{ending}" if dot else f"{name} ({number})" for number in itertools.count(2))
    found = next(one for one in itertools.chain([name], numbered) if one.casefold() not in names)
    names.add(found.casefold())
    return found


class Export:
    """Writes a document as JSON in small parts, so that memory use does not grow with the document."""

    def __init__(self, services: Services, owner: UUID, document: Document) -> None:
        self._parts = services
        self._owner = owner
        self._document = document

    async def parts(self) -> AsyncGenerator[bytes]:
        async with self._parts.database.connection() as connection:
            facts = await list_facts(connection, self._owner, self._document.id)
        yield b'{"document":' + to_json(self._document) + b',"facts":' + to_json(facts) + b',"markdown":'
        async for part in self._text():
            yield part
        for name, list_page in LISTS.items():
            yield f',"{name}":['.encode()
            async for part in self._items(list_page):
                yield part
            yield b"]"
        async with self._parts.database.connection() as connection:
            now = await show_document(connection, self._owner, self._document.id)
        if now.revision != self._document.revision:
            raise StillProcessed
        yield b"}"

    async def _text(self) -> AsyncGenerator[bytes]:
        try:
            async with self._parts.database.connection() as connection:
                file = await find_file(connection, self._owner, self._document.id, "markdown")
        except NotReady:
            yield b"null"
            return
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        yield b'"'
        async for chunk in await self._parts.bucket.stream(file.key):
            yield json.dumps(decoder.decode(chunk), ensure_ascii=False)[1:-1].encode()
        yield b'"'

    async def _items(self, list_page: Callable[..., Awaitable[Page[Any]]]) -> AsyncGenerator[bytes]:
        cursor: str | None = None
        between = b""
        while True:
            async with self._parts.database.connection() as connection:
                page = await list_page(connection, self._owner, self._document.id, cursor=cursor, limit=MOST_LIMIT)
            for item in page.items:
                yield between + to_json(item)
                between = b","
            cursor = page.next_cursor
            if cursor is None:
                return


# The page for a temporary link --------------------------------------------------------------------------------------

links = APIRouter(include_in_schema=False, prefix="/documents/{document}/link")


@links.get("")
async def link_page(request: Request, services: ServicesOf, frame: LibraryFrame, document: str) -> Response:
    return await _show_link(request, services, frame, read_id(document))


@links.post("")
async def make_link(
    request: Request,
    services: ServicesOf,
    frame: LibraryFrame,
    document: str,
    kind: Annotated[Literal["source", "markdown"], Form()] = "source",
) -> Response:
    """Create a signed link. The page is rendered without a redirect, because the link is not stored."""
    made = await link(services, frame.caller, read_id(document), kind)
    base = services.settings.public_url or str(request.base_url)
    return await _show_link(request, services, frame, read_id(document), urljoin(base, made.url))


async def _show_link(
    request: Request, services: Services, frame: Frame, document: UUID, url: str | None = None
) -> Response:
    async with services.database.connection() as connection:
        found = await show_document(connection, frame.caller.owner_id, document)
    return render(request, "link.html", frame, d=found, link=url, minutes=LINK_SECONDS // 60)


page_router = APIRouter(include_in_schema=False)
EXPORT = "/api/v1/export"


@page_router.get("/settings/export")
async def export_page(request: Request, services: ServicesOf, frame: SettingsFrame) -> Response:
    """Show the library and the collections that can be exported.

    An export is a stream that the browser saves while the export is being created.
    """
    async with services.database.connection() as connection:
        found = await list_collections(connection, frame.caller.owner_id)
        prepared = await newest_export(connection, frame.caller.owner_id)
    rows = [(one, f"{EXPORT}?{urlencode({'collection': one.name})}") for one in found]
    base = (services.settings.public_url or str(request.base_url)).rstrip("/")
    return show(
        request,
        "export",
        frame,
        library=EXPORT,
        rows=rows,
        base=base,
        prepared=prepared,
        kinds=KINDS,
        running=UNFINISHED,
    )


@page_router.post("/settings/export")
async def prepare_export(
    services: ServicesOf, caller: WriteCaller, collection: Annotated[str, Form(max_length=200)] = ""
) -> Response:
    """Prepare an export of the library or of a collection."""
    filters = Filters(collection=collection, versions=True) if collection else None
    async with services.database.transaction() as connection:
        _made, unused = await begin_export(connection, caller.owner_id, ExportOptions(filters=filters))
    await services.bucket.delete(unused)
    return back_to("/settings/export")
