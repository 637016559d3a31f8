"""Enqueues jobs, and cancels, requeues, pauses and discards them.

An action on several jobs is applied to all of them or to none. If a job is waiting for its next attempt, retrying it
starts that attempt immediately.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from octavo.core.errors import BadInput, NotFound
from octavo.core.instruments import DUPLICATES_PREVENTED, current_context
from octavo.core.types import JOB_TRANSITIONS, JSON, RESTING, JobStatus, Lane, new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.records.jobs import ImportState

QUERIES = load_queries("jobs")
JOB_QUERIES = load_queries("job_views")
CANCELLABLE = frozenset(status for status, after in JOB_TRANSITIONS.items() if JobStatus.CANCELLED in after)
RETRYABLE = frozenset(status for status in RESTING if JobStatus.QUEUED in JOB_TRANSITIONS[status])

# The maximum number of jobs in one statement.
AT_ONCE = 5000

UNFINISHED = frozenset({JobStatus.QUEUED, JobStatus.PROCESSING, JobStatus.PAUSED})


class UnknownKind(BadInput):
    """Unknown job kind."""

    code = "UNKNOWN_KIND"


class IllegalTransition(BadInput):
    """Not possible in the current state of the job."""

    code = "ILLEGAL_TRANSITION"
    status = 409


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to enqueue. There is at most one job per `key`.

    `cap` limits how many jobs with the same `cap_key` run at the same time. If `lane` is None, the job gets the lane of
    the newest job of its document.
    """

    kind: str
    owner_id: UUID
    input: dict[str, JSON] = field(default_factory=dict[str, JSON])
    key: str | None = None
    document_id: UUID | None = None
    parent_id: UUID | None = None
    priority: int = 5
    max_attempts: int | None = None
    delay_seconds: float | None = None
    cap_key: str | None = None
    cap: int | None = None
    lane: Lane | None = None
    id: UUID = field(default_factory=new_id)

    def as_json(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in NewJob.__dataclass_fields__}
        trace = current_context()
        return {name: str(value) if isinstance(value, UUID) else value for name, value in plain.items()} | (
            {"trace": trace} if trace else {}
        )


@dataclass(frozen=True, slots=True)
class EnqueuedJob:
    """The id of an enqueued job.

    `made` is true if the job was created, and false if a job with the same key already existed.
    """

    id: UUID
    made: bool


async def enqueue(connection: Connection, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    """Enqueue jobs, in the caller's transaction if there is one.

    PostgreSQL limits the size of a JSON value, so a large number of jobs is sent in several statements.
    """
    starts = range(0, len(jobs), AT_ONCE)
    return [made for start in starts for made in await _enqueue(connection, jobs[start : start + AT_ONCE])]


async def _enqueue(connection: Connection, jobs: Sequence[NewJob]) -> list[EnqueuedJob]:
    try:
        cursor = await connection.execute(QUERIES.enqueue, {"wanted": Jsonb([job.as_json() for job in jobs])})
    except psycopg.errors.ForeignKeyViolation as error:
        if error.diag.constraint_name == "job_kinds":
            raise UnknownKind(_first_line(error)) from None
        raise BadInput(_first_line(error)) from None
    enqueued = [EnqueuedJob(*row) for row in await cursor.fetchall()]
    for job, made in zip(jobs, enqueued, strict=True):
        if not made.made:
            DUPLICATES_PREVENTED.labels(job.kind).inc()
    return enqueued


async def cancel(connection: Connection, job: UUID, *, event: str | None = None) -> int:
    """Cancel a job and all jobs that it started. Returns the number of cancelled jobs."""
    return await _change(connection, QUERIES.cancel, {"job": job, "event": event})


async def discard(connection: Connection, job: UUID) -> None:
    """Discard a dead letter, so that it is never retried."""
    await cancel(connection, job, event="discarded")


async def requeue(connection: Connection, job: UUID, *, from_stage: str | None = None) -> None:
    """Retry a job. It continues after its last finished stage, or starts again at the stage `from_stage`.

    An empty `from_stage` restarts the job from the beginning.
    """
    await _change(connection, QUERIES.requeue, {"job": job, "from_stage": from_stage})


async def prioritise_jobs(connection: Connection, owner_id: UUID | None, jobs: Iterable[UUID]) -> int:
    """Move unfinished jobs into the interactive lanes of their owners. Returns the number of jobs that were moved."""
    moved = 0
    for job in await _hold(connection, owner_id, jobs, UNFINISHED):
        row = await (await connection.execute(QUERIES.prioritise, {"job": job})).fetchone()
        moved += bool(row and row[0])
    return moved


async def import_state(connection: Connection, owner_id: UUID) -> ImportState:
    (row,) = await fetch_rows(connection, QUERIES.imports_paused, {"owner": owner_id})
    return ImportState(**row)


async def pause_imports(connection: Connection, owner_id: UUID) -> ImportState:
    """Pause the bulk lane of an owner. Running jobs continue."""
    await connection.execute(QUERIES.pause_imports, {"owner": owner_id})
    return await import_state(connection, owner_id)


async def resume_imports(connection: Connection, owner_id: UUID) -> ImportState:
    await connection.execute(QUERIES.resume_imports, {"owner": owner_id})
    return await import_state(connection, owner_id)


async def pause(connection: Connection, job: UUID, *, code: str, message: str) -> None:
    """Pause a job until it is requeued."""
    await _change(connection, QUERIES.pause, {"job": job, "token": None, "code": code, "message": message})


async def release_workers(connection: Connection, workers: Sequence[UUID], *, killed: bool) -> None:
    """Requeue the jobs of workers that have ended.

    `killed` is true if the workers were killed from outside. If it is false, one of the jobs may have crashed its
    worker, so each job is recorded as suspicious.
    """
    because = "worker_killed" if killed else "worker_ended"
    values = {"ended": list(workers), "because": because, "suspicious": not killed}
    await connection.execute(QUERIES.release_workers, values)


async def _change(connection: Connection, query: bytes, values: dict[str, Any]) -> int:
    try:
        row = await (await connection.execute(query, values)).fetchone()
    except psycopg.errors.CheckViolation as error:
        raise IllegalTransition(_first_line(error)) from None
    except psycopg.errors.NoDataFound as error:
        raise BadInput(_first_line(error)) from None
    if row is None or not row[0]:
        raise NotFound
    return int(row[0])


def _first_line(error: psycopg.Error) -> str:
    line = (error.diag.message_primary or str(error)).strip()
    return f"{line[0].upper()}{line[1:]}."


async def retry_jobs(
    connection: Connection,
    owner_id: UUID | None,
    jobs: Iterable[UUID],
    *,
    from_stage: str | None = None,
    allowed: Collection[JobStatus] = RETRYABLE,
) -> int:
    """Retry jobs after their last finished stages, or from the stage `from_stage`. Returns the number of jobs.

    An empty `from_stage` restarts the jobs from the beginning. A single job moves into the interactive lane, because
    somebody is waiting for it.
    """
    wanted = set(jobs)
    woken = await _try_now(connection, owner_id, wanted) if from_stage is None and allowed is RETRYABLE else set[UUID]()
    held = await _hold(connection, owner_id, wanted - woken, allowed)
    for job in held:
        await requeue(connection, job, from_stage=from_stage)
    if len(wanted) == 1:
        await prioritise_jobs(connection, owner_id, wanted)
    return len(held) + len(woken)


async def retry_waiting_jobs(connection: Connection, owner_id: UUID, document: UUID) -> int:
    """Immediately retry the document's jobs that are waiting for their next attempt. Returns the number of jobs.

    Also retries jobs that failed for good while generating the document's title, summary and tags with a model.
    """
    rows = await fetch_rows(connection, JOB_QUERIES.waiting_jobs, {"owner": owner_id, "document": document})
    return await retry_jobs(connection, owner_id, [row["id"] for row in rows])


async def _try_now(connection: Connection, owner_id: UUID | None, jobs: Collection[UUID]) -> set[UUID]:
    """Start the next attempt of each waiting job now instead of at the scheduled time. Returns the jobs that were
    waiting.

    Also allows one test call to each provider whose circuit breaker is open.
    """
    values = {"owner": owner_id, "jobs": list(jobs)}
    woken = {row["id"] for row in await fetch_rows(connection, JOB_QUERIES.try_now, values)}
    if woken:
        await connection.execute(JOB_QUERIES.probe_now)
        await connection.execute(QUERIES.notify)
    return woken


async def cancel_jobs(connection: Connection, owner_id: UUID | None, jobs: Iterable[UUID]) -> int:
    """Cancel jobs and all jobs that they started. Returns how many of the given jobs were cancelled."""
    held = await _hold(connection, owner_id, jobs, CANCELLABLE)
    for job in held:
        await cancel(connection, job)
    return len(held)


async def requeue_dead_letters(connection: Connection, jobs: Iterable[UUID], *, from_stage: str | None = None) -> int:
    return await retry_jobs(connection, None, jobs, from_stage=from_stage, allowed={JobStatus.DEAD_LETTER})


async def discard_dead_letters(connection: Connection, jobs: Iterable[UUID], *, owner_id: UUID | None = None) -> int:
    held = await _hold(connection, owner_id, jobs, {JobStatus.DEAD_LETTER})
    for job in held:
        await discard(connection, job)
    return len(held)


async def _hold(
    connection: Connection, owner_id: UUID | None, jobs: Iterable[UUID], allowed: Collection[JobStatus]
) -> list[UUID]:
    """Lock these jobs of the account.

    Raises an error if a job is missing or not in one of the `allowed` states. Returns the jobs in the order in which
    their concurrency limits (caps) must be locked.
    """
    wanted = set(jobs)
    values = {"owner": owner_id, "jobs": list(wanted)}
    rows = await (await connection.execute(JOB_QUERIES.lock_jobs, values)).fetchall()
    missing = wanted - {job for job, _, _ in rows}
    if missing:
        raise NotFound(f"Job {min(missing)}.")
    for job, status, _ in rows:
        if status not in allowed:
            raise IllegalTransition(f"Job {job} is {status}.")
    return [job for job, _, _ in sorted(rows, key=lambda row: (row[2] or "", row[0]))]
