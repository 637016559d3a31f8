"""The map as it is drawn: lines of a pair beside each other, names where nothing else is."""

from __future__ import annotations

from itertools import combinations
from uuid import UUID

from octavo.connect.map import LETTER_WIDTH, MOST_LINES, ConnectionMap, Edge, Node, draw, lay_out
from octavo.records.search import Engine

IDS = [UUID(int=number + 1) for number in range(60)]


def test_names_that_are_shown_do_not_cover_each_other() -> None:
    pairs = [(at, (7 * at + 1) % 60) for at in range(60)]
    spots = lay_out(60, [(one, other, 0.8) for one, other in pairs])
    nodes = [Node(ident, f"A rather long title, number {at}", spots[at].x, spots[at].y) for at, ident in enumerate(IDS)]
    drawn = draw(ConnectionMap(nodes, [Edge(IDS[one], IDS[other], Engine.SIMILARITY, 1, 0.8) for one, other in pairs]))
    boxes: list[tuple[float, float, float]] = []
    for dot in drawn.dots:
        wide, (x, y) = LETTER_WIDTH * len(dot.name), dot.at
        left = {"middle": x - wide / 2, "start": x, "end": x - wide}[dot.anchor]
        if not dot.crowded:
            boxes.append((left, left + wide, y))
    assert len(boxes) > 20
    assert not [1 for a, b in combinations(boxes, 2) if a[0] < b[1] and b[0] < a[1] and abs(a[2] - b[2]) < 16]


def test_lines_of_one_pair_lie_beside_each_other_and_a_cloud_of_lines_is_cut() -> None:
    nodes = [Node(ident, "A", 10.0 * at, 20.0) for at, ident in enumerate(IDS)]
    pair = [Edge(IDS[0], IDS[5], engine, 2, 0.5) for engine in Engine]
    assert len({(line.x1, line.y1) for line in draw(ConnectionMap(nodes, pair)).lines}) == 3
    many = [Edge(one, other, Engine.BRIDGE, 1, 0.5) for one, other in combinations(IDS, 2)]
    drawn = draw(ConnectionMap(nodes, many))
    assert (len(drawn.lines), drawn.more_lines) == (MOST_LINES, len(many) - MOST_LINES)
