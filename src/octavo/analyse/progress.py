"""Moves an analysis forward: queues its items, combines their answers, and completes, stops or restarts it.

An item is one prompt on one segment (range of pages). Except for `recover_all`, every function runs in the caller's
transaction. The caller must have locked the row of the analysis, so that changes to its items and results never
overlap.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from octavo.analyse.estimates import STUCK_SECONDS
from octavo.choreography import Cause, job_after
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.jobs import queue
from octavo.jobs.queue import enqueue

QUERIES = load_queries("analyses")
ABANDONED = "ABANDONED"
NO_PROGRESS = "No progress for two days."


async def enqueue_due_items(connection: Connection, analysis: UUID) -> int:
    """Queue all items that can run now, ordered by prompt and then by page.

    An item is one prompt on one segment (range of pages). Returns their number. In sequential mode, each prompt runs on
    one segment at a time, in page order.
    """
    rows = await fetch_rows(connection, QUERIES.take_due_items, {"analysis": analysis})
    jobs = [
        job_after(
            Cause.ITEM_DUE,
            row["owner_id"],
            {"item": str(row["item"])},
            key=f"{row['item']}:{row['job_id']}",
            parent=analysis,
            cap_key=_cap_key(analysis),
            cap=row["at_once"],
            job=row["job_id"],
        )
        for row in rows
    ]
    if jobs:
        await enqueue(connection, jobs)
    return len(jobs)


async def settle(connection: Connection, analysis: UUID) -> None:
    """Find the prompts that have run on all pages, and start combining their answers.

    Then update the status of the analysis. Called after items or results change.
    """
    rows = await fetch_rows(connection, QUERIES.take_answered_prompts, {"analysis": analysis})
    jobs = [
        job_after(
            Cause.PROMPT_ANSWERED,
            row["owner_id"],
            {"prompt": str(row["prompt_id"])},
            key=f"{row['prompt_id']}:{row['job_id']}",
            parent=analysis,
            cap_key=_cap_key(analysis),
            cap=row["at_once"],
            job=row["job_id"],
        )
        for row in rows
    ]
    if jobs:
        await enqueue(connection, jobs)
    await connection.execute(QUERIES.settle, {"analysis": analysis})


async def stop(connection: Connection, analysis: UUID) -> None:
    """End an analysis because a person stopped it. Answers are kept, and the analysis can be restarted."""
    await connection.execute(QUERIES.set_stopped, {"analysis": analysis})
    await _cancel_jobs(connection, analysis)


async def abandon(connection: Connection, analysis: UUID) -> None:
    """End an analysis with an error because it is making no progress. A person can restart it."""
    await connection.execute(QUERIES.set_abandoned, {"analysis": analysis, "code": ABANDONED, "message": NO_PROGRESS})
    await _cancel_jobs(connection, analysis)


async def fail(connection: Connection, analysis: UUID, code: str, message: str) -> None:
    """End an analysis with this error. A person can restart it."""
    await connection.execute(QUERIES.set_failed, {"analysis": analysis, "code": code, "message": message})
    await _cancel_jobs(connection, analysis)


async def _cancel_jobs(connection: Connection, analysis: UUID) -> None:
    values = {"analysis": analysis}
    row = await (await connection.execute(QUERIES.is_preparing, values)).fetchone()
    if row and row[0]:
        await queue.cancel(connection, analysis)  # this also cancels the jobs that depend on it
    else:
        await connection.execute(QUERIES.cancel_open_jobs, values)


async def restart(connection: Connection, analysis: UUID) -> None:
    """Continue an analysis that failed, was stopped or abandoned, or has missing answers. Existing answers are kept."""
    values = {"analysis": analysis}
    row = await (await connection.execute(QUERIES.has_items, values)).fetchone()
    if not row or not row[0]:
        await connection.execute(QUERIES.requeue_preparation, values)
        return
    work = await (await connection.execute(QUERIES.has_open_work, values)).fetchone()
    if work and not work[0]:
        return
    await connection.execute(QUERIES.replan_items_without_job, values)
    await connection.execute(QUERIES.requeue_failed_jobs, values)
    await connection.execute(QUERIES.reset_failed_results, values)
    await connection.execute(QUERIES.reopen, values)
    await enqueue_due_items(connection, analysis)
    await settle(connection, analysis)


async def ask_again(connection: Connection, analysis: UUID, items: list[UUID]) -> int:
    """Discard the answers of these items and the combined results that used them, and run the items again.

    Items that have neither an answer nor an error yet are not changed. Returns the number of items that run again.
    """
    values = {"analysis": analysis, "items": items}
    await connection.execute(QUERIES.discard_dead_items, values)
    replanned = (await connection.execute(QUERIES.replan_items, values)).rowcount
    await _discard_consolidations(connection, values)
    await connection.execute(QUERIES.forget_results, values)
    if replanned:
        await connection.execute(QUERIES.reopen, {"analysis": analysis})
        await enqueue_due_items(connection, analysis)
    return replanned


async def _discard_consolidations(connection: Connection, values: dict[str, Any]) -> None:
    for row in await fetch_rows(connection, QUERIES.consolidations_of_items, values):
        await connection.execute(QUERIES.detach_result, {"job": row["id"]})
        await queue.cancel(connection, row["id"], event="discarded")


async def recover_all(database: Database) -> tuple[int, int]:
    """Recover all unfinished analyses: enqueue items that have no job, and abandon analyses that make no progress.

    Returns the number of enqueued items and the number of abandoned analyses.
    """
    async with database.connection() as connection:
        analyses = await fetch_rows(connection, QUERIES.open_analyses, {})
    enqueued = abandoned = 0
    for one in analyses:
        async with database.transaction() as connection:
            added, given_up = await _recover(connection, one["id"])
        enqueued, abandoned = enqueued + added, abandoned + given_up
    return enqueued, abandoned


async def _recover(connection: Connection, analysis: UUID) -> tuple[int, bool]:
    """Recover one analysis: queue items that have no job, and combine complete answers.

    After minutes without progress, the owner and the administrator are notified. If there was no progress for two days
    and no job is running or queued, the analysis is abandoned. A person can restart it. Returns the number of queued
    items, and whether the analysis was abandoned.
    """
    values = {"analysis": analysis}
    await connection.execute(QUERIES.hold_jobs_of, values)  # locks jobs before the analysis, as workers do
    held = await fetch_rows(connection, QUERIES.hold_open, values)
    if not held:
        return 0, False
    await connection.execute(QUERIES.detach_items_without_job, values)
    await connection.execute(QUERIES.detach_results_without_job, values)
    enqueued = 0
    if held[0]["asks"]:
        enqueued = await enqueue_due_items(connection, analysis)
        (state,) = await fetch_rows(connection, QUERIES.open_jobs, values)
        if not state["open"]:
            await settle(connection, analysis)
    (state,) = await fetch_rows(connection, QUERIES.open_jobs, values)
    if not state["idle_for_days"] or state["active"]:
        await connection.execute(QUERIES.report_stalled, values | {"seconds": STUCK_SECONDS})
        return enqueued, False
    await abandon(connection, analysis)
    return enqueued, True


def _cap_key(analysis: UUID) -> str:
    return f"analysis:{analysis}"
