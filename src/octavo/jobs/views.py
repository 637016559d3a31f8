"""Jobs, events and workers, in the form that the API returns and the command line prints.

Also explains why a job is waiting. If `owner_id` is None, functions return the jobs of all accounts, which only
administrators may see.

Events are read so that none is missed. Event ids are assigned before transactions commit, so an event can become
visible after an event with a greater id. Readers therefore first read the horizon: the highest id up to which no open
transaction can still add events. In a second statement, they read only events up to the horizon. Events are sorted by
(epoch, id); a new epoch begins when a backup is restored into another PostgreSQL cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from octavo.core.errors import BadInput, NotFound
from octavo.core.formatting import format_number
from octavo.core.http import Page, make_cursor, read_cursor
from octavo.core.texts import current_catalogue
from octavo.core.texts import gettext as _
from octavo.core.types import JobStatus, Lane
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.records.jobs import Eta, EventView, JobError, JobView, Progress, StageView, WaitingBecause, WorkerView

QUERIES = load_queries("job_views")
DEFAULT_LIMIT = 50
MOST_LIMIT = 500
# The view counts positions only up to this number.
COUNTED_PLACES = 1000


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
    """List jobs, newest first.

    A page starts after the job that the cursor points to, so new jobs do not shift it.
    """
    before_at, before_id = read_cursor(cursor) if cursor else (None, None)
    filters = {"status": status, "kind": kind, "document": document_id, "before_at": before_at, "before_id": before_id}
    rows = await _read_jobs(connection, owner_id, filters, limit + 1)
    page = rows[:limit]
    more = make_cursor(page[-1]["created_at"], page[-1]["id"]) if len(rows) > limit else None
    return Page(await _as_views(connection, page, with_parts=False), more)


async def dead_letters(
    connection: Connection, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[JobView]:
    """List the jobs that failed for good (dead letters), for all owners."""
    return await list_jobs(connection, None, status=JobStatus.DEAD_LETTER, cursor=cursor, limit=limit)


async def show_job(connection: Connection, owner_id: UUID | None, job: UUID) -> JobView:
    rows = await _read_jobs(connection, owner_id, {"job": job}, 1)
    if not rows:
        raise NotFound
    return (await _as_views(connection, rows, with_parts=True))[0]


async def find_jobs(connection: Connection, owner_id: UUID | None, jobs: Sequence[UUID]) -> dict[UUID, JobView]:
    """Find jobs by id. Missing jobs are left out."""
    rows = await _read_jobs(connection, owner_id, {"jobs": list(jobs)}, len(jobs))
    return {view.id: view for view in await _as_views(connection, rows, with_parts=False)}


async def name_jobs(connection: Connection, part: str, most: int) -> dict[UUID, str]:
    """Find jobs of all accounts by part of their id. Returns a mapping from job id to job kind.

    A job matches if its id, or the last eight characters of its id, begin with `part`, or if its id ends with `part`.
    """
    rows = await fetch_rows(connection, QUERIES.named_jobs, {"part": part, "most": most})
    return {row["id"]: row["kind"] for row in rows}


async def list_events_of_job(
    connection: Connection, owner_id: UUID | None, job: UUID, *, limit: int = MOST_LIMIT
) -> list[EventView]:
    """Return the latest events of a job, oldest first."""
    rows = await fetch_rows(connection, QUERIES.events, {"owner": owner_id, "job": job, "most": limit})
    return [EventView(**row) for row in reversed(rows)]


async def list_workers(connection: Connection) -> list[WorkerView]:
    return [WorkerView(**row) for row in await fetch_rows(connection, QUERIES.workers, {})]


async def count_jobs(connection: Connection) -> dict[str, int]:
    """Count the jobs in these states: queued, processing, failed, dead_letter and paused."""
    return {row["status"]: row["count"] for row in await fetch_rows(connection, QUERIES.depths, {})}


async def _read_jobs(connection: Connection, owner_id: UUID | None, filters: Row, most: int) -> list[Row]:
    names = ("job", "jobs", "status", "kind", "document", "before_at", "before_id")
    values = {name: filters.get(name) for name in names} | {"owner": owner_id, "most": most}
    return await fetch_rows(connection, QUERIES.jobs, values)


async def _as_views(connection: Connection, rows: Sequence[Row], *, with_parts: bool) -> list[JobView]:
    """Convert database rows to the jobs that the API returns.

    This takes three queries, regardless of the number of jobs.
    """
    if not rows:
        return []
    jobs = [row["id"] for row in rows]
    waiting = {row["job_id"]: row for row in await fetch_rows(connection, QUERIES.waiting, {"jobs": jobs})}
    etas = {row["job_id"]: row for row in await fetch_rows(connection, QUERIES.etas, {"jobs": jobs})}
    stages: dict[UUID, list[StageView]] = {job: [] for job in jobs}
    for row in await fetch_rows(connection, QUERIES.stages, {"jobs": jobs, "with_parts": with_parts}):
        stages[row.pop("job_id")].append(StageView(**row))
    return [_as_view(row, waiting.get(row["id"]), etas.get(row["id"]), stages[row["id"]]) for row in rows]


def _as_view(row: Row, waiting: Row | None, eta: Row | None, stages: list[StageView]) -> JobView:
    rest = dict(row)
    code, message = rest.pop("error_code"), rest.pop("error_message")
    return JobView(
        status=JobStatus(rest.pop("status")),
        lane=Lane(rest.pop("lane")),
        progress=Progress(rest.pop("done"), rest.pop("total"), rest.pop("unit")),
        eta=Eta(round(eta["low_seconds"], 1), round(eta["high_seconds"], 1)) if eta else None,
        waiting_because=waiting_because(waiting["reason"], waiting["detail"]) if waiting else None,
        error=JobError(code, message) if code else None,
        stages=stages,
        **rest,
    )


def waiting_because(reason: str, facts: dict[str, Any]) -> WaitingBecause:
    if "run_after" in facts:
        facts = facts | {"run_after": datetime.fromisoformat(facts["run_after"]).astimezone(UTC).isoformat()}
    return WaitingBecause(reason, explain_waiting(reason, facts), facts)


def explain_waiting(reason: str, facts: Mapping[str, Any], zone: tzinfo | None = UTC) -> str:
    """Describe in words why a job is waiting.

    Times are in the given time zone; None means the time zone of this machine.
    """
    return SENTENCES[reason](facts, zone)


def _no_worker(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    return _("no running worker supports this job kind") if facts["live_workers"] else _("no worker is running")


def _position(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    place: int = facts["position"]
    if place > COUNTED_PLACES:
        return _("behind %(number)s+ others", number=format_number(COUNTED_PLACES))
    if current_catalogue().is_english:
        return f"{ordinal(place)} in the queue"
    return _("number %(number)s in the queue", number=format_number(place))


def _next_try(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    when = datetime.fromisoformat(facts["run_after"]).astimezone(zone)
    today = when.date() == datetime.now(when.tzinfo).date()
    return f"{when:%H:%M %Z}" if today else f"{when:%Y-%m-%d %H:%M %Z}"


def _backing_off(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    time = _next_try(facts, zone)
    if not facts["attempt"]:
        return _("starts %(time)s", time=time)
    counted = {"attempt": facts["failures"] + 1, "most": facts["max_attempts"]}
    if "error" not in facts:
        return _("next attempt %(time)s (attempt %(attempt)s of %(most)s)", time=time, **counted)
    code = facts["error"]["code"]
    return _("next attempt %(time)s (attempt %(attempt)s of %(most)s) after %(code)s", time=time, code=code, **counted)


def _provider(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    time = _next_try(facts, zone)
    return _("the model provider is not accepting requests, next attempt %(time)s", time=time)


def _cap(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    group, colon, _rest = facts["cap_key"].partition(":")
    if colon:
        return _("%(number)s of this %(group)s already running", number=facts["taken"], group=group)
    return _("%(number)s of %(group)s already running", number=facts["taken"], group=group)


def _paused(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    return _("over budget") if facts.get("code") == "OVER_BUDGET" else facts.get("message") or _("paused")


def ordinal(number: int) -> str:
    teens = 11 <= number % 100 <= 13  # noqa: PLR2004 - eleventh, twelfth, thirteenth
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


SENTENCES: dict[str, Callable[[Mapping[str, Any], tzinfo | None], str]] = {
    "no_worker": _no_worker,
    "behind": _position,
    "backing_off": _backing_off,
    "provider": _provider,
    "cap": _cap,
    "paused": _paused,
    "imports_paused": lambda _facts, _zone: _("imports are paused"),
    "alone": lambda _facts, _zone: _(
        "workers crashed while running this job; a worker runs only one such job at a time"
    ),
}


EVENT_QUERIES = load_queries("events")
# At most 18 digits, so that both numbers fit into a bigint.
_CURSOR = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


class BadCursor(BadInput):
    """Invalid event cursor. Send the id of an event, or a cursor from an earlier response."""

    code = "BAD_CURSOR"


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A position in the event log. A reader with this cursor has read all events up to this position."""

    epoch: int
    id: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.id}"


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    epoch: int
    at: datetime
    process_id: UUID
    kind: str
    state_after: str | None
    owner_id: UUID
    document_id: UUID | None
    detail: dict[str, Any]

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.epoch, self.id)


def parse_cursor(text: str) -> Cursor:
    found = _CURSOR.fullmatch(text)
    if not found:
        raise BadCursor
    return Cursor(int(found[1]), int(found[2]))


async def read_events(connection: Connection, after: Cursor | None = None, limit: int = 1000) -> list[Event]:
    """Return the next events of all accounts after a cursor."""
    return await _read(connection, EVENT_QUERIES.read, {**await _place(connection, after), "limit": limit})


async def read_owner_events(connection: Connection, owner: UUID, after: Cursor, limit: int = 1000) -> list[Event]:
    """Return the next events of one account after a cursor."""
    values = {**await _place(connection, after), "owner": owner, "limit": limit}
    return await _read(connection, EVENT_QUERIES.read_of, values)


async def keep_seen(connection: Connection, events: Sequence[Event]) -> list[Event]:
    """Return the events whose documents are visible through this database connection.

    The connections of limited members show only some documents.
    """
    wanted = list({event.document_id for event in events if event.document_id})
    rows = await (await connection.execute(EVENT_QUERIES.seen_documents, {"documents": wanted})).fetchall()
    seen = {row[0] for row in rows}
    return [event for event in events if event.document_id in seen]


async def count_owner_events(connection: Connection, owner: UUID, after: Cursor, most: int) -> int:
    """Count the events of one account after a cursor, up to `most`."""
    values = {**await _place(connection, after), "owner": owner, "most": most}
    row = await (await connection.execute(EVENT_QUERIES.count_of, values)).fetchone()
    return row[0] if row else 0


async def latest_cursor(connection: Connection) -> Cursor:
    """Return a cursor after the last event, for a reader that needs only new events."""
    row = await (await connection.execute(EVENT_QUERIES.latest)).fetchone()
    return Cursor(*row) if row else Cursor(0, 0)


async def is_known(connection: Connection, cursor: Cursor) -> bool:
    """Whether the cursor comes from this database.

    Returns False if it comes from another database, or if this database was restored from a backup that is older than
    the cursor.
    """
    values = {"epoch": cursor.epoch, "id": cursor.id}
    row = await (await connection.execute(EVENT_QUERIES.is_known, values)).fetchone()
    return row is not None and bool(row[0])


async def _read(connection: Connection, query: bytes, values: dict[str, Any]) -> list[Event]:
    async with connection.cursor(row_factory=class_row(Event)) as cursor:
        await cursor.execute(query, values)
        return await cursor.fetchall()


async def _place(connection: Connection, after: Cursor | None) -> dict[str, Any]:
    row = await (await connection.execute(EVENT_QUERIES.horizon)).fetchone()
    start = after or Cursor(0, 0)
    return {"epoch": start.epoch, "id": start.id, "horizon": row[0] if row else 0}
