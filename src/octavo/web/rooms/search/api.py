"""Searching an owner's documents, and what is like something that is there."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from octavo.core.pagination import Page
from octavo.describe.embedding import embedding_model, reembed
from octavo.library.documents import show_document
from octavo.search import DEFAULT_LIMIT, MOST_LIMIT, Filters, Mode, SearchPage, find_page
from octavo.search.related import MOST_RELATED, RelatedDocument, SimilarTag, related_documents, similar_tags
from octavo.web.context.callers import ReadCaller, WriteCaller
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
    q: Annotated[str, Query(description='Words, "phrases" that have to be there, -words that must not.')],
    mode: Mode = "hybrid",
    limit: Few = DEFAULT_LIMIT,
    cursor: Cursor = None,
    document: Annotated[list[UUID] | None, Query(max_length=MOST_CHOSEN)] = None,
    tag: Annotated[list[Word] | None, Query(max_length=MOST_CHOSEN)] = None,
    collection: Word | None = None,
    kind: Annotated[list[Word] | None, Query(max_length=MOST_CHOSEN, description="Types, as of documents.")] = None,
    language: Word | None = None,
    since: Date | None = None,
    until: Date | None = None,
    versions: bool = False,  # noqa: FBT001, FBT002 - a query parameter
) -> SearchPage:
    """The passages that answer best, of the documents that you chose or of all; with `versions`, of older ones too.

    `hybrid` looks for words and for meaning. Where the meaning of the query cannot be told at the moment, words have
    to do: `mode` then is `text`, and `degraded` says why.
    """
    filters = Filters(document or (), tag or (), collection, kind or (), language, since, until, versions=versions)
    return await find_page(
        services.database, services.models, caller.owner_id, q, cursor=cursor, mode=mode, limit=limit, filters=filters
    )


@router.get("/documents/{document}/related", responses=problems(401, 404, 422))
async def related(
    services: ServicesOf, caller: ReadCaller, document: UUID, limit: Few = MOST_RELATED
) -> Page[RelatedDocument]:
    """Your documents that are about the same things, the most similar first."""
    model = embedding_model(services.settings)
    async with services.database.transaction() as connection:
        await show_document(connection, caller.owner_id, document)
        return Page(await related_documents(connection, caller.owner_id, document, model, limit), None)


@router.get("/tags/similar", responses=problems(401, 422))
async def similar(services: ServicesOf, caller: ReadCaller, name: Word, limit: Few = MOST_RELATED) -> Page[SimilarTag]:
    """Your tags that mean nearly the same as this one."""
    model = embedding_model(services.settings)
    async with services.database.connection() as connection:
        return Page(await similar_tags(connection, caller.owner_id, name, model, limit), None)


embeddings_router = APIRouter(prefix="/api/v1", tags=["documents"])


class EmbedRequest(BaseModel):
    """`model` is `provider:model` or `local`; without one, that of the settings."""

    model_config = ConfigDict(extra="forbid")

    model: Annotated[str | None, Field(max_length=200, pattern=r"^(local|[a-z]+:[^|,=\s]+)$")] = None


class EmbedAnswer(BaseModel):
    """For how many documents a job was put in line."""

    queued: int


@embeddings_router.post("/embeddings", status_code=202, responses=problems(400, 401, 403, 404, 422))
async def embeddings(services: ServicesOf, caller: WriteCaller, wanted: EmbedRequest | None = None) -> EmbedAnswer:
    """Make the vectors that your documents lack, beside those that they have."""
    async with services.database.transaction() as connection:
        model = wanted.model if wanted else None
        return EmbedAnswer(queued=await reembed(connection, caller.owner_id, services.settings, model))
