"""Gives the tags of a document their vectors, so that tags like them can be found. No document waits for it."""

from __future__ import annotations

from octavo.ai.contract import Caller
from octavo.core.json import JSON
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.kinds import JobKind
from octavo.jobs.run import Run
from octavo.library.embedding import name_of_model
from octavo.pipeline.embedding import save_tag_vectors
from octavo.pipeline.tools import Tools

QUERIES = load_queries("enriching")


async def embed_tags(run: Run[Tools]) -> JSON:
    job, tools = run.job, run.tools
    values = {"document": job.document_id, "model": name_of_model(tools.settings)}
    async with tools.database.connection() as connection:
        tags = await fetch_rows(connection, QUERIES.unembedded_tags, values)
    if not tags:
        return {"tags": 0}
    caller = Caller(job.owner_id, job.document_id, job.id, job.lease_token)
    answered = await tools.gateway.embed([tag["name"] for tag in tags], caller)

    async def work() -> JSON:
        return {"tags": len(tags)}

    async def save(connection: Connection, _made: JSON) -> None:
        await save_tag_vectors(connection, [tag["id"] for tag in tags], answered.output)

    return await run.stage("embedded", work, save=save)


KIND = JobKind("embed_tags", embed_tags, time_limit_seconds=90)
