"""The list of conversions with their status, and the forms that convert PDFs and documents in the library."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from octavo.convert.conversions import (
    ConfidenceSummary,
    StoredConversion,
    count_states,
    list_batches,
    list_conversions,
    summarise_confidence,
)
from octavo.convert.mappings.stored_mappings import DEFAULT_MAPPING, list_mappings
from octavo.convert.submissions import begin_batch
from octavo.core.errors import NotFound, OctavoError
from octavo.core.formatting import count_of, format_date, format_eta, format_number
from octavo.core.texts import gettext as _
from octavo.core.texts import mark
from octavo.core.types import JobStatus
from octavo.database import Connection
from octavo.intake import IntakeLimits
from octavo.jobs.views import find_jobs
from octavo.library.documents import count_documents, find_documents
from octavo.records.jobs import JobView
from octavo.web.context.callers import WriteCaller
from octavo.web.context.intake import LimitsOf, early_limited
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.multipart import FormReader
from octavo.web.rooms.conversions.api import conversion_intake
from octavo.web.shell.document_status import StatusAction, StatusText, is_retried
from octavo.web.shell.forms import NoFileSelected, Selection, read_selection
from octavo.web.shell.frame import Frame, FrameFor, back_to, render

router = APIRouter(include_in_schema=False, prefix="/conversions")
ConversionsFrame = Annotated[Frame, Depends(FrameFor("conversions"))]
Cursor = Annotated[str | None, Query(max_length=500)]
ROWS = 50
REVIEW_ROWS = 20
MOST_EARLIER = 10
TABS = {
    "": ("everything", mark("All")),
    "needs_review": ("needs_review", mark("Needs review")),
    "running": ("running", mark("In progress")),
    "complete": ("complete", mark("Complete")),
    "unsuccessful": ("failed", mark("Failed")),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A conversion in the list. `title` is the title of the document, or the file name if there is no title."""

    found: StoredConversion
    title: str
    words: StatusText
    sure: ConfidenceSummary | None


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Query parameters of the list of conversions: a status or a batch to filter by, and the page of results."""

    status: str | None = None
    batch: UUID | None = None
    cursor: str | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is the first page of the list, without a status filter.

        Only this page begins with the conversions that need review.
        """
        return not (self.status or self.cursor)

    def address(self, path: str = "/conversions", **changed: object) -> str:
        given = {"status": self.status, "batch": self.batch} | changed
        query = urlencode({name: value for name, value in given.items() if value})
        return f"{path}?{query}" if query else path


def list_query(
    status: Literal["", "needs_review", "running", "complete", "unsuccessful"] = "",
    batch: UUID | None = None,
    cursor: Cursor = None,
) -> ListQuery:
    return ListQuery(status or None, batch, cursor)


ListParameters = Annotated[ListQuery, Depends(list_query)]


@router.get("")
async def list_page(request: Request, services: ServicesOf, frame: ConversionsFrame, asked: ListParameters) -> Response:
    return await _show(request, services, frame, asked=asked)


@router.get("/rows")
async def show_rows(request: Request, services: ServicesOf, frame: ConversionsFrame, asked: ListParameters) -> Response:
    """Return the rows of the list and the progress of batches, for live updates."""
    async with services.database.connection() as connection:
        listed = await load_rows(connection, frame, asked)
        state = await _state(connection, frame, asked)
    return render(request, "conversion_live.html", frame, rows=[*listed.review, *listed.rows], **state)


@router.get("/new")
async def choose_mapping(request: Request, services: ServicesOf, frame: ConversionsFrame) -> Response:
    """Show the page for choosing a mapping, for one `document` in the library or all documents that match a filter."""
    return await _show_choice(request, services, frame, read_selection(request.query_params.multi_items()))


@router.post("/new")
async def convert_selection(
    request: Request, services: ServicesOf, caller: WriteCaller, frame: ConversionsFrame, limits: LimitsOf
) -> Response:
    """Convert documents in the library: one `document`, several `ids`, or all that match a filter.

    If no mapping was chosen yet, show the page for choosing one.
    """
    fields = [(name, value) for name, value in (await request.form()).multi_items() if isinstance(value, str)]
    wanted, mapping = read_selection(fields), dict(fields).get("mapping", "")
    if not mapping:
        return await _show_choice(request, services, frame, wanted)
    try:
        address = await _begin(services, limits, caller.owner_id, wanted, mapping)
    except NotFound:
        raise
    except OctavoError as error:
        return await _show_choice(request, services, frame, wanted, error, mapping)
    return back_to(address)


async def _begin(services: Services, limits: IntakeLimits, owner: UUID, wanted: Selection, mapping: str) -> str:
    """Queue the conversions. Returns the path of the page that shows them."""
    intake = conversion_intake(services, limits)
    documents = sorted(wanted.ids)
    if len(documents) == 1:
        begun = await intake.submit_document(owner, documents[0], mapping)
        return f"/conversions/{begun.id}"
    stored = await intake.find_mapping(owner, mapping)
    async with services.database.transaction() as connection:
        batch = await begin_batch(connection, owner, stored, documents=documents, filters=wanted.filters)
    return f"/conversions?batch={batch}"


async def _show_choice(
    request: Request,
    services: Services,
    frame: Frame,
    wanted: Selection,
    wrong: OctavoError | None = None,
    chosen: str | None = None,
) -> Response:
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        mappings = await list_mappings(connection, owner)
        documents = await find_documents(connection, owner, sorted(wanted.ids)) if wanted.ids else []
        if len(documents) < len(wanted.ids):
            raise NotFound
        count = len(documents) if wanted.filters is None else await count_documents(connection, owner, wanted.filters)
        one = documents[0] if len(documents) == 1 else None
        before = (
            await list_conversions(connection, owner, status=None, cursor=None, limit=MOST_EARLIER, document=one.id)
            if one
            else None
        )
    shown: dict[str, Any] = {
        "wanted": wanted,
        "one": one,
        "count": count,
        "earlier": before.items if before else [],
        "mappings": {one.name: one.title for one in mappings if not one.error},
        "chosen": chosen or DEFAULT_MAPPING,
        "wrong": wrong,
    }
    return render(request, "conversion_new.html", frame, wrong.status if wrong else 200, **shown)


@router.post("")
async def convert(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: ConversionsFrame,
    limits: LimitsOf,
    content_type: Annotated[str, Header()] = "",
) -> Response:
    """Convert one uploaded file. To convert several files, scripts send one request for each file.

    A rejected file also appears in the list, with the reason.
    """
    intake = conversion_intake(services, limits)
    fields: dict[str, str] = {}
    try:
        async with services.limits.transfers.one(caller.owner_id, limits.concurrent):
            form = await FormReader(content_type, request.stream()).read()
            if not form.filename:
                raise NoFileSelected
            fields = form.fields
            name = form.filename
            body = early_limited(request, limits, form.file)
            await intake.submit_file(caller.owner_id, name, lambda: fields.get("mapping") or DEFAULT_MAPPING, body)
    except OctavoError as error:
        return await _show(request, services, frame, error.status, wrong=error, chosen=fields.get("mapping"))
    return back_to("/conversions")


async def _show(
    request: Request,
    services: Services,
    frame: Frame,
    status: int = 200,
    *,
    asked: ListQuery | None = None,
    wrong: OctavoError | None = None,
    chosen: str | None = None,
) -> Response:
    asked, owner = asked or ListQuery(), frame.caller.owner_id
    async with services.database.connection() as connection:
        listed = await load_rows(connection, frame, asked)
        mappings = await list_mappings(connection, owner)
        state = await _state(connection, frame, asked)
    shown: dict[str, Any] = {
        "rows": listed.rows,
        "review": listed.review,
        **state,
        "more": asked.address(cursor=listed.following) if listed.following else None,
        "rows_address": asked.address("/conversions/rows", cursor=asked.cursor),
        "mappings": {one.name: one.title for one in mappings if not one.error},
        "chosen": chosen or DEFAULT_MAPPING,
        "wrong": wrong,
    }
    return render(request, "conversions.html", frame, status, **shown)


async def _state(connection: Connection, frame: Frame, asked: ListQuery) -> dict[str, Any]:
    """Return the number of conversions in each state, and the progress of batches."""
    owner = frame.caller.owner_id
    counts, batches = await count_states(connection, owner), await list_batches(connection, owner, asked.batch)
    return {"counts": counts, "batches": batches, "tabs": TABS, "asked": asked}


@dataclass(frozen=True, slots=True)
class ListedRows:
    """A page of the list of conversions. Only the first page has `review`, the conversions that need review."""

    rows: list[Row]
    review: list[Row]
    following: str | None


async def load_rows(connection: Connection, frame: Frame, asked: ListQuery) -> ListedRows:
    owner, review = frame.caller.owner_id, list[StoredConversion]()
    if asked.is_first:
        found = await list_conversions(
            connection, owner, status="needs_review", batch=asked.batch, cursor=None, limit=REVIEW_ROWS
        )
        review = found.items
    page = await list_conversions(
        connection,
        owner,
        status=asked.status or "settled",
        batch=asked.batch,
        cursor=asked.cursor,
        limit=ROWS,
    )
    ids = [one.id for one in (*review, *page.items)]
    jobs = await find_jobs(connection, owner, ids)
    sure = await summarise_confidence(connection, owner, ids)
    documents = [one.document_id for one in (*review, *page.items) if one.document_id]
    titles = {one.id: one.title for one in await find_documents(connection, owner, documents)} if documents else {}

    def row(one: StoredConversion) -> Row:
        words = describe_conversion(one, jobs.get(one.id), sure.get(one.id), frame.now)
        title = titles.get(one.document_id) if one.document_id else None
        return Row(one, title or one.filename, words, sure.get(one.id))

    return ListedRows([row(one) for one in page.items], [row(one) for one in review], page.next_cursor)


# Texts --------------------------------------------------------------------------------------------------------------


CHOOSE = StatusAction(mark("Choose another"), "/conversions#file", "get")


def describe_conversion(
    found: StoredConversion, job: JobView | None, sure: ConfidenceSummary | None, now: datetime
) -> StatusText:
    """Return the status texts of a conversion.

    `sure` summarises the confidence in the extracted values; it is None while there are no values.
    """
    if found.archived_at:
        return StatusText(
            "",
            "box",
            _("Archived"),
            _("Result expired and was deleted on %(date)s", date=format_date(found.archived_at.date(), now.date())),
        )
    if found.status == JobStatus.COMPLETE:
        return _complete(found, sure)
    if found.status in {JobStatus.FAILED, JobStatus.DEAD_LETTER, JobStatus.CANCELLED}:
        return _ended(found, job)
    cancel = StatusAction(_("Cancel"), f"/actions/jobs/{found.id}/cancel")
    if found.status == JobStatus.PROCESSING:
        return StatusText("run", "play", _("Converting"), None, (cancel,), eta=format_eta(job.eta) if job else None)
    why = job.waiting_because if job else None
    try_now = StatusAction(_("Try now"), f"/actions/jobs/{found.id}/retry")
    verbs = (try_now, cancel) if why and why.is_retry else (cancel,)
    return StatusText("", "clock", _("Waiting"), why.detail[:1].upper() + why.detail[1:] if why else None, verbs)


def _complete(found: StoredConversion, sure: ConfidenceSummary | None) -> StatusText:
    address = f"/conversions/{found.id}"
    if sure and (line := _doubt(sure)):
        return StatusText("warn", "warning", _("Needs review"), line, (StatusAction(_("Review"), address, "get"),))
    return StatusText("ok", "check", _("Complete"), None, (StatusAction(_("Open"), address, "get"),))


def _doubt(sure: ConfidenceSummary) -> str | None:
    if sure.unverified:
        return _(
            "%(unverified)s of %(count)s to check",
            unverified=format_number(sure.unverified),
            count=count_of(sure.found, "value"),
        )
    if sure.missing:
        return _("%(count)s missing", count=count_of(sure.missing, "required value"))
    if sure.broken:
        return _("%(count)s failed", count=count_of(sure.broken, "check"))
    return None


def _ended(found: StoredConversion, job: JobView | None) -> StatusText:
    again = f"/actions/jobs/{found.id}/retry"
    if found.status == JobStatus.CANCELLED or found.error_code in {None, "CANCELLED"}:
        return StatusText("", "close", _("Cancelled"), _("Stopped by you"), (StatusAction(_("Start again"), again),))
    cause = f"{(found.error_message or '').rstrip('.')} ({found.error_code})"
    if found.status == JobStatus.DEAD_LETTER:
        tries = f"{count_of(job.max_attempts, 'attempt')}: " if job else ""
        return StatusText("bad", "error", _("Failed for good"), tries + cause, (StatusAction(_("Try again"), again),))
    # A refused file was not stored, so it cannot be retried.
    retried = found.sha256 is not None and is_retried(found.error_code or "")
    return StatusText("bad", "error", _("Failed"), cause, (StatusAction(_("Try again"), again) if retried else CHOOSE,))
