"""Converts recognised lines to the blocks of a page, in the same form as the blocks of a page with text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from statistics import median

from octavo.extract.extracted import BlockKind, Box
from octavo.extract.markdown.escape import escape_start
from octavo.extract.ocr.order import Line, reading_order
from octavo.extract.ocr.paragraphs import Paragraph, join_lines
from octavo.extract.pdf import markup
from octavo.extract.pdf.letters import is_right_to_left, one_line
from octavo.extract.pdf.page_batches import PageBlock

# A short paragraph this much larger than most of the page is a heading.
HEADING = 1.3
HEADING_WORDS = 16
# The measured sizes of lines in the same font differ by up to this much, because boxes are not exact.
SAME_SIZE = 0.15
_BULLET = re.compile(r"[\u2022\u25cf\u25aa\u25e6\u2013\u2014*\u00b7-]\s+(?=\S)")
_NUMBER = re.compile(r"\(?(\d{1,3})[.)]\s+(?=\S)")
_TITLE = re.compile(r"\d{1,2}(?:\.\d{1,2}){0,4}\.?\s+[^\W\d_a-z].*[^\s.,;:\d]")


def blocks_of(lines: Sequence[Line], scale: float = 1.0) -> list[PageBlock]:
    """The blocks of a page. Boxes stay in pixels; font sizes are divided by `scale`, the pixels per page unit."""
    paragraphs = _paragraphs(lines)
    usual = _usual(paragraphs)
    return list(_blocks(paragraphs, usual, scale))


def _paragraphs(lines: Sequence[Line]) -> list[Paragraph]:
    """The paragraphs in reading order. A page in a right-to-left script is read as if seen in a mirror."""
    mirrored = is_right_to_left("".join(line.text for line in lines))
    seen = [replace(line, box=_mirrored(line.box)) for line in lines] if mirrored else lines
    found = [paragraph for column in reading_order(seen) for paragraph in join_lines(column)]
    return [replace(one, box=_mirrored(one.box)) for one in found] if mirrored else found


def _mirrored(box: Box) -> Box:
    return Box(-box.right, box.top, -box.left, box.bottom)


def _usual(paragraphs: Sequence[Paragraph]) -> float:
    """The median font size, weighted by the amount of text."""
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
    """Whether the numbers of these paragraphs form a list: there are at least two, and they are consecutive."""
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
    """Whether the size or number of a paragraph suggests a heading.

    The final decision is made when the document is assembled.
    """
    if not paragraph.runs or len(paragraph.text.split()) > HEADING_WORDS:
        return False
    return paragraph.size >= HEADING * usual or (paragraph.lines == 1 and _TITLE.fullmatch(paragraph.text) is not None)


def _size(paragraph: Paragraph, usual: float, scale: float) -> float:
    """The font size, rounded to half points. A size close to the usual one is replaced by the usual one."""
    same = not paragraph.runs or abs(paragraph.size - usual) <= SAME_SIZE * usual
    return round((usual if same else paragraph.size) / scale * 2) / 2


def _around(boxes: Sequence[Box]) -> Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))
