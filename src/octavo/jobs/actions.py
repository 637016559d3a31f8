"""Retries, cancels and discards jobs on request. An action is applied to all of the given jobs or to none.

Retrying a job that waits for its next attempt starts that attempt now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from octavo.core.errors import NotFound
from octavo.core.types import JOB_TRANSITIONS, RESTING, JobStatus
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs import queue
from octavo.jobs.queue import IllegalTransition

QUERIES = load_queries("job_views")
CANCELLABLE = frozenset(status for status, after in JOB_TRANSITIONS.items() if JobStatus.CANCELLED in after)
RETRYABLE = frozenset(status for status in RESTING if JobStatus.QUEUED in JOB_TRANSITIONS[status])


async def retry_jobs(
    connection: Connection,
    owner_id: UUID | None,
    jobs: Iterable[UUID],
    *,
    from_stage: str | None = None,
    allowed: Collection[JobStatus] = RETRYABLE,
) -> int:
    """Retry jobs from the last checkpoint, or from the stage `from_stage`; an empty stage means from the beginning."""
    wanted = set(jobs)
    woken = await _try_now(connection, owner_id, wanted) if from_stage is None and allowed is RETRYABLE else set[UUID]()
    held = await _hold(connection, owner_id, wanted - woken, allowed)
    for job in held:
        await queue.requeue(connection, job, from_stage=from_stage)
    return len(held) + len(woken)


async def retry_waiting_jobs(connection: Connection, owner_id: UUID, document: UUID) -> int:
    """Retry now all jobs of a document that are waiting for their next attempt. Returns their number."""
    rows = await fetch_rows(connection, QUERIES.waiting_jobs, {"owner": owner_id, "document": document})
    return await retry_jobs(connection, owner_id, [row["id"] for row in rows])


async def _try_now(connection: Connection, owner_id: UUID | None, jobs: Collection[UUID]) -> set[UUID]:
    """End the back-off of these jobs. If a provider's circuit breaker is open, one call is sent to it as a test."""
    values = {"owner": owner_id, "jobs": list(jobs)}
    woken = {row["id"] for row in await fetch_rows(connection, QUERIES.try_now, values)}
    if woken:
        await connection.execute(QUERIES.probe_now)
    return woken


async def cancel_jobs(connection: Connection, owner_id: UUID | None, jobs: Iterable[UUID]) -> int:
    """Cancel jobs and all jobs that were started by them."""
    held = await _hold(connection, owner_id, jobs, CANCELLABLE)
    for job in held:
        await queue.cancel(connection, job)
    return len(held)


async def requeue_dead_letters(connection: Connection, jobs: Iterable[UUID], *, from_stage: str | None = None) -> int:
    return await retry_jobs(connection, None, jobs, from_stage=from_stage, allowed={JobStatus.DEAD_LETTER})


async def discard_dead_letters(connection: Connection, jobs: Iterable[UUID], *, owner_id: UUID | None = None) -> int:
    held = await _hold(connection, owner_id, jobs, {JobStatus.DEAD_LETTER})
    for job in held:
        await queue.discard(connection, job)
    return len(held)


async def _hold(
    connection: Connection, owner_id: UUID | None, jobs: Iterable[UUID], allowed: Collection[JobStatus]
) -> list[UUID]:
    """Lock these jobs of the owner. Raises an error if a job is missing or its state is not allowed.

    Returns the jobs in the order in which their caps must be locked.
    """
    wanted = set(jobs)
    values = {"owner": owner_id, "jobs": list(wanted)}
    rows = await (await connection.execute(QUERIES.lock_jobs, values)).fetchall()
    missing = wanted - {job for job, _, _ in rows}
    if missing:
        raise NotFound(f"Job {min(missing)}.")
    for job, status, _ in rows:
        if status not in allowed:
            raise IllegalTransition(f"Job {job} is {status}.")
    return [job for job, _, _ in sorted(rows, key=lambda row: (row[2] or "", row[0]))]
