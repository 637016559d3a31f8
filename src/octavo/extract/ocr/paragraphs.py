"""Lines in reading order, joined into paragraphs; words that were cut at the end of a line are whole again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from octavo.extract.contract import Box
from octavo.extract.ocr.lines import Line, around

# A paragraph ends where the gap to the next line is this much larger than usual, or that line is set this much larger.
GAP = 1.6
LARGER = 1.35
# A line that ends this far before the edge of its column is the last of its paragraph.
SHORT = 0.75
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_ITEM = re.compile(r"(?:[\u2022\u25cf\u25aa\u2013*\u00b7-]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """`size` is how high its lines are, by which headings are told from text."""

    text: str
    box: Box
    size: float


def join_lines(column: list[Line]) -> list[Paragraph]:
    """The paragraphs of one column."""
    return [_paragraph(lines) for lines in _cut(column)]


def _cut(column: list[Line]) -> Iterator[list[Line]]:
    if not column:
        return
    pitch = _pitch(column)
    right = max(line.box.right for line in column)
    left = min(line.box.left for line in column)
    current = [column[0]]
    for before, line in pairwise(column):
        if _begins(before, line, pitch, left + SHORT * (right - left)):
            yield current
            current = []
        current.append(line)
    yield current


def _pitch(column: list[Line]) -> float:
    """The usual distance from one line to the next."""
    steps = [line.middle - before.middle for before, line in pairwise(column) if line.middle > before.middle]
    return median(steps) if steps else median(line.height for line in column)


def _begins(before: Line, line: Line, pitch: float, edge: float) -> bool:
    step = line.middle - before.middle
    if step > GAP * pitch or step < 0:
        return True
    sizes = sorted((before.height, line.height))
    if sizes[0] > 0 and sizes[1] / sizes[0] > LARGER:
        return True
    return bool(_ITEM.match(line.text)) or (before.box.right < edge and before.text.endswith((".", "!", "?", ":")))


def _paragraph(lines: list[Line]) -> Paragraph:
    text = lines[0].text
    for line in lines[1:]:
        cut = _HYPHEN.search(text) and line.text[:1].islower()
        text = text[:-1] + line.text if cut else f"{text} {line.text}"
    return Paragraph(" ".join(text.split()), around(lines), median(line.height for line in lines))
