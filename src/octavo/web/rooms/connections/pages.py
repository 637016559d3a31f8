"""Pages for connections between documents: the map, the list, the weights, and people's verdicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Annotated, Literal
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from pydantic import BaseModel, Field

from octavo.connect.connections import (
    DEFAULT_WEIGHTS,
    ConnectionFilter,
    Decision,
    Weights,
    count_unfinished,
    coverage_of,
    decide,
    failed_comparisons,
    list_connections,
    read_weights,
    rebuild,
    set_weights,
)
from octavo.connect.map import HEIGHT, MOST_NODES, WIDTH, MapFilter, draw, load_map
from octavo.core.errors import NotFound
from octavo.core.texts import mark
from octavo.database import Connection as Database
from octavo.library.documents import show_document
from octavo.records.documents import Document
from octavo.records.search import Connection, Engine
from octavo.web.context.callers import WriteCaller
from octavo.web.context.services import ServicesOf
from octavo.web.shell.forms import Back, done
from octavo.web.shell.frame import Frame, FrameFor, render
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(include_in_schema=False)
MapFrame = Annotated[Frame, Depends(FrameFor("connections"))]
MOST_OF_PAIR = 20
Weight = Annotated[int, Form(ge=0, le=100)]
# The states of connections, as pages show them.
STATES = (mark("Possible"), mark("Confirmed"), mark("Dismissed"))
# Symbol, singular, plural and colour of each engine.
ENGINES: dict[Engine, tuple[str, str, str, str]] = {
    Engine.SIMILARITY: ("≈", mark("Similar"), mark("Similar"), "similar"),
    Engine.CONTRADICTION: ("≠", mark("Contradiction"), mark("Contradictions"), "contra"),
    Engine.BRIDGE: ("⌒", mark("Bridge"), mark("Bridges"), "bridge"),
}


class MapQuery(BaseModel):
    """Query parameters of the page with the map of connections. Empty ones are ignored.

    `one` and `other` are the two documents whose quotes are shown.
    """

    focus: UUID | Literal[""] = ""
    engine: Engine | Literal[""] = ""
    least: Annotated[float, Field(alias="min", ge=0, le=1, allow_inf_nan=False)] = 0.0
    view: Literal["", "list"] = ""
    one: UUID | Literal[""] = ""
    other: UUID | Literal[""] = ""

    @property
    def narrowed(self) -> bool:
        return bool(self.focus or self.engine or self.least)

    def address(self, **changed: object) -> str:
        """Return the path of this page with some query parameters changed.

        The selected pair of documents is kept only if `changed` contains it.
        """
        kept = {"focus": self.focus, "engine": self.engine, "min": self.least or "", "view": self.view}
        query = {name: str(value) for name, value in {**kept, **changed}.items() if value}
        return f"/connections?{urlencode(query)}" if query else "/connections"


@dataclass(frozen=True, slots=True)
class Pair:
    one: Document
    other: Document
    items: list[Connection]

    @property
    def counts(self) -> Counter[Engine]:
        return Counter(item.engine for item in self.items)


@router.get("/connections")
async def map_page(
    request: Request, services: ServicesOf, frame: MapFrame, asked: Annotated[MapQuery, Query()]
) -> Response:
    """Show the map or the list. Filters, view and the selected pair of documents are query parameters."""
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        focus = await show_document(connection, owner, asked.focus) if asked.focus else None
        view = MapFilter(asked.focus or None, asked.engine or None, asked.least)
        drawn = await load_map(connection, owner, view)
        pair = await _pair(connection, owner, asked) if asked.one and asked.other else None
        left = 0 if drawn.nodes else await count_unfinished(connection, owner)
        failed = [] if drawn.nodes else await failed_comparisons(connection, owner)
    return render(
        request,
        "connections.html",
        frame,
        asked=asked,
        focus=focus,
        drawing=draw(drawn),
        pair=pair,
        left=left,
        failed=len(failed),
        coverage=coverage_of(services.settings, frame.caller),
        engines=ENGINES,
        size=(int(WIDTH), int(HEIGHT)),
        is_full=len(drawn.nodes) >= MOST_NODES,
    )


async def _pair(connection: Database, owner: UUID, asked: MapQuery) -> Pair | None:
    """Return the connections between the two selected documents.

    Returns None if no pair is selected or a document was deleted.
    """
    if not (asked.one and asked.other):
        return None
    try:
        one = await show_document(connection, owner, asked.one)
        other = await show_document(connection, owner, asked.other)
    except NotFound:
        return None
    wanted = ConnectionFilter(engine=asked.engine or None, other=other.id)
    found = await list_connections(connection, owner, one.id, wanted, limit=MOST_OF_PAIR)
    return Pair(one, other, found.items)


@router.get("/settings/weights")
async def weights_page(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    async with services.database.connection() as connection:
        weights = asdict(await read_weights(connection, frame.caller.owner_id))
    return show(request, "weights", frame, said=said, weights=weights, usual=DEFAULT_WEIGHTS, engines=ENGINES)


@router.post("/actions/connections/weights")
async def weigh(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    semantic_similarity: Weight,
    contradiction_detection: Weight,
    thematic_bridge: Weight,
    back: Back = "/library",
) -> Response:
    async with services.database.transaction() as connection:
        weights = Weights(semantic_similarity, contradiction_detection, thematic_bridge)
        await set_weights(connection, caller.owner_id, weights)
    return done(request, back)


@router.post("/actions/connections/compare")
async def compare(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    document: Annotated[UUID | None, Form()] = None,
    back: Back = "/connections",
) -> Response:
    """Compare a document again. If no document is given, compare all documents whose last comparison failed."""
    async with services.database.transaction() as connection:
        chosen = [document] if document else await failed_comparisons(connection, caller.owner_id)
        if chosen:
            await rebuild(connection, caller.owner_id, chosen)
    return done(request, back)


@router.post("/actions/connections/{ident}/{decision}")
async def judge(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    ident: UUID,
    decision: Decision,
    back: Back = "/library",
) -> Response:
    async with services.database.transaction() as connection:
        await decide(connection, caller.owner_id, ident, decision)
    return done(request, back)
