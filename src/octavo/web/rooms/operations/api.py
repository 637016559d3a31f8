"""The API for jobs. Administrators also see the failed jobs, workers and health of the whole installation."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from octavo.ai.calls import Circuit, list_circuits, try_now
from octavo.ai.ledger import Budgets
from octavo.core.http import Page
from octavo.core.types import JobStatus
from octavo.jobs.queue import (
    cancel_jobs,
    import_state,
    pause_imports,
    prioritise_jobs,
    requeue_dead_letters,
    resume_imports,
    retry_jobs,
)
from octavo.jobs.views import DEFAULT_LIMIT, WorkerView, count_jobs, dead_letters, list_jobs, list_workers, show_job
from octavo.ops.activity import AfterDiscard, read_activity
from octavo.ops.activity import discard as discard_jobs
from octavo.records.jobs import Activity, ChangeCount, ImportState, JobView, OperationsHealth
from octavo.web.context.callers import ReadCaller, WriteCaller, administer
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import IF_GIVEN, Cursor, Limit, RetryRequest, problems

router = APIRouter(
    prefix="/api/v1/admin", tags=["admin"], dependencies=[Depends(administer)], responses=problems(401, 403, 422)
)


class ManyJobs(BaseModel):
    """Jobs to change. If one of them cannot be changed, none is changed."""

    model_config = ConfigDict(extra="forbid")

    ids: list[UUID] = Field(min_length=1, max_length=1000)


class DiscardRequest(BaseModel):
    """A request to discard a job that failed for good.

    `then` says what happens next. With `restart`, the results of the job are deleted and the job runs again. With
    `fail_parent`, the analysis that the job belongs to is marked as failed.
    """

    model_config = ConfigDict(extra="forbid")

    then: AfterDiscard = "nothing"


class DiscardManyRequest(ManyJobs, DiscardRequest):
    """Jobs to discard. If one of them cannot be discarded, none is discarded."""


@router.get("/dead-letters")
async def letters(services: ServicesOf, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT) -> Page[JobView]:
    """List the jobs that failed for good (dead letters), newest first."""
    async with services.database.connection() as connection:
        return await dead_letters(connection, cursor=cursor, limit=limit)


@router.post("/dead-letters/requeue", responses=problems(400, 404, 409))
async def requeue_many(services: ServicesOf, wanted: ManyJobs, idempotency: IdempotencyOf) -> ChangeCount:
    """Requeue these jobs, which failed for good (dead letters).

    If one of the jobs is not a dead letter, none is requeued.
    """
    async with services.database.transaction() as connection:
        return await idempotency.keep(connection, ChangeCount(await requeue_dead_letters(connection, wanted.ids)))


@router.post("/dead-letters/discard", responses=problems(400, 404, 409))
async def discard_many(services: ServicesOf, wanted: DiscardManyRequest) -> ChangeCount:
    """Discard these jobs, which failed for good (dead letters).

    If one of the jobs is not a dead letter, none is discarded.
    """
    async with services.database.transaction() as connection:
        return ChangeCount(await discard_jobs(connection, wanted.ids, wanted.then))


@router.post("/dead-letters/{job}/requeue", responses=problems(400, 404, 409))
async def requeue(
    services: ServicesOf, job: UUID, idempotency: IdempotencyOf, wanted: RetryRequest | None = None
) -> JobView:
    """Requeue one dead letter (a job that failed for good)."""
    async with services.database.transaction() as connection:
        await requeue_dead_letters(connection, [job], from_stage=wanted.from_stage if wanted else None)
        return await idempotency.keep(connection, await show_job(connection, None, job))


@router.post("/dead-letters/{job}/discard", responses=problems(404, 409))
async def discard(services: ServicesOf, job: UUID, wanted: DiscardRequest | None = None) -> JobView:
    """Discard one dead letter (a job that failed for good)."""
    async with services.database.transaction() as connection:
        await discard_jobs(connection, [job], wanted.then if wanted else "nothing")
        return await show_job(connection, None, job)


@router.get("/workers")
async def workers(services: ServicesOf) -> Page[WorkerView]:
    """List running workers, and workers that stopped sending heartbeats in the last hour."""
    async with services.database.connection() as connection:
        return Page(await list_workers(connection), None)


@router.get("/health")
async def health(services: ServicesOf) -> OperationsHealth:
    """Return the readiness checks, the number of live workers and the number of jobs by state."""
    checks = await services.readiness()
    async with services.database.connection() as connection:
        live = sum(worker.alive for worker in await list_workers(connection))
        return OperationsHealth(all(check.ok for check in checks), checks, live, await count_jobs(connection))


@router.get("/activity")
async def activity(services: ServicesOf) -> Activity:
    """Return the numbers of jobs by kind, the workers, the durations of stages, and the costs of model calls."""
    async with services.database.connection() as connection:
        return await read_activity(connection, Budgets.of(services.settings))


@router.get("/circuits")
async def circuits(services: ServicesOf) -> Page[Circuit]:
    """List the circuit breakers of the model providers and of the conversion service."""
    async with services.database.connection() as connection:
        return Page(await list_circuits(connection, services.settings), None)


@router.post("/circuits/{name}/try", responses=problems(404))
async def try_circuit(services: ServicesOf, name: str) -> Page[Circuit]:
    """Let the next call to a provider or service through as a test, although its circuit breaker is open.

    Waiting jobs are retried now. If the call succeeds, the circuit breaker closes.
    """
    async with services.database.transaction() as connection:
        await try_now(connection, services.settings, name)
        return Page(await list_circuits(connection, services.settings), None)


jobs_router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

Kind = Annotated[str | None, Query(pattern=r"^[\w.:-]{0,100}$"), IF_GIVEN]


@jobs_router.get("", responses=problems(401, 422))
async def jobs(
    services: ServicesOf,
    caller: ReadCaller,
    status: JobStatus | None = None,
    kind: Kind = None,
    document_id: UUID | None = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[JobView]:
    """List your jobs, newest first."""
    async with services.database.connection() as connection:
        return await list_jobs(
            connection, caller.owner_id, status=status, kind=kind, document_id=document_id, cursor=cursor, limit=limit
        )


@jobs_router.get("/{job}", responses=problems(401, 404, 422))
async def job(services: ServicesOf, caller: ReadCaller, job: UUID) -> JobView:
    """Return one of your jobs, with its finished stages."""
    async with services.database.connection() as connection:
        return await show_job(connection, caller.owner_id, job)


@jobs_router.post("/{job}/cancel", responses=problems(401, 403, 404, 409, 422))
async def cancel(services: ServicesOf, caller: WriteCaller, job: UUID) -> JobView:
    """Cancel a job and its follow-up jobs immediately."""
    async with services.database.transaction() as connection:
        await cancel_jobs(connection, caller.owner_id, [job])
        return await show_job(connection, caller.owner_id, job)


@jobs_router.post("/{job}/retry", responses=problems(400, 401, 403, 404, 409, 422))
async def retry(
    services: ServicesOf,
    caller: WriteCaller,
    job: UUID,
    idempotency: IdempotencyOf,
    wanted: RetryRequest | None = None,
) -> JobView:
    """Requeue a failed, cancelled or paused job. If the job is waiting for its next attempt, start the attempt now."""
    async with services.database.transaction() as connection:
        await retry_jobs(connection, caller.owner_id, [job], from_stage=wanted.from_stage if wanted else None)
        return await idempotency.keep(connection, await show_job(connection, caller.owner_id, job))


@jobs_router.post("/{job}/prioritise", responses=problems(401, 403, 404, 409, 422))
async def prioritise(services: ServicesOf, caller: WriteCaller, job: UUID) -> JobView:
    """Move an unfinished job and its follow-up jobs into your interactive lane, so that they run before imports."""
    async with services.database.transaction() as connection:
        await prioritise_jobs(connection, caller.owner_id, [job])
        return await show_job(connection, caller.owner_id, job)


imports_router = APIRouter(prefix="/api/v1/imports", tags=["jobs"])


@imports_router.get("", responses=problems(401, 422))
async def imports(services: ServicesOf, caller: ReadCaller) -> ImportState:
    """Return whether your imports are paused, and how many of their jobs are waiting, counted up to 1,000."""
    async with services.database.connection() as connection:
        return await import_state(connection, caller.owner_id)


@imports_router.post("/pause", responses=problems(401, 403, 422))
async def pause(services: ServicesOf, caller: WriteCaller) -> ImportState:
    """Pause your imports and other work on many documents. Running jobs continue."""
    async with services.database.transaction() as connection:
        return await pause_imports(connection, caller.owner_id)


@imports_router.post("/resume", responses=problems(401, 403, 422))
async def resume(services: ServicesOf, caller: WriteCaller) -> ImportState:
    """Resume your imports."""
    async with services.database.transaction() as connection:
        return await resume_imports(connection, caller.owner_id)
