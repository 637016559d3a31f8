"""Renders pages and error pages on the server, with the frame around them: the navigation and the running jobs (dock).

Pages work without scripts; scripts add live updates. An error page shows the cause, the error code and one action.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlencode
from uuid import UUID

import psycopg
from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.templating import Jinja2Templates

from octavo import __version__
from octavo.ai.estimates import DocumentSize, estimate_size
from octavo.analyse.details import list_running
from octavo.analyse.progress import describe_progress
from octavo.connect.connections import KIND as COMPARISON
from octavo.convert.conversions import KIND as CONVERSION
from octavo.core import formatting
from octavo.core.errors import OctavoError, Unauthenticated
from octavo.core.formatting import format_ago, format_eta, format_number, format_span
from octavo.core.settings import Settings
from octavo.core.texts import Texts, current_catalogue, gettext, mark, ngettext, translate_sentences
from octavo.core.texts import gettext as _
from octavo.core.types import JobStatus, Lane
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.views import find_jobs, latest_cursor
from octavo.owners import Caller
from octavo.owners.grants import writable_collections
from octavo.records.account import DocumentEstimate
from octavo.records.analyses import Analysis
from octavo.records.documents import Document
from octavo.records.jobs import DOCUMENT_JOB, STEPS, JobView, Progress, stage_of
from octavo.web.context.callers import ReadCaller
from octavo.web.context.intake import may_rewrite
from octavo.web.context.services import ServicesOf, services_of
from octavo.web.http.assets import asset
from octavo.web.http.languages import LANGUAGES
from octavo.web.http.problems import Failure

QUERIES = load_queries("pages")
DOCK_ITEMS = 3
LOCAL_OWNER = mark("This machine")


@dataclass(frozen=True, slots=True)
class DockItem:
    job_id: UUID
    document_id: UUID | None
    address: str | None
    name: str
    state: str
    line: str
    eta: str | None
    done: int
    total: int | None
    verb: str = "cancel"
    may_try_now: bool = False
    may_move_up: bool = False
    # Set if the item is not a single job.
    key: str | None = None
    stop_address: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame around a page.

    `cursor` is the position after which live events start. `working` is the number of jobs in progress, and `comparing`
    the number of these jobs that compare documents. `ring` is the overall progress of the jobs in percent. `imports` is
    `paused` if imports are paused, and `waiting` if they wait in the queue. If `may_rewrite` is true, a model can
    rewrite text. `hundred_pages` is the estimated price of 100 pages. `views` are the ids and names of saved views, and
    `collections` the names of collections. `writable` are the names of the collections that a limited member can
    change.
    """

    caller: Caller
    name: str
    place: str
    documents: int
    working: int
    comparing: int
    imports: Literal["paused", "waiting"] | None
    dock: list[DockItem]
    unread: int
    dead_letters: int
    cursor: str
    upload_bytes: int
    may_rewrite: bool
    hundred_pages: DocumentEstimate
    now: datetime
    views: list[tuple[str, str]]
    collections: list[str]
    writable: frozenset[str] = frozenset()

    @property
    def may_add(self) -> bool:
        """Whether the caller can add documents."""
        return self.caller.may_write or bool(self.writable)

    def may_change(self, document: Document) -> bool:
        """Whether the caller can change a document. A limited member needs write access to its collection."""
        return self.caller.may_write or document.collection in self.writable

    @property
    def ring(self) -> int:
        shares = [item.done / item.total for item in self.dock if item.total]
        return round(100 * sum(shares) / len(self.dock)) if shares else 0


async def load_frame(connection: Connection, caller: Caller, place: str, settings: Settings) -> Frame:
    # The cursor is read first, so that events during the following queries may arrive twice but are never missed.
    cursor = await latest_cursor(connection)
    counted = (await fetch_rows(connection, QUERIES.frame, {"owner": caller.owner_id, "person": caller.user_id}))[0]
    dead = await fetch_rows(connection, QUERIES.dead_letters, {}) if caller.is_admin else []
    return Frame(
        caller=caller,
        name=counted["email"] or _(LOCAL_OWNER),
        place=place,
        documents=counted["documents"],
        working=counted["working"],
        comparing=counted["comparing"],
        imports=counted["imports"],
        dock=await load_dock(connection, caller.owner_id, counted) if counted["working"] else [],
        unread=counted["unread"],
        dead_letters=dead[0]["count"] if dead else 0,
        cursor=str(cursor),
        upload_bytes=settings.upload_bytes,
        may_rewrite=may_rewrite(settings, caller),
        hundred_pages=estimate_size(settings, caller, DocumentSize.of(None, 100)),
        now=counted["now"],
        views=[(ident, name) for ident, name in counted["views"]],
        collections=counted["collections"],
        writable=frozenset(await writable_collections(connection, caller)) if _may_edit_some(caller) else frozenset(),
    )


def _may_edit_some(caller: Caller) -> bool:
    return caller.limited and caller.may_edit


async def load_dock(connection: Connection, owner: UUID, counted: Mapping[str, Any]) -> list[DockItem]:
    rows = await fetch_rows(connection, QUERIES.dock, {"owner": owner, "most": DOCK_ITEMS})
    jobs = await find_jobs(connection, owner, [row["id"] for row in rows])
    running = await list_running(connection, owner, DOCK_ITEMS) if counted["analyses"] else []
    listed = [_item(jobs[row["id"]], row["name"]) for row in rows if row["id"] in jobs]
    return [*(_analysis_item(one, counted["now"]) for one in running), *listed][:DOCK_ITEMS]


def _analysis_item(analysis: Analysis, now: datetime) -> DockItem:
    """Make one entry for a whole analysis in the list of running jobs, because an analysis can have hundreds of
    jobs.
    """
    return DockItem(
        job_id=analysis.id,
        document_id=None,
        address=f"/analyses/{analysis.id}",
        name=analysis.title,
        state="working" if analysis.items.running else "waiting",
        line=describe_progress(analysis),
        eta=format_eta(analysis.eta),
        done=analysis.items.done,
        total=analysis.items.total or None,
        key=f"analysis-{analysis.id}",
        stop_address=f"/analyses/{analysis.id}/stop",
        detail=_describe_life(analysis, now),
    )


def _describe_life(analysis: Analysis, now: datetime) -> str:
    """Describe how long an analysis has been running, and when one of its workers last sent a heartbeat."""
    elapsed = format_span(timedelta(seconds=analysis.elapsed_seconds))
    running = _("Running for %(time)s", time=elapsed)
    if not analysis.last_heartbeat:
        return running
    return f"{running} · {_('last heartbeat %(time)s', time=format_ago(analysis.last_heartbeat, now))}"


def _item(job: JobView, name: str) -> DockItem:
    progress = job.progress
    if job.status == JobStatus.PROCESSING:
        stage = stage_of(job)
        if not progress.total and job.kind == DOCUMENT_JOB and job.stage in STEPS:
            line, progress = (
                _("%(stage)s · step %(step)s of 5", stage=stage, step=STEPS[job.stage]),
                Progress(STEPS[job.stage] - 1, 5, "steps"),
            )
        else:
            line = (
                _(
                    "%(stage)s %(done)s of %(total)s",
                    stage=stage,
                    done=format_number(progress.done),
                    total=format_number(progress.total),
                )
                if progress.total
                else stage
            )
        state = "working"
    else:
        waiting = _("Waiting to be compared") if job.kind == COMPARISON else _("Waiting")
        line = f"{waiting}: {job.waiting_because.detail}" if job.waiting_because else waiting
        state = "waiting"
    eta = format_eta(job.eta)
    item = DockItem(job.id, job.document_id, _address(job), name, state, line, eta, progress.done, progress.total)
    moves_up = state == "waiting" and job.lane is Lane.BULK
    return replace(item, may_try_now=bool(job.waiting_because and job.waiting_because.is_retry), may_move_up=moves_up)


def _address(job: JobView) -> str | None:
    if job.kind == CONVERSION:
        return f"/conversions/{job.id}"
    panel = "?panel=connections" if job.kind == COMPARISON else ""
    return f"/documents/{job.document_id}{panel}" if job.document_id else None


class FrameFor:
    """A FastAPI dependency that loads the frame around a page and marks one item of the navigation as selected."""

    def __init__(self, place: str) -> None:
        self._place = place

    async def __call__(self, request: Request, services: ServicesOf, caller: ReadCaller) -> Frame:
        del request
        async with services.database.connection() as connection:
            return await load_frame(connection, caller, self._place, services.settings)


LibraryFrame = Annotated[Frame, Depends(FrameFor("library"))]


THEME_COOKIE = "octavo_theme"
THEMES = ("light", "dark")


def common_values(request: Request) -> dict[str, str | None]:
    """Return the values that every template needs."""
    theme = request.cookies.get(THEME_COOKIE)
    catalogue = current_catalogue()
    return {
        "version": __version__,
        "theme": theme if theme in THEMES else None,
        "lang": catalogue.language,
        "dir": catalogue.direction,
    }


WEB = Path(__file__).parents[1]
FOLDERS = (WEB / "shell" / "html", *sorted(path for path in (WEB / "rooms").iterdir() if path.is_dir()))
templates = Jinja2Templates(FOLDERS, context_processors=[common_values])
templates.env.trim_blocks = templates.env.lstrip_blocks = True
# Messages of `{% trans %}` may contain tags, so their values are escaped. Results of `_` are escaped as a whole.
templates.env.add_extension("jinja2.ext.i18n")
templates.env.policies["ext.i18n.trimmed"] = True
cast("dict[str, object]", templates.env.globals).update(
    {"asset": asset, "_": gettext, "gettext": gettext, "ngettext": ngettext, "languages": LANGUAGES}
)
cast("dict[str, object]", templates.env.filters).update(
    ago=formatting.format_ago,
    bytes=formatting.format_bytes,
    date=formatting.format_short_date,
    day=formatting.format_day,
    dollars=formatting.format_dollars,
    mid_sentence=formatting.mid_sentence,
    moment=formatting.format_moment,
    number=formatting.format_number,
    sentences=translate_sentences,
)


def render(request: Request, template: str, frame: Frame | None, status: int = 200, **values: object) -> HTMLResponse:
    """Render a whole page or a fragment of a page. Browsers must not cache it."""
    headers = {"cache-control": "no-store", "vary": "accept-language, cookie"}
    return templates.TemplateResponse(request, template, values | {"frame": frame}, status, headers=headers)


def back_to(address: str) -> RedirectResponse:
    """Redirect after a change, so that reloading the page does not repeat it."""
    return RedirectResponse(address, 303)


NOT_PAGES = ("/api/", "/healthz", "/readyz", "/metrics", "/static/", "/objects", "/fragments/")
# The links back on error pages, by the path of the failed request. Browsers send no referrer to use instead.
PLACES = Texts(
    {
        "/operations": "Back to operations",
        "/conversions": "Back to conversions",
        "/settings/mappings": "Back to mappings",
        "/settings/keys": "Back to API keys",
        "/settings/webhooks": "Back to notification settings",
        "/settings": "Back to settings",
        "/notifications": "Back to notifications",
    }
)
HEADINGS = Texts(
    {
        403: "Not allowed",
        404: "Page not found",
        405: "This link only accepts form submissions",
        409: "This action is no longer possible",
        413: "Too large",
        422: "Invalid input",
        429: "Too many requests",
        503: "Octavo is unavailable",
    }
)
CAUSES = Texts(
    {
        404: "This page does not exist, or you do not have access to it.",
        405: "Open the page with the form instead.",
    }
)


def is_for_people(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(NOT_PAGES)


async def as_page(request: Request, failure: Failure) -> Response | None:
    """Render an error as a page. Returns None if the caller is a program.

    Callers who must sign in first are redirected to the sign-in page.
    """
    if not is_for_people(request):
        return None
    if failure.code == Unauthenticated.code:
        asked = request.method in {"GET", "HEAD"}
        path = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        return back_to(f"/sign-in?{urlencode({'next': path})}" if asked and path != "/" else "/sign-in")
    caller: Caller | None = getattr(request.state, "caller", None)
    frame = await _frame(request, caller) if caller and failure.status < HTTPStatus.INTERNAL_SERVER_ERROR else None
    verb, address = _verb(request, failure, caller)
    answer = render(
        request,
        "problem.html",
        frame,
        failure.status,
        heading=HEADINGS.get(failure.status, _("Something went wrong")),
        cause=translate_sentences(CAUSES.get(failure.status, failure.line) if failure.is_plain else failure.line),
        code=failure.code,
        verb=verb,
        address=address,
    )
    answer.headers.update(failure.headers)
    return answer


async def _frame(request: Request, caller: Caller) -> Frame | None:
    """Load the frame (navigation and running jobs) for the error page. Returns None if loading the frame fails, too."""
    with contextlib.suppress(OctavoError, psycopg.Error):
        services = await services_of(request)
        async with services.database.connection() as connection:
            return await load_frame(connection, caller, "", services.settings)
    return None


def _verb(request: Request, failure: Failure, caller: Caller | None) -> tuple[str, str]:
    again = failure.status == HTTPStatus.TOO_MANY_REQUESTS or failure.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if again and request.method == "GET":
        return _("Try again"), f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    if failure.status == HTTPStatus.FORBIDDEN and (caller is None or caller.is_anonymous):
        return _("Sign in"), "/sign-in"
    for place, words in PLACES.items():
        if request.url.path.startswith(f"{place}/") and (place != "/operations" or (caller and caller.is_admin)):
            return words, place
    return _("Go to the library"), "/library"
