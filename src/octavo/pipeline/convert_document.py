"""Job kind that converts a file with a mapping."""

from __future__ import annotations

from octavo.core.types import JSON
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.pipeline.tools import Tools


async def convert_document(run: Run[Tools]) -> JSON:
    from octavo.convert.job import ConversionJob  # imported with the first job, so that workers start quickly

    tools = run.tools
    job = ConversionJob(run, tools.settings, tools.bucket, tools.sandbox, tools.recognition, tools.gateway)
    return await job.convert()


KIND = JobKind("convert", convert_document, time_limit_seconds=600, limit_renewed_by_stage=True)
