"""Comparisons of a document with all other documents: their status, the types of connections that they can find, and
how to repeat them. The status is stored, so that "no connections" is shown only after the comparison is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from octavo.ai.models import uses_remote_model
from octavo.choreography import Cause, job_after
from octavo.core.errors import NotFound
from octavo.core.languages import primary_language
from octavo.core.settings import Settings
from octavo.core.types import JobStatus, Lane
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.queue import enqueue
from octavo.jobs.views import find_jobs
from octavo.language.small_model import LANGUAGES
from octavo.owners import Caller
from octavo.records.documents import Document
from octavo.records.jobs import JobView
from octavo.records.search import ComparisonState, ComparisonStatus, Coverage

QUERIES = load_queries("connection_views")
# The kind of the jobs that compare documents.
KIND = "detect_connections"
STATES = {
    JobStatus.QUEUED: ComparisonState.WAITING,
    JobStatus.PROCESSING: ComparisonState.RUNNING,
    JobStatus.PAUSED: ComparisonState.PAUSED,
    JobStatus.COMPLETE: ComparisonState.DONE,
    JobStatus.CANCELLED: ComparisonState.CANCELLED,
}


async def show_comparison(connection: Connection, owner: UUID, document: Document) -> ComparisonStatus:
    """Return the status of the last comparison of the document's current revision."""
    values = {"owner": owner, "document": document.id, "revision": document.revision, "kind": KIND}
    rows = await fetch_rows(connection, QUERIES.last_comparison, values)
    jobs = await find_jobs(connection, owner, [row["id"] for row in rows]) if rows else {}
    job = next(iter(jobs.values()), None)
    return _of_job(job) if job else ComparisonStatus(_without_job(document))


def _of_job(job: JobView) -> ComparisonStatus:
    state = STATES.get(job.status, ComparisonState.FAILED)
    if state is ComparisonState.FAILED and job.error:
        return ComparisonStatus(state, f"{job.error.message.rstrip('.')} ({job.error.code})", job.id)
    because = job.waiting_because
    if because is None:
        return ComparisonStatus(state, None, job.id)
    over_budget = because.facts.get("code") == "OVER_BUDGET"
    detail = because.detail.rstrip(".")
    return ComparisonStatus(state, detail, job.id, over_budget=over_budget, may_try_now=because.is_retry)


def _without_job(document: Document) -> ComparisonState:
    if document.embeddings_ready and document.word_count:
        return ComparisonState.NEVER
    return ComparisonState.NOT_INDEXED if document.status == "pending" else ComparisonState.NO_TEXT


def coverage_of(settings: Settings, caller: Caller, document: Document | None = None) -> Coverage:
    """Return which types of connections the caller's models can find, for one document or in general.

    A document in an unknown language may be in English, so it is treated as supported.
    """
    is_offline = caller.is_anonymous and not settings.anonymous_models
    judged, explained = (
        not is_offline and uses_remote_model(settings, task) for task in ("judge_contradictions", "explain_bridges")
    )
    known = document is None or primary_language(document.language) in {None, *LANGUAGES}
    return Coverage(sorted(LANGUAGES), known or judged, explained)


async def count_unfinished(connection: Connection, owner: UUID) -> int:
    """Count the account's documents whose comparison is still waiting or running."""
    rows = await fetch_rows(connection, QUERIES.unfinished_comparisons, {"owner": owner, "kind": KIND})
    return int(rows[0]["documents"])


async def failed_comparisons(connection: Connection, owner: UUID) -> list[UUID]:
    """Return the ids of the account's documents whose last comparison failed."""
    rows = await fetch_rows(connection, QUERIES.failed_comparisons, {"owner": owner, "kind": KIND})
    return [row["id"] for row in rows]


async def rebuild(connection: Connection, owner: UUID, documents: Sequence[UUID] | None = None) -> list[UUID]:
    """Queue a comparison job for each document that has vectors, unless one is already queued.

    Returns the ids of the new and of the already queued jobs.
    """
    cursor = await connection.execute(QUERIES.connectable, {"owner": owner, "documents": documents})
    rows = await cursor.fetchall()
    if documents is not None and (missing := set(documents) - {row[0] for row in rows}):
        raise NotFound(f"Document {min(missing)}.")
    lane = Lane.INTERACTIVE if documents is not None and len(documents) == 1 else Lane.BULK
    jobs = [
        job_after(Cause.COMPARISON_REQUESTED, owner, {"revision": revision}, document=document, lane=lane)
        for document, revision, queued in rows
        if queued is None
    ]
    new = [job.id for job in await enqueue(connection, jobs)] if jobs else []
    return [*new, *(queued for _, _, queued in rows if queued is not None)]
