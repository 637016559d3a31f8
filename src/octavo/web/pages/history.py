"""What happened to a document: its revisions with their stages and times, and every event."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from octavo.jobs.views import list_jobs
from octavo.web.pages import render
from octavo.web.pages.frame import LibraryFrame
from octavo.web.pages.happenings import list_happenings, stage_done
from octavo.web.pages.reader import find_row, read_id, read_number
from octavo.web.parts import PartsOf

router = APIRouter(include_in_schema=False, prefix="/documents/{document}/history")
MOST_EVENTS = 100
MOST_JOBS = 50


@router.get("")
async def history(
    request: Request,
    parts: PartsOf,
    frame: LibraryFrame,
    document: str,
    before: str = "",
) -> Response:
    ident, owner = read_id(document), frame.caller.owner_id
    async with parts.database.connection() as connection:
        row = await find_row(connection, frame, ident)
        happened = await list_happenings(connection, owner, ident, before=read_number(before), most=MOST_EVENTS + 1)
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
        earlier=more,
        is_first=not before,
    )
