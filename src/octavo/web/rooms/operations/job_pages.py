"""Pages for administrators with the jobs of all accounts: a filtered list, and one job with its details."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Form, Query, Request, Response

from octavo.core.http import Page, make_cursor, read_cursor
from octavo.core.texts import gettext as _
from octavo.core.texts import mark
from octavo.core.types import JobStatus
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.queue import CANCELLABLE, RETRYABLE, cancel_jobs, discard_dead_letters, prioritise_jobs, retry_jobs
from octavo.jobs.views import find_jobs, list_events_of_job, show_job
from octavo.records.jobs import JobView, finished_words, stage_words
from octavo.web.context.services import ServicesOf
from octavo.web.rooms.operations.pages import (
    CHIPS,
    OTHER_STATES,
    STATES,
    STAYS,
    Administrator,
    OperationsFrame,
    find_titles,
)
from octavo.web.shell.forms import Question, ask
from octavo.web.shell.frame import back_to, render

router = APIRouter(include_in_schema=False, prefix="/operations/jobs")
QUERIES = load_queries("operations")
ROWS = 50
TABS = {"": mark("Open"), **{name: words for name, (words, _) in STATES.items()}, **OTHER_STATES}


@router.get("")
async def jobs(
    request: Request,
    services: ServicesOf,
    frame: OperationsFrame,
    status: str = "",
    kind: Annotated[str, Query(max_length=100, pattern=r"^[\w.:-]*$")] = "",
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> Response:
    """Show the list of jobs. Filters are query parameters; an unknown status is ignored."""
    state = status if status in TABS else ""
    async with services.database.connection() as connection:
        page = await _list(connection, [state] if state else list(STATES), kind or None, cursor)
        titles = await find_titles(connection, frame.caller.owner_id, page.items)
        kinds = [row["name"] for row in await fetch_rows(connection, QUERIES.kinds, {})]
        counts = (await fetch_rows(connection, QUERIES.counts, {}))[0]

    def address(**changed: str) -> str:
        wanted = {name: value for name, value in ({"status": state, "kind": kind} | changed).items() if value}
        return f"/operations/jobs?{urlencode(wanted)}" if wanted else "/operations/jobs"

    return render(
        request,
        "jobs.html",
        frame,
        jobs=page.items,
        titles=titles,
        kinds=kinds,
        counts=counts,
        tabs=TABS,
        chips=CHIPS,
        state=state,
        kind=kind,
        address=address,
        stage_words=stage_words,
        now=counts["now"],
        more=address(cursor=page.next_cursor) if page.next_cursor else None,
    )


async def _list(connection: Connection, states: list[str], kind: str | None, cursor: str | None) -> Page[JobView]:
    before_at, before_id = read_cursor(cursor) if cursor else (None, None)
    values = {"states": states, "kind": kind, "before_at": before_at, "before_id": before_id, "most": ROWS + 1}
    rows = await fetch_rows(connection, QUERIES.jobs, values)
    found = await find_jobs(connection, None, [row["id"] for row in rows[:ROWS]])
    more = make_cursor(rows[ROWS - 1]["at"], rows[ROWS - 1]["id"]) if len(rows) > ROWS else None
    return Page([found[row["id"]] for row in rows[:ROWS] if row["id"] in found], more)


@router.get("/{job}")
async def show(request: Request, services: ServicesOf, frame: OperationsFrame, job: UUID) -> Response:
    async with services.database.connection() as connection:
        found = await show_job(connection, None, job)
        events = await list_events_of_job(connection, None, job)
        titles = await find_titles(connection, frame.caller.owner_id, [found])
        now = (await fetch_rows(connection, QUERIES.counts, {}))[0]["now"]
        owners = await fetch_rows(connection, QUERIES.job_owner, {"job": job})
    return render(
        request,
        "job.html",
        frame,
        job=found,
        owner=owners[0]["name"] if owners else None,
        events=events,
        title=titles.get(found.document_id),
        chip_row=CHIPS[found.status],
        stage=stage_words(found),
        finished_words=finished_words,
        may_cancel=found.status in CANCELLABLE and found.status != JobStatus.DEAD_LETTER,
        may_retry=found.status in RETRYABLE,
        gave_up=found.status == JobStatus.DEAD_LETTER,
        now=now,
    )


# Actions -----------------------------------------------------------------------------------------------------------


@router.post("/{job}/cancel")
async def cancel(services: ServicesOf, caller: Administrator, job: UUID) -> Response:
    del caller
    async with services.database.transaction() as connection:
        await cancel_jobs(connection, None, [job])
    return back_to(f"/operations/jobs/{job}")


@router.post("/{job}/prioritise")
async def prioritise(services: ServicesOf, caller: Administrator, job: UUID) -> Response:
    """Move an unfinished job ahead of its account's imports."""
    del caller
    async with services.database.transaction() as connection:
        await prioritise_jobs(connection, None, [job])
    return back_to(f"/operations/jobs/{job}")


@router.post("/{job}/resume")
async def resume(services: ServicesOf, caller: Administrator, job: UUID) -> Response:
    """Resume a job after its last finished stage."""
    del caller
    async with services.database.transaction() as connection:
        await retry_jobs(connection, None, [job])
    return back_to(f"/operations/jobs/{job}")


@router.post("/{job}/restart")
async def restart(services: ServicesOf, caller: Administrator, job: UUID) -> Response:
    del caller
    async with services.database.transaction() as connection:
        await retry_jobs(connection, None, [job], from_stage="")
    return back_to(f"/operations/jobs/{job}")


@router.post("/{job}/discard")
async def discard(
    request: Request,
    services: ServicesOf,
    frame: OperationsFrame,
    job: UUID,
    confirmed: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    here = f"/operations/jobs/{job}"
    if not confirmed:
        return ask(request, Question(_("Discard 1 failed job?"), STAYS, f"{here}/discard", _("Discard 1"), here), frame)
    async with services.database.transaction() as connection:
        await discard_dead_letters(connection, [job])
    return back_to(here)
