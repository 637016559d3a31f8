"""The API for connections: list, confirm and dismiss them, set weights, load the map, and compare documents again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from octavo.connect.connections import (
    ConnectionFilter,
    Decision,
    Weights,
    coverage_of,
    decide,
    find_connections,
    list_connections,
    read_weights,
    rebuild,
    set_weights,
    show_comparison,
)
from octavo.connect.map import ConnectionMap, MapFilter, load_map
from octavo.core.http import Page
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.library.documents import show_document
from octavo.owners import Caller
from octavo.records.search import Connection, ConnectionPage, Engine, Status
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import ID_PART, WHOLE, Cursor, Limit, problems

router = APIRouter(prefix="/api/v1", tags=["connections"])
IdPart = Annotated[str, ID_PART]
FEW, MOST_FOUND = 10, 50
Few = Annotated[int, Query(ge=1, le=MOST_FOUND)]
Weight = Annotated[int, Field(ge=0, le=100), WHOLE]


class WeightsRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    semantic_similarity: Weight
    contradiction_detection: Weight
    thematic_bridge: Weight


class RebuildRequest(BaseModel):
    """The documents to compare again. If `document_ids` is null, all your documents are compared again."""

    model_config = ConfigDict(extra="forbid")

    document_ids: Annotated[list[UUID], Field(min_length=1, max_length=500)] | None = None


class RebuildAnswer(BaseModel):
    """The jobs that compare the documents, one for each document."""

    jobs: list[UUID]


@router.get("/documents/{document}/connections", responses=problems(400, 401, 404, 422))
async def connections(
    services: ServicesOf,
    caller: ReadCaller,
    document: UUID,
    engine: Engine | None = None,
    status: Status | None = None,
    chunk_id: UUID | None = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> ConnectionPage:
    """List the connections of a document to others, sorted by strength times the weight of their type.

    Dismissed connections are listed only with `status=dismissed`. The list is complete when `comparison.state` is
    `done`. `coverage` says whether contradictions can be found in the document's language, and whether bridges
    (connections between different subjects) can be found.
    """
    async with services.database.connection() as connection:
        found = await show_document(connection, caller.owner_id, document)
        wanted = ConnectionFilter(engine, status, chunk_id)
        # Read before the connections, so that the response never says `done` while connections are missing.
        comparison = await show_comparison(connection, caller.owner_id, found)
        page = await list_connections(connection, caller.owner_id, document, wanted, cursor=cursor, limit=limit)
        coverage = coverage_of(services.settings, caller, found)
        return ConnectionPage(page.items, page.next_cursor, comparison, coverage)


@router.get("/connections", responses=problems(401, 422))
async def find(services: ServicesOf, caller: ReadCaller, id: IdPart, limit: Few = FEW) -> Page[Connection]:  # noqa: A002
    """List the connections whose id begins or ends with these characters, including dismissed ones."""
    async with services.database.connection() as connection:
        return Page(await find_connections(connection, caller.owner_id, id, limit), None)


@router.post("/connections/{connection_id}/confirm", responses=problems(401, 403, 404, 422))
async def confirm(services: ServicesOf, caller: WriteCaller, connection_id: UUID) -> Connection:
    """Confirm a connection.

    The decision is stored with the two quotes, so it is kept when the documents are compared again.
    """
    return await _decide(services, caller, connection_id, Decision.CONFIRM)


@router.post("/connections/{connection_id}/dismiss", responses=problems(401, 403, 404, 422))
async def dismiss(services: ServicesOf, caller: WriteCaller, connection_id: UUID) -> Connection:
    """Dismiss a connection.

    The decision is stored with the two quotes, so it is kept when the documents are compared again.
    """
    return await _decide(services, caller, connection_id, Decision.DISMISS)


@router.post("/connections/{connection_id}/undo", responses=problems(401, 403, 404, 422))
async def undo(services: ServicesOf, caller: WriteCaller, connection_id: UUID) -> Connection:
    """Undo the decision about a connection."""
    return await _decide(services, caller, connection_id, Decision.UNDO)


async def _decide(services: Services, caller: Caller, connection_id: UUID, decision: Decision) -> Connection:
    async with services.database.transaction() as connection:
        return await decide(connection, caller.owner_id, connection_id, decision)


@router.get("/connections/weights", responses=problems(401))
async def weights(services: ServicesOf, caller: ReadCaller) -> Weights:
    """Return the weight of each type of connection, from 0 to 100."""
    async with services.database.connection() as connection:
        return await read_weights(connection, caller.owner_id)


@router.put("/connections/weights", responses=problems(400, 401, 403, 422))
async def weigh(services: ServicesOf, caller: WriteCaller, wanted: WeightsRequest) -> Weights:
    """Set the weight of each type of connection. The weights apply to all lists immediately."""
    async with services.database.transaction() as connection:
        chosen = Weights(**wanted.model_dump())
        await set_weights(connection, caller.owner_id, chosen)
        return Weights(**asdict(chosen))


@router.get("/connections/map", responses=problems(401, 404, 422))
async def connections_map(
    services: ServicesOf,
    caller: ReadCaller,
    focus: UUID | None = None,
    engine: Engine | None = None,
    least: Annotated[float, Query(alias="min", ge=0, le=1, allow_inf_nan=False)] = 0.0,
) -> ConnectionMap:
    """Return the map as a graph.

    The nodes are the sixty documents with the strongest connections, and the edges are the connections between them.
    """
    async with services.database.connection() as connection:
        if focus is not None:
            await show_document(connection, caller.owner_id, focus)
        return await load_map(connection, caller.owner_id, MapFilter(focus, engine, least))


@router.post("/connections/rebuild", status_code=202, responses=problems(400, 401, 403, 404, 422))
async def rebuild_connections(
    services: ServicesOf, caller: WriteCaller, idempotency: IdempotencyOf, wanted: RebuildRequest | None = None
) -> RebuildAnswer:
    """Compare documents again. Verdicts are kept, and stored model answers are reused at no cost."""
    async with services.database.transaction() as connection:
        chosen = wanted.document_ids if wanted else None
        jobs = await rebuild(connection, caller.owner_id, chosen)
        return await idempotency.keep(connection, RebuildAnswer(jobs=jobs))
