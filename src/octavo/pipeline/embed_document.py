"""Job kind that adds the missing vectors of a document's chunks, for any model."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from octavo.choreography import Cause, compare_documents
from octavo.core.errors import BadInput
from octavo.core.types import JSON
from octavo.database import Connection
from octavo.describe.embedding import EMBED_DOCUMENT, embed_missing_chunks
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.pipeline.tools import Tools


class EmbedInput(BaseModel):
    """`model` is written as in OCTAVO_EMBEDDING_MODEL, which is also the default."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = None


def read_input(given: dict[str, JSON]) -> EmbedInput:
    try:
        return EmbedInput.model_validate(given)
    except ValidationError:
        raise BadInput("model: must be the name of a model.") from None


async def embed_document(run: Run[Tools]) -> JSON:
    async def reconnect(connection: Connection, model: str) -> None:
        if run.job.document_id:
            await compare_documents(connection, Cause.OTHER_MODEL, [run.job.document_id], f"model:{model}")

    return await embed_missing_chunks(run, run.tools, read_input(run.input).model, reconnect)


KIND = JobKind(
    EMBED_DOCUMENT, embed_document, time_limit_seconds=600, limit_renewed_by_stage=True, check_input=read_input
)
