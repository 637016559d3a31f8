"""Advances an analysis: queues its items, combines their answers, and completes, stops or restarts it.

An item is one prompt on one segment (range of pages). Except for `recover_all`, every function that changes an analysis
runs in the caller's transaction. The caller must have locked the row of the analysis, so that changes to its items and
results never overlap.

Pure functions calculate the progress, remaining time and health of an analysis from its counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any
from uuid import UUID

from octavo.choreography import Cause, job_after
from octavo.core.formatting import count_of, format_number
from octavo.core.texts import Texts, mark
from octavo.core.texts import gettext as _
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.jobs import queue
from octavo.jobs.queue import enqueue
from octavo.records.analyses import AnalysesHealth, Analysis, Percent
from octavo.records.jobs import Eta

# After this time without progress the analysis counts as stuck, even if jobs are still being retried.
STUCK_SECONDS = 5 * 60
LEAST_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers from which the progress of an analysis is calculated. All are read at the same time.

    Segments that were split into shorter ones are not counted.
    """

    status: str
    phase: str
    at_once: int
    segments: int
    segments_ready: int
    items: int
    items_done: int
    items_failed: int
    running: int
    waiting: int
    paused: int
    results: int
    results_completed: int
    samples: int
    mean_seconds: float | None
    low_seconds: float | None
    high_seconds: float | None
    idle_seconds: float
    live_workers: int
    error_message: str | None = None


def percent_of(counts: Counts) -> Percent:
    """Return three percentages for the progress of an analysis.

    `upload` is the share of prepared segments (ranges of pages), `processing` the share of finished items, and
    `overall` the share of all work. An item is one prompt on one segment. `overall` reaches 100 only when the analysis
    is completed.
    """
    everything = counts.segments + counts.items + counts.results
    finished = counts.segments_ready + counts.items_done + counts.results_completed
    overall = 100 if counts.status == "completed" else min(99, _share(finished, everything))
    return Percent(_share(counts.segments_ready, counts.segments), _share(counts.items_done, counts.items), overall)


def eta_of(counts: Counts) -> Eta | None:
    """Estimate the remaining time as a range, from the quartiles of the durations of finished items.

    Returns None if it cannot be estimated.
    """
    left = counts.items - counts.items_done - counts.items_failed + counts.results - counts.results_completed
    if counts.status != "analyzing" or counts.samples < LEAST_SAMPLES or left <= 0:
        return None
    if counts.low_seconds is None or counts.high_seconds is None:
        return None
    rounds = ceil(left / max(1, min(counts.at_once, counts.running or counts.at_once)))
    return Eta(round(rounds * counts.low_seconds, 1), round(rounds * counts.high_seconds, 1))


def health_of(counts: Counts) -> AnalysesHealth:
    """Return a message about the most serious problem of an analysis or, if it has no problem, about its progress."""
    if counts.status == "completed":
        gaps = counts.error_message is not None
        return AnalysesHealth(ok=not gaps, message=counts.error_message or _("All prompts have been answered."))
    if counts.status == "stopped":
        return AnalysesHealth(
            ok=True, message=_("Stopped by you. Resume the analysis to answer the remaining prompts.")
        )
    problem = next((message for applies, message in _problems(counts) if applies), None)
    state = _("%(number)s running.", number=counts.running) if counts.running else _("Waiting in the queue.")
    return AnalysesHealth(ok=problem is None, message=problem or state)


OFFLINE = mark("Offline: passages only")
PHASES = Texts(
    {
        "initializing": "Waiting to start",
        "uploading": "Preparing pages",
        "processing": "Answering",
        "consolidating": "Combining answers",
        "completed": "Complete",
        "abandoned": "Stalled",
    }
)


def describe_progress(analysis: Analysis) -> str:
    """Describe the progress of an analysis in one line: its phase, answers so far, retries and errors."""
    asking = analysis.status == "analyzing" and analysis.phase == "processing"
    counted = (
        _("%(done)s of %(total)s", done=format_number(analysis.items.done), total=format_number(analysis.items.total))
        if asking
        else ""
    )
    retries = count_of(analysis.retries, "retry", "retries") if analysis.retries else ""
    failed = _("%(failed)s failed", failed=format_number(analysis.items.failed)) if analysis.items.failed else ""
    paused = _("%(number)s paused", number=format_number(analysis.paused)) if analysis.paused else ""
    phase = _("Stopped") if analysis.status == "stopped" else PHASES[analysis.phase]
    if analysis.offline and analysis.status == "completed":
        phase = _(OFFLINE)
    first = " ".join(filter(None, (phase, counted)))
    return " · ".join(filter(None, (first, retries, failed, paused)))


def _problems(counts: Counts) -> list[tuple[bool, str]]:
    return [
        (counts.phase == "abandoned", _("No progress for two days. Restart the analysis.")),
        (counts.status == "error", counts.error_message or _("The analysis failed.")),
        (not counts.live_workers, _("No worker is running.")),
        (counts.paused > 0, _("%(number)s paused: the budget is used up.", number=counts.paused)),
        (counts.items_failed > 0, _("%(failed)s of %(total)s failed.", failed=counts.items_failed, total=counts.items)),
        (
            counts.idle_seconds > STUCK_SECONDS and not counts.running,
            _("No progress for %(minutes)s minutes.", minutes=int(counts.idle_seconds // 60)),
        ),
    ]


def _share(done: int, total: int) -> int:
    return done * 100 // total if total else 0


QUERIES = load_queries("analyses")
ABANDONED = "ABANDONED"
NO_PROGRESS = "No progress for two days."


async def enqueue_due_items(connection: Connection, analysis: UUID) -> int:
    """Queue all items that can run now, ordered by prompt and then by page.

    An item is one prompt on one segment (range of pages). In sequential mode, each prompt runs on one segment at a
    time, in page order. Returns the number of queued items.
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

    After a few minutes without progress, the owner and the administrator are notified. After two days without progress,
    the analysis is abandoned, unless a job is running or queued. A person can restart it. Returns the number of queued
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
