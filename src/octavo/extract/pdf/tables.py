"""Finds the tables of a PDF page from its words, rulings and backgrounds. Pure: positions in, tables out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from octavo.extract.extracted import Box
from octavo.extract.pdf import markup
from octavo.extract.pdf.content import PageContent, Word
from octavo.extract.pdf.rulings import Grid, grids, page_rulings, root

_MOST_WORDS = 20_000


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell and the number of columns and rows that it covers. `box` encloses its words; None if it is empty."""

    text: str
    box: Box | None
    columns: int = 1
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """A table. A cell that covers several rows or columns is listed once, where it starts, as in HTML.

    `sure` is False if rows or columns could not be separated with certainty.
    """

    box: Box
    rows: tuple[tuple[Cell, ...], ...]
    confidence: float
    sure: bool

    @property
    def grid(self) -> tuple[tuple[str, ...], ...]:
        """The texts in rows of equal length: the text of a spanning cell once, in its first place."""
        width = max((sum(cell.columns for cell in row) for row in self.rows), default=0)
        taken: set[tuple[int, int]] = set()
        lines: list[tuple[str, ...]] = []
        for top, row in enumerate(self.rows):
            texts = dict(_places(row, top, taken))
            width = max(width, *(place + 1 for place in texts), 1)
            lines.append(tuple(texts.get(place, "") for place in range(width)))
        return tuple((*line, *[""] * (width - len(line))) for line in lines)


def _places(row: Sequence[Cell], top: int, taken: set[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    place = 0
    for cell in row:
        while (top, place) in taken:
            place += 1
        yield place, cell.text
        taken.update((top + down, place + across) for down in range(cell.rows) for across in range(cell.columns))
        place += cell.columns


def find_tables(page: PageContent) -> tuple[Table, ...]:
    """The tables of a page, from top to bottom."""
    words = [word for run in page.runs if abs(run.rotation) < 1 for word in run.words if word.text.strip()]
    if len(words) > _MOST_WORDS:
        return ()
    found: list[Table] = []
    for grid in grids(page_rulings(page)):
        inside = [word for word in words if _is_inside(word, grid.box)]
        table = _ruled_table(grid, inside) if inside else None
        if table:
            found.append(table)
    return tuple(sorted(found, key=lambda table: (table.box.top, table.box.left)))


def to_markdown(table: Table) -> str:
    """Write a table as Markdown."""
    return markup.table(table.grid)


def continues(previous: Table, following: Table) -> bool:
    """Whether a table at the top of a page continues the one at the end of the page before: the same columns."""
    widths = [max((sum(cell.columns for cell in row) for row in one.rows), default=0) for one in (previous, following)]
    near = 0.05 * (previous.box.right - previous.box.left)
    return (
        widths[0] == widths[1]
        and abs(previous.box.left - following.box.left) <= near
        and abs(previous.box.right - following.box.right) <= near
    )


def _is_inside(word: Word, box: Box) -> bool:
    return (
        box.left <= (word.left + word.right) / 2 <= box.right and box.top <= (word.top + word.bottom) / 2 <= box.bottom
    )


def _ruled_table(grid: Grid, words: Sequence[Word]) -> Table | None:
    spans = list(_spans(grid))
    texts: defaultdict[tuple[int, int], list[Word]] = defaultdict(list)
    owner = {(row, column): (top, left) for top, left, bottom, right in spans
             for row in range(top, bottom + 1) for column in range(left, right + 1)}  # fmt: skip
    for word in words:
        row = _slot(grid.ys, (word.top + word.bottom) / 2)
        column = _slot(grid.xs, (word.left + word.right) / 2)
        texts[owner[row, column]].append(word)
    if len(texts) < 2:
        return None
    rows: list[list[Cell]] = [[] for _ in grid.ys[1:]]
    for top, left, bottom, right in sorted(spans):
        rows[top].append(cell_of(texts[top, left], right - left + 1, bottom - top + 1))
    return Table(grid.box, tuple(map(tuple, rows)), 0.9, sure=True)


def _slot(edges: Sequence[float], value: float) -> int:
    inner = edges[1:-1]
    return sum(value > edge for edge in inner)


def _spans(grid: Grid) -> Iterator[tuple[int, int, int, int]]:
    """The cells of the grid: first row, first column, last row, last column. Missing lines join cells."""
    height, width = len(grid.ys) - 1, len(grid.xs) - 1
    parents = list(range(height * width))
    for row in range(height):
        for column in range(width):
            if column + 1 < width and not grid.has_line_right(row, column):
                parents[root(parents, row * width + column + 1)] = root(parents, row * width + column)
            if row + 1 < height and not grid.has_line_below(row, column):
                parents[root(parents, (row + 1) * width + column)] = root(parents, row * width + column)
    members: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for index in range(height * width):
        members[root(parents, index)].append(divmod(index, width))
    for places in members.values():
        yield from _rectangles(places)


def _rectangles(places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
    top, bottom = min(row for row, _ in places), max(row for row, _ in places)
    left, right = min(column for _, column in places), max(column for _, column in places)
    if (bottom - top + 1) * (right - left + 1) == len(places):
        yield top, left, bottom, right
    else:
        yield from ((row, column, row, column) for row, column in places)


def cell_of(words: Sequence[Word], columns: int = 1, rows: int = 1) -> Cell:
    """A cell with these words, in reading order: line by line, lines joined by a space."""
    if not words:
        return Cell("", None, columns, rows)
    box = Box(
        min(w.left for w in words), min(w.top for w in words), max(w.right for w in words), max(w.bottom for w in words)
    )
    text = " ".join(word.text.strip() for line in text_lines(words) for word in line)
    return Cell(text, box, columns, rows)


def text_lines(words: Sequence[Word]) -> list[list[Word]]:
    """Words grouped into lines by their vertical middle, from top to bottom and from left to right."""
    lines: list[list[Word]] = []
    middle = height = 0.0
    for word in sorted(words, key=lambda one: (one.top + one.bottom) / 2):
        if lines and (word.top + word.bottom) / 2 - middle <= 0.5 * max(height, 1.0):
            lines[-1].append(word)
        else:
            lines.append([word])
            middle, height = (word.top + word.bottom) / 2, word.bottom - word.top
    for line in lines:
        line.sort()
    return lines
