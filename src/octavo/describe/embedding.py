"""Creates and stores the vectors (embeddings) of chunks and tags.

A chunk can have vectors of several models. Missing vectors of a model can be added to existing documents at any time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from psycopg.rows import class_row

from octavo.ai.calls import LOCAL, Caller
from octavo.ai.gateway import Gateway
from octavo.ai.models import Model, model_chain, parse_model
from octavo.ai.vectors import Vectors
from octavo.choreography import Cause, compare_documents, job_after
from octavo.core.errors import BadInput, BadSetting
from octavo.core.settings import Settings
from octavo.core.types import JSON
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.jobs.job_run import Run
from octavo.jobs.queue import enqueue
from octavo.language.insights import ChunkText
from octavo.records.documents import EmbeddingProgress

QUERIES = load_queries("describe")
EMBED_DOCUMENT = "embed_document"
# The number of chunks in one call. Each batch is committed separately.
CHUNKS_PER_CALL = 100
# The maximum number of documents queued in one scheduled run, so that the queue stays short.
MOST_RENEWED = 500
# The maximum number of vectors deleted in one transaction, and of transactions in one scheduled run.
DELETED_PER_BATCH, MOST_BATCHES = 2000, 20

Finish: TypeAlias = Callable[[Connection, str], Awaitable[None]]
Write: TypeAlias = Callable[[Connection], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class StoredChunk:
    id: UUID
    content: str
    heading_path: list[str]

    def as_text(self) -> ChunkText:
        return ChunkText(self.content, tuple(self.heading_path))


async def load_chunks(database: Database, query: bytes, **values: object) -> list[StoredChunk]:
    async with database.connection() as connection, connection.cursor(row_factory=class_row(StoredChunk)) as cursor:
        await cursor.execute(query, values)
        return await cursor.fetchall()


async def save_chunk_vectors(connection: Connection, chunks: Sequence[UUID], vectors: Vectors) -> None:
    model = await _model_id(connection, vectors)
    values = {"model": model, "chunks": list(chunks), "vectors": _as_texts(vectors)}
    await connection.execute(QUERIES.insert_chunk_vectors, values)


async def save_tag_vectors(connection: Connection, tags: Sequence[UUID], vectors: Vectors) -> None:
    model = await _model_id(connection, vectors)
    values = {"model": model, "tags": list(tags), "vectors": _as_texts(vectors)}
    await connection.execute(QUERIES.insert_tag_vectors, values)


async def _model_id(connection: Connection, vectors: Vectors) -> int:
    return await model_id(connection, vectors.model, len(vectors.vectors[0]))


async def model_id(connection: Connection, name: str, dimensions: int) -> int:
    """Return the id of an embedding model. Its row in the database is created on first use."""
    values = {"name": name, "dimensions": dimensions}
    row = await (await connection.execute(QUERIES.embedding_model, values)).fetchone()
    if row is None or row[0] is None:
        raise BadSetting(f"{name} now returns vectors of a different length than before.")
    return row[0]


def _as_texts(vectors: Vectors) -> list[str]:
    return [vector_text(vector) for vector in vectors.vectors]


def vector_text(vector: Sequence[float]) -> str:
    """Return a vector in the text format of pgvector."""
    return f"[{','.join(map(repr, vector))}]"


class EmbeddingTools(Protocol):
    """The resources that a worker must provide for embedding."""

    @property
    def settings(self) -> Settings: ...
    @property
    def database(self) -> Database: ...
    @property
    def gateway(self) -> Gateway: ...


class UnknownModel(BadInput):
    """Unknown model. Use local, or provider:model with a provider from OCTAVO_PROVIDERS."""

    code = "UNKNOWN_MODEL"
    status = 404


def embedding_model(settings: Settings, requested: str | None = None) -> str:
    """Return the name under which vectors of a model are stored.

    If `requested` is None, this is the model in the settings.
    """
    from octavo.language import NAME

    model = _resolve(settings, requested)
    return NAME if model.provider == LOCAL else str(model)


def _resolve(settings: Settings, requested: str | None) -> Model:
    if requested is None:
        return model_chain(settings).embedding
    model = parse_model(requested)
    is_local = model.provider == LOCAL
    if is_local is bool(model.name) or (not is_local and model.provider not in settings.providers):
        raise UnknownModel
    return model


async def reembed(connection: Connection, owner: UUID, settings: Settings, requested: str | None = None) -> int:
    """Queue a job for each document that lacks vectors of the model. Returns the number of documents."""
    values = {"owner": owner, "model": embedding_model(settings, requested), "kind": EMBED_DOCUMENT}
    rows = await (await connection.execute(QUERIES.documents_to_embed, values)).fetchall()
    job_input: dict[str, JSON] = {"model": requested} if requested else {}
    await enqueue(connection, [job_after(Cause.VECTORS_REQUESTED, owner, job_input, document=row[0]) for row in rows])
    return len(rows)


async def embedding_progress(connection: Connection, owner: UUID, settings: Settings) -> EmbeddingProgress:
    """Count the account's documents that already have vectors made with the configured model."""
    model = embedding_model(settings)
    values = {"owner": owner, "model": model, "visitors": settings.anonymous_models}
    (row,) = await fetch_rows(connection, QUERIES.embedding_progress, values)
    return EmbeddingProgress(model, row["documents"], row["done"])


async def renew_vectors(connection: Connection, settings: Settings, most: int = MOST_RENEWED) -> int:
    """Queue a job for each document whose vectors were made with a model other than the one in the settings.

    Includes the documents of all accounts. Documents of visitors without an account are included only if the settings
    allow sending them to providers. Returns the number of jobs.
    """
    values = {
        "model": embedding_model(settings),
        "visitors": settings.anonymous_models,
        "kind": EMBED_DOCUMENT,
        "most": most,
    }
    rows = await fetch_rows(connection, QUERIES.outdated_documents, values)
    jobs = [job_after(Cause.MODEL_CHANGED, row["owner_id"], key=row["key"], document=row["id"]) for row in rows]
    if jobs:
        await enqueue(connection, jobs)
    return len(jobs)


async def delete_old_vectors(database: Database) -> int:
    """Delete vectors of earlier models that are no longer needed. Returns the number of deleted vectors.

    Each batch is committed separately, so that writers never wait long. The number of batches is limited; the next
    scheduled run continues.
    """
    values = {"embed": EMBED_DOCUMENT, "compare": "detect_connections", "most": DELETED_PER_BATCH}
    total = 0
    for _ in range(MOST_BATCHES):
        async with database.transaction() as connection:
            deleted = (await connection.execute(QUERIES.delete_old_vectors, values)).rowcount
            if deleted:
                await connection.execute(QUERIES.forget_replaced_models)
        total += deleted
        if deleted < DELETED_PER_BATCH:
            break
    return total


async def embed_missing_chunks(run: Run[Any], tools: EmbeddingTools, requested: str | None, finish: Finish) -> JSON:
    """Embed the chunks of the job's document that have no vector of the requested model yet.

    `finish` is called with the model's name, in the transaction that stores the last vectors.
    """
    job, model = run.job, embedding_model(tools.settings, requested)
    chunks = await load_chunks(tools.database, QUERIES.unembedded, document=job.document_id, model=model)
    caller = Caller(job.owner_id, job.document_id, job.id, job.lease_token)
    for start in range(0, len(chunks), CHUNKS_PER_CALL):
        part = chunks[start : start + CHUNKS_PER_CALL]
        answer = await tools.gateway.embed([chunk.content for chunk in part], caller, requested)
        is_last = start + len(part) == len(chunks)
        await _store_part(run, part, answer.output, (lambda connection: finish(connection, model)) if is_last else None)
        await run.progress(start + len(part), len(chunks), "passages", "embedding")
    if not chunks:
        await _use_existing(run, model, finish)
    return {"passages": len(chunks), "model": model}


async def _use_existing(run: Run[Any], model: str, finish: Finish) -> None:
    """Finish the job without calling the model, because every chunk already has a vector.

    This happens, for example, after switching to another model and back.
    """

    async def work() -> JSON:
        return 0

    async def save(connection: Connection, _made: JSON) -> None:
        await finish(connection, model)

    await run.stage("embedding", work, part="existing", save=save)


async def use_model(connection: Connection, document: UUID, model: str) -> None:
    """Use the vectors of this model for searches in the document. Does nothing if some chunks have no such vector."""
    await connection.execute(QUERIES.use_model, {"document": document, "model": model})


async def _store_part(run: Run[Any], chunks: Sequence[StoredChunk], vectors: Vectors, finish: Write | None) -> None:
    """Store the vectors of a batch of chunks, as one step of the stage that embeds a document.

    The step is named after the first chunk. The name is unique, because chunks that already have a vector are not
    selected again.
    """

    async def work() -> JSON:
        return len(chunks)

    async def save(connection: Connection, _made: JSON) -> None:
        await save_chunk_vectors(connection, [chunk.id for chunk in chunks], vectors)
        whole = await connection.execute(QUERIES.set_embeddings_ready_if_whole, {"document": run.job.document_id})
        if whole.rowcount and run.job.document_id:
            await compare_documents(connection, Cause.EMBEDDED, [run.job.document_id])
        if finish:
            await finish(connection)

    await run.stage("embedding", work, part=str(chunks[0].id), save=save)


async def embed_new_tags(run: Run[Any], tools: EmbeddingTools) -> JSON:
    """Embed the tags of the job's document that have no vector of the configured model yet."""
    job = run.job
    values = {"document": job.document_id, "model": embedding_model(tools.settings)}
    async with tools.database.connection() as connection:
        tags = await fetch_rows(connection, QUERIES.unembedded_tags, values)
    if not tags:
        return {"tags": 0}
    caller = Caller(job.owner_id, job.document_id, job.id, job.lease_token)
    answer = await tools.gateway.embed([tag["name"] for tag in tags], caller)

    async def work() -> JSON:
        return {"tags": len(tags)}

    async def save(connection: Connection, _made: JSON) -> None:
        await save_tag_vectors(connection, [tag["id"] for tag in tags], answer.output)

    return await run.stage("embedded", work, save=save)
