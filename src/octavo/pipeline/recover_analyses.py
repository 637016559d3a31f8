"""Job kind that continues analyses whose jobs got lost, and abandons those that did not move for two days."""

from __future__ import annotations

from octavo.analyse.progress import recover_all
from octavo.core.types import JSON
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.jobs.schedules import Schedule
from octavo.pipeline.tools import Tools


async def recover_analyses(run: Run[Tools]) -> JSON:
    enqueued, abandoned = await recover_all(run.database)
    return {"lined_up": enqueued, "abandoned": abandoned}


KIND = JobKind("recover_analyses", recover_analyses, time_limit_seconds=300)
SCHEDULE = Schedule("recover_analyses", KIND.name, "*/5 * * * *")
