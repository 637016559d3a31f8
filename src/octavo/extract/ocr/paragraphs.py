"""Joins lines in reading order into paragraphs, and rejoins words hyphenated at the end of a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from octavo.extract.extracted import Box
from octavo.extract.ocr.order import Line, around

# A paragraph ends where the distance to the next line is this much larger than usual, or the font size differs by
# this factor.
GAP = 1.22
LARGER = 1.35
# The usual distance between lines is at most this many times their height.
MOST_PITCH = 1.7
# The font sizes of shorter lines are inexact, so they are ignored.
ENOUGH_LETTERS = 8
# A line that ends this far before the edge of its column is the last of its paragraph.
SHORT = 0.75
# Parts of a row that are this many heights apart are cells of a table, or connected by leaders.
APART = 1.5
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_ITEM = re.compile(r"(?:[\u2022\u25cf\u25aa\u25e6\u2013\u2014*\u00b7-]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s")
_SENTENCE_END = (".", "!", "?", ":")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """`text` contains only intended line breaks; `size` is the font size, `lines` the number of lines.

    `runs`: whether the paragraph is horizontal running text, not table cells or vertical text.
    """

    text: str
    box: Box
    size: float
    lines: int
    runs: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """Lines side by side, from left to right. Most rows have only one line."""

    lines: list[Line]

    @property
    def base(self) -> float:
        return median(line.base for line in self.lines)

    @property
    def height(self) -> float:
        return median(line.height for line in self.lines)

    @property
    def size(self) -> float:
        return median(line.size for line in self.lines)

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)

    @property
    def right(self) -> float:
        return self.lines[-1].box.right

    @property
    def is_divided(self) -> bool:
        gap = APART * self.height
        return any(after.box.left - before.box.right > gap for before, after in pairwise(self.lines))


def join_lines(column: Sequence[Line]) -> list[Paragraph]:
    """Join the lines of one column into paragraphs."""
    return [_paragraph(rows) for rows in _cut(list(_rows(column)))]


def _rows(column: Sequence[Line]) -> Iterator[Row]:
    current: list[Line] = []
    for line in column:
        if current and not _is_beside(current[-1], line):
            yield Row(current)
            current = []
        current.append(line)
    if current:
        yield Row(current)


def _is_beside(before: Line, line: Line) -> bool:
    near = abs(line.middle - before.middle) < min(before.height, line.height) / 2
    return near and line.box.left >= before.box.left


def _cut(rows: list[Row]) -> Iterator[list[Row]]:
    if not rows:
        return
    pitch = _pitch(rows)
    left, right = min(row.lines[0].box.left for row in rows), max(row.right for row in rows)
    current = [rows[0]]
    for before, row in pairwise(rows):
        if _begins(before, row, pitch, left + SHORT * (right - left)):
            yield current
            current = []
        current.append(row)
    yield current


def _pitch(rows: Sequence[Row]) -> float:
    """The usual distance between the baselines of two rows."""
    most = MOST_PITCH * median(row.height for row in rows)
    steps = [row.base - before.base for before, row in pairwise(rows) if row.base > before.base]
    return min(median(steps), most) if steps else most


def _begins(before: Row, row: Row, pitch: float, edge: float) -> bool:
    step = row.base - before.base
    if step > GAP * pitch or step < 0 or before.is_divided != row.is_divided:
        return True
    if min(len(before.text), len(row.text)) >= ENOUGH_LETTERS:
        small, large = sorted((before.size, row.size))
        if large > LARGER * small:
            return True
    return bool(_ITEM.match(row.text)) or (before.right < edge and before.text.endswith(_SENTENCE_END))


def _paragraph(rows: list[Row]) -> Paragraph:
    lines = [line for row in rows for line in row.lines]
    divided = rows[0].is_divided
    texts = [" ".join(row.text.split()) for row in rows]
    text = "\n".join(texts) if divided else _running(texts)
    runs = not divided and not lines[0].is_vertical
    return Paragraph(text, around(lines), median(line.size for line in lines), len(rows), runs)


def _running(rows: Sequence[str]) -> str:
    text = rows[0]
    for row in rows[1:]:
        cut = _HYPHEN.search(text) and row[:1].islower()
        text = text[:-1] + row if cut else f"{text} {row}"
    return text
