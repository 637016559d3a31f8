"""Searching an owner's documents, and what is like something that is there."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from octavo.core.pages import Page
from octavo.describe.embedding import embedding_model
from octavo.library.documents import show_document
from octavo.search import DEFAULT_LIMIT, MOST_LIMIT, Filters, Found, Mode, find_page
from octavo.search.contract import Related, SimilarTag
from octavo.search.related import MOST_RELATED, related_documents, similar_tags
from octavo.web.api import Cursor, problems
from octavo.web.api.documents import Date
from octavo.web.parts import PartsOf, Reading

router = APIRouter(prefix="/api/v1", tags=["search"])
MOST_CHOSEN = 100
Word = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Few = Annotated[int, Query(ge=1, le=MOST_LIMIT)]


@router.get("/search", responses=problems(401, 402, 422, 429, 502, 503, 504))
async def search(  # noqa: PLR0917 - query parameters
    parts: PartsOf,
    caller: Reading,
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
) -> Found:
    """The passages that answer best, of the documents that you chose or of all; with `versions`, of older ones too.

    `hybrid` looks for words and for meaning. Where the meaning of the query cannot be told at the moment, words have
    to do: `mode` then is `text`, and `degraded` says why.
    """
    filters = Filters(document or (), tag or (), collection, kind or (), language, since, until, versions=versions)
    return await find_page(
        parts.database, parts.models, caller.owner_id, q, cursor=cursor, mode=mode, limit=limit, filters=filters
    )


@router.get("/documents/{document}/related", responses=problems(401, 404, 422))
async def related(parts: PartsOf, caller: Reading, document: UUID, limit: Few = MOST_RELATED) -> Page[Related]:
    """Your documents that are about the same things, the most similar first."""
    model = embedding_model(parts.settings)
    async with parts.database.transaction() as connection:
        await show_document(connection, caller.owner_id, document)
        return Page(await related_documents(connection, caller.owner_id, document, model, limit), None)


@router.get("/tags/similar", responses=problems(401, 422))
async def similar(parts: PartsOf, caller: Reading, name: Word, limit: Few = MOST_RELATED) -> Page[SimilarTag]:
    """Your tags that mean nearly the same as this one."""
    model = embedding_model(parts.settings)
    async with parts.database.connection() as connection:
        return Page(await similar_tags(connection, caller.owner_id, name, model, limit), None)
