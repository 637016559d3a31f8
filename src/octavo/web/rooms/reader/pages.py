"""The reader page: the text of a document with its outline, metadata, connections and activity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Form, Query, Request, Response

from octavo.ai.estimates import estimate_document
from octavo.connect.connections import (
    ConnectionFilter,
    count_by_chunk,
    count_connections,
    coverage_of,
    list_connections,
    read_weights,
    show_comparison,
)
from octavo.core.errors import BadInput
from octavo.core.texts import gettext as _
from octavo.database import Connection
from octavo.facts.sheet import NAMES
from octavo.jobs.views import find_jobs, list_jobs
from octavo.library.changes import Edit, edit_documents
from octavo.library.documents import find_documents, list_parts, show_document
from octavo.library.facts import list_facts
from octavo.library.files import is_pictured
from octavo.library.highlights import read_position
from octavo.library.versions import list_versions
from octavo.records.documents import Document
from octavo.records.search import ComparisonStatus, Coverage, Engine, Status
from octavo.records.search import Connection as ConnectionView
from octavo.web.context.callers import EditCaller, ReadCaller
from octavo.web.context.intake import may_rewrite
from octavo.web.context.services import Services, ServicesOf
from octavo.web.markdown.safety import is_address
from octavo.web.markdown.windows import Plan, Window
from octavo.web.rooms.reader.activity import JOB_NAMES, STATES, list_activity, stage_done
from octavo.web.rooms.reader.highlights import COLOURS, list_marked
from octavo.web.rooms.reader.insights import (
    fact_label,
    find_insight,
    find_neighbours,
    find_skipped_analysis,
    show_fact,
)
from octavo.web.rooms.reader.text import (
    MOST_BYTES,
    MOST_WORDS,
    OpenText,
    find_in_text,
    find_place,
    find_text,
    format_moment,
    moment_address,
    open_text,
)
from octavo.web.shell.document_rows import Row, make_row
from octavo.web.shell.document_status import describe
from octavo.web.shell.forms import local_path, read_id, read_number
from octavo.web.shell.frame import LibraryFrame, back_to, render

router = APIRouter(include_in_schema=False, prefix="/documents/{document}")
SIZE_COOKIE, PANEL_COOKIE, OUTLINE_COOKIE = "octavo_text_size", "octavo_panel", "octavo_outline"
SIZES = ("16", "18", "20", "22", "24")
DEFAULT_SIZE = "18"
PANELS = frozenset({"about", "connections", "highlights", "outline", "closed"})
# Tabs of the panel; connections first, if there are any.
TABS = ("connections", "about", "highlights")
YEAR_SECONDS = 365 * 24 * 3600
RECENT_EVENTS = 20
MOST_EVENTS = 100
MOST_PARTS = 200
MOST_JOBS = 50
Margins: TypeAlias = dict[UUID, dict[Engine, int]]
# The connections panel shows at most this many.
MOST_SHOWN, MOST_DISMISSED = 40, 20
MOST_FOUND = 100


@dataclass(frozen=True, slots=True)
class Position:
    """The position to open: a page or a character. A position outside the text opens the nearest part of it."""

    page: int | None = None
    at: int | None = None

    def choose(self, plan: Plan) -> Window:
        if self.at is not None:
            return plan.window_at(self.at)
        return plan.window_of_page(self.page) if self.page is not None else plan.windows[0]


async def find_row(connection: Connection, frame: LibraryFrame, document: UUID) -> Row:
    """Return a document with its status texts. The document can be in the trash."""
    owner = frame.caller.owner_id
    found = await find_documents(connection, owner, [document])
    one = found[0] if found else await show_document(connection, owner, document, trashed=True)
    jobs = await find_jobs(connection, owner, [one.process_id]) if one.status != "completed" else {}
    return make_row(one, describe(one, jobs.get(one.process_id), frame.now), frame.now)


# The page ----------------------------------------------------------------------------------------------------------


@router.get("")
async def reader(  # noqa: PLR0917 - query parameters
    request: Request,
    services: ServicesOf,
    frame: LibraryFrame,
    document: str,
    p: str = "",
    at: str = "",
    c: str = "",
    go: str = "",
    panel: str = "",
    of: str = "",
    find: str | None = None,
) -> Response:
    """Show the reader page. It opens at page `p`, character `at` or chunk `c`; `go` redirects to a page.

    Without these parameters, it opens where the person stopped reading. If `of` is a chunk, the connections of this
    chunk are shown instead of those of the whole document. `find` contains words to find in the text; if it is empty,
    only the search field is opened.
    """
    ident, owner = read_id(document), frame.caller.owner_id
    if (page := read_number(go)) is not None:
        return back_to(f"/documents/{ident}?p={page}#p-{page}")
    async with services.database.connection() as connection:
        row = await find_row(connection, frame, ident)
        happened = await list_activity(connection, owner, ident, most=RECENT_EVENTS)
        stored = await find_text(connection, owner, ident)
        cited = await find_place(connection, owner, ident, c) if c else None
        is_placed = p or at or cited or find
        stopped = None if is_placed else await read_position(connection, owner, ident, frame.caller.user_id)
        twin = await _twin(connection, owner, row.document)
        chunk = await find_place(connection, owner, ident, of) if of else None
        coverage = coverage_of(services.settings, frame.caller, row.document)
        related = await show_connections(connection, coverage, owner, row.document, chunk=chunk.id if chunk else None)
        versions = [] if row.document.deleted_at else await list_versions(connection, owner, ident)
        parent = await _parent(connection, owner, row.document)
        parts = None if row.document.deleted_at else await list_parts(connection, owner, ident, limit=MOST_PARTS)
        insight = await find_insight(connection, owner, ident, cited.id) if cited else None
        skipped = await find_skipped_analysis(connection, owner, ident)
        facts = [] if row.document.deleted_at else await list_facts(connection, owner, ident)
        highlights = [] if row.document.deleted_at else await list_marked(connection, owner, ident)
    neighbours = await find_neighbours(services.database, services.settings, owner, row.document)
    too_long = stored is not None and stored.bytes > MOST_BYTES
    wanted = Position(read_number(p), cited.start if cited else stopped or read_number(at))
    text = await open_text(services, owner, ident, stored, wanted.choose) if stored and not too_long else None
    return render(
        request,
        "reader.html",
        frame,
        margins=await _margins(services, owner, ident, text),
        find=find,
        found=await find_in_text(services, owner, ident, find[:MOST_WORDS], limit=MOST_FOUND)
        if find and text
        else None,
        resume=_resume(text, stopped),
        row=row,
        d=row.document,
        text=text,
        too_long=too_long,
        page=_page(text, wanted),
        cited=c if cited else None,
        marked=text.marks_of(cited) if text and cited else [],
        happened=happened,
        twin=twin,
        connections=related,
        insight=insight,
        neighbours=neighbours,
        tab=panel if panel in TABS else TABS[related.total == 0],
        may_rewrite=may_rewrite(services.settings, frame.caller),
        estimate=estimate_document(services.settings, frame.caller, row.document),
        skipped_usd=skipped,
        analyse_budget=services.settings.analyse_budget,
        versions=versions,
        parent=parent,
        parts=parts,
        facts=[show_fact(one, row.document) for one in facts],
        fact_names={name: fact_label(name) for name in NAMES},
        highlights=highlights,
        colours=COLOURS,
        **_view(request, panel, row.document),
    )


async def _margins(services: Services, owner: UUID, document: UUID, text: OpenText | None) -> Margins:
    """Count the connections of each visible chunk. The numbers are shown in the margin."""
    chunks = [chunk for leaf in text.leaves for chunk in leaf.chunks] if text else []
    places = [chunk.place.id for chunk in chunks if chunk.place and chunk.begins]
    async with services.database.connection() as connection:
        return await count_by_chunk(connection, owner, document, places)


@dataclass(frozen=True, slots=True)
class Resume:
    """The position where the person stopped reading: the chunk and its page."""

    chunk: UUID
    start: int
    page: int | None


def _resume(text: OpenText | None, stopped: int | None) -> Resume | None:
    """Return the position where reading continues. Returns None if the person stopped at the beginning of the text."""
    chunks = [chunk.place for leaf in text.leaves for chunk in leaf.chunks if chunk.begins] if text else []
    before = [place for place in chunks if place and stopped and place.start <= stopped]
    if text is None or not before or (text.earlier is None and before[-1] is chunks[0]):
        return None
    return Resume(before[-1].id, before[-1].start, text.plan.page_at(before[-1].start))


def _page(text: OpenText | None, wanted: Position) -> int | None:
    """Return the number of the page to show first. Returns None if the text has no pages."""
    if text is None or not text.plan.sheets:
        return None
    numbers = [sheet.number for _, sheet in text.plan.breaks_in(text.window)]
    if wanted.at is not None:
        return text.plan.page_at(max(wanted.at, text.window.start))
    return wanted.page if wanted.page in numbers else (numbers[0] if numbers else text.plan.page_at(text.window.start))


def _view(request: Request, panel: str, document: Document) -> dict[str, Any]:
    """Return values for the page template: the view settings of this browser, paths, and formatting functions."""
    size = request.cookies.get(SIZE_COOKIE, DEFAULT_SIZE)
    closed = panel == "closed" or (not panel and request.cookies.get(PANEL_COOKIE) == "closed")
    query = {name: value for name, value in request.query_params.items() if name in {"p", "at", "c"}}

    def address(**changed: str | int) -> str:
        wanted = {**query, **changed}
        return f"/documents/{document.id}" + (f"?{urlencode(wanted)}" if wanted else "")

    return {
        "size": size if size in SIZES else DEFAULT_SIZE,
        "sizes": SIZES,
        "panel": panel if panel in PANELS else "",
        "panel_closed": closed,
        "outline_closed": request.cookies.get(OUTLINE_COOKIE) == "closed" and panel != "outline",
        "address": address,
        "pictures": f"/api/v1/documents/{document.id}/pages" if is_pictured(document) else None,
        "source": document.source_url if document.source_url and is_address(document.source_url) else None,
        **_origin(document),
        "moment_address": partial(moment_address, document),
        "format_moment": format_moment,
        "language": language_tag(document.language),
    }


def _origin(document: Document) -> dict[str, str | None]:
    """Return the origin that a person entered for the document.

    `origin` is the text to show. It is None if the entered text is a URL and the document was added from a link,
    because the page already shows that link. `origin_address` is the entered text if it is a URL, otherwise None.
    """
    origin = str(document.metadata.get("source") or "")
    address = origin if is_address(origin) else None
    is_told = address is not None and document.source_url is not None
    return {"origin": None if is_told else origin, "origin_address": address}


def language_tag(language: str | None) -> str | None:
    """Convert a language code to an HTML language tag: en-GB, not en_GB."""
    tag = (language or "").replace("_", "-")
    return tag if tag and all(part.isascii() and part.isalnum() for part in tag.split("-")) else None


async def _parent(connection: Connection, owner: UUID, document: Document) -> Document | None:
    """Return the archive or email that contains this document.

    Returns None if the document is not a part of one, or if the archive or email is in the trash.
    """
    found = await find_documents(connection, owner, [document.parent_id]) if document.parent_id else []
    return found[0] if found else None


async def _twin(connection: Connection, owner: UUID, document: Document) -> Document | None:
    """Return the other document with the same file. Returns None if this document is not a duplicate."""
    found = await find_documents(connection, owner, [document.duplicate_of]) if document.duplicate_of else []
    return found[0] if found else None


@router.get("/history")
async def history(
    request: Request,
    services: ServicesOf,
    frame: LibraryFrame,
    document: str,
    before: str = "",
) -> Response:
    ident, owner = read_id(document), frame.caller.owner_id
    async with services.database.connection() as connection:
        row = await find_row(connection, frame, ident)
        happened = await list_activity(connection, owner, ident, before=read_number(before), most=MOST_EVENTS + 1)
        jobs = (await list_jobs(connection, owner, document_id=ident, limit=MOST_JOBS)).items
    shown = happened[:MOST_EVENTS]
    more = f"/documents/{ident}/history?before={shown[-1].id}" if len(happened) > MOST_EVENTS else None
    return render(
        request,
        "history.html",
        frame,
        row=row,
        d=row.document,
        happened=shown,
        jobs=jobs,
        stage_done=stage_done,
        job_names=JOB_NAMES,
        states=STATES,
        earlier=more,
        is_first=not before,
    )


@router.post("/size")
async def keep_size(
    request: Request,
    document: str,
    size: Annotated[Literal["16", "18", "20", "22", "24"], Form()],
    back: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    """Save the text size in a cookie, for browsers without scripts."""
    answer = back_to(local_path(back, f"/documents/{read_id(document)}"))
    secure = request.url.scheme == "https"
    answer.set_cookie(SIZE_COOKIE, size, max_age=YEAR_SECONDS, samesite="lax", secure=secure)
    return answer


@router.post("/facts")
async def correct_fact(
    services: ServicesOf,
    caller: EditCaller,
    document: str,
    name: Annotated[str, Form(max_length=40)],
    value: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Correct a fact. An empty value means that the document does not have this fact."""
    ident = read_id(document)
    if name not in NAMES:
        raise BadInput(_("Unknown fact."))
    async with services.database.transaction() as connection:
        await edit_documents(connection, caller.owner_id, [ident], Edit(facts={name: value.strip() or None}))
    return back_to(f"/documents/{ident}?panel=about#facts")


# Fragments for scripts ---------------------------------------------------------------------------------------------


@router.get("/text")
async def window(
    request: Request,
    services: ServicesOf,
    caller: ReadCaller,
    document: str,
    start: Annotated[int, Query(alias="from", ge=0, lt=1 << 31)] = 0,
    revision: Annotated[int, Query(ge=0, lt=1 << 31)] = 0,
) -> Response:
    """Return one window (section) of the text. The status is 409 if the text has been replaced."""
    ident = read_id(document)
    found, text = await open_document(services, caller.owner_id, ident, Position(at=start))
    if text is None or (revision and text.revision != revision):
        return Response(status_code=409, headers={"cache-control": "no-store"})
    margins = await _margins(services, caller.owner_id, ident, text)
    view = _view(request, "", found)
    return render(request, "reader_text.html", None, d=found, text=text, cited=None, margins=margins, **view)


async def open_document(
    services: Services, owner: UUID, document: UUID, wanted: Position
) -> tuple[Document, OpenText | None]:
    """Return a document with the window of its text at a position. The text is None if it cannot be shown."""
    async with services.database.connection() as connection:
        found = await show_document(connection, owner, document)
        stored = await find_text(connection, owner, document)
    if stored is None or stored.bytes > MOST_BYTES:
        return found, None
    return found, await open_text(services, owner, document, stored, wanted.choose)


@router.get("/state")
async def state(request: Request, services: ServicesOf, frame: LibraryFrame, document: str) -> Response:
    """Return the status of the document, for live updates while it is open in the reader."""
    async with services.database.connection() as connection:
        row = await find_row(connection, frame, read_id(document))
    return render(request, "reader_state.html", frame, row=row, d=row.document)


@dataclass(frozen=True, slots=True)
class ConnectionsPanel:
    """The content of the connections panel. Until the comparison is done, connections may be missing."""

    document_id: UUID
    chunk: UUID | None
    items: list[ConnectionView]
    dismissed: list[ConnectionView]
    total: int
    weights: dict[str, int]
    comparison: ComparisonStatus
    coverage: Coverage


async def show_connections(
    connection: Connection, coverage: Coverage, owner: UUID, document: Document, *, chunk: UUID | None = None
) -> ConnectionsPanel:
    """List the connections of a document or of one chunk. `total` always counts the connections of the whole document.

    The state of the comparison is read first, so that a comparison is never reported as done too early.
    """
    comparison, ident = await show_comparison(connection, owner, document), document.id
    counts = await count_connections(connection, owner, ident)
    items = await list_connections(connection, owner, ident, ConnectionFilter(chunk=chunk), limit=MOST_SHOWN)
    gone = ConnectionFilter(status=Status.DISMISSED, chunk=chunk)
    dismissed = await list_connections(connection, owner, ident, gone, limit=MOST_DISMISSED)
    weights = asdict(await read_weights(connection, owner))
    total = sum(counts.values())
    return ConnectionsPanel(ident, chunk, items.items, dismissed.items, total, weights, comparison, coverage)


@router.get("/connections")
async def connections_fragment(
    request: Request, services: ServicesOf, caller: ReadCaller, document: UUID, of: UUID | None = None
) -> Response:
    """Return the connections panel as an HTML fragment.

    `of` is the chunk whose connections are shown. Without it, the connections of the whole document are shown.
    """
    async with services.database.connection() as connection:
        found = await show_document(connection, caller.owner_id, document)
        coverage = coverage_of(services.settings, caller, found)
        shown = await show_connections(connection, coverage, caller.owner_id, found, chunk=of)
    back = f"/documents/{document}?panel=connections" + (f"&of={of}" if of else "")
    return render(request, "reader_connections.html", None, connections=shown, back=back, may_write=caller.may_write)
