"""Vectors for documents that have none of a model yet: a job for each of them, and nothing is read again."""

from __future__ import annotations

from uuid import UUID

from octavo.ai.contract import LOCAL
from octavo.ai.models import Model, line_of, read_model
from octavo.core.errors import BadInput
from octavo.core.settings import Settings
from octavo.database import Connection, load_queries
from octavo.jobs.queue import NewJob, enqueue

QUERIES = load_queries("enriching")
KIND = "embed_document"


class UnknownModel(BadInput):
    """There is no such model: it is written as provider:model with one of OCTAVO_PROVIDERS, or local."""

    code = "UNKNOWN_MODEL"
    status = 404


def name_of_model(settings: Settings, wanted: str | None = None) -> str:
    """As vectors are labelled: those of the model that is named, or of the one in the settings."""
    from octavo.language import NAME

    model = _model(settings, wanted)
    return NAME if model.provider == LOCAL else str(model)


def _model(settings: Settings, wanted: str | None) -> Model:
    if wanted is None:
        return line_of(settings).embedding
    model = read_model(wanted)
    is_local = model.provider == LOCAL
    if is_local is bool(model.name) or (not is_local and model.provider not in settings.providers):
        raise UnknownModel
    return model


async def reembed(connection: Connection, owner: UUID, settings: Settings, wanted: str | None = None) -> int:
    """Put in line what makes the vectors that are missing; answers how many documents that is."""
    values = {"owner": owner, "model": name_of_model(settings, wanted), "kind": KIND}
    rows = await (await connection.execute(QUERIES.documents_to_embed, values)).fetchall()
    given = {"model": wanted} if wanted else {}
    await enqueue(connection, [NewJob(KIND, owner, {**given}, document_id=row[0]) for row in rows])
    return len(rows)
