"""Jobs as people see them: what they are told about a job, and what they may ask of it.

The records here are the public form of jobs: the API answers them, and the command line prints them, as they are.
Whose jobs are meant is said in every call; `None` stands for everybody's and is for administrators only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from octavo.database import Connection, load_queries
from octavo.jobs import queue
from octavo.jobs.queue import IllegalTransition
from octavo.model.errors import NotFound
from octavo.model.pages import Page, make_cursor, read_cursor
from octavo.model.states import JOB_TRANSITIONS, RESTING, JobStatus

QUERIES = load_queries("job_views")
DEFAULT_LIMIT = 50
MOST_LIMIT = 500
# The place in line is not counted further than this; see the view job_waiting.
COUNTED_PLACES = 1000
CANCELLABLE = frozenset(status for status, after in JOB_TRANSITIONS.items() if JobStatus.CANCELLED in after)
RETRYABLE = frozenset(status for status in RESTING if JobStatus.QUEUED in JOB_TRANSITIONS[status])

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Progress:
    """Only finished things count."""

    done: int
    total: int | None
    unit: str | None


@dataclass(frozen=True, slots=True)
class Eta:
    low_seconds: float
    high_seconds: float


@dataclass(frozen=True, slots=True)
class WaitingBecause:
    """`detail` is a sentence for people, with times in UTC; `facts` is what it was made of."""

    reason: str
    detail: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JobError:
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class StageView:
    stage: str
    part: str | None
    attempt: int
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class JobView:
    """A list names only whole stages; a single job has the parts of its stages too."""

    id: UUID
    kind: str
    document_id: UUID | None
    status: JobStatus
    stage: str | None
    attempt: int
    failures: int
    max_attempts: int
    progress: Progress
    eta: Eta | None
    waiting_because: WaitingBecause | None
    error: JobError | None
    stages: list[StageView]
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None


@dataclass(frozen=True, slots=True)
class EventView:
    id: int
    at: datetime
    kind: str
    process_id: UUID
    document_id: UUID | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker that is not alive ended without a word in the last hour."""

    id: UUID
    host: str
    pid: int
    kinds: list[str]
    slots: int
    running: int
    alive: bool
    started_at: datetime
    heartbeat_at: datetime
    expires_at: datetime


# Reading -----------------------------------------------------------------------------------------------------------


async def list_jobs(
    connection: Connection,
    owner_id: UUID | None,
    *,
    status: JobStatus | None = None,
    kind: str | None = None,
    document_id: UUID | None = None,
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Page[JobView]:
    """Newest first. A page begins behind the cursor's job, so jobs that are added meanwhile move nothing."""
    before_at, before_id = read_cursor(cursor) if cursor else (None, None)
    filters = {"status": status, "kind": kind, "document": document_id, "before_at": before_at, "before_id": before_id}
    rows = await _read_jobs(connection, owner_id, filters, limit + 1)
    page = rows[:limit]
    more = make_cursor(page[-1]["created_at"], page[-1]["id"]) if len(rows) > limit else None
    return Page(await _as_views(connection, page, with_parts=False), more)


async def dead_letters(
    connection: Connection, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[JobView]:
    """What was given up, of all owners."""
    return await list_jobs(connection, None, status=JobStatus.DEAD_LETTER, cursor=cursor, limit=limit)


async def show_job(connection: Connection, owner_id: UUID | None, job: UUID) -> JobView:
    rows = await _read_jobs(connection, owner_id, {"job": job}, 1)
    if not rows:
        raise NotFound
    return (await _as_views(connection, rows, with_parts=True))[0]


async def list_events_of_job(
    connection: Connection, owner_id: UUID | None, job: UUID, *, limit: int = MOST_LIMIT
) -> list[EventView]:
    """The last things that happened to a job, in the order in which they did."""
    rows = await _fetch(connection, QUERIES.events, {"owner": owner_id, "job": job, "most": limit})
    return [EventView(**row) for row in reversed(rows)]


async def list_workers(connection: Connection) -> list[WorkerView]:
    return [WorkerView(**row) for row in await _fetch(connection, QUERIES.workers, {})]


async def count_jobs(connection: Connection) -> dict[str, int]:
    """How many are in each state that somebody may have to do something about."""
    return {row["status"]: row["count"] for row in await _fetch(connection, QUERIES.depths, {})}


async def _read_jobs(connection: Connection, owner_id: UUID | None, filters: Row, most: int) -> list[Row]:
    names = ("job", "status", "kind", "document", "before_at", "before_id")
    values = {name: filters.get(name) for name in names} | {"owner": owner_id, "most": most}
    return await _fetch(connection, QUERIES.jobs, values)


async def _as_views(connection: Connection, rows: Sequence[Row], *, with_parts: bool) -> list[JobView]:
    """Three more queries for the whole page, however many jobs it has."""
    if not rows:
        return []
    jobs = [row["id"] for row in rows]
    waiting = {row["job_id"]: row for row in await _fetch(connection, QUERIES.waiting, {"jobs": jobs})}
    etas = {row["job_id"]: row for row in await _fetch(connection, QUERIES.etas, {"jobs": jobs})}
    stages: dict[UUID, list[StageView]] = {job: [] for job in jobs}
    for row in await _fetch(connection, QUERIES.stages, {"jobs": jobs, "with_parts": with_parts}):
        stages[row.pop("job_id")].append(StageView(**row))
    return [_as_view(row, waiting.get(row["id"]), etas.get(row["id"]), stages[row["id"]]) for row in rows]


def _as_view(row: Row, waiting: Row | None, eta: Row | None, stages: list[StageView]) -> JobView:
    rest = dict(row)
    code, message = rest.pop("error_code"), rest.pop("error_message")
    return JobView(
        status=JobStatus(rest.pop("status")),
        progress=Progress(rest.pop("done"), rest.pop("total"), rest.pop("unit")),
        eta=Eta(round(eta["low_seconds"], 1), round(eta["high_seconds"], 1)) if eta else None,
        waiting_because=_waiting_because(waiting["reason"], waiting["detail"]) if waiting else None,
        error=JobError(code, message) if code else None,
        stages=stages,
        **rest,
    )


async def _fetch(connection: Connection, query: bytes, values: Row) -> list[Row]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, values)
        return [{name: _in_utc(value) for name, value in row.items()} for row in await cursor.fetchall()]


def _in_utc(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


# Why a job waits ---------------------------------------------------------------------------------------------------


def _waiting_because(reason: str, facts: Row) -> WaitingBecause:
    if "run_after" in facts:
        facts = facts | {"run_after": datetime.fromisoformat(facts["run_after"]).astimezone(UTC).isoformat()}
    return WaitingBecause(reason, explain_waiting(reason, facts), facts)


def explain_waiting(reason: str, facts: Mapping[str, Any], zone: tzinfo | None = UTC) -> str:
    """The reason in words, with times of a zone; `None` is the zone of this machine."""
    return SENTENCES[reason](facts, zone)


def _no_worker(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    return "no running worker knows this kind" if facts["live_workers"] else "no worker is running"


def _in_line(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    place: int = facts["position"]
    return f"{ordinal(place)} in line" if place <= COUNTED_PLACES else f"more than {COUNTED_PLACES} are before it"


def _backing_off(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    when = datetime.fromisoformat(facts["run_after"]).astimezone(zone)
    today = when.date() == datetime.now(when.tzinfo).date()
    time = f"{when:%H:%M %Z}" if today else f"{when:%Y-%m-%d %H:%M %Z}"
    if not facts["attempt"]:
        return f"starts {time}"
    after = f" after {facts['error']['code']}" if "error" in facts else ""
    return f"next try {time} (attempt {facts['failures'] + 1} of {facts['max_attempts']}){after}"


def _cap(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    group, colon, _ = facts["cap_key"].partition(":")
    return f"{facts['taken']} of {'this ' if colon else ''}{group} already run"


def _paused(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    return "over budget" if facts.get("code") == "OVER_BUDGET" else facts.get("message") or "paused"


def ordinal(number: int) -> str:
    teens = 11 <= number % 100 <= 13  # noqa: PLR2004 - eleventh, twelfth, thirteenth
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


SENTENCES: dict[str, Callable[[Mapping[str, Any], tzinfo | None], str]] = {
    "upload": lambda _facts, _zone: "its file has not arrived yet",
    "no_worker": _no_worker,
    "behind": _in_line,
    "backing_off": _backing_off,
    "cap": _cap,
    "paused": _paused,
    "alone": lambda _facts, _zone: "for an idle worker, because a worker ended while it ran",
}


# Asking ------------------------------------------------------------------------------------------------------------


async def retry_jobs(
    connection: Connection,
    owner_id: UUID | None,
    jobs: Iterable[UUID],
    *,
    from_stage: str | None = None,
    allowed: Collection[JobStatus] = RETRYABLE,
) -> int:
    """All of them or none: from their last checkpoint, from a stage, or with an empty stage from the beginning."""
    held = await _hold(connection, owner_id, jobs, allowed)
    for job in held:
        await queue.requeue(connection, job, from_stage=from_stage)
    return len(held)


async def cancel_jobs(connection: Connection, owner_id: UUID | None, jobs: Iterable[UUID]) -> int:
    """All of them or none, with what follows from them."""
    held = await _hold(connection, owner_id, jobs, CANCELLABLE)
    for job in held:
        await queue.cancel(connection, job)
    return len(held)


async def requeue_dead_letters(connection: Connection, jobs: Iterable[UUID], *, from_stage: str | None = None) -> int:
    return await retry_jobs(connection, None, jobs, from_stage=from_stage, allowed={JobStatus.DEAD_LETTER})


async def discard_dead_letters(connection: Connection, jobs: Iterable[UUID]) -> int:
    held = await _hold(connection, None, jobs, {JobStatus.DEAD_LETTER})
    for job in held:
        await queue.discard(connection, job)
    return len(held)


async def _hold(
    connection: Connection, owner_id: UUID | None, jobs: Iterable[UUID], allowed: Collection[JobStatus]
) -> list[UUID]:
    """Lock jobs that are this owner's and in one of these states, in an order in which their caps can be locked too."""
    wanted = set(jobs)
    rows = await _fetch(connection, QUERIES.lock_jobs, {"owner": owner_id, "jobs": list(wanted)})
    missing = wanted - {row["id"] for row in rows}
    if missing:
        raise NotFound(f"Job {min(missing)}.")
    for row in rows:
        if row["status"] not in allowed:
            raise IllegalTransition(f"Job {row['id']} is {row['status']}.")
    return [row["id"] for row in sorted(rows, key=lambda row: (row["cap_key"] or "", row["id"]))]
