"""Discards jobs that failed for good (dead letters).

Discarded jobs can be restarted, or the analyses that they belong to can be marked as failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal
from uuid import UUID

from octavo.analyse.errors import NoParent
from octavo.analyse.progress import fail
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs import queue
from octavo.jobs.queue import discard_dead_letters

QUERIES = load_queries("job_views")
ANALYSES = load_queries("analyses")
# `restart`: delete the results of the job and process it again. `fail_parent`: end the analysis as an error.
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
    rows = await fetch_rows(connection, QUERIES.analyses_of, {"jobs": jobs})
    if len({row["job"] for row in rows}) < len(set(jobs)):
        raise NoParent
    for query in (ANALYSES.hold_jobs, ANALYSES.hold):
        for row in rows:
            await connection.execute(query, {"owner": row["owner"], "analysis": row["analysis"]})
    return {row["analysis"] for row in rows}
