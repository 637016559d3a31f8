"""Queues documents to be compared again: all documents of an owner, or some of them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from octavo.choreography import Cause, job_after
from octavo.core.errors import NotFound
from octavo.database import Connection, load_queries
from octavo.jobs.queue import enqueue

QUERIES = load_queries("connections")


async def rebuild(connection: Connection, owner: UUID, documents: Sequence[UUID] | None = None) -> list[UUID]:
    """Queue a job for each document that has vectors, unless such a job is queued already.

    Returns the ids of all these jobs.
    """
    cursor = await connection.execute(QUERIES.connectable, {"owner": owner, "documents": documents})
    rows = await cursor.fetchall()
    if documents is not None and (missing := set(documents) - {row[0] for row in rows}):
        raise NotFound(f"Document {min(missing)}.")
    jobs = [
        job_after(Cause.COMPARISON_REQUESTED, owner, {"revision": revision}, document=document)
        for document, revision, queued in rows
        if queued is None
    ]
    new = [job.id for job in await enqueue(connection, jobs)] if jobs else []
    return [*new, *(queued for _, _, queued in rows if queued is not None)]
