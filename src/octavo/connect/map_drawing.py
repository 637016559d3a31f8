"""Geometry of the map: lines, dots, and labels placed so that they do not overlap. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from uuid import UUID

from octavo.connect.map import HEIGHT, WIDTH, ConnectionMap, Edge, Node

# More lines than this are unreadable, so only the strongest are drawn.
MOST_LINES = 200
LINE_SPACING = 7.0
SMALLEST, LARGEST = 6.0, 15.0
LETTER_WIDTH, LETTER_HEIGHT, GAP = 7.0, 16.0, 5.0
MOST_LETTERS = 28
Rectangle = tuple[float, float, float, float]


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
    """A document. `at` is the position of the label `name`, `anchor` its alignment.

    `crowded`: whether the label overlaps something.
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
    """Draw the dots and the strongest lines. Lines between the same two documents run side by side."""
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
    """Place a dot and a label for each document.

    Documents with the most connections choose their label position first.
    """
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
    """Possible label positions: below, above, right and left of the dot. `y` is the baseline of the text."""
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
