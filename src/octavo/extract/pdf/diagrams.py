"""Finds diagrams on a PDF page, such as trees, flow charts and class diagrams: boxes with text, connected by lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

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


def with_diagrams(page: PageContent, areas: Sequence[FigureArea], tables: Sequence[Box] = ()) -> tuple[FigureArea, ...]:
    """Add the diagram of a page to the pictures that were found.

    Pictures that overlap the diagram are left out. An area that overlaps a table is not a diagram.
    """
    box = _find_diagram(page, [area.box for area in areas if area.kind == "photo"])
    if box is None or any(_overlap(box, table) for table in tables):
        return tuple(areas)
    others = (area for area in areas if not _overlap(area.box, box))
    return (*others, FigureArea("figure", box, confidence=0.85, framed=True))


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
