"""Job kind that embeds the tags of a document, so that similar tags can be found. No document waits for it."""

from __future__ import annotations

from octavo.choreography import Cause, job_after
from octavo.core.types import JSON
from octavo.database import Connection
from octavo.describe.embedding import embed_new_tags
from octavo.jobs.job_run import ClaimedJob, Run
from octavo.jobs.kinds import JobKind
from octavo.jobs.queue import enqueue
from octavo.pipeline.tools import Tools

EMBED_TAGS = "embed_tags"


async def embed_tags(run: Run[Tools]) -> JSON:
    return await embed_new_tags(run, run.tools)


async def enqueue_embed_tags(connection: Connection, job: ClaimedJob) -> None:
    """Enqueue one job for each attempt of the job that tagged the document."""
    key = f"tags:{job.id}:{job.lease_token}"
    await enqueue(connection, [job_after(Cause.TAGGED, job.owner_id, key=key, document=job.document_id)])


KIND = JobKind(EMBED_TAGS, embed_tags, time_limit_seconds=90)
