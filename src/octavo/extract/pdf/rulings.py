"""Joins the thin lines and cell backgrounds of a page into rulings, and rulings that touch into grids."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, Shape

_MOST_LINES = 6000  # a page with more is a drawing
_MOST_RULINGS = 600
_MOST_CELLS = 20_000
_THIN = 3.0
_TOUCH = 1.0
_SHORT = 10.0
_NEAR = 3.0
_LEAST_LENGTH = 6.0
_LEAST_GAP = 5.0
_LEAST_WIDTH = 60.0
_SAME_END = 8.0


class Ruling(NamedTuple):
    """A straight line: `at` is its y if it is horizontal, else its x."""

    at: float
    start: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.start


class Rulings(NamedTuple):
    horizontal: tuple[Ruling, ...]
    vertical: tuple[Ruling, ...]


class Grid(NamedTuple):
    """Rulings that touch each other, and the positions at which they divide their area."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    rulings: Rulings

    @property
    def box(self) -> Box:
        return Box(self.xs[0], self.ys[0], self.xs[-1], self.ys[-1])

    def has_line_below(self, row: int, column: int) -> bool:
        """Whether a ruling separates a cell of the grid from the one below it."""
        middle = (self.xs[column] + self.xs[column + 1]) / 2
        return _covers(self.rulings.horizontal, self.ys[row + 1], middle)

    def has_line_right(self, row: int, column: int) -> bool:
        middle = (self.ys[row] + self.ys[row + 1]) / 2
        return _covers(self.rulings.vertical, self.xs[column + 1], middle)


def page_rulings(page: PageContent, *, edges: bool) -> Rulings:
    """All rulings of a page, joined; none if there are so many that the page is a drawing.

    `edges`: also the edges of filled areas, such as stripes and cell backgrounds.
    """
    if len(page.lines) > _MOST_LINES or len(page.shapes) > _MOST_LINES:
        return Rulings((), ())
    thin = [shape.box for shape in page.shapes if shape.is_ruling and not shape.curved]
    filled = [shape.box for shape in page.shapes if not edges and _is_background(shape)]
    known = _known(thin, filled)
    boxes = [*thin, *(box for box in page.lines if not _is_known(box, known))]
    horizontal = join(Ruling((box.top + box.bottom) / 2, box.left, box.right) for box in boxes if _is_flat(box))
    vertical = join(Ruling((box.left + box.right) / 2, box.top, box.bottom) for box in boxes if _is_upright(box))
    if max(len(horizontal), len(vertical)) > _MOST_RULINGS:
        return Rulings((), ())
    return Rulings(horizontal, vertical)


def _is_background(shape: Shape) -> bool:
    return shape.filled and not shape.stroked and not shape.is_ruling


def _known(thin: Sequence[Box], filled: Sequence[Box]) -> dict[tuple[bool, int], tuple[float, float]]:
    """Where thin shapes and the edges of filled ones are: those lines are not read again."""
    known: dict[tuple[bool, int], tuple[float, float]] = {}
    for box in (*thin, *filled):
        for flat, at in ((True, box.top), (True, box.bottom), (False, box.left), (False, box.right)):
            start, end = (box.left, box.right) if flat else (box.top, box.bottom)
            if end - start >= _THIN:
                before = known.get((flat, round(at)), (start, end))
                known[flat, round(at)] = (min(before[0], start), max(before[1], end))
    return known


def _is_known(box: Box, known: dict[tuple[bool, int], tuple[float, float]]) -> bool:
    flat = _is_flat(box)
    at, start, end = (box.top, box.left, box.right) if flat else (box.left, box.top, box.bottom)
    for near in (round(at), round(at) - 1, round(at) + 1):
        extent = known.get((flat, near))
        if extent and extent[0] - _NEAR <= start and end <= extent[1] + _NEAR:
            return True
    return False


def _is_flat(box: Box) -> bool:
    height = box.bottom - box.top
    return height < _THIN and box.right - box.left > 2 * height


def _is_upright(box: Box) -> bool:
    width = box.right - box.left
    return width < _THIN and box.bottom - box.top > 2 * width


def join(rulings: Iterable[Ruling]) -> tuple[Ruling, ...]:
    """Join rulings that continue each other, and the two edges of a thick line."""
    joined: list[Ruling] = []
    for group in _groups(sorted(rulings)):
        joined.extend(_joined(group))
    return tuple(ruling for ruling in joined if ruling.length >= _LEAST_LENGTH)


def _groups(rulings: Sequence[Ruling]) -> Iterator[list[Ruling]]:
    group: list[Ruling] = []
    for ruling in rulings:
        if group and ruling.at - group[0].at > _NEAR:
            yield group
            group = []
        group.append(ruling)
    if group:
        yield group


def _joined(group: Sequence[Ruling]) -> Iterator[Ruling]:
    at = sum(ruling.at for ruling in group) / len(group)
    start = end = None
    for ruling in sorted(group, key=lambda one: one.start):
        if start is None or end is None:
            start, end = ruling.start, ruling.end
        elif ruling.start <= end + (_NEAR if ruling.length < _SHORT else _TOUCH):
            end = max(end, ruling.end)
        else:
            yield Ruling(at, start, end)
            start, end = ruling.start, ruling.end
    if start is not None and end is not None:
        yield Ruling(at, start, end)


def _covers(rulings: Iterable[Ruling], at: float, middle: float) -> bool:
    return any(abs(one.at - at) <= _NEAR and one.start - _NEAR <= middle <= one.end + _NEAR for one in rulings)


def grids(rulings: Rulings) -> Iterator[Grid]:
    """The grids of a page: at least two rulings in each direction that touch."""
    for part in _touching(rulings):
        xs = _positions(one.at for one in part.vertical)
        ys = _positions(one.at for one in part.horizontal)
        xs = _with_ends(xs, part.horizontal)
        ys = _with_ends(ys, part.vertical)
        if len(xs) > 1 and len(ys) > 1 and (len(xs) - 1) * (len(ys) - 1) <= _MOST_CELLS:
            yield Grid(xs, ys, part)


def _positions(values: Iterable[float]) -> tuple[float, ...]:
    kept: list[float] = []
    for value in sorted(values):
        if not kept or value - kept[-1] > _LEAST_GAP:
            kept.append(value)
    return tuple(kept)


def _with_ends(positions: tuple[float, ...], crossing: Sequence[Ruling]) -> tuple[float, ...]:
    """Add the open sides of a table: where its rulings go on beyond the last one that crosses them."""
    if not positions or len(crossing) < 2:
        return positions
    starts = sorted(one.start for one in crossing)
    ends = sorted((one.end for one in crossing), reverse=True)
    before = (starts[0],) if starts[1] < positions[0] - 2 * _LEAST_GAP else ()
    after = (ends[0],) if ends[1] > positions[-1] + 2 * _LEAST_GAP else ()
    return before + positions + after


def _touching(rulings: Rulings) -> Iterator[Rulings]:
    horizontal, vertical = rulings
    parents = list(range(len(horizontal) + len(vertical)))
    by_place = sorted(range(len(vertical)), key=lambda index: vertical[index].at)
    places = [vertical[index].at for index in by_place]
    for row, line in enumerate(horizontal):
        first, last = bisect_left(places, line.start - _NEAR), bisect_right(places, line.end + _NEAR)
        for index in by_place[first:last]:
            other = vertical[index]
            if other.start - _NEAR <= line.at <= other.end + _NEAR:
                parents[root(parents, row)] = root(parents, len(horizontal) + index)
    parts: defaultdict[int, tuple[list[Ruling], list[Ruling]]] = defaultdict(lambda: ([], []))
    for index, line in enumerate((*horizontal, *vertical)):
        parts[root(parents, index)][index >= len(horizontal)].append(line)
    for across, down in parts.values():
        yield Rulings(tuple(across), tuple(down))


def root(parents: list[int], index: int) -> int:
    """The representative of a set in a union-find forest."""
    while parents[index] != index:
        parents[index] = parents[parents[index]]
        index = parents[index]
    return index


def spans(grid: Grid) -> Iterator[tuple[int, int, int, int]]:
    """The cells of the grid: first row, first column, last row, last column. Missing lines join cells."""
    height, width = len(grid.ys) - 1, len(grid.xs) - 1
    parents = list(range(height * width))
    for row in range(height):
        for column in range(width):
            if column + 1 < width and not grid.has_line_right(row, column):
                parents[root(parents, row * width + column + 1)] = root(parents, row * width + column)
            if row + 1 < height and not grid.has_line_below(row, column):
                parents[root(parents, (row + 1) * width + column)] = root(parents, row * width + column)
    members: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for index in range(height * width):
        members[root(parents, index)].append(divmod(index, width))
    for places in members.values():
        yield from _rectangles(places)


def _rectangles(places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
    top, bottom = min(row for row, _ in places), max(row for row, _ in places)
    left, right = min(column for _, column in places), max(column for _, column in places)
    if (bottom - top + 1) * (right - left + 1) == len(places):
        yield top, left, bottom, right
    else:
        yield from ((row, column, row, column) for row, column in places)


def wide_rules(rulings: Rulings) -> Iterator[tuple[float, float, list[float]]]:
    """Horizontal rulings with the same ends: left, right and their positions from top to bottom."""
    rows: dict[float, tuple[float, float, float]] = {}
    for one in rulings.horizontal:
        start, end, length = rows.get(one.at, (one.start, one.end, 0.0))
        rows[one.at] = (min(start, one.start), max(end, one.end), length + one.length)
    groups: dict[tuple[float, float], list[float]] = {}
    for at, (start, end, length) in sorted(rows.items()):
        if length < 0.5 * (end - start) or end - start < _LEAST_WIDTH:
            continue
        key = next((key for key in groups if max(abs(key[0] - start), abs(key[1] - end)) < _SAME_END), (start, end))
        groups.setdefault(key, []).append(at)
    for (left, right), ys in groups.items():
        if len(ys) > 1:
            yield left, right, ys
