"""Puts recognised lines in reading order: column by column, with full-width lines in between.

OCR returns lines from top to bottom, which mixes columns. So the page is first cut into horizontal bands: a heading
across the page separates the columns above it from the columns below it. Each band is then cut into columns at its
gutters, the vertical white spaces that none of its lines crosses. Tables look like columns too: if the lines of
neighbouring columns are side by side all the way down, they are read row by row.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from octavo.extract.extracted import Box

_SOME_LETTERS = 2
_UPRIGHT = 1.5
# The heights of letter parts at font size 1: x-height, ascenders and descenders.
_SMALL, _ABOVE, _BELOW = 0.48, 0.25, 0.21
_REACHES_BELOW = re.compile(r"[gjpqyQ,;()\[\]{}|/@]")
_STAYS_SMALL = re.compile(r"[acemnorsuvwxzgpqy.,;:\s-]+")


@dataclass(frozen=True, slots=True)
class Line:
    """A recognised line. `box` is in pixels of the image. `score` is Tesseract's confidence, from 0 to 1.

    `margin` is how much taller Tesseract's boxes are than the letters, as a fraction of the font size.
    """

    text: str
    box: Box
    score: float = 1.0
    margin: float = 0.32

    @property
    def height(self) -> float:
        return self.box.bottom - self.box.top

    @property
    def width(self) -> float:
        return self.box.right - self.box.left

    @property
    def size(self) -> float:
        """The font size, computed from the height of the box and from whether the text has ascenders or descenders."""
        extent = _SMALL + self.margin
        extent += 0 if _STAYS_SMALL.fullmatch(self.text) else _ABOVE
        extent += _BELOW if self._reaches_below else 0
        return (self.width if self.is_vertical else self.height) / extent

    @property
    def base(self) -> float:
        """The vertical position of the baseline. It does not depend on whether the text has descenders."""
        return self.box.bottom - self.size * (self.margin / 2 + (_BELOW if self._reaches_below else 0))

    @property
    def _reaches_below(self) -> bool:
        return _REACHES_BELOW.search(self.text) is not None or not self.text.isascii()

    @property
    def is_vertical(self) -> bool:
        return len(self.text) >= _SOME_LETTERS and self.height > _UPRIGHT * self.width

    @property
    def middle(self) -> float:
        return (self.box.top + self.box.bottom) / 2


def around(lines: list[Line]) -> Box:
    """Return the smallest box that contains the boxes of all `lines`."""
    return Box(
        min(line.box.left for line in lines),
        min(line.box.top for line in lines),
        max(line.box.right for line in lines),
        max(line.box.bottom for line in lines),
    )


# The least width of a gutter in line heights, and the least number of lines in a column.
GUTTER_HEIGHTS = 0.8
COLUMN_LINES = 3
# A line that covers this share of the width of its band spans all columns.
SPANNING = 0.6
# Neighbouring columns are cells of a table if at least this share of their lines is side by side and the lines are
# short. Lines that are longer than a number or a name and mostly fill their column are running text instead.
SIDE_BY_SIDE = 0.7
CELL_CHARACTERS = 25
SURE_CELL_CHARACTERS = 12
FILLED = 0.8


def reading_order(lines: Sequence[Line]) -> list[list[Line]]:
    """Group the lines into columns, in reading order. A page without columns is one column.

    Vertical lines of text, such as those at the edge of a page, come last.
    """
    level = [line for line in lines if not line.is_vertical]
    vertical = [[line] for line in sorted(lines, key=_from_top) if line.is_vertical]
    if not level:
        return vertical
    height = median(line.height for line in level)
    columns: list[list[Line]] = []
    goes_on = False
    for band in _bands(sorted(level, key=_from_top), height):
        found = _columns(band, height)
        if goes_on and len(found) == 1:  # two successive bands with one column each are joined
            columns[-1] += found[0]
        else:
            columns += found
        goes_on = len(found) == 1
    return columns + vertical


def _from_top(line: Line) -> tuple[float, float]:
    return line.middle, line.box.left


def _bands(lines: list[Line], height: float) -> list[list[Line]]:
    """Split the lines of a page into horizontal bands, so that each band has the same columns from top to bottom.

    For example, a heading across two columns is a separate band.
    """
    left, right = min(line.box.left for line in lines), max(line.box.right for line in lines)
    narrow = [line for line in lines if line.width < SPANNING * (right - left)]
    gutters = _gutters(narrow, height)
    if not gutters:
        return [lines]
    bands: list[list[Line]] = [[]]
    spanning = False
    for line in lines:
        crosses = any(line.box.left < start and end < line.box.right for start, end in gutters)
        if crosses != spanning and bands[-1]:
            bands.append([])
        spanning = crosses
        bands[-1].append(line)
    return bands


def _columns(band: list[Line], height: float) -> list[list[Line]]:
    gutters = _gutters(band, height)
    if not gutters:
        return [_across(band, height)]
    starts = [end for _, end in gutters]
    parts: list[list[Line]] = [[] for _ in range(len(gutters) + 1)]
    for line in band:
        parts[bisect_right(starts, line.box.left + 0.01)].append(line)
    if any(len(part) < COLUMN_LINES for part in parts) or _is_table(parts, height):
        return [_across(band, height)]
    return [_across(part, height) for part in parts]


def _gutters(lines: Sequence[Line], height: float) -> list[tuple[float, float]]:
    """Find the vertical white spaces between columns. Returns the left and right edge of each space."""
    if not lines:
        return []
    covered: list[list[float]] = []
    for line in sorted(lines, key=lambda line: line.box.left):
        if covered and line.box.left <= covered[-1][1]:
            covered[-1][1] = max(covered[-1][1], line.box.right)
        else:
            covered.append([line.box.left, line.box.right])
    return [(one[1], other[0]) for one, other in pairwise(covered) if other[0] - one[1] >= GUTTER_HEIGHTS * height]


def _is_table(parts: list[list[Line]], height: float) -> bool:
    """Whether neighbouring columns are the columns of a table rather than columns of running text."""
    usual = median(len(line.text) for part in parts for line in part)
    if usual > CELL_CHARACTERS or (usual > SURE_CELL_CHARACTERS and all(map(_is_filled, parts))):
        return False
    first, *others = parts
    middles = sorted(line.middle for line in first)
    beside = sum(_has_near(middles, line.middle, height / 2) for part in others for line in part)
    return beside >= SIDE_BY_SIDE * sum(map(len, others))


def _is_filled(part: list[Line]) -> bool:
    widths = sorted(line.width for line in part)
    wide = widths[len(widths) * 3 // 4]  # not the widest line, which may be a heading
    return median(widths) >= FILLED * wide


def _has_near(middles: list[float], middle: float, distance: float) -> bool:
    place = bisect_right(middles, middle - distance)
    return place < len(middles) and middles[place] <= middle + distance


def _across(band: list[Line], height: float) -> list[Line]:
    """Sort lines row by row, and from left to right within a row.

    Lines whose middles are at about the same height form a row.
    """
    rows: list[list[Line]] = []
    for line in sorted(band, key=_from_top):
        if rows and line.middle - rows[-1][0].middle < height / 2:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row, key=lambda line: line.box.left)]
