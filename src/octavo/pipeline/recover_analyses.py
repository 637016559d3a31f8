"""Looks after analyses: what should go on and does not is put in line again, and what is dead for two days says so."""

from __future__ import annotations

from octavo.database import load_queries
from octavo.jobs.kinds import JobKind
from octavo.jobs.run import Run
from octavo.jobs.schedules import Schedule
from octavo.model.json import JSON
from octavo.pipeline.tools import Tools

QUERIES = load_queries("analyses")


async def recover_analyses(run: Run[Tools]) -> JSON:
    async with run.database.transaction() as connection:
        row = await (await connection.execute(QUERIES.recover)).fetchone()
    return {"lined_up": row[0], "abandoned": row[1]} if row else None


KIND = JobKind("recover_analyses", recover_analyses, time_limit_seconds=300)
SCHEDULE = Schedule("recover_analyses", KIND.name, "*/5 * * * *")
