"""The list of conversions with their status, and the form to add PDFs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from octavo.convert.conversions import ConfidenceSummary, StoredConversion, list_conversions, summarise_confidence
from octavo.convert.mappings.stored_mappings import DEFAULT_MAPPING, list_mappings
from octavo.core.errors import OctavoError
from octavo.database import Connection
from octavo.jobs.views import find_jobs
from octavo.web.context.callers import WriteCaller
from octavo.web.context.intake import LimitsOf, early_limited
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.multipart import FormReader
from octavo.web.rooms.conversions.api import conversion_intake
from octavo.web.rooms.conversions.texts import describe_conversion
from octavo.web.shell.document_status import StatusText
from octavo.web.shell.forms import NoFileSelected
from octavo.web.shell.frame import Frame, FrameFor
from octavo.web.shell.templates import back_to, render

router = APIRouter(include_in_schema=False, prefix="/conversions")
ConversionsFrame = Annotated[Frame, Depends(FrameFor("conversions"))]
Cursor = Annotated[str | None, Query(max_length=500)]
ROWS = 50


@dataclass(frozen=True, slots=True)
class Row:
    found: StoredConversion
    words: StatusText
    sure: ConfidenceSummary | None


@router.get("")
async def list_page(request: Request, services: ServicesOf, frame: ConversionsFrame, cursor: Cursor = None) -> Response:
    return await _show(request, services, frame, cursor=cursor)


@router.get("/rows")
async def show_rows(request: Request, services: ServicesOf, frame: ConversionsFrame, cursor: Cursor = None) -> Response:
    """The rows of the list, for live updates."""
    async with services.database.connection() as connection:
        rows, _ = await load_rows(connection, frame, cursor)
    return render(request, "conversion_rows.html", frame, rows=rows)


@router.post("")
async def convert(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: ConversionsFrame,
    limits: LimitsOf,
    content_type: Annotated[str, Header()] = "",
) -> Response:
    """Convert one file; scripts send several files one by one.

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
    cursor: str | None = None,
    wrong: OctavoError | None = None,
    chosen: str | None = None,
) -> Response:
    async with services.database.connection() as connection:
        rows, following = await load_rows(connection, frame, cursor)
        mappings = await list_mappings(connection, frame.caller.owner_id)
    shown: dict[str, Any] = {
        "rows": rows,
        "more": f"/conversions?cursor={following}" if following else None,
        "cursor": cursor,
        "mappings": {one.name: one.title for one in mappings if not one.error},
        "chosen": chosen or DEFAULT_MAPPING,
        "wrong": wrong,
    }
    return render(request, "conversions.html", frame, status, **shown)


async def load_rows(connection: Connection, frame: Frame, cursor: str | None) -> tuple[list[Row], str | None]:
    owner = frame.caller.owner_id
    page = await list_conversions(connection, owner, status=None, cursor=cursor, limit=ROWS)
    ids = [one.id for one in page.items]
    jobs = await find_jobs(connection, owner, ids)
    sure = await summarise_confidence(connection, owner, ids)
    rows = [
        Row(one, describe_conversion(one, jobs.get(one.id), sure.get(one.id), frame.now), sure.get(one.id))
        for one in page.items
    ]
    return rows, page.next_cursor
