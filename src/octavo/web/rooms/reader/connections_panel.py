"""The connections panel of the reader."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from uuid import UUID

from fastapi import APIRouter, Request, Response

from octavo.connect.comparisons import show_comparison
from octavo.connect.connections import ConnectionFilter, count_connections, list_connections, read_weights
from octavo.database import Connection as Database
from octavo.library.documents import show_document
from octavo.records.documents import Document
from octavo.records.search import ComparisonStatus, Connection, Status
from octavo.web.context.callers import ReadCaller
from octavo.web.context.services import ServicesOf
from octavo.web.shell.templates import render

router = APIRouter(include_in_schema=False)
MOST_SHOWN, MOST_DISMISSED = 40, 20


@dataclass(frozen=True, slots=True)
class ConnectionsPanel:
    """The content of the panel. Until the comparison is done, connections may be missing."""

    document_id: UUID
    chunk: UUID | None
    items: list[Connection]
    dismissed: list[Connection]
    total: int
    weights: dict[str, int]
    comparison: ComparisonStatus


async def show_connections(
    connection: Database, owner: UUID, document: Document, *, chunk: UUID | None = None
) -> ConnectionsPanel:
    """Connections of a document or of one chunk; `total` always counts the whole document.

    The state of the comparison is read first, so that a comparison is never reported as done too early.
    """
    comparison, ident = await show_comparison(connection, owner, document), document.id
    counts = await count_connections(connection, owner, ident)
    items = await list_connections(connection, owner, ident, ConnectionFilter(chunk=chunk), limit=MOST_SHOWN)
    gone = ConnectionFilter(status=Status.DISMISSED, chunk=chunk)
    dismissed = await list_connections(connection, owner, ident, gone, limit=MOST_DISMISSED)
    weights = asdict(await read_weights(connection, owner))
    return ConnectionsPanel(ident, chunk, items.items, dismissed.items, sum(counts.values()), weights, comparison)


@router.get("/documents/{document}/connections")
async def connections_fragment(
    request: Request, services: ServicesOf, caller: ReadCaller, document: UUID, of: UUID | None = None
) -> Response:
    """The panel as a fragment.

    `of` is the chunk whose connections are shown; without it, the connections of the whole document are shown.
    """
    async with services.database.connection() as connection:
        found = await show_document(connection, caller.owner_id, document)
        shown = await show_connections(connection, caller.owner_id, found, chunk=of)
    back = f"/documents/{document}?panel=connections" + (f"&of={of}" if of else "")
    return render(request, "reader_connections.html", None, connections=shown, back=back, may_write=caller.may_write)
