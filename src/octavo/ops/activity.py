"""Reports the current activity of the installation to `octavo top`, the operations page and programs.

Also discards jobs that failed for good (dead letters), and shows archived events and jobs. Discarded jobs can be
restarted, or the analyses that they belong to can be marked as failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import Literal
from uuid import UUID

from octavo.ai.ledger import Budgets
from octavo.analyse.errors import NoParent
from octavo.analyse.progress import fail
from octavo.core.errors import NotFound
from octavo.core.settings import Settings
from octavo.database import Connection, fetch_rows, load_queries, read_clock
from octavo.jobs import queue
from octavo.jobs.queue import discard_dead_letters
from octavo.jobs.views import list_workers
from octavo.library.sweep import Archive, list_archives, read_archive
from octavo.ops.instance import bucket_of, open_connection
from octavo.records.jobs import Activity, KindActivity, SourceCost, Spending, StageTime

QUERIES = load_queries("metrics")
# The maximum number of recent jobs of each kind from which the times of stages are computed.
MOST_JOBS = 200


async def read_activity(connection: Connection, budgets: Budgets) -> Activity:
    kinds = await fetch_rows(connection, QUERIES.kinds, {})
    return Activity(
        at=await read_clock(connection),
        kinds=[KindActivity(**row) for row in kinds],
        workers=await list_workers(connection),
        stages=await read_stage_times(connection),
        spending=await read_spending(connection, budgets),
    )


async def read_stage_times(connection: Connection) -> list[StageTime]:
    return [StageTime(**row) for row in await fetch_rows(connection, QUERIES.recent_stages, {"most": MOST_JOBS})]


async def read_spending(connection: Connection, budgets: Budgets) -> Spending:
    (spent,) = await fetch_rows(connection, QUERIES.spent, {"limits": budgets.limits})
    (answers,) = await fetch_rows(connection, QUERIES.answers, {})
    sources = await fetch_rows(connection, QUERIES.source_costs, {})
    return Spending(
        month_usd=spent["spent_usd"],
        budget_usd=spent["budget_usd"],
        new_answers=answers["new"],
        reused_answers=answers["reused"],
        sources=[SourceCost(**row) for row in sources],
    )


JOB_QUERIES = load_queries("job_views")
ANALYSES = load_queries("analyses")
# `restart`: delete the results of the job and process it again. `fail_parent`: mark the analysis as failed.
AfterDiscard = Literal["nothing", "restart", "fail_parent"]
LOST_PART = "PART_DISCARDED"


async def discard(connection: Connection, jobs: Iterable[UUID], then: AfterDiscard = "nothing") -> int:
    """Discard jobs that failed for good (dead letters). Returns the number of jobs.

    If one of the jobs has another status, an error is raised and no job is discarded. `then` says what happens next:
    `nothing`; `restart` runs the jobs again from the beginning; `fail_parent` marks the analyses that the jobs belong
    to as failed.
    """
    wanted = list(jobs)
    parents = await _parents(connection, wanted) if then == "fail_parent" else set[UUID]()
    discarded = await discard_dead_letters(connection, wanted)
    if then == "restart":
        for job in wanted:
            await queue.requeue(connection, job, from_stage="")
    for analysis in sorted(parents):
        await fail(connection, analysis, LOST_PART, "A part of the analysis failed for good and was discarded.")
    return discarded


async def _parents(connection: Connection, jobs: list[UUID]) -> set[UUID]:
    """Return the analyses to which these jobs belong, and lock them.

    All jobs of the analyses are locked before the analyses themselves. All other code uses the same order, which
    prevents deadlocks.
    """
    rows = await fetch_rows(connection, JOB_QUERIES.analyses_of, {"jobs": jobs})
    if len({row["job"] for row in rows}) < len(set(jobs)):
        raise NoParent
    for query in (ANALYSES.hold_jobs, ANALYSES.hold):
        for row in rows:
            await connection.execute(query, {"owner": row["owner"], "analysis": row["analysis"]})
    return {row["analysis"] for row in rows}


async def stored_archives(settings: Settings) -> list[Archive]:
    """Return all archives. These are files with old events and jobs."""
    async with open_connection(settings) as connection:
        return await list_archives(connection)


async def show_archive(settings: Settings, name: str, write: Callable[[bytes], object]) -> None:
    """Pass the uncompressed text of an archive to `write`, in blocks."""
    found = next((one for one in await stored_archives(settings) if one.name == name), None)
    if found is None:
        raise NotFound(f"There is no archive {name}. `octavo archives` lists all.")
    async with aclosing(bucket_of(settings)) as bucket:
        async for block in read_archive(bucket, found.key):
            write(block)
