"""Finds figures, charts, photos, covers and displayed formulas on a PDF page, and the captions next to them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import add
from typing import NamedTuple

from octavo.extract.extracted import Box, is_caption
from octavo.extract.pdf.content import THIN, PageContent, Shape, TextRun, Word
from octavo.extract.pdf.lines import is_monospaced, line_frames

_MOST_SHAPES = 20_000
_MOST_FIGURES = 50
_MOST_CELLS = 200
# Shares of the page.
_BACKGROUND = 0.75
_SMALL = 0.008
_WIDE = 0.35
# Points.
_SHORT_SIDE = 30.0
_THICK, _LONG_LINE = 5.0, 150.0  # a long line can be thicker than the lines of a drawing
_TOUCH = 3.0
_LABEL_GAP = 10.0
_MOST_OF_HIGHLIGHT = 30.0
_CAPTION_GAP = 36.0
_COVER_LETTERS = 400
_LABEL_LETTERS = 25
_SENTENCE_LETTERS = 25
_MANY_SENTENCES = 5  # this many lines of text on an image mean that it is a background
_TEXT_LETTERS = 400
_LONGEST_LABEL = 50
_FRAME = 0.6  # of the page, at most
_MOST_AROUND, _MOST_AROUND_RULED = 12.0, 4.0  # times the area of the framed picture, at most
_SENTENCE_SHARE = 0.2
_CAPTION_LINES = 8
_LINE_STEP = 1.6
_SAME_SIZE = 0.6
_HIGHLIGHT = 1.6  # as a multiple of the height of the word
_FEWEST_SHAPES = 5
_FEWEST_BARS = 4
_SAME_WIDTH = 1.3
_FEWEST_NUMBERS = 3
_AXIS_GAP, _MIDDLE = 24.0, 0.3  # points; as a share of the width of a chart
_GRID = 48
_WORD_LETTERS = 4
_MATH_SHARE = 0.35
_MATH_WORDS = 1
_LIMIT_LETTERS = 12  # of a limit below a sum
_MATH_WIDTH = 24.0
_SPACE = 0.45  # as a share of the letter height

_MATH_FONT = re.compile(
    r"(?:^|\+)(?:CMMI|CMSY|CMEX|CMBSY|CMMIB|MSAM|MSBM|EUFM|EUSM|RSFS|LMMath|XITSMath|STIXMath|MTEX|MTSY|MTMI|MathematicalPi"
    r"|Euclid(?:Symbol|Extra|MathOne|MathTwo))|MT[- ]?Extra|Cambria ?Math|Latin ?Modern ?Math|STIX.*Math|LibertinusMath"
    r"|NewTXMI|KaTeX|txsy|txex|txmi|pxsy|pxmi|[a-z]Math",
    re.IGNORECASE,
)
_SYMBOLS = frozenset("=≈≠≤≥∑∏∫√∂∇∞±×÷→←⇒⇔∈∉⊂⊆∪∩∀∃∥⟨⟩≡∼≜")  # noqa: RUF001
_BULLETS = ("•", "◦", "▪", "‣", "●", "■")
_SIGN = re.compile("[=<>≈≠≤≥∑∏∫√∂∇∞±→⇒∈|\u0370-\u03ff\U0001d400-\U0001d7ff]")
_FIGURE_CAPTION = re.compile(
    r"(?:(?i:figures?|fig\.?|charts?|plate|abb(?:ildung|\.)|figura|figuur|schéma|rys\.|рис(?:унок|\.)|obr\.)\s*"
    r"[A-Z]{0,3}[.-]?\d[\w-]*(?:\.\d+)*(?:[.:|\u2013\u2014]|\s*\Z|\s+[^\Wa-z\d_]))|[図图圖]\s*\d"
)
_FIGURE_WORD = re.compile(r"\s*(?:fig|chart|plate|abb|schéma|rys|рис|obr|[図图圖])", re.IGNORECASE)
_FEWEST_PARTS = 3
_ACROSS = 0.7  # as a share of the page width
_MOST_OF_LINE = 0.6
_FEWEST_ROWS = 4
_FILLED = 0.93  # as a share of the area around them
_LABEL_WORDS = 4
_SHORT_LABEL = 15  # letters of a label beside a drawing
_PLAIN_NUMBER = re.compile(r"-?\d{1,9}(?:\.\d{1,9})?")
_THICK_SIDE, _LEAST_FRAME, _WHOLE_SIDE = 8.0, 100.0, 0.9  # points; points; as a share of the width of a frame
_MOST_TICKS = 1000
_SAME_STEP = 0.06
_NUMBERED_TITLE = re.compile(r"\d{1,2}(?:\.\d{1,2}){1,4}\s+\W*[^\W\d_]{3}")
_EQUATION_NUMBER = re.compile(r"\(?\d{1,3}(?:\.\d{1,3})*[a-z]?\)")
_NUMBER = re.compile(r"[-−+]?\d[\d.,]*\s*[%kKM€$°]?")  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class FigureArea:
    """The area of a picture on a page.

    `kind` is `figure`, `chart`, `formula`, `photo` or `cover`. If `confidence` is at least 0.75, text inside the area
    is treated as part of the picture. `framed` is true if all text in the area is known to be labels, for example
    because a frame surrounds the picture.
    """

    kind: str
    box: Box
    caption: str = ""
    confidence: float = 1.0
    caption_box: Box | None = None
    framed: bool = False


class Segment(NamedTuple):
    """A part of a printed line that contains no wide gap.

    `math` is the share of its letters that are in mathematical fonts or are symbols.
    """

    box: Box
    text: str
    size: float
    math: float
    letters: int


def find_figures(page: PageContent, images: Sequence[Box], turned: Sequence[Box] = ()) -> tuple[FigureArea, ...]:
    """Find the pictures of a page, from top to bottom.

    `images` contains the boxes of raster images. `turned` contains the boxes of rotated text, such as axis titles.
    """
    strokes = _strokes(page)
    few = len(strokes.ink) < _FEWEST_SHAPES and not strokes.bars
    may_plot = sum(_NUMBER.fullmatch(run.text.strip()) is not None for run in page.runs) >= 2 * _FEWEST_NUMBERS
    if not images and few and not may_plot and not any(map(_is_math, page.runs)):
        return ()
    segments = _segments(page.runs)
    rasters = list(_rasters(page, images, segments))
    drawn = [area for area in _drawings(page, strokes, segments) if not _inside_any(area.box, rasters)]
    drawn += _plots(page, segments) if may_plot else ()
    drawn = [_with_turned_labels(area, turned, page) for area in drawn]
    taken = _without_parts(_framed([*rasters, *drawn], page, segments))
    formulas = [area for area in _formulas(segments) if not _inside_any(area.box, taken)]
    captioned = _by_caption([_with_caption(area, segments, page) for area in taken], segments)
    captions = [one.box for one in segments if is_caption(one.text)]
    found = [*(replace(area, box=_without_captions(area.box, captions)) for area in captioned), *formulas]
    return tuple(sorted(found, key=lambda area: (area.box.top, area.box.left))[:_MOST_FIGURES])


def find_captioned(page: PageContent, images: Sequence[Box], taken: Sequence[Box]) -> Iterator[FigureArea]:
    """Find figures by their captions, such as "Figure 3: ...".

    A figure consists of all images and shapes between the caption and the text above it, except those that overlap the
    boxes in `taken`.
    """
    if len(page.shapes) > _MOST_SHAPES or not any(_FIGURE_WORD.match(run.text) for run in page.runs):
        return
    segments = _segments(page.runs)
    captions = [one for one in segments if _FIGURE_CAPTION.match(one.text.strip())]
    captions = [
        one
        for one in captions
        if not any(box.top < one.box.top and _gap(box, one.box) <= _CAPTION_GAP for box in taken)
    ]
    if not captions:
        return
    drawn = [box for box in (*images, *(shape.box for shape in page.shapes)) if _share(box, page) < _BACKGROUND]
    drawn = [
        box
        for box in drawn
        if not any(_overlap(_grown(box, 1), one) for one in taken)
        and not (_height(box) < THIN and _width(box) > _ACROSS * page.width)
    ]
    for caption in captions:
        yield from _drawn_above(caption, drawn, segments, page)


def _drawn_above(
    caption: Segment, drawn: Sequence[Box], segments: Sequence[Segment], page: PageContent
) -> Iterator[FigureArea]:
    above = [one for one in segments if one.box.bottom <= caption.box.top and _overlap_sideways(one.box, caption.box)]
    wide = _MOST_OF_LINE * _width(_union([one.box for one in _caption_lines(caption, segments, caption.box)]))
    prose = [
        one
        for one in above
        if one.letters > _LONGEST_LABEL or (_count_words(one) > _LABEL_WORDS and _width(one.box) > wide)
    ]
    others = [one for first in above if is_caption(first.text) for one in _caption_lines(first, segments, caption.box)]
    top = max([one.box.bottom for one in (*prose, *others)], default=0.0) - 1
    near = [box for box in drawn if top <= box.top and box.bottom <= caption.box.top + 1]
    parts = [box for box in near if _reaches_sideways(box, caption.box)]
    if not parts:
        return
    whole = _union(parts)
    parts = [box for box in near if _overlap(_grown(box, 1), whole)]
    whole = _union(parts)
    between = [one for one in segments if top <= one.box.top and one.box.bottom <= caption.box.top + 1]
    short = [one for one in between if one.letters <= _SHORT_LABEL and not is_caption(one.text)]
    labels = [one.box for one in short if _centre_in(one.box, _grown(whole, _LABEL_GAP))]
    whole = _union([whole, *labels])
    column = _union([one.box for one in (*prose, *_caption_lines(caption, segments, caption.box))])
    whole = _union([whole, *_labels_beside(whole, column, between)])
    inside = [one for one in segments if _centre_in(one.box, whole)]
    if any(is_caption(one.text) for one in inside) or sum(map(_is_line_of_text, inside)) > 1:
        return
    large = min(_width(whole), _height(whole)) >= _SHORT_SIDE and _SMALL < _share(whole, page) < _BACKGROUND
    if large and len(parts) >= _FEWEST_PARTS and caption.box.top - whole.bottom <= _CAPTION_GAP:
        lines = _caption_lines(caption, segments, whole)
        text = " ".join(" ".join(one.text.split()) for one in lines)
        yield FigureArea(
            "figure", _clipped(page, [whole])[0], text, 0.8, _union([one.box for one in lines]), framed=True
        )


def _labels_beside(whole: Box, column: Box, between: Sequence[Segment]) -> Iterator[Box]:
    """Yield the labels to the left and right of a drawing, up to the edges of its column.

    Such labels can be far from the drawing and be connected to it only by drawn lines.
    """
    column = _grown(column, _TOUCH)
    for one in between:
        is_level = one.box.bottom > whole.top - _TOUCH and one.box.top < whole.bottom + _TOUCH
        if is_level and _is_label(one) and column.left < one.box.left and one.box.right < column.right:
            yield one.box


def _is_line_of_text(segment: Segment) -> bool:
    return segment.text.count(" ") >= _LABEL_WORDS - 1 and not _is_formula(segment)


def _reaches_sideways(box: Box, other: Box) -> bool:
    """Whether two boxes overlap horizontally.

    Unlike `_overlap_sideways`, this also works for vertical lines, which have no width.
    """
    return box.left <= other.right and other.left <= box.right


def may_show_figures(page: PageContent, images: Sequence[Box]) -> bool:
    """Quickly check whether the page may contain figures: it has an image, several shapes or a mathematical font."""
    if images or len(page.shapes) >= _FEWEST_SHAPES:
        return True
    return any(map(_is_math_font, {run.font for run in page.runs}))


# Raster images ------------------------------------------------------------------------------------------------------


def _rasters(page: PageContent, images: Sequence[Box], segments: Sequence[Segment]) -> Iterator[FigureArea]:
    for box in _joined(_clipped(page, images)):
        share = _share(box, page)
        letters = sum(one.letters for one in segments if _centre_in(one.box, box))
        if share >= _BACKGROUND:
            if page.number == 1 and 0 < letters < _COVER_LETTERS:
                yield FigureArea("cover", box, confidence=0.7)
        elif share >= _SMALL and min(_width(box), _height(box)) >= _SHORT_SIDE and not _is_backdrop(box, segments):
            lines = sum(one.letters >= _SENTENCE_LETTERS and _centre_in(one.box, box) for one in segments)
            if lines < _MANY_SENTENCES:
                yield FigureArea("photo", box, confidence=0.9)


def _clipped(page: PageContent, boxes: Iterable[Box]) -> list[Box]:
    inside = (
        Box(max(box.left, 0.0), max(box.top, 0.0), min(box.right, page.width), min(box.bottom, page.height))
        for box in boxes
    )
    return [box for box in inside if box.right > box.left and box.bottom > box.top]


def _joined(boxes: Sequence[Box]) -> list[Box]:
    """Join images that are stored in several horizontal strips.

    The strips have the same left and right edges and are stacked without gaps.
    """
    found: dict[tuple[int, int], Box] = {}
    done: list[Box] = []
    for box in sorted(boxes, key=lambda box: box.top):
        sides = round(box.left), round(box.right)
        before = found.get(sides)
        if before and box.top - before.bottom <= _TOUCH:
            box = Box(box.left, before.top, box.right, max(before.bottom, box.bottom))  # noqa: PLW2901
        elif before:
            done.append(before)
        found[sides] = box
    return [*done, *found.values()]


def _is_backdrop(box: Box, segments: Sequence[Segment]) -> bool:
    """Whether an image or drawing is only a background, because sentences are printed over it."""
    texts = [one for one in segments if one.letters >= _SENTENCE_LETTERS and _centre_in(one.box, box)]
    covered = sum(_area(one.box) for one in texts)
    return covered > _SENTENCE_SHARE * _area(box) or sum(one.letters for one in texts) > _TEXT_LETTERS


# Drawings -----------------------------------------------------------------------------------------------------------


class _Strokes(NamedTuple):
    """The shapes on a page, grouped by purpose.

    `ink` contains shapes that can only be part of a drawing. `rulings` contains the boxes of thin straight lines.
    `bars` contains groups of chart bars.
    """

    ink: list[Shape]
    rulings: list[Box]
    bars: list[list[Box]]


def _strokes(page: PageContent) -> _Strokes:
    ink: list[Shape] = []
    rulings: list[Box] = []
    backing: list[Shape] = []
    edges: set[tuple[int, int, int]] | None = None
    most = _BACKGROUND * max(page.width * page.height, 1.0)
    for shape in page.shapes if len(page.shapes) <= _MOST_SHAPES else ():
        box, _, _, curved, _ = shape
        left, top, right, bottom = box
        wide, high = right - left, bottom - top
        if wide * high >= most:
            continue
        thin = min(wide, high) < THIN or (min(wide, high) < _THICK and max(wide, high) > _LONG_LINE)
        if thin:
            rulings.append(box)
        if right < 0 or bottom < 0 or (thin and not curved):
            continue
        if not curved and edges is None:
            edges = {(round(line.left), round(line.top), round(line.right)) for line in page.lines}
        if curved or not _is_backing(shape, page, edges or set()):
            ink.append(shape)
        elif shape.filled and not _is_white(shape.colour):
            backing.append(shape)
    return _Strokes(ink, rulings, list(_bars([shape.box for shape in backing])))


def _bars(boxes: Sequence[Box]) -> Iterator[list[Box]]:
    """Yield groups of chart bars: filled rectangles that have the same width, start at the same line and differ in
    length.
    """
    upright: defaultdict[int, list[Box]] = defaultdict(list)
    flat: defaultdict[int, list[Box]] = defaultdict(list)
    for box in boxes:
        upright[round(box.bottom)].append(box)
        flat[round(box.left)].append(box)
    for groups, width, length in ((upright, _width, _height), (flat, _height, _width)):
        for group in groups.values():
            widths, lengths = [width(box) for box in group], {round(length(box)) for box in group}
            if len(lengths) >= max(_FEWEST_BARS, 0.6 * len(group)) and max(widths) < _SAME_WIDTH * min(widths):
                yield group


def _is_backing(shape: Shape, page: PageContent, edges: set[tuple[int, int, int]]) -> bool:
    """Whether a rectangle is a table cell or a background, and not part of a drawing.

    This is assumed if its upper edge is also drawn as a line, or if it has no outline and is very wide or white.
    """
    box = shape.box
    if (round(box.left), round(box.top), round(box.right)) in edges:
        return True
    return shape.filled and not shape.stroked and (_width(box) > _WIDE * page.width or _is_white(shape.colour))


def _drawings(page: PageContent, strokes: _Strokes, segments: Sequence[Segment]) -> Iterator[FigureArea]:
    """Find drawings by their shapes.

    A drawing is a group of curves, diagonal lines or bars that are close together, with its axes and labels.
    """
    ink, rulings, bars = strokes
    for group in bars:
        if area := _drawing(group, rulings, segments, page):
            yield area
    if len(ink) < _FEWEST_SHAPES:
        return
    curved = {shape.box for shape in ink if shape.curved or not shape.filled}
    round_ones = {shape.box for shape in ink if shape.curved}
    for group in _groups([shape.box for shape in ink], page):
        if len(group) < _FEWEST_SHAPES or _are_cells(group, curved, segments) or _are_rows(group, round_ones):
            continue
        if _are_tiles(group, round_ones, segments) or _are_highlights(group, curved, page.runs):
            continue
        if round_ones.isdisjoint(group) and _is_shading(_union(group), page.shapes, segments):
            continue
        if round_ones.isdisjoint(group) and _is_around_code(_union(group), page.runs):
            continue
        if area := _drawing(group, rulings, segments, page):
            yield area


def _is_around_code(box: Box, runs: Sequence[TextRun]) -> bool:
    """Whether all text in an area is monospaced, so that the shapes in the area are probably the frame of a code
    listing.
    """
    inside = [run for run in runs if _centre_in(run.box, box)]
    return bool(inside) and all(is_monospaced(run.font) for run in inside)


def _are_cells(group: Sequence[Box], curved: set[Box], segments: Sequence[Segment]) -> bool:
    """Whether most boxes are filled rectangles that contain text, as in a shaded table."""
    part = group[:_MOST_CELLS]
    cells = sum(box not in curved and any(_centre_in(one.box, box) for one in segments) for box in part)
    return 2 * cells > len(part)


def _are_rows(group: Sequence[Box], curved: set[Box]) -> bool:
    """Whether most boxes share left and right edges and are stacked without gaps, like the rows of a table."""
    sides: defaultdict[tuple[int, int], list[Box]] = defaultdict(list)
    for box in group:
        if box not in curved:
            sides[round(box.left / 2), round(box.right / 2)].append(box)
    most = max(map(len, sides.values()), default=0)
    rows = sorted(next((boxes for boxes in sides.values() if len(boxes) == most), ()), key=lambda box: box.top)
    if len(rows) < max(_FEWEST_ROWS, 0.6 * len(group)):
        return False
    return all(abs(low.top - high.bottom) <= _TOUCH for high, low in pairwise(rows))


def _are_tiles(group: Sequence[Box], curved: set[Box], segments: Sequence[Segment]) -> bool:
    """Whether most boxes contain text and share a whole side with another box, like the cells of a table."""
    cells = [
        box for box in group[:_MOST_CELLS] if box not in curved and any(_centre_in(one.box, box) for one in segments)
    ]
    tiles = sum(any(_share_side(one, other) for other in cells) for one in cells)
    return tiles >= max(_FEWEST_ROWS, 0.6 * len(group[:_MOST_CELLS]))


def _is_shading(whole: Box, shapes: Sequence[Shape], segments: Sequence[Segment]) -> bool:
    """Whether rectangles fill a whole area behind text, like the shaded cells of a table."""
    words = sum(_count_words(one) for one in segments if _centre_in(one.box, whole))
    if words <= _FEWEST_ROWS:
        return False
    filled = [_area(one.box) for one in shapes if one.filled and not one.curved and _centre_in(one.box, whole)]
    return max(filled, default=0.0) < _area(whole) / 2 and _FILLED < sum(filled) / _area(whole) < 1 / _FILLED


def _are_highlights(group: Sequence[Box], curved: set[Box], runs: Sequence[TextRun]) -> bool:
    """Whether most boxes are the backgrounds of single words, as in code listings with coloured words."""
    part = group[:_MOST_CELLS]
    low = [box for box in part if box not in curved and _height(box) < _MOST_OF_HIGHLIGHT]
    if 2 * len(low) <= len(part):
        return False
    words = [word for run in runs for word in run.words]
    return 2 * sum(any(_is_behind(box, word) for word in words) for box in low) > len(part)


def _is_behind(box: Box, word: Word) -> bool:
    """Whether a box is behind a word or a part of the word, and about as tall as the word."""
    is_level = box.top <= (word.top + word.bottom) / 2 <= box.bottom
    high = word.bottom - word.top
    return is_level and word.left < box.right and box.left < word.right and _height(box) < _HIGHLIGHT * high


def _share_side(one: Box, other: Box) -> bool:
    is_level = abs(one.top - other.top) + abs(one.bottom - other.bottom) < _TOUCH
    is_above = abs(one.left - other.left) + abs(one.right - other.right) < _TOUCH
    beside = min(abs(one.right - other.left), abs(one.left - other.right)) < _TOUCH
    stacked = min(abs(one.bottom - other.top), abs(one.top - other.bottom)) < _TOUCH
    return (is_level and beside) or (is_above and stacked)


def _is_white(colour: str | None) -> bool:
    return (colour or "").lower().endswith("ffffff")


def _groups(boxes: Sequence[Box], page: PageContent) -> list[list[Box]]:
    """Group boxes that are close to each other, in linear time.

    The page is divided into a grid. Boxes belong together if they cover the same grid cells or neighbouring ones.
    """
    side = max(page.width, page.height, 1.0) / _GRID
    cells = [_cells(box, side) for box in boxes]
    grid = _covered(cells)
    names = [[0] * len(row) for row in grid]
    groups: dict[int, list[Box]] = {}
    for box, (left, top, _, _) in zip(boxes, cells, strict=True):
        if not names[top][left]:
            _fill(grid, names, (top, left), len(groups) + 1)
        groups.setdefault(names[top][left], []).append(box)
    return list(groups.values())


def _cells(box: Box, side: float) -> tuple[int, int, int, int]:
    left, top, right, bottom = [min(max(int(number / side), 0), _GRID - 1) for number in box]
    return left, top, right, bottom


def _covered(cells: Iterable[tuple[int, int, int, int]]) -> list[list[int]]:
    """Count, for each cell of the grid, the boxes that cover it. Uses a two-dimensional prefix sum."""
    grid = [[0] * (_GRID + 1) for _ in range(_GRID + 1)]
    for left, top, right, bottom in cells:
        grid[top][left] += 1
        grid[top][right + 1] -= 1
        grid[bottom + 1][left] -= 1
        grid[bottom + 1][right + 1] += 1
    sums = [list(accumulate(row)) for row in grid]
    for above, row in pairwise(sums):
        row[:] = map(add, row, above)
    return sums


def _fill(grid: Sequence[Sequence[int]], names: list[list[int]], start: tuple[int, int], name: int) -> None:
    """Assign the number `name` to all non-empty grid cells that are connected to the cell `start` (flood fill)."""
    waiting = [start]
    names[start[0]][start[1]] = name
    while waiting:
        row, column = waiting.pop()
        for down in range(max(row - 1, 0), min(row + 2, _GRID)):
            for right in range(max(column - 1, 0), min(column + 2, _GRID)):
                if grid[down][right] > 0 and not names[down][right]:
                    names[down][right] = name
                    waiting.append((down, right))


def _drawing(
    group: Sequence[Box], rulings: Sequence[Box], segments: Sequence[Segment], page: PageContent
) -> FigureArea | None:
    box = _union(group)
    if min(_width(box), _height(box)) < _SHORT_SIDE or _are_sides(group, box):
        return None
    near = _grown(box, _LABEL_GAP)
    axes = [one for one in rulings if _overlap(one, near) and _length(one) <= 1.5 * max(_width(box), _height(box))]
    box = _union([box, *axes])
    labels = [one for one in segments if _is_label(one) and _overlap(one.box, _grown(box, _LABEL_GAP))]
    box = _union([box, *(one.box for one in labels)])
    if _is_backdrop(box, segments) or _share(box, page) < _SMALL or _share(box, page) > _BACKGROUND:
        return None
    numbers = sum(bool(_NUMBER.fullmatch(one.text.strip())) for one in labels)
    kind = "chart" if numbers >= _FEWEST_NUMBERS else "figure"
    if kind == "chart":
        box = _union([box, *_axis_titles(box, segments)])
    return FigureArea(kind, _clipped(page, [box])[0], confidence=0.8 if kind == "chart" else 0.7)


def _are_sides(group: Sequence[Box], box: Box) -> bool:
    """Whether all shapes are thick sides of text frames that are as wide as `box`."""
    return _width(box) > _LEAST_FRAME and all(_is_side(one, box) for one in group)


def _is_side(one: Box, frame: Box) -> bool:
    if _height(one) < _THICK_SIDE:
        return _width(one) > _WHOLE_SIDE * _width(frame)
    is_outside = one.right < frame.left + 2 * _THICK_SIDE or one.left > frame.right - 2 * _THICK_SIDE
    return is_outside and _width(one) < _THICK_SIDE


def _axis_titles(box: Box, segments: Sequence[Segment]) -> Iterator[Box]:
    """Yield the title below a chart: a label near the chart's lower edge and near the middle of its width."""
    for one in segments:
        gap, off = one.box.top - box.bottom, one.box.left + one.box.right - box.left - box.right
        if 0 <= gap < _AXIS_GAP and abs(off) < _MIDDLE * _width(box) and _is_label(one) and _value(one.text) is None:
            yield one.box


Tick = tuple[float, Segment]  # a number beside an axis, with its value


def _plots(page: PageContent, segments: Sequence[Segment]) -> Iterator[FigureArea]:
    """Find charts by the numbers on their two axes: a column of numbers and a row of numbers.

    Along each axis, the numbers (such as 10, 20, 30) and their positions increase in equal steps.
    """
    ticks = [(value, one) for one in segments if (value := _value(one.text)) is not None][:_MOST_TICKS]
    rises = list(_scales(ticks, lambda box: box.right, lambda box: box.top + box.bottom))
    rows = list(_scales(ticks, lambda box: (box.top + box.bottom) / 2, lambda box: box.left + box.right))
    for rise in rises:
        row = next((row for row in rows if _meet(rise, row)), None)
        if row is None or _are_labels_of_rows(rise, row, segments):
            continue
        box = _union([_union(rise), _union(row)])
        inside = [one for one in segments if _centre_in(one.box, box)]
        if not any(one.letters > _LONGEST_LABEL for one in inside):
            labels = [one.box for one in segments if _is_label(one) and _overlap(one.box, _grown(box, _LABEL_GAP))]
            yield FigureArea("chart", _clipped(page, [_union([box, *labels])])[0], confidence=0.85)


def _value(text: str) -> float | None:
    plain = text.strip().replace("\u2212", "-").rstrip("%")
    return float(plain) if _PLAIN_NUMBER.fullmatch(plain) else None


def _scales(ticks: Sequence[Tick], line: Callable[[Box], float], place: Callable[[Box], float]) -> Iterator[list[Box]]:
    """Yield the boxes of at least three numbers that can label a chart axis, such as 10, 20, 30.

    The numbers are in one row or column, with equal differences between them and at equal distances.
    """
    groups: list[list[Tick]] = []
    for tick in sorted(ticks, key=lambda tick: line(tick[1].box)):
        if groups and line(tick[1].box) - line(groups[-1][-1][1].box) < _TOUCH:
            groups[-1].append(tick)
        else:
            groups.append([tick])
    for group in groups:
        ordered = sorted(group, key=lambda tick: place(tick[1].box))
        steps = [(other[0] - one[0], place(other[1].box) - place(one[1].box)) for one, other in pairwise(ordered)]
        start = 0
        for end in range(1, len(steps) + 1):
            if end == len(steps) or not _is_same_step(steps[start], steps[end]):
                if end - start >= _FEWEST_NUMBERS - 1 and steps[start][0]:
                    yield [one.box for _, one in ordered[start : end + 1]]
                start = end


def _is_same_step(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(one[0] - other[0]) < _SAME_STEP * abs(one[0]) and abs(one[1] - other[1]) < _SAME_STEP * one[1] + 1


def _meet(rise: Sequence[Box], row: Sequence[Box]) -> bool:
    """Whether a column of numbers and a row of numbers below it meet at a corner, like the axes of a chart."""
    corner, first, high = rise[-1], row[0], _height(rise[-1])
    across = (first.left + first.right) / 2 - corner.right
    down = (first.top + first.bottom - corner.top - corner.bottom) / 2
    return -high < across < 3 * high + 0.3 * (row[-1].right - first.left) and 0.3 * high < down < 3 * high


def _are_labels_of_rows(rise: Sequence[Box], row: Sequence[Box], segments: Sequence[Segment]) -> bool:
    """Whether most numbers in a column have another number to their right, as in a table but not on a chart axis."""
    right = row[-1].right
    cells = [one.box for one in segments if _NUMBER.fullmatch(one.text.strip())]
    level = sum(
        any(tick.right < one.left < right and tick.top < (one.top + one.bottom) / 2 < tick.bottom for one in cells)
        for tick in rise
    )
    return 2 * level > len(rise)


def _with_turned_labels(area: FigureArea, turned: Sequence[Box], page: PageContent) -> FigureArea:
    """Extend the area of a drawing to include rotated text beside it, such as the title of its vertical axis."""
    near = [
        box for box in turned if _overlap(box, _grown(area.box, 2 * _LABEL_GAP)) and _length(box) <= _length(area.box)
    ]
    return replace(area, box=_clipped(page, [_union([area.box, *near])])[0]) if near else area


def _framed(areas: Sequence[FigureArea], page: PageContent, segments: Sequence[Segment]) -> Iterator[FigureArea]:
    """Enlarge a picture's area to the frame around it, if the frame contains only titles and labels."""
    frames = [
        shape.box
        for shape in page.shapes[:_MOST_SHAPES]
        if (shape.stroked or shape.filled) and _SMALL < _share(shape.box, page) < _FRAME
    ]
    captions = [one.box for one in segments if is_caption(one.text)]
    # A frame of four lines can also be the edge of a table with a picture.
    ruled = [box for box in line_frames(page) if _SMALL < _share(box, page) < _FRAME]
    most = [*((box, _MOST_AROUND) for box in frames), *((box, _MOST_AROUND_RULED) for box in ruled)]
    most = [(_without_captions(box, captions), times) for box, times in most]
    most = [(box, times) for box, times in most if min(_width(box), _height(box)) > 2 * _SHORT_SIDE]
    good: dict[Box, bool] = {}
    for area in areas:
        around = [box for box, times in most if _contains(box, area.box) and _area(box) < times * _area(area.box)]
        for box in sorted(around, key=_area, reverse=True):
            if box not in good:
                good[box] = _has_only_labels(box, segments)
            if good[box]:
                area = replace(area, box=box, confidence=max(area.confidence, 0.8), framed=True)  # noqa: PLW2901
                break
        yield area


def _without_captions(box: Box, captions: Sequence[Box]) -> Box:
    """Return the area of a picture without the captions at its upper and lower edges."""
    for caption in captions:
        at = (caption.top + caption.bottom - 2 * box.top) / max(2 * _height(box), 1.0)
        if not _overlap(caption, box) or _SENTENCE_SHARE < at < 1 - _SENTENCE_SHARE:
            continue
        box = box._replace(top=caption.bottom + 1) if at < 1 / 2 else box._replace(bottom=caption.top - 1)
    return box


def _contains(outer: Box, inner: Box) -> bool:
    return _union([_grown(outer, _TOUCH), inner]) == _grown(outer, _TOUCH)


def _has_only_labels(box: Box, segments: Sequence[Segment]) -> bool:
    inside = [one for one in segments if _centre_in(one.box, box)]
    if any(one.letters > _LONGEST_LABEL or not _contains(box, one.box) for one in inside):
        return False
    if any(_overlap(one.box, box) and is_caption(one.text) for one in segments):
        return False
    lefts = Counter(round(one.box.left / 2) for one in inside if _value(one.text) is None)
    if sum(count >= _FEWEST_ROWS for count in lefts.values()) > 1:  # the columns of a table beside a picture
        return False
    return sum(one.letters for one in inside) < _TEXT_LETTERS and not _is_backdrop(box, segments)


def _is_label(segment: Segment) -> bool:
    return segment.letters <= _LABEL_LETTERS and not is_caption(segment.text)


# Formulas -----------------------------------------------------------------------------------------------------------


def _formulas(segments: Sequence[Segment]) -> Iterator[FigureArea]:
    """Find formulas that are printed on separate lines.

    Formulas inside a sentence are part of its text and are not returned.
    """
    group: list[Segment] = []
    numbers = [one for one in segments if _EQUATION_NUMBER.fullmatch(one.text.strip())]
    numbered = [one for one in segments if _is_numbered(one, numbers)]
    for one in (one for one in segments if _is_formula(one) or one in numbered or one in numbers):
        if group and one.box.top - max(part.box.bottom for part in group) > 0.6 * one.size:
            yield from _formula(group, segments)
            group = []
        group.append(one)
    yield from _formula(group, segments)


def _is_numbered(segment: Segment, numbers: Sequence[Segment]) -> bool:
    """Whether a segment is a numbered formula.

    It contains mathematical symbols and at most one word, and an equation number such as "(3)" is to its right.
    """
    if not _SIGN.search(segment.text) or _count_words(segment) > _MATH_WORDS:
        return False
    return any(
        number.box.left - segment.box.right > segment.size
        and segment.box.top < (number.box.top + number.box.bottom) / 2 < segment.box.bottom
        for number in numbers
    )


def _is_formula(segment: Segment) -> bool:
    if segment.text.lstrip().startswith(_BULLETS):
        return False  # an item of a list
    has_symbol = segment.math > 0 and any(letter in _SYMBOLS for letter in segment.text)
    return (segment.math >= _MATH_SHARE or has_symbol) and _count_words(segment) <= _MATH_WORDS


def _count_words(segment: Segment) -> int:
    return sum(len(word) >= _WORD_LETTERS for word in re.findall(r"[^\W\d_]+", segment.text))


def _formula(group: Sequence[Segment], segments: Sequence[Segment]) -> Iterator[FigureArea]:
    numbers = [one for one in group if _EQUATION_NUMBER.fullmatch(one.text.strip())]
    maths = [one for one in group if one not in numbers]
    symbols = any(letter in _SYMBOLS for one in maths for letter in one.text)
    if not maths or not (symbols or any(_is_numbered(one, numbers) for one in maths)):
        return
    box = _union([one.box for one in group])
    # A formula has space around it, unlike lines of code or mathematics at the end of a paragraph.
    space = Box(box.left, box.top - _SPACE * maths[0].size, box.right, box.bottom + _SPACE * maths[-1].size)
    near = [one for one in segments if _overlap(one.box, space) and one not in group]
    large = [one for one in near if one.size > 0.8 * maths[0].size or one.letters > _LIMIT_LETTERS]
    if _width(box) >= _MATH_WIDTH and not any(_count_words(one) or one.letters > _LIMIT_LETTERS for one in large):
        yield FigureArea("formula", _union([box, *(one.box for one in near)]), confidence=0.8)


# Captions -----------------------------------------------------------------------------------------------------------


def _with_caption(area: FigureArea, segments: Sequence[Segment], page: PageContent) -> FigureArea:
    near = [(gap, one) for one in segments if is_caption(one.text) and (gap := _gap(area.box, one.box)) <= _CAPTION_GAP]
    if not near:
        return area
    first = min(near, key=lambda pair: pair[0])[1]
    lines = _caption_lines(first, segments, area.box)
    kind = "figure" if area.kind == "photo" else area.kind
    text = " ".join(" ".join(one.text.split()) for one in lines)
    box = _clipped(page, [_union([one.box for one in lines])])
    return replace(area, kind=kind, caption=text, confidence=0.95, caption_box=box[0] if box else None)


def _by_caption(areas: Sequence[FigureArea], segments: Sequence[Segment]) -> list[FigureArea]:
    """Join areas that have the same caption, and no running text between them, because they are parts of one figure."""
    joined: dict[Box, FigureArea] = {}
    alone: list[FigureArea] = []
    for area in areas:
        before = joined.get(area.caption_box) if area.caption_box else None
        both = replace(area, box=_union([area.box, before.box])) if before else area
        has_caption = before is not None and _has_caption(both.box, segments)
        if area.caption_box and not has_caption and not _is_backdrop(both.box, segments):
            joined[area.caption_box] = both
        else:
            alone.append(area)
    return _without_parts([*joined.values(), *alone])


def _has_caption(box: Box, segments: Sequence[Segment]) -> bool:
    return any(_centre_in(one.box, box) and is_caption(one.text) for one in segments)


def _gap(area: Box, caption: Box) -> float:
    """Return the vertical distance between a picture and a caption.

    Returns infinity if the caption is not above or below the picture.
    """
    if min(area.right, caption.right) <= max(area.left, caption.left):
        return float("inf")
    return max(caption.top - area.bottom, area.top - caption.bottom, 0.0)


def _caption_lines(first: Segment, segments: Sequence[Segment], area: Box) -> list[Segment]:
    """Return the lines of a caption: its first line, and the lines directly below it in the same font size."""
    lines = [first]
    for one in segments:
        step = one.box.top - lines[-1].box.top
        follows = 0.5 * first.size < step < _LINE_STEP * first.size and abs(one.size - first.size) < _SAME_SIZE
        if follows and _overlap_sideways(one.box, first.box) and not _centre_in(one.box, area):
            lines.append(one)
    return lines[:_CAPTION_LINES]


# Segments -----------------------------------------------------------------------------------------------------------


def _segments(runs: Sequence[TextRun]) -> list[Segment]:
    """Join text runs that are close together on a line. The results are sorted from top to bottom."""
    found: list[Segment] = []
    for line in _lines(runs):
        part: list[TextRun] = []
        for run in sorted(line, key=lambda run: run.box.left):
            if part and run.box.left - max(one.box.right for one in part[-3:]) > 1.2 * max(run.size, part[-1].size):
                found.append(_segment(part))
                part = []
            part.append(run)
        found.append(_segment(part))
    return sorted(found, key=lambda one: (one.box.top, one.box.left))


def _lines(runs: Sequence[TextRun]) -> Iterator[list[TextRun]]:
    """Group text runs into lines, from top to bottom. The text runs of a line have nearly the same vertical centre."""
    line: list[TextRun] = []
    for run in sorted((run for run in runs if not run.rotation), key=lambda run: run.box.top + run.box.bottom):
        middle = (run.box.top + run.box.bottom) / 2
        if line and middle > line[0].box.bottom - 0.25 * _height(line[0].box):
            yield line
            line = []
        line.append(run)
    if line:
        yield line


def _segment(runs: Sequence[TextRun]) -> Segment:
    letters = sum(len(run.text.strip()) for run in runs)
    maths = sum(len(run.text.strip()) for run in runs if _is_math(run))
    text = " ".join(run.text.strip() for run in runs)
    if maths and (_NUMBERED_TITLE.match(text) or any(is_monospaced(run.font) for run in runs)):
        maths = 0  # a title or code
    box, size = _union([run.box for run in runs]), max(run.size for run in runs)
    return Segment(box, text, size, maths / max(letters, 1), sum(map(len, text.split())))


def _is_math(run: TextRun) -> bool:
    return _is_math_font(run.font) or _SYMBOLS.issuperset(run.text.strip())


@lru_cache(maxsize=1000)
def _is_math_font(font: str) -> bool:
    return _MATH_FONT.search(font) is not None


# Boxes --------------------------------------------------------------------------------------------------------------


def _width(box: Box) -> float:
    return box.right - box.left


def _height(box: Box) -> float:
    return box.bottom - box.top


def _length(box: Box) -> float:
    return max(_width(box), _height(box))


def _area(box: Box) -> float:
    return _width(box) * _height(box)


def _share(box: Box, page: PageContent) -> float:
    return _area(box) / max(page.width * page.height, 1.0)


def _union(boxes: Sequence[Box]) -> Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))


def _grown(box: Box, by: float) -> Box:
    return Box(box.left - by, box.top - by, box.right + by, box.bottom + by)


def _overlap_sideways(one: Box, other: Box) -> bool:
    return one.right > one.left < other.right > other.left < one.right


def _overlap(one: Box, other: Box) -> bool:
    return (
        one.right > one.left < other.right > other.left < one.right
        and one.bottom > one.top < other.bottom > other.top < one.bottom
    )


def _centre_in(inner: Box, outer: Box) -> bool:
    across, down = (inner.left + inner.right) / 2, (inner.top + inner.bottom) / 2
    return outer.left <= across <= outer.right and outer.top <= down <= outer.bottom


def _inside_any(box: Box, areas: Iterable[FigureArea]) -> bool:
    return any(_centre_in(box, area.box) for area in areas)


def _without_parts(areas: Iterable[FigureArea]) -> list[FigureArea]:
    """Remove areas that are inside a larger area."""
    kept: list[FigureArea] = []
    for area in sorted(areas, key=lambda area: -_area(area.box))[: 4 * _MOST_FIGURES]:
        if not _inside_any(area.box, kept):
            kept.append(area)
    return kept
