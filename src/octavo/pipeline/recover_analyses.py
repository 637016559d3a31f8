"""Looks after analyses: what should go on and does not is put in line again, and what is dead for two days says so."""

from __future__ import annotations

from octavo.core.types import JSON
from octavo.database import Database, fetch_rows, load_queries
from octavo.jobs.kinds import JobKind
from octavo.jobs.run import Run
from octavo.jobs.schedules import Schedule
from octavo.pipeline.tools import Tools

QUERIES = load_queries("analyses")


async def recover_analyses(run: Run[Tools]) -> JSON:
    lined_up, abandoned = await recover_all(run.database)
    return {"lined_up": lined_up, "abandoned": abandoned}


async def recover_all(database: Database) -> tuple[int, int]:
    """How many items were put in line, and how many analyses given up; one analysis at a time holds its jobs."""
    async with database.connection() as connection:
        analyses = await fetch_rows(connection, QUERIES.open_analyses, {})
    lined_up = abandoned = 0
    for one in analyses:
        async with database.transaction() as connection:
            (row,) = await fetch_rows(connection, QUERIES.recover, {"analysis": one["id"]})
        lined_up, abandoned = lined_up + row["lined_up"], abandoned + row["abandoned"]
    return lined_up, abandoned


KIND = JobKind("recover_analyses", recover_analyses, time_limit_seconds=300)
SCHEDULE = Schedule("recover_analyses", KIND.name, "*/5 * * * *")
