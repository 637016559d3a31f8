"""The frame around every page: the caller, the selected item of the navigation, and the list of running jobs (dock)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Depends, Request

from octavo.ai.estimates import DocumentSize, estimate_size
from octavo.analyse.details import list_running
from octavo.analyse.estimates import describe_progress
from octavo.connect.comparisons import KIND as COMPARISON
from octavo.convert.conversions import KIND as CONVERSION
from octavo.core.formatting import format_ago, format_eta, format_number, format_span
from octavo.core.settings import Settings
from octavo.core.texts import gettext as _
from octavo.core.texts import mark
from octavo.core.types import JobStatus, Lane
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.events import latest_cursor
from octavo.jobs.views import find_jobs
from octavo.owners import Caller
from octavo.owners.grants import writable_collections
from octavo.records.account import DocumentEstimate
from octavo.records.analyses import Analysis
from octavo.records.documents import Document
from octavo.records.jobs import DOCUMENT_JOB, STEPS, JobView, Progress, stage_of
from octavo.web.context.callers import ReadCaller
from octavo.web.context.intake import may_rewrite
from octavo.web.context.services import ServicesOf

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
    # Set if the item is not one job.
    key: str | None = None
    stop_address: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame around a page.

    `cursor`: the position after which live events start. `ring`: overall progress in percent. `working`: number of jobs
    in progress. `comparing`: number of these jobs that compare documents. `may_rewrite`: whether a model can rewrite
    text. `imports`: whether imports are paused, or wait in the queue. `hundred_pages`: the estimated price of 100
    pages. `views`: ids and names of saved views. `collections`: names of collections. `writable`: names of the
    collections that a limited member can change.
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
        dock=await load_dock(connection, caller.owner_id, counted["now"]) if counted["working"] else [],
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


async def load_dock(connection: Connection, owner: UUID, now: datetime) -> list[DockItem]:
    rows = await fetch_rows(connection, QUERIES.dock, {"owner": owner, "most": DOCK_ITEMS})
    jobs = await find_jobs(connection, owner, [row["id"] for row in rows])
    running = await list_running(connection, owner, DOCK_ITEMS)
    listed = [_item(jobs[row["id"]], row["name"]) for row in rows if row["id"] in jobs]
    return [*(_analysis_item(one, now) for one in running), *listed][:DOCK_ITEMS]


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
