"""Joins recognised lines into paragraphs, and converts the paragraphs to `PageBlock`, like the text of a PDF."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median

from octavo.extract.extracted import BlockKind, Box
from octavo.extract.markdown.escape import escape_start
from octavo.extract.ocr.order import Line, around, reading_order
from octavo.extract.pdf import markup
from octavo.extract.pdf.letters import is_right_to_left, one_line
from octavo.extract.pdf.page_batches import PageBlock

# A paragraph ends where the distance to the next line is this many times the usual distance, or where the font size
# changes by this factor.
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
    """A paragraph.

    `text` contains only line breaks that the author intended. `size` is the font size, and `lines` is the number of
    lines. `runs` is true for horizontal running text, and false for table cells and vertical text.
    """

    text: str
    box: Box
    size: float
    lines: int
    runs: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """Recognised lines that are side by side, from left to right. Most rows have only one line."""

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
    """Return the usual line spacing: the distance between the baselines of two neighbouring rows."""
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


# A short paragraph this much larger than most of the page is a heading.
HEADING = 1.3
HEADING_WORDS = 16
# The measured sizes of lines in the same font differ by up to this much, because boxes are not exact.
SAME_SIZE = 0.15
_BULLET = re.compile(r"[\u2022\u25cf\u25aa\u25e6\u2013\u2014*\u00b7-]\s+(?=\S)")
_NUMBER = re.compile(r"\(?(\d{1,3})[.)]\s+(?=\S)")
_TITLE = re.compile(r"\d{1,2}(?:\.\d{1,2}){0,4}\.?\s+[^\W\d_a-z].*[^\s.,;:\d]")


def blocks_of(lines: Sequence[Line], scale: float = 1.0) -> list[PageBlock]:
    """Convert recognised lines to the blocks of a page.

    Boxes stay in pixels. Font sizes are divided by `scale`, the number of pixels per page unit.
    """
    paragraphs = _paragraphs(lines)
    usual = _usual(paragraphs)
    return list(_blocks(paragraphs, usual, scale))


def _paragraphs(lines: Sequence[Line]) -> list[Paragraph]:
    """Return the paragraphs in reading order.

    A page in a right-to-left script is mirrored first, so that its columns are found like those of other pages.
    """
    mirrored = is_right_to_left("".join(line.text for line in lines))
    seen = [replace(line, box=_mirrored(line.box)) for line in lines] if mirrored else lines
    found = [paragraph for column in reading_order(seen) for paragraph in join_lines(column)]
    return [replace(one, box=_mirrored(one.box)) for one in found] if mirrored else found


def _mirrored(box: Box) -> Box:
    return Box(-box.right, box.top, -box.left, box.bottom)


def _usual(paragraphs: Sequence[Paragraph]) -> float:
    """Return the usual font size: the median, weighted by the amount of text."""
    sizes = [paragraph.size for paragraph in paragraphs for _ in range(1 + len(paragraph.text) // 20)]
    return median(sizes) if sizes else 0.0


def _blocks(paragraphs: Sequence[Paragraph], usual: float, scale: float) -> Iterator[PageBlock]:
    for mark, same in groupby(paragraphs, key=_mark):
        found = list(same)
        if mark == "bullet" or (mark == "number" and _counts(found)):
            yield _list(found, usual, scale)
        else:
            yield from (_text(one, usual, scale) for one in found)


def _mark(paragraph: Paragraph) -> str:
    if _BULLET.match(paragraph.text):
        return "bullet"
    return "number" if _NUMBER.match(paragraph.text) else ""


def _counts(items: Sequence[Paragraph]) -> bool:
    """Whether there are at least two numbered paragraphs with consecutive numbers, as in a list."""
    numbers = [int(found[1]) for item in items if (found := _NUMBER.match(item.text))]
    return len(numbers) > 1 and all(after == before + 1 for before, after in pairwise(numbers))


def _list(items: Sequence[Paragraph], usual: float, scale: float) -> PageBlock:
    text = "\n".join(_item(item.text) for item in items)
    box = _around([item.box for item in items])
    lines = sum(item.lines for item in items)
    return PageBlock(BlockKind.LIST, text, box, _size(items[0], usual, scale), lines=lines)


def _item(text: str) -> str:
    number = _NUMBER.match(text)
    found = number or _BULLET.match(text)
    rest = text[found.end() :] if found else text
    return f"{number[1] + '.' if number else '-'} {escape_start(markup.plain(one_line(rest)))}"


def _text(paragraph: Paragraph, usual: float, scale: float) -> PageBlock:
    return PageBlock(
        kind=BlockKind.HEADING if _is_heading(paragraph, usual) else BlockKind.PARAGRAPH,
        text="\n".join(markup.plain(one_line(line)) for line in paragraph.text.split("\n")),
        box=paragraph.box,
        size=_size(paragraph, usual, scale),
        lines=paragraph.lines,
    )


def _is_heading(paragraph: Paragraph, usual: float) -> bool:
    """Whether the size or section number of a paragraph suggests a heading.

    The final decision is made when the document is assembled.
    """
    if not paragraph.runs or len(paragraph.text.split()) > HEADING_WORDS:
        return False
    return paragraph.size >= HEADING * usual or (paragraph.lines == 1 and _TITLE.fullmatch(paragraph.text) is not None)


def _size(paragraph: Paragraph, usual: float, scale: float) -> float:
    """Return the font size, rounded to half points.

    A size close to the page's usual size is replaced by the usual size.
    """
    same = not paragraph.runs or abs(paragraph.size - usual) <= SAME_SIZE * usual
    return round((usual if same else paragraph.size) / scale * 2) / 2


def _around(boxes: Sequence[Box]) -> Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))
