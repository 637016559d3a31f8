"""The map of an owner's connections: documents as nodes with their places, and what connects them."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from octavo.connect.contract import Engine
from octavo.connect.layout import lay_out
from octavo.database import Connection, fetch_rows, load_queries

QUERIES = load_queries("connection_views")
MOST_NODES = 60
# More than sixty documents can have between them, so that the strongest sixty are known.
MOST_EDGES = 3 * MOST_NODES * (MOST_NODES - 1) // 2


@dataclass(frozen=True, slots=True)
class Node:
    """`x` and `y` on a field of 1000 by 700."""

    document_id: UUID
    title: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Edge:
    """`strength` is that of the strongest of these connections."""

    source: UUID
    target: UUID
    engine: Engine
    connections: int
    strength: float


@dataclass(frozen=True, slots=True)
class Map:
    nodes: list[Node]
    edges: list[Edge]


@dataclass(frozen=True, slots=True)
class View:
    """Only around one document, only of one engine, only from a strength on."""

    focus: UUID | None = None
    engine: Engine | None = None
    least: float = 0.0


async def draw_map(connection: Connection, owner: UUID, view: View) -> Map:
    values = {"owner": owner, "focus": view.focus, "engine": view.engine, "least": view.least, "most": MOST_EDGES}
    rows = await fetch_rows(connection, QUERIES.edges, values)
    shown: dict[UUID, None] = {}
    for row in rows:
        ends = {row["one"]: None, row["other"]: None}
        if len({**shown, **ends}) <= MOST_NODES:
            shown.update(ends)
    edges = [
        Edge(row["one"], row["other"], Engine(row["engine"]), row["connections"], round(row["strength"], 3))
        for row in rows
        if row["one"] in shown and row["other"] in shown
    ]
    found = await fetch_rows(connection, QUERIES.titles, {"owner": owner, "documents": list(shown)})
    titles = {row["id"]: row["title"] for row in found}
    order = {ident: place for place, ident in enumerate(sorted(titles))}
    spots = lay_out(len(order), [(order[e.source], order[e.target], e.strength) for e in edges])
    return Map([Node(ident, titles[ident], spots[at].x, spots[at].y) for ident, at in order.items()], edges)
