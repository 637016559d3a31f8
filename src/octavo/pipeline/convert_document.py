"""Converts a file by a mapping."""

from __future__ import annotations

from octavo.core.json import JSON
from octavo.jobs.kinds import JobKind
from octavo.jobs.run import Run
from octavo.pipeline.tools import Tools


async def convert_document(run: Run[Tools]) -> JSON:
    from octavo.pipeline.converting import convert  # with the first job: a worker that starts need not wait for it

    return await convert(run)


KIND = JobKind("convert", convert_document, time_limit_seconds=600, limit_renewed_by_stage=True)
