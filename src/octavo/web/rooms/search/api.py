"""The API for search, similar documents and tags, and embeddings."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from octavo.core.http import Page
from octavo.describe.embedding import EmbeddingProgress, embedding_model, embedding_progress, reembed
from octavo.library.documents import show_document
from octavo.records.search import RelatedDocument
from octavo.search import DEFAULT_LIMIT, MOST_LIMIT, Filters, Mode, SearchPage, find_page
from octavo.search.related import MOST_RELATED, SimilarTag, related_documents, similar_tags
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import Cursor, Date, problems

router = APIRouter(prefix="/api/v1", tags=["search"])
MOST_CHOSEN = 100
Word = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Few = Annotated[int, Query(ge=1, le=MOST_LIMIT)]


@router.get("/search", responses=problems(401, 402, 422, 429, 502, 503, 504))
async def search(  # noqa: PLR0917 - query parameters
    services: ServicesOf,
    caller: ReadCaller,
    q: Annotated[str, Query(description='Words, "required phrases" and -excluded words.')],
    mode: Mode = "hybrid",
    limit: Few = DEFAULT_LIMIT,
    cursor: Cursor = None,
    document: Annotated[list[UUID] | None, Query(max_length=MOST_CHOSEN)] = None,
    tag: Annotated[list[Word] | None, Query(max_length=MOST_CHOSEN)] = None,
    collection: Word | None = None,
    kind: Annotated[list[Word] | None, Query(max_length=MOST_CHOSEN, description="Document types.")] = None,
    language: Word | None = None,
    since: Date | None = None,
    until: Date | None = None,
    field: Annotated[
        Word | None, Query(description="A custom field and its value, as in `Project:Coast`, or only its name.")
    ] = None,
    versions: bool = False,  # noqa: FBT001, FBT002 - a query parameter
) -> SearchPage:
    """Find the best matching chunks in all or in selected documents.

    If `versions` is true, older versions are included. The `hybrid` mode combines keyword search and semantic search.
    If the query cannot be embedded at the moment, only keyword search is used: `mode` is then `text`, and `degraded`
    contains the reason.
    """
    filters = Filters(
        document or (), tag or (), collection, kind or (), language, since, until, versions=versions, field=field
    )
    return await find_page(
        services.database, services.models, caller.owner_id, q, cursor=cursor, mode=mode, limit=limit, filters=filters
    )


@router.get("/documents/{document}/related", responses=problems(401, 404, 422))
async def related(
    services: ServicesOf, caller: ReadCaller, document: UUID, limit: Few = MOST_RELATED
) -> Page[RelatedDocument]:
    """List your documents about similar topics, most similar first."""
    model = embedding_model(services.settings)
    async with services.database.transaction() as connection:
        await show_document(connection, caller.owner_id, document)
        return Page(await related_documents(connection, caller.owner_id, document, model, limit), None)


@router.get("/tags/similar", responses=problems(401, 422))
async def similar(services: ServicesOf, caller: ReadCaller, name: Word, limit: Few = MOST_RELATED) -> Page[SimilarTag]:
    """List your tags that are similar in meaning to the tag `name`."""
    model = embedding_model(services.settings)
    async with services.database.connection() as connection:
        return Page(await similar_tags(connection, caller.owner_id, name, model, limit), None)


embeddings_router = APIRouter(prefix="/api/v1", tags=["documents"])


class EmbedRequest(BaseModel):
    """A request to create embeddings. `model` is `provider:model` or `local`; null uses the model in the settings."""

    model_config = ConfigDict(extra="forbid")

    model: Annotated[str | None, Field(max_length=200, pattern=r"^(local|[a-z]+:[^|,=\s]+)$")] = None


class EmbedAnswer(BaseModel):
    """The result of a request for embeddings. `queued` is the number of documents that were queued."""

    queued: int


@embeddings_router.get("/embeddings", responses=problems(401))
async def embeddings_state(services: ServicesOf, caller: ReadCaller) -> EmbeddingProgress:
    """Return the embedding model, and how many of your documents have embeddings from it.

    Your other documents get new embeddings automatically. Until then, they are searched with their old embeddings.
    """
    async with services.database.connection() as connection:
        return await embedding_progress(connection, caller.owner_id, services.settings)


@embeddings_router.post("/embeddings", status_code=202, responses=problems(400, 401, 403, 404, 422))
async def embeddings(
    services: ServicesOf, caller: WriteCaller, idempotency: IdempotencyOf, wanted: EmbedRequest | None = None
) -> EmbedAnswer:
    """Create missing embeddings for your documents; existing ones are kept."""
    async with services.database.transaction() as connection:
        model = wanted.model if wanted else None
        queued = await reembed(connection, caller.owner_id, services.settings, model)
        return await idempotency.keep(connection, EmbedAnswer(queued=queued))
