"""Counts, times and traces one attempt of a job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID

from octavo.core.errors import OverBudget
from octavo.core.instruments import JOBS
from octavo.core.tracing import is_tracing, span
from octavo.database import Database, load_queries
from octavo.jobs.job_run import ClaimedJob, LeaseLost

QUERIES = load_queries("jobs")


@asynccontextmanager
async def recorded_attempt(job: ClaimedJob, database: Database) -> AsyncGenerator[None]:
    started, outcome = time.monotonic(), "failed"
    parent = await _read_trace(job.id, database) if is_tracing() else None
    described = {"octavo.job": str(job.id), "octavo.document": str(job.document_id), "octavo.attempt": job.attempt}
    try:
        with span(f"job {job.kind}", described, parent=parent):
            yield
        outcome = "complete"
    except OverBudget:
        outcome = "paused"
        raise
    except (LeaseLost, asyncio.CancelledError):
        outcome = "stopped"
        raise
    finally:
        JOBS.labels(job.kind, outcome).observe(time.monotonic() - started)


async def _read_trace(job: UUID, database: Database) -> str | None:
    async with database.connection() as connection:
        row = await (await connection.execute(QUERIES.trace_of, {"job": job})).fetchone()
    return str(row[0]) if row else None
