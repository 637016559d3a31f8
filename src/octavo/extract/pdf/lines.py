"""Finds the lines of a block from the positions of its words: their size, and which line breaks are intended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from octavo.extract.extracted import Box

_SLACK = 1.5
_SAME_LEFT = 12.0  # points; the left edges of lines in one column differ by at most this
_CENTRED = 4.0  # points; twice the largest distance between the middles of centred lines
_NOT_LETTERS = re.compile(r"[\W_]+")
_BROKEN_WORD = re.compile("[^\\W\\d_][-\xad\x02\ufffe]\\Z")
_WIDTH_OF_LETTER = 0.5  # of its size, on average
_GAP = 0.12  # of the size; parts closer than this are one word
_MOST_INDENT = 40


class Run(NamedTuple):
    """Words on one line in one font."""

    left: float
    top: float
    right: float
    bottom: float
    size: float
    bold: bool
    text: str


class BlockStyle(NamedTuple):
    """The font size of most of a block, whether it is bold, and its lines."""

    size: float = 0.0
    bold: bool = False
    lines: tuple[tuple[Run, ...], ...] = ()


def runs_in(box: Box | None, runs: Sequence[Run]) -> list[Run]:
    if box is None:
        return []
    left, top, right, bottom = box.left - _SLACK, box.top - _SLACK, box.right + _SLACK, box.bottom + _SLACK
    return [run for run in runs if run[1] >= top and run[3] <= bottom and run[0] >= left and run[2] <= right]


def style_of(runs: Sequence[Run]) -> BlockStyle:
    if not runs:
        return BlockStyle()
    sizes: dict[float, int] = {}
    bold = letters = 0
    for run in runs:
        length = len(run.text)
        sizes[run.size] = sizes.get(run.size, 0) + length
        bold += length if run.bold else 0
        letters += length
    return BlockStyle(max(sizes, key=lambda size: (sizes[size], size)), 2 * bold > letters, _lines(runs))


def _lines(runs: Sequence[Run]) -> tuple[tuple[Run, ...], ...]:
    """Group runs into lines, from top to bottom. The runs of a line are ordered from left to right."""
    lines: list[list[Run]] = []
    reach = float("-inf")
    for run in sorted(runs, key=lambda run: run.top):
        if (run.top + run.bottom) / 2 > reach:
            lines.append([])
            reach = run.bottom
        lines[-1].append(run)
    return tuple(tuple(sorted(line)) for line in lines)


def intended_lines(text: str, style: BlockStyle, page: Sequence[Run]) -> list[str] | None:
    """The lines of a block if its line breaks are intended, as in addresses, forms and verse; None for prose.

    Line breaks are intended if the lines are centred, or if the next word would have fitted on most lines.
    """
    lines = style.lines
    if len(lines) < 2:  # noqa: PLR2004 - a single line has no break
        return None
    if not _is_centred(lines) and not _ends_early(lines, page):
        return None
    texts = [_text(line) for line in lines]
    if any(_BROKEN_WORD.search(text) for text in texts):
        return None
    # If the words differ, the order of liteparse is better.
    return texts if _letters("".join(texts)) == _letters(text) else None


def _is_centred(lines: Sequence[Sequence[Run]]) -> bool:
    """Whether the lines are centred. Lines of equal width do not count, because they are justified prose."""
    middles = [line[0].left + line[-1].right for line in lines]
    rights = [line[-1].right for line in lines]
    return max(middles) - min(middles) < _CENTRED and max(rights) - min(rights) > _SAME_LEFT


def _ends_early(lines: Sequence[Sequence[Run]], page: Sequence[Run]) -> bool:
    left = min(line[0].left for line in lines)
    edge = max((run.right for run in page if abs(run.left - left) < _SAME_LEFT), default=0.0)
    early = sum(line[-1].right + _first_word(following) < edge for line, following in pairwise(lines))
    return 2 * early > len(lines) - 1


def _first_word(line: Sequence[Run]) -> float:
    run = line[0]
    word = run.text.split(" ", 1)[0]
    return (len(word) + 2) * run.size * _WIDTH_OF_LETTER


def _text(line: Sequence[Run]) -> str:
    text = line[0].text
    for before, run in pairwise(line):
        text += (" " if run.left - before.right > _GAP * run.size else "") + run.text
    return text.strip()


def _letters(text: str) -> str:
    return _NOT_LETTERS.sub("", text)


def indented(lines: Sequence[str], style: BlockStyle) -> list[str]:
    """Restore the indentation of code from the page.

    The lines stay unchanged if the page has a different number of lines.
    """
    if len(lines) != len(style.lines):
        return list(lines)
    left = min(line[0].left for line in style.lines)
    return [_indent(line, left) + text.lstrip() for text, line in zip(lines, style.lines, strict=True)]


def _indent(line: Sequence[Run], left: float) -> str:
    run = line[0]
    letter = (run.right - run.left) / max(len(run.text), 1)
    return " " * min(round((run.left - left) / letter), _MOST_INDENT) if letter > 0 else ""
