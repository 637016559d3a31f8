"""The map of an account's connections: documents as nodes with positions, connections as edges.

Positions are computed and not stored. The same connections always give the same map.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from typing import TYPE_CHECKING
from uuid import UUID

from octavo.database import Connection, fetch_rows, load_queries
from octavo.records.search import ConnectionMap, Edge, Engine, Node

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
# More lines than this are unreadable, so only the strongest are drawn.
MOST_LINES = 200
LINE_SPACING = 7.0
SMALLEST, LARGEST = 6.0, 15.0
LETTER_WIDTH, LETTER_HEIGHT, GAP = 7.0, 16.0, 5.0
MOST_LETTERS = 28
Rectangle = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class MapFilter:
    """Limits the map to the connections of one document, to one type of connection, or to a minimum strength."""

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
    """Position the nodes with a force-directed layout (Fruchterman and Reingold).

    Connected nodes attract each other and all nodes repel each other. The nodes move less in each iteration.
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


@dataclass(frozen=True, slots=True)
class Line:
    edge: Edge
    names: tuple[str, str]
    x1: float
    y1: float
    x2: float
    y2: float
    width: float


@dataclass(frozen=True, slots=True)
class Dot:
    """A document on the drawn map.

    `name` is its label, `at` the position of the label, and `anchor` the text alignment.

    `crowded` is true if the label overlaps other labels or dots.
    """

    node: Node
    connections: int
    radius: float
    name: str
    at: tuple[float, float]
    anchor: str
    crowded: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    lines: list[Line]
    dots: list[Dot]
    more_lines: int


def draw(connection_map: ConnectionMap) -> Drawing:
    """Draw documents as dots, and the strongest connections as lines.

    If two documents have several types of connections, they are joined by parallel lines.
    """
    nodes = {node.document_id: node for node in connection_map.nodes}
    shown = [edge for edge in connection_map.edges if edge.source in nodes and edge.target in nodes]
    lines = list(_lines(shown[:MOST_LINES], nodes))
    counts: dict[UUID, int] = defaultdict(int)
    for edge in shown:
        counts[edge.source] += edge.connections
        counts[edge.target] += edge.connections
    return Drawing(lines, _dots(connection_map.nodes, counts), len(shown) - len(lines))


def _lines(edges: Iterable[Edge], nodes: dict[UUID, Node]) -> Iterator[Line]:
    pairs: dict[tuple[UUID, UUID], list[Edge]] = defaultdict(list)
    for edge in edges:
        pairs[edge.source, edge.target].append(edge)
    for (source, target), beside in pairs.items():
        one, other = nodes[source], nodes[target]
        length = hypot(other.x - one.x, other.y - one.y) or 1.0
        across = (one.y - other.y) / length, (other.x - one.x) / length
        for place, edge in enumerate(beside):
            away = LINE_SPACING * (place - (len(beside) - 1) / 2)
            dx, dy = across[0] * away, across[1] * away
            x1, y1, x2, y2 = (round(v, 1) for v in (one.x + dx, one.y + dy, other.x + dx, other.y + dy))
            yield Line(edge, (one.title, other.title), x1, y1, x2, y2, round(1 + 4 * edge.strength, 1))


def _dots(nodes: Sequence[Node], counts: dict[UUID, int]) -> list[Dot]:
    """Place a dot and a label for each document. The labels of documents with the most connections are placed first."""
    most = max(counts.values(), default=1)
    radius = {one: SMALLEST + (LARGEST - SMALLEST) * sqrt(counts[one] / most) for one in (n.document_id for n in nodes)}
    taken: list[Rectangle] = [_around(node, radius[node.document_id]) for node in nodes]
    return [
        _dot(node, counts[node.document_id], radius[node.document_id], taken)
        for node in sorted(nodes, key=lambda node: (-counts[node.document_id], node.document_id))
    ]


def _dot(node: Node, connections: int, radius: float, taken: list[Rectangle]) -> Dot:
    name = node.title if len(node.title) <= MOST_LETTERS else node.title[: MOST_LETTERS - 1].rstrip() + "…"
    wide = LETTER_WIDTH * len(name)
    places = list(_places(node, radius))
    for x, y, anchor in places:
        box = _name_box(x, y, anchor, wide)
        if _fits(box) and not any(_overlap(box, other) for other in taken):
            taken.append(box)
            return Dot(node, connections, round(radius, 1), name, (x, y), anchor, crowded=False)
    x, y, anchor = next((one for one in places if _fits(_name_box(*one, wide))), places[0])
    return Dot(node, connections, round(radius, 1), name, (x, y), anchor, crowded=True)


def _places(node: Node, radius: float) -> Iterator[tuple[float, float, str]]:
    """Yield the possible positions of a label: below, above, right and left of its dot.

    Each is given as x, y (the baseline of the text) and alignment.
    """
    middle = round(node.y + LETTER_HEIGHT / 3, 1)
    yield node.x, round(node.y + radius + LETTER_HEIGHT, 1), "middle"
    yield node.x, round(node.y - radius - GAP, 1), "middle"
    yield round(node.x + radius + GAP, 1), middle, "start"
    yield round(node.x - radius - GAP, 1), middle, "end"


def _name_box(x: float, y: float, anchor: str, wide: float) -> Rectangle:
    left = {"middle": x - wide / 2, "start": x, "end": x - wide}[anchor]
    return left, y - LETTER_HEIGHT * 0.8, left + wide, y + LETTER_HEIGHT * 0.3


def _around(node: Node, radius: float) -> Rectangle:
    return node.x - radius, node.y - radius, node.x + radius, node.y + radius


def _fits(box: Rectangle) -> bool:
    return box[0] >= 0 and box[1] >= 0 and box[2] <= WIDTH and box[3] <= HEIGHT


def _overlap(one: Rectangle, other: Rectangle) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
