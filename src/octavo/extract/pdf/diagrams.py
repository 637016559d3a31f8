"""Finds diagrams on a PDF page, such as trees, flow charts and class diagrams: boxes with text, connected by lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from octavo.extract.extracted import Box, is_caption
from octavo.extract.pdf.content import THIN, PageContent, Shape, TextRun
from octavo.extract.pdf.figures import FigureArea

_MOST_SHAPES = 600  # more are a map or a chart
_MOST_NODES = 120
_FEWEST_NODES = 3
# Points.
_LEAST_WIDTH, _LEAST_HEIGHT = 20.0, 9.0
_REACH = 14.0  # the length of an arrowhead between a line and a box
_TOUCH = 3.0
_LEAST_GAP = 8.0
_NEAR = 12.0  # labels beside a line
_MOST_OF_PAGE = 0.5  # as a share of the page, for frames around a diagram
_MOST_OF_NODE = 0.1
_SAME = 0.8  # as a share of the smaller of two boxes
_LONGEST_LABEL = 50  # letters
_SHORTEST_TICK, _LONGEST_TICK, _FEWEST_TICKS, _LEAST_STEP = 2.0, 12.0, 3, 8.0
_LEAST_AXIS, _MOST_LINES, _MOST_BEYOND = 50.0, 3000, 0.25
_MOST_WORDS = 6  # of an axis title


def with_diagrams(page: PageContent, areas: Sequence[FigureArea], tables: Sequence[Box] = ()) -> tuple[FigureArea, ...]:
    """Add the diagram of a page to the pictures that were found.

    Pictures that overlap the diagram are left out. An area that overlaps a table is not a diagram.
    """
    box = _find_diagram(page, [area.box for area in areas if area.kind == "photo"])
    if box is None or any(_overlap(box, table) for table in tables):
        return tuple(areas)
    others = (area for area in areas if not _overlap(area.box, box))
    return (*others, FigureArea("figure", box, confidence=0.85, framed=True))


def with_plots(page: PageContent, areas: Sequence[FigureArea], turned: Sequence[Box]) -> tuple[FigureArea, ...]:
    """Add the charts whose axes have tick marks, and enlarge the pictures that such axes surround.

    `turned` contains the boxes of rotated text, such as the numbers and the title of a vertical axis. Pictures that
    overlap a chart are left out.
    """
    ticked = list(_ticked(page))
    if not ticked:
        return tuple(areas)
    labels = [*_short_texts(page), *turned]
    wholes = (_around([box, *(one.box for one in areas if _overlap(one.box, box))]) for box in _joined(ticked))
    texts = [run.box for run in page.runs if _count_words(run) > _MOST_WORDS]
    boxes = _joined([_with_axis_labels(box, labels) for box in wholes])
    boxes = [box for box in boxes if not any(_overlap(one, box) for one in texts)]
    others = (area for area in areas if not any(_overlap(area.box, box) for box in boxes))
    return (*others, *(FigureArea("chart", box, confidence=0.9) for box in boxes))


def _ticked(page: PageContent) -> Iterator[Box]:
    """Yield the areas between a vertical and a horizontal axis with tick marks.

    Tick marks are at least three short lines of the same length that begin at the same straight line.
    """
    flat: defaultdict[tuple[int, int], set[float]] = defaultdict(set)
    upright: defaultdict[tuple[int, int], set[float]] = defaultdict(set)
    for left, top, right, bottom in page.lines[:_MOST_LINES]:
        if bottom - top < 1 and _SHORTEST_TICK < right - left < _LONGEST_TICK:
            flat[round(left), round(right)].add(top)
        elif right - left < 1 and _SHORTEST_TICK < bottom - top < _LONGEST_TICK:
            upright[round(top), round(bottom)].add(left)
    rises = [(*ends, sorted(at)) for ends, at in flat.items() if _are_ticks(at)]
    rows = [(*ends, sorted(at)) for ends, at in upright.items() if _are_ticks(at)]
    for left, right, ys in rises:
        for top, bottom, xs in rows:
            box = Box(*map(float, (min(left, xs[0]), min(ys[0], top), max(right, xs[-1]), max(ys[-1], bottom))))
            is_at_side = right <= xs[0] + _REACH or left >= xs[-1] - _REACH
            is_at_end = top >= ys[-1] - _REACH or bottom <= ys[0] + _REACH
            if is_at_side and is_at_end and min(xs[-1] - xs[0], ys[-1] - ys[0]) > _LEAST_AXIS:
                frames = (one for one in page.lines[:_MOST_LINES] if _overlap(one, box))
                near = (one for one in frames if _contains(_grown(box, _MOST_BEYOND * (box.right - box.left)), one))
                yield _around([box, *near])


def _are_ticks(places: set[float]) -> bool:
    """Whether there are enough lines, far enough apart, to be tick marks."""
    ordered = sorted(places)
    steps = [low - high for high, low in pairwise(ordered)]
    return len(steps) >= _FEWEST_TICKS - 1 and min(steps) > _LEAST_STEP


def _short_texts(page: PageContent) -> Iterator[Box]:
    """Yield the boxes of texts that are short enough for an axis label: their line has only a few words."""
    rows: defaultdict[int, list[TextRun]] = defaultdict(list)
    for run in page.runs:
        rows[round((run.box.top + run.box.bottom) / 4)].append(run)
    for row in rows.values():
        if sum(map(_count_words, row)) <= _MOST_WORDS:
            yield from (run.box for run in row)


def _count_words(run: TextRun) -> int:
    return sum(word.text.isalpha() and len(word.text) > 1 for word in run.words)


def _with_axis_labels(box: Box, labels: Sequence[Box]) -> Box:
    """Extend a chart to include the numbers and titles of its axes: short texts beside it, in at most two rows."""
    for _ in range(2):
        near = _grown(box, _NEAR)
        found = [one for one in labels if _overlap(one, near) and _overlap_middle(one, box)]
        box = _around([box, *found])
    return box


def _overlap_middle(one: Box, box: Box) -> bool:
    """Whether the middle of a text is between two edges of a box, horizontally or vertically."""
    across, down = (one.left + one.right) / 2, (one.top + one.bottom) / 2
    return box.left - _NEAR < across < box.right + _NEAR or box.top < down < box.bottom


def _joined(boxes: Sequence[Box]) -> list[Box]:
    """Join the boxes that overlap."""
    joined: list[Box] = []
    for box in boxes:
        apart = [one for one in joined if not _overlap(one, box)]
        joined = [*apart, _around([box, *(one for one in joined if one not in apart)])]
    return joined


def _contains(outer: Box, inner: Box) -> bool:
    return all(one <= other for one, other in zip(outer[:2], inner[:2], strict=True)) and all(
        one >= other for one, other in zip(outer[2:], inner[2:], strict=True)
    )


def _find_diagram(page: PageContent, photos: Sequence[Box] = ()) -> Box | None:
    """Return the area of the diagram on a page. Returns None if the page has no diagram.

    The boxes of a diagram do not touch each other, unlike those of a table, and at least half of them are connected to
    another box by a line.
    """
    if not _FEWEST_NODES <= len(page.shapes) <= _MOST_SHAPES:
        return None
    nodes = _nodes(page)
    if not _FEWEST_NODES <= len(nodes) <= _MOST_NODES:
        return None
    links = [(box, linked) for box in _lines(page, photos) if (linked := _linked(box, nodes))]
    connected = {node for _, pair in links for node in pair}
    if len(connected) < max(_FEWEST_NODES, len(nodes) / 2) or 2 * len({pair for _, pair in links}) < len(connected):
        return None
    box = _around([*nodes, *(box for box, _ in links)])
    box = _around([box, *_frames(page, box)])
    return _with_labels(page, box, nodes)


def _nodes(page: PageContent) -> list[Box]:
    """Return the boxes that contain text, except for frames around several boxes, shadows and cells of tables."""
    most = _MOST_OF_NODE * page.width * page.height
    boxes = [shape.box for shape in page.shapes if _is_box(shape) and _area(shape.box) < most]
    texts = [run.box for run in page.runs if run.text.strip()]
    filled = [box for box in dict.fromkeys(boxes) if any(_is_centre_in(text, box) for text in texts)]
    kept: list[Box] = []
    for box in sorted(filled, key=_area)[: 2 * _MOST_NODES]:
        if not any(_shared(box, one) > _SAME * _area(one) for one in kept):
            kept.append(box)
    touching = {box for one, other in combinations(kept, 2) if _touch(one, other) for box in (one, other)}
    return [box for box in kept if box not in touching]


def _is_box(shape: Shape) -> bool:
    return shape.box.right - shape.box.left >= _LEAST_WIDTH and shape.box.bottom - shape.box.top >= _LEAST_HEIGHT


def _lines(page: PageContent, photos: Sequence[Box]) -> Iterator[Box]:
    """Yield the bounding boxes of straight, slanted and curved lines.

    Frames, and shapes with text or photos, are not lines.
    """
    contents = [*(run.box for run in page.runs), *photos]
    edges = {(round(line.left), round(line.top), round(line.right)) for line in page.lines if line.top == line.bottom}
    for shape in page.shapes:
        left, top, right, bottom = shape.box
        is_thin = min(right - left, bottom - top) < THIN
        is_frame = (round(left), round(top), round(right)) in edges or shape.filled
        if is_thin or (not is_frame and not any(_is_centre_in(one, shape.box) for one in contents)):
            yield shape.box


def _linked(box: Box, nodes: Sequence[Box]) -> frozenset[Box]:
    """Return the two boxes that a line connects. Returns an empty set if it does not connect two boxes.

    The line must fill most of the gap between the boxes and must not run through them.
    """
    near = [node for node in nodes if _overlap(_grown(box, _REACH), node)]
    if len(near) != 2:  # noqa: PLR2004
        return frozenset()
    one, other = near
    across = max(one.left, other.left) - min(one.right, other.right)
    down = max(one.top, other.top) - min(one.bottom, other.bottom)
    length = box.right - box.left if across > down else box.bottom - box.top
    is_between = _around([box, _grown(_around(near), _TOUCH)]) == _grown(_around(near), _TOUCH)
    is_outside = is_between and all(_shared(_grown(box, THIN), node) < (1 - _SAME) * _area(node) for node in near)
    is_link = max(across, down) > _LEAST_GAP and length > max(across, down) / 2
    return frozenset(near) if is_link and is_outside else frozenset()


def _frames(page: PageContent, box: Box) -> Iterator[Box]:
    """Yield the frames around the whole diagram."""
    most = _MOST_OF_PAGE * page.width * page.height
    for shape in page.shapes:
        if _shared(shape.box, box) > _SAME * _area(box) and _area(shape.box) < most:
            yield shape.box


def _with_labels(page: PageContent, box: Box, nodes: Sequence[Box]) -> Box | None:
    """Extend a diagram's area to the labels beside its lines. Returns None if there are sentences outside its boxes."""
    runs = [run for run in page.runs if _overlap(run.box, _grown(box, _NEAR))]
    if any(_is_sentence(run) for run in runs if not any(_is_centre_in(run.box, node) for node in nodes)):
        return None
    labels = [run.box for run in runs if _overlap(run.box, box)]
    whole = _around([box, *labels])
    return Box(max(whole.left, 0), max(whole.top, 0), min(whole.right, page.width), min(whole.bottom, page.height))


def _is_sentence(run: TextRun) -> bool:
    return len(run.text) > _LONGEST_LABEL or is_caption(run.text)


def _touch(one: Box, other: Box) -> bool:
    return _overlap(_grown(one, _TOUCH), other) and _shared(one, other) < (1 - _SAME) * min(_area(one), _area(other))


def _around(boxes: Sequence[Box]) -> Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))


def _area(box: Box) -> float:
    return (box.right - box.left) * (box.bottom - box.top)


def _grown(box: Box, by: float) -> Box:
    return Box(box.left - by, box.top - by, box.right + by, box.bottom + by)


def _shared(one: Box, other: Box) -> float:
    """Return the area that two boxes have in common."""
    across = min(one.right, other.right) - max(one.left, other.left)
    down = min(one.bottom, other.bottom) - max(one.top, other.top)
    return max(across, 0.0) * max(down, 0.0)


def _overlap(one: Box, other: Box) -> bool:
    return one.left < other.right and other.left < one.right and one.top < other.bottom and other.top < one.bottom


def _is_centre_in(inner: Box, outer: Box) -> bool:
    across, down = (inner.left + inner.right) / 2, (inner.top + inner.bottom) / 2
    return outer.left <= across <= outer.right and outer.top <= down <= outer.bottom
