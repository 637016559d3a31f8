"""The map of an owner's connections: documents as nodes with positions, connections as edges.

Positions are computed, not stored; the same connections always give the same map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from octavo.database import Connection, fetch_rows, load_queries
from octavo.records.search import Engine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

QUERIES = load_queries("connection_views")
MOST_NODES = 60
# The largest number of edges between 60 documents (three engines), so that the strongest documents are all found.
MOST_EDGES = 3 * MOST_NODES * (MOST_NODES - 1) // 2
SEED = 8
ROUNDS = 200
WIDTH, HEIGHT = 1000.0, 700.0
MARGIN = 60.0
LEAST_DISTANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Node:
    """A document on the map. `x` and `y` are its position on a canvas of 1000 by 700."""

    document_id: UUID
    title: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Edge:
    """All connections of one engine between two documents. `strength` is that of the strongest connection."""

    source: UUID
    target: UUID
    engine: Engine
    connections: int
    strength: float


@dataclass(frozen=True, slots=True)
class ConnectionMap:
    nodes: list[Node]
    edges: list[Edge]


@dataclass(frozen=True, slots=True)
class MapFilter:
    """Limits the map to one document's connections, to one engine, and to a minimum strength."""

    focus: UUID | None = None
    engine: Engine | None = None
    least: float = 0.0


async def load_map(connection: Connection, owner: UUID, filters: MapFilter) -> ConnectionMap:
    values = {
        "owner": owner,
        "focus": filters.focus,
        "engine": filters.engine,
        "least": filters.least,
        "most": MOST_EDGES,
    }
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
    positions = lay_out(len(order), [(order[e.source], order[e.target], e.strength) for e in edges])
    return ConnectionMap(
        [Node(ident, titles[ident], positions[at].x, positions[at].y) for ident, at in order.items()], edges
    )


@dataclass(frozen=True, slots=True)
class Position:
    x: float
    y: float


def lay_out(nodes: int, edges: Sequence[tuple[int, int, float]]) -> list[Position]:
    """Place the nodes with a force-directed layout (Fruchterman and Reingold).

    Connected nodes attract each other, all nodes repel each other, and the steps shrink.
    """
    import numpy as np

    if nodes <= 1:
        return [Position(WIDTH / 2, HEIGHT / 2)] * nodes
    places = np.random.default_rng(SEED).uniform(-1, 1, (nodes, 2))
    pull = np.zeros((nodes, nodes))
    for one, other, strength in edges:
        pull[one, other] = pull[other, one] = max(pull[one, other], strength)
    ideal = 2.0 / np.sqrt(nodes)
    for step in np.linspace(0.2, 0.002, ROUNDS):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.linalg.norm(apart, axis=2), LEAST_DISTANCE)
        force = ideal**2 / distance**2 - pull * distance / ideal - 0.02 * distance
        moved = (apart * force[:, :, None]).sum(axis=1)
        length = np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), LEAST_DISTANCE)
        places = places + moved / length * np.minimum(length, step)
    return _fit(places)


def _fit(places: NDArray[np.float64]) -> list[Position]:
    import numpy as np

    low, high = places.min(axis=0), places.max(axis=0)
    available = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN])
    fitted = MARGIN + (places - low) / np.maximum(high - low, LEAST_DISTANCE) * available
    return [Position(round(x, 1), round(y, 1)) for x, y in fitted.tolist()]
