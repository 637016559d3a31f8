"""Job kinds for vectors: embed the missing chunks of a document, embed new tags, and build an index."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from octavo.choreography import Cause, compare_documents, job_after
from octavo.core.errors import BadInput
from octavo.core.types import JSON
from octavo.database import Connection, fetch_rows
from octavo.describe.embedding import (
    EMBED_DOCUMENT,
    embed_missing_chunks,
    embed_new_tags,
    embedding_model,
    use_model,
)
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.jobs.queue import enqueue
from octavo.pipeline.tools import Tools

# embed_document -----------------------------------------------------------------------------------------------------


class EmbedInput(BaseModel):
    """The input of an embedding job. `model` has the same format as OCTAVO_EMBEDDING_MODEL, which is the default."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = None


def read_embed_input(given: dict[str, JSON]) -> EmbedInput:
    try:
        return EmbedInput.model_validate(given)
    except ValidationError:
        raise BadInput("model: must be the name of a model.") from None


async def embed_document(run: Run[Tools]) -> JSON:
    document = run.job.document_id

    async def use_and_compare(connection: Connection, model: str) -> None:
        if document is None:
            return
        if model == embedding_model(run.tools.settings):
            await use_model(connection, document, model)
            await enqueue_embed_tags(connection, run)
        await compare_documents(connection, Cause.OTHER_MODEL, [document], f"model:{model}")

    return await embed_missing_chunks(run, run.tools, read_embed_input(run.input).model, use_and_compare)


# embed_tags ---------------------------------------------------------------------------------------------------------


async def embed_tags(run: Run[Tools]) -> JSON:
    """Embed a document's tags, so that similar tags can be found.

    The document is complete even if this job fails.
    """
    return await embed_new_tags(run, run.tools)


async def enqueue_embed_tags(connection: Connection, run: Run[Tools]) -> None:
    """Queue the job that embeds the document's tags.

    Called by the job that chose the tags. Repeated calls in the same attempt of that job have no effect.
    """
    job, owner = run.job, await run.current_owner(connection)
    key = f"tags:{job.id}:{job.lease_token}"
    await enqueue(connection, [job_after(Cause.TAGGED, owner, key=key, document=job.document_id)])


# index_vectors ------------------------------------------------------------------------------------------------------


class IndexInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: int


def read_index_input(given: dict[str, JSON]) -> IndexInput:
    try:
        return IndexInput.model_validate(given)
    except ValidationError:
        raise BadInput("model: must be the id of a model.") from None


async def index_vectors(run: Run[Tools]) -> JSON:
    from octavo.connect.neighbours import build_index  # imported with the first job, so that workers start quickly

    memory = run.tools.settings.index_memory_bytes
    return {"index": await build_index(run.tools.database, read_index_input(run.input).model, memory)}


async def queue_due_indexes(connection: Connection) -> int:
    """Enqueue a job for each model that needs an index and has none. Returns the number of these jobs.

    Comparisons also enqueue such jobs, but vectors can be imported, restored or moved to another account without a
    comparison.
    """
    from octavo.connect.neighbours import MOST_EXACT, QUERIES

    rows = await fetch_rows(connection, QUERIES.models_without_index, {"most": MOST_EXACT})
    jobs = [job_after(Cause.MANY_VECTORS, row["owner_id"], {"model": row["model"]}, key=row["key"]) for row in rows]
    if jobs:
        await enqueue(connection, jobs)
    return len(jobs)


KINDS = (
    JobKind(
        EMBED_DOCUMENT,
        embed_document,
        time_limit_seconds=600,
        limit_renewed_by_stage=True,
        check_input=read_embed_input,
    ),
    JobKind("embed_tags", embed_tags, time_limit_seconds=90),
    JobKind("index_vectors", index_vectors, time_limit_seconds=86_400, cap=1, check_input=read_index_input),
)
