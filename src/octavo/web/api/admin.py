"""For the administrator: what was given up, the workers, and how the installation is. These see every owner's jobs."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field

from octavo.core.pages import Page
from octavo.jobs.actions import discard_dead_letters, requeue_dead_letters
from octavo.jobs.views import DEFAULT_LIMIT, JobView, WorkerView, count_jobs, dead_letters, list_workers, show_job
from octavo.ops.health import Check
from octavo.web.api import Cursor, Limit, RetryRequest, problems
from octavo.web.parts import PartsOf, administer

router = APIRouter(
    prefix="/api/v1/admin", tags=["admin"], dependencies=[Depends(administer)], responses=problems(401, 403, 422)
)


class ManyJobs(BaseModel):
    """All of these are changed, or none is."""

    model_config = ConfigDict(extra="forbid")

    ids: list[UUID] = Field(min_length=1, max_length=1000)


@dataclass(frozen=True, slots=True)
class Changed:
    changed: int


@dataclass(frozen=True, slots=True)
class Health:
    """`jobs`: how many are in each state that somebody may have to do something about."""

    ready: bool
    checks: list[Check]
    live_workers: int
    jobs: dict[str, int]


@router.get("/dead-letters")
async def letters(parts: PartsOf, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT) -> Page[JobView]:
    """Jobs whose attempts are used up, newest first."""
    async with parts.database.connection() as connection:
        return await dead_letters(connection, cursor=cursor, limit=limit)


@router.post("/dead-letters/requeue", responses=problems(400, 404, 409))
async def requeue_many(parts: PartsOf, wanted: ManyJobs) -> Changed:
    """Try these again: all of them, or none when one is no dead letter."""
    async with parts.database.transaction() as connection:
        return Changed(await requeue_dead_letters(connection, wanted.ids))


@router.post("/dead-letters/discard", responses=problems(400, 404, 409))
async def discard_many(parts: PartsOf, wanted: ManyJobs) -> Changed:
    """Give these up for good: all of them, or none when one is no dead letter."""
    async with parts.database.transaction() as connection:
        return Changed(await discard_dead_letters(connection, wanted.ids))


@router.post("/dead-letters/{job}/requeue", responses=problems(400, 404, 409))
async def requeue(parts: PartsOf, job: UUID, wanted: RetryRequest | None = None) -> JobView:
    """Try one again."""
    async with parts.database.transaction() as connection:
        await requeue_dead_letters(connection, [job], from_stage=wanted.from_stage if wanted else None)
        return await show_job(connection, None, job)


@router.post("/dead-letters/{job}/discard", responses=problems(404, 409))
async def discard(parts: PartsOf, job: UUID) -> JobView:
    """Give one up for good."""
    async with parts.database.transaction() as connection:
        await discard_dead_letters(connection, [job])
        return await show_job(connection, None, job)


@router.get("/workers")
async def workers(parts: PartsOf) -> Page[WorkerView]:
    """Workers that run, and those that ended without a word in the last hour."""
    async with parts.database.connection() as connection:
        return Page(await list_workers(connection), None)


@router.get("/health")
async def health(parts: PartsOf) -> Health:
    """How the parts are and how much there is to do."""
    checks = await parts.readiness()
    async with parts.database.connection() as connection:
        live = sum(worker.alive for worker in await list_workers(connection))
        return Health(all(check.ok for check in checks), checks, live, await count_jobs(connection))
