"""An owner's jobs: how they are, why they wait, and stopping or retrying them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from octavo.core.pages import Page
from octavo.core.states import JobStatus
from octavo.jobs.actions import cancel_jobs, retry_jobs
from octavo.jobs.views import DEFAULT_LIMIT, JobView, list_jobs, show_job
from octavo.web.api import IF_GIVEN, Cursor, Limit, RetryRequest, problems
from octavo.web.parts import PartsOf, Reading, Writing

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

Kind = Annotated[str | None, Query(pattern=r"^[\w.:-]{0,100}$"), IF_GIVEN]


@router.get("", responses=problems(401, 422))
async def jobs(
    parts: PartsOf,
    caller: Reading,
    status: JobStatus | None = None,
    kind: Kind = None,
    document_id: UUID | None = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[JobView]:
    """Your jobs, newest first."""
    async with parts.database.connection() as connection:
        return await list_jobs(
            connection, caller.owner_id, status=status, kind=kind, document_id=document_id, cursor=cursor, limit=limit
        )


@router.get("/{job}", responses=problems(401, 404, 422))
async def job(parts: PartsOf, caller: Reading, job: UUID) -> JobView:
    """One of your jobs, with all that it has finished."""
    async with parts.database.connection() as connection:
        return await show_job(connection, caller.owner_id, job)


@router.post("/{job}/cancel", responses=problems(401, 403, 404, 409, 422))
async def cancel(parts: PartsOf, caller: Writing, job: UUID) -> JobView:
    """Stop a job and what follows from it, at once."""
    async with parts.database.transaction() as connection:
        await cancel_jobs(connection, caller.owner_id, [job])
        return await show_job(connection, caller.owner_id, job)


@router.post("/{job}/retry", responses=problems(400, 401, 403, 404, 409, 422))
async def retry(parts: PartsOf, caller: Writing, job: UUID, wanted: RetryRequest | None = None) -> JobView:
    """Put a job that failed, was cancelled or is paused back in line."""
    async with parts.database.transaction() as connection:
        await retry_jobs(connection, caller.owner_id, [job], from_stage=wanted.from_stage if wanted else None)
        return await show_job(connection, caller.owner_id, job)
