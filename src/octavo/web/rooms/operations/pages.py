"""The operations page for administrators: health, failed jobs, workers and schedules, with charts as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Request, Response

from octavo.ai.calls import Circuit, list_circuits, try_now
from octavo.ai.ledger import Budgets
from octavo.core.errors import BadInput, NotFound, Unauthenticated
from octavo.core.formatting import count_of, format_number, format_span
from octavo.core.texts import Texts, mark
from octavo.core.texts import gettext as _
from octavo.core.types import JobStatus
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.jobs.kinds import ScheduleState, list_schedules, run_now
from octavo.jobs.queue import requeue_dead_letters
from octavo.jobs.views import WorkerView, dead_letters, list_workers
from octavo.ops.activity import AfterDiscard, discard, read_spending, read_stage_times
from octavo.ops.health import Check
from octavo.owners import Caller
from octavo.records.jobs import JobView, Spending, StageTime, stage_words
from octavo.web.context.callers import OptionalCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.shell.document_status import Tone
from octavo.web.shell.forms import Question, ask
from octavo.web.shell.frame import Frame, back_to, load_frame, render

router = APIRouter(include_in_schema=False, prefix="/operations")
QUERIES = load_queries("operations")
MOST_LETTERS = 50
CHART_HOURS = 24
STAYS = mark("The jobs will be removed from this list. Their documents and events are kept.")
# The follow-up action of each way to discard a job, and the text of its confirmation.
DISCARDS: dict[str, tuple[AfterDiscard, str]] = {
    "discard": ("nothing", STAYS),
    "discard_restart": (
        "restart",
        mark("The results of the jobs are deleted, and the jobs run again from the beginning."),
    ),
    "discard_fail": ("fail_parent", mark("The analyses are marked as failed. Existing answers are kept.")),
}
STEP = timedelta(minutes=30)
MINUTE = timedelta(minutes=1)
HEIGHT = 100
TIMES = 5


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A job that failed for good.

    `title` is None if the document belongs to another account, because administrators do not see the titles of
    documents of other accounts.
    """

    job: JobView
    title: str | None
    stage: str


@dataclass(frozen=True, slots=True)
class Overview:
    health: Health
    load: list[str]
    counts: Row
    letters: list[DeadLetter]
    more_letters: bool
    workers: list[WorkerView]
    schedules: list[ScheduleState]
    circuits: list[Circuit]
    stages: list[StageTime]
    spending: Spending

    def last_state(self, schedule: ScheduleState) -> str:
        """Return the state of the last job of a schedule, in words."""
        return _(CHIPS[JobStatus(schedule.last_status)][2]) if schedule.last_status else ""


# Access ----------------------------------------------------------------------------------------------------------


async def find_administrator(services: ServicesOf, caller: OptionalCaller) -> Caller:
    """Return the caller if they are an administrator. Other callers get a 404 response or must sign in first."""
    if caller is None and not services.settings.anonymous:
        raise Unauthenticated
    if caller is None or not caller.is_admin:
        raise NotFound
    return caller


Administrator = Annotated[Caller, Depends(find_administrator)]


async def operations_frame(services: ServicesOf, caller: Administrator) -> Frame:
    async with services.database.connection() as connection:
        return await load_frame(connection, caller, "operations", services.settings)


OperationsFrame = Annotated[Frame, Depends(operations_frame)]


# Pages -------------------------------------------------------------------------------------------------------------


@router.get("")
async def operations(request: Request, services: ServicesOf, frame: OperationsFrame) -> Response:
    overview = await _look(services, frame.caller)
    async with services.database.connection() as connection:
        chart = await _draw(connection, overview.counts)
    return render(request, "operations.html", frame, now=overview.counts["now"], o=overview, states=STATES, chart=chart)


@router.get("/pieces")
async def pieces(request: Request, services: ServicesOf, caller: Administrator) -> Response:
    """Return the sections of the page that are updated live."""
    overview = await _look(services, caller)
    return render(request, "operations_pieces.html", None, now=overview.counts["now"], o=overview, states=STATES)


async def _look(services: Services, caller: Caller) -> Overview:
    checks = await services.readiness()
    async with services.database.connection() as connection:
        counts = (await fetch_rows(connection, QUERIES.counts, {}))[0]
        page = await dead_letters(connection, limit=MOST_LETTERS)
        workers = await list_workers(connection)
        schedules = await list_schedules(connection)
        circuits = await list_circuits(connection, services.settings)
        stages = await read_stage_times(connection)
        spending = await read_spending(connection, Budgets.of(services.settings))
        titles = await find_titles(connection, caller.owner_id, page.items)
    waits = waiting_time(counts["oldest_at"], counts["now"])
    return Overview(
        health=describe_health(checks, workers, waits),
        load=describe_load(workers, waits, counts["dead_letter"]),
        counts=counts,
        letters=[DeadLetter(job, titles.get(job.document_id), stage_words(job)) for job in page.items],
        more_letters=page.next_cursor is not None,
        workers=workers,
        schedules=schedules,
        circuits=circuits,
        stages=stages,
        spending=spending,
    )


async def _draw(connection: Connection, counts: Row) -> Chart:
    rows = await fetch_rows(connection, QUERIES.depth, {"hours": CHART_HOURS})
    changes = [(row["minute"], row["change"]) for row in rows]
    return draw_depth(follow_depth(changes, counts["now"], CHART_HOURS))


async def find_titles(connection: Connection, owner: UUID, jobs: Sequence[JobView]) -> dict[UUID | None, str]:
    documents = [job.document_id for job in jobs if job.document_id]
    rows = await fetch_rows(connection, QUERIES.titles, {"owner": owner, "documents": documents}) if documents else []
    return {row["id"]: row["title"] for row in rows}


# Actions -----------------------------------------------------------------------------------------------------------


@router.post("/dead-letters")
async def change_letters(
    request: Request,
    services: ServicesOf,
    frame: OperationsFrame,
    action: Annotated[Literal["resume", "restart", "discard", "discard_restart", "discard_fail"], Form()],
    ids: Annotated[list[UUID] | None, Form(max_length=1000)] = None,
    confirmed: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Requeue or discard the selected jobs, which failed for good (dead letters).

    If one of them has changed in the meantime, none is requeued or discarded.
    """
    if not ids:
        raise BadInput(_("Select at least one job first."))
    if action in DISCARDS and not confirmed:
        return ask(request, _question(ids, action), frame)
    async with services.database.transaction() as connection:
        if action in DISCARDS:
            await discard(connection, ids, DISCARDS[action][0])
        else:
            await requeue_dead_letters(connection, ids, from_stage="" if action == "restart" else None)
    return back_to("/operations")


def _question(ids: Sequence[UUID], action: str) -> Question:
    return Question(
        title=_("Discard %(count)s?", count=count_of(len(ids), "failed job")),
        text=DISCARDS[action][1],
        action="/operations/dead-letters",
        verb=_("Discard %(count)s", count=format_number(len(ids))),
        keep="/operations",
        fields=[("action", action), *(("ids", str(one)) for one in ids)],
    )


@router.post("/schedules/{name}/run")
async def run_schedule(services: ServicesOf, caller: Administrator, name: str) -> Response:
    del caller
    async with services.database.transaction() as connection:
        job = await run_now(connection, name)
    return back_to(f"/operations/jobs/{job}")


@router.post("/circuits/{name}/try")
async def try_circuit(services: ServicesOf, caller: Administrator, name: str) -> Response:
    """Let the next call to a provider or service through as a test, although its circuit breaker is open."""
    del caller
    async with services.database.transaction() as connection:
        await try_now(connection, services.settings, name)
    return back_to("/operations#circuits-head")


@dataclass(frozen=True, slots=True)
class Point:
    """A point in the chart of the queue. `number` is the maximum length of the queue in the half hour that starts at
    `at`.
    """

    at: datetime
    number: int


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart that is drawn as SVG and stretched to the width of the page.

    `line` and `area` contain SVG coordinates. The labels are outside the SVG, so that they are not stretched.
    """

    line: str
    area: str
    width: int
    numbers: tuple[int, int, int]
    times: list[datetime]
    points: list[Point]
    highest: Point
    height: int = HEIGHT


def follow_depth(changes: Iterable[tuple[datetime, int]], now: datetime, hours: int) -> list[Point]:
    """Compute the length of the queue over time.

    Returns the maximum in each half hour. `changes` contains the change in length for each minute.
    """
    by_minute = dict[datetime, int](changes)
    at = now.replace(minute=now.minute // 30 * 30, second=0, microsecond=0) - timedelta(hours=hours)
    depth = sum(change for minute, change in by_minute.items() if minute < at)
    points: list[Point] = []
    while at <= now:
        highest, begin = depth, at
        while at < begin + STEP:
            depth += by_minute.get(at, 0)
            highest = max(highest, depth)
            at += MINUTE
        points.append(Point(begin, highest))
    return points


def draw_depth(points: Sequence[Point]) -> Chart:
    top = round_up(max(point.number for point in points))
    line = " ".join(f"{index},{HEIGHT - HEIGHT * one.number / top:.4g}" for index, one in enumerate(points))
    last = len(points) - 1
    return Chart(
        line=line,
        area=f"0,{HEIGHT} {line} {last},{HEIGHT}",
        width=last,
        numbers=(top, top // 2, 0),
        times=[points[last * part // (TIMES - 1)].at for part in range(TIMES)],
        points=list(points),
        highest=max(points, key=lambda point: point.number),
    )


def round_up(number: int) -> int:
    """Round a number up to a value for the top of a chart axis.

    The result is even, so that half of it can label the middle of the axis.
    """
    step = 2
    while step * 5 < number:
        step *= 10
    return next(step * times for times in range(1, 6) if step * times >= number)


# Texts --------------------------------------------------------------------------------------------------------------


SLOW_AFTER = timedelta(minutes=10)
# The filters in order, with label and tone.
STATES: dict[str, tuple[str, Tone]] = {
    "queued": (mark("Queued"), ""),
    "working": (mark("Working"), ""),
    "backing_off": (mark("Waiting to retry"), ""),
    "paused": (mark("Paused"), "warn"),
    "failed": (mark("Failed"), "bad"),
    "dead_letter": (mark("Failed for good"), "bad"),
}
# Jobs in these states are listed only if the filter selects the state.
OTHER_STATES = Texts({"complete": "Done", "cancelled": "Cancelled"})
CHIPS: dict[JobStatus, tuple[Tone, str, str]] = {
    JobStatus.QUEUED: ("", "clock", mark("Queued")),
    JobStatus.PROCESSING: ("run", "again", mark("Working")),
    JobStatus.COMPLETE: ("ok", "check", mark("Done")),
    JobStatus.FAILED: ("bad", "error", mark("Failed")),
    JobStatus.DEAD_LETTER: ("bad", "error", mark("Failed for good")),
    JobStatus.PAUSED: ("warn", "pause", mark("Paused")),
    JobStatus.CANCELLED: ("", "close", mark("Cancelled")),
}


@dataclass(frozen=True, slots=True)
class Health:
    """The health of the installation in words.

    `tone`, `glyph` and `chip` are the colour, icon and text of the status label. `wrong` has one message per problem.
    """

    tone: Tone
    glyph: str
    chip: str
    wrong: tuple[str, ...]


def describe_health(checks: Sequence[Check], workers: Sequence[WorkerView], waits: timedelta | None) -> Health:
    """Describe the most severe problems: failed checks and missing workers or, if there are none, a slow queue."""
    down = tuple(
        _("The %(name)s check failed: %(detail)s", name=check.name, detail=check.detail)
        for check in checks
        if not check.ok
    )
    if not any(worker.alive for worker in workers):
        down += (_("No worker is running, so no jobs are processed. Start one with `octavo worker`."),)
    if down:
        return Health("bad", "error", _("Not healthy"), down)
    if waits and waits > SLOW_AFTER:
        return Health(
            "warn", "warning", _("Slow"), (_("A job has been waiting for %(time)s.", time=format_span(waits)),)
        )
    return Health("ok", "check", _("Healthy"), ())


def describe_load(workers: Sequence[WorkerView], waits: timedelta | None, dead_letters: int) -> list[str]:
    alive = count_of(sum(worker.alive for worker in workers), "worker")
    waiting = _("oldest waiting %(time)s", time=format_span(waits)) if waits else _("no jobs waiting")
    return [alive, waiting, *([count_of(dead_letters, "failed job")] if dead_letters else [])]


def waiting_time(oldest: datetime | None, now: datetime) -> timedelta | None:
    return max(now - oldest, timedelta()) if oldest else None
