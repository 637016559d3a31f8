"""Finds the tables of a PDF page from its words, rulings and backgrounds. Pure: positions in, tables out.

Rulings that touch make a grid; what they leave open, and tables without rulings, is decided by white space, by how
words are aligned, and by numbers: two numbers above each other are never in the same row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from statistics import median

from octavo.extract.extracted import Box
from octavo.extract.pdf import markup
from octavo.extract.pdf.aligned_tables import aligned_tables
from octavo.extract.pdf.content import PageContent, TextRun, Word
from octavo.extract.pdf.ruled_tables import Grid, grids, is_inside, ruled_tables
from octavo.extract.pdf.table_geometry import (
    GAP,
    LEADER_MARKS,
    NUMBER_GAP,
    Rulings,
    page_rulings,
    text_lines,
    wide_rules,
    without_leader,
)
from octavo.extract.pdf.table_rows import Table

_MOST_WORDS = 8000
_MOST_APART = 60.0
_FEW_STROKES = 4
_LEAST_ROWS = 3


def find_tables(page: PageContent) -> tuple[Table, ...]:
    """The tables of a page, from top to bottom."""
    if _is_turned(page):
        return tuple(replace(table, box=_back(table.box, page)) for table in find_tables(_upright(page)))
    gaps = _gap_places(page.runs)
    has_rulings = len(page.lines) + len(page.shapes) > _FEW_STROKES
    if not gaps and not has_rulings:
        return ()
    drawn = [(one, grids(one)) for one in page_rulings(page) if one]
    rulings = drawn[-1][0]
    if len(gaps) < _LEAST_ROWS and next(wide_rules(rulings), None) is None:
        gaps = []
    if not gaps and not any(found for _, found in drawn):
        return ()
    return tuple(sorted(_tables(page, drawn, gaps), key=lambda table: (table.box.top, table.box.left)))


def _tables(page: PageContent, drawn: Sequence[tuple[Rulings, list[Grid]]], gaps: Sequence[float]) -> Iterator[Table]:
    """The tables in grids, and those in the words that are left near the gaps."""
    words = [word for run in page.runs if abs(run.rotation) < 1 for word in run.words if _is_usable(word)]
    if len(words) > _MOST_WORDS:
        return
    for _, found in drawn:
        for table in ruled_tables(page, words, found):
            yield table
            words = [word for word in words if not is_inside(word, table.box)]
    if gaps:
        yield from aligned_tables(text_lines(_near(words, gaps)), drawn[-1][0])


def _is_usable(word: Word) -> bool:
    """Whether a word has a place and is not only dots that lead to a number."""
    left, top, right, bottom, text = word
    if not isfinite(left + top + right + bottom):
        return False
    # The quickest check comes first: nearly all words are plain.
    return text.isalnum() or bool((without_leader(word).text if text.endswith(LEADER_MARKS) else text).strip())


def to_markdown(table: Table) -> str:
    """Write a table as Markdown. The text of a spanning cell is in the first of its places."""
    return markup.table(table.grid)


def continues(previous: Table, following: Table) -> bool:
    """Whether a table at the top of a page continues the one at the end of the page before: the same columns."""
    near = 0.05 * (previous.box.right - previous.box.left)
    ends = (previous.box.left - following.box.left, previous.box.right - following.box.right)
    return len(previous.grid[0]) == len(following.grid[0]) and max(map(abs, ends)) <= near


def repeats_header(previous: Table, following: Table) -> bool:
    """Whether a table that continues another one starts with the same first row."""
    return continues(previous, following) and previous.grid[0] == following.grid[0]


def _gap_places(runs: Sequence[TextRun]) -> list[float]:
    """A quick check: where lines have words with a wide gap between them, if another such line is near."""
    height = median(run.box.bottom - run.box.top for run in runs) if runs else 0.0
    lines: list[list[TextRun]] = []
    at = 0.0
    for run in sorted(runs, key=lambda run: run.box.top + run.box.bottom):
        middle = run.box.top + run.box.bottom
        if lines and middle - at < height:
            lines[-1].append(run)
        else:
            lines.append([run])
            at = middle
    gaps = [(line[0].box.top + line[0].box.bottom) / 2 for line in lines if len(line) > 1 and _has_gap(line)]
    return sorted({at for high, low in pairwise(gaps) if low - high < _MOST_APART for at in (high, low)})


def _has_gap(line: list[TextRun]) -> bool:
    """Whether two runs are as far apart as cells are. Numbers are closer to each other than words."""
    line.sort(key=lambda run: run.box.left)
    before = line[0]
    for run in line[1:]:
        gap, height = run.box.left - before.box.right, min(_height(run), _height(before))
        if gap > GAP * height or (gap > NUMBER_GAP * height and run.text[0].isdigit()):
            return True
        if run.box.right > before.box.right:
            before = run
    return False


def _height(run: TextRun) -> float:
    return run.box.bottom - run.box.top


def _near(words: Sequence[Word], places: Sequence[float]) -> list[Word]:
    """The words near these places, without the dots that lead to numbers."""
    bands = {round(at / _MOST_APART) + add for at in places for add in (-1, 0, 1)}
    near = (word for word in words if round((word.top + word.bottom) / 2 / _MOST_APART) in bands)
    return [without_leader(word) for word in near]


def _is_turned(page: PageContent) -> bool:
    turned = sum(45 < abs(run.rotation) % 180 < 135 for run in page.runs)  # noqa: PLR2004
    return turned > 0.7 * len(page.runs)


def _upright(page: PageContent) -> PageContent:
    """A page whose text runs from bottom to top or from top to bottom, turned so that it runs to the right."""
    runs = tuple(
        run._replace(
            box=_turn(run.box, page),
            rotation=0.0,
            words=tuple(Word(*_turn(Box(*word[:4]), page), word.text) for word in run.words),
        )
        for run in page.runs
    )
    shapes = tuple(shape._replace(box=_turn(shape.box, page)) for shape in page.shapes)
    lines = tuple(_turn(line, page) for line in page.lines)
    return replace(page, width=page.height, height=page.width, runs=runs, shapes=shapes, lines=lines)


def _reads_up(page: PageContent) -> bool:
    """Whether turned text runs from bottom to top, by the order of the words in its longest run."""
    words = max((run.words for run in page.runs), key=len)
    return words[0].top >= words[-1].top


def _turn(box: Box, page: PageContent) -> Box:
    if _reads_up(page):
        return Box(page.height - box.bottom, box.left, page.height - box.top, box.right)
    return Box(box.top, page.width - box.right, box.bottom, page.width - box.left)


def _back(box: Box, page: PageContent) -> Box:
    if _reads_up(page):
        return Box(box.top, page.height - box.right, box.bottom, page.height - box.left)
    return Box(page.width - box.bottom, box.left, page.width - box.top, box.right)
