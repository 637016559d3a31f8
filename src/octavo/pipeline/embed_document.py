"""Makes the vectors that the passages of a document lack, of any model, without reading the file again."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from octavo.ai.contract import Caller
from octavo.ai.vectors import Vectors
from octavo.core.errors import BadInput
from octavo.core.json import JSON
from octavo.database import Connection, load_queries
from octavo.jobs.kinds import JobKind
from octavo.jobs.run import Run
from octavo.library.embedding import KIND as NAME
from octavo.library.embedding import name_of_model
from octavo.pipeline.embedding import VECTORS_AT_ONCE, Piece, load_pieces, save_chunk_vectors
from octavo.pipeline.tools import Tools

QUERIES = load_queries("enriching")
CONNECTIONS = load_queries("connections")


class EmbedInput(BaseModel):
    """`model` as OCTAVO_EMBEDDING_MODEL has it; without one, that of the settings."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = None


def read_input(given: dict[str, JSON]) -> EmbedInput:
    try:
        return EmbedInput.model_validate(given)
    except ValidationError:
        raise BadInput("A model is a name.") from None


async def embed_document(run: Run[Tools]) -> JSON:
    job, tools = run.job, run.tools
    wanted = read_input(run.input).model
    name = name_of_model(tools.settings, wanted)
    pieces = await load_pieces(tools.database, QUERIES.unembedded, document=job.document_id, model=name)
    caller = Caller(job.owner_id, job.document_id, job.id, job.lease_token)
    for start in range(0, len(pieces), VECTORS_AT_ONCE):
        part = pieces[start : start + VECTORS_AT_ONCE]
        answered = await tools.gateway.embed([piece.content for piece in part], caller, wanted)
        is_last = start + len(part) == len(pieces)
        await _keep(run, part, answered.output, name if is_last else None)
        await run.progress(start + len(part), len(pieces), "passages", "embedding")
    return {"passages": len(pieces), "model": name}


async def _keep(run: Run[Tools], pieces: Sequence[Piece], made: Vectors, whole: str | None) -> None:
    """What is kept is not missing any more, so a part needs no other name than that of its first passage.

    With all vectors of the model `whole` a document is compared anew.
    """

    async def work() -> JSON:
        return len(pieces)

    async def save(connection: Connection, _made: JSON) -> None:
        await save_chunk_vectors(connection, [piece.id for piece in pieces], made)
        await connection.execute(QUERIES.set_embeddings_ready_if_whole, {"document": run.job.document_id})
        if whole:
            values = {"documents": [run.job.document_id], "because": f"model:{whole}"}
            await connection.execute(CONNECTIONS.connect_documents, values)

    await run.stage("embedding", work, part=str(pieces[0].id), save=save)


KIND = JobKind(NAME, embed_document, time_limit_seconds=600, limit_renewed_by_stage=True, check_input=read_input)
