"""Defines the two kinds of conversion jobs: one converts a file with a mapping, the other queues the conversions of a
batch.
"""

from __future__ import annotations

from typing import Any, Protocol

from octavo.ai.gateway import Gateway
from octavo.core.settings import Settings
from octavo.core.types import JSON
from octavo.extract.ocr.recognition import Recognition
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.sandbox import Sandbox
from octavo.storage import Bucket


class ConversionTools(Protocol):
    """The resources that a worker must provide for conversion jobs."""

    @property
    def settings(self) -> Settings: ...
    @property
    def bucket(self) -> Bucket: ...
    @property
    def sandbox(self) -> Sandbox: ...
    @property
    def recognition(self) -> Recognition: ...
    @property
    def gateway(self) -> Gateway: ...


async def convert_document(run: Run[Any]) -> JSON:
    from octavo.convert.job import ConversionJob  # imported with the first job, so that workers start quickly

    tools: ConversionTools = run.tools
    job = ConversionJob(run, tools.settings, tools.bucket, tools.sandbox, tools.recognition, tools.gateway)
    return await job.convert()


async def convert_batch(run: Run[Any]) -> JSON:
    from octavo.convert.submissions import BatchJob

    return await BatchJob(run).list_documents()


BATCH_KIND: JobKind[Any] = JobKind("convert_batch", convert_batch, time_limit_seconds=600, limit_renewed_by_stage=True)
KIND: JobKind[Any] = JobKind("convert", convert_document, time_limit_seconds=600, limit_renewed_by_stage=True)
