"""Converts rows of spreadsheet cells to Markdown tables. If a table is truncated, a note lists the omitted content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from octavo.extract.markdown.block_writer import DocumentBlock, Paragraph, Table
from octavo.extract.markdown.escape import escape_inline

MOST_ROWS = 10_000
MOST_COLUMNS = 60
MOST_CELLS = 500_000
MOST_CHARACTERS = 2000
# A sheet with more separate parts than this is not split into tables side by side.
MOST_PARTS = 200


class Repeated(str):
    """The text of a merged cell, repeated in the other columns that the cell covers."""

    __slots__ = ()


@dataclass(slots=True)
class CellBudget:
    """The number of cells that can still be written for a file. All sheets of the file share this limit."""

    cells: int = MOST_CELLS

    def rows(self, width: int) -> int:
        return min(MOST_ROWS, self.cells // max(width, 1))


@dataclass(slots=True)
class Grid:
    """Collects rows up to the size limits, and counts the rows that are left out."""

    budget: CellBudget = field(default_factory=CellBudget)
    rows: list[list[str]] = field(default_factory=list[list[str]])
    rows_left_out: int = 0
    cells_cut: int = 0
    widest: int = 0

    def add_rows(self, rows: Iterable[Sequence[str]]) -> None:
        for row in rows:
            width = _width(row)
            self.widest = max(self.widest, width)
            if len(self.rows) >= MOST_ROWS or self.budget.cells <= 0:
                self.rows_left_out += bool(width)
                continue
            shown = row[: min(width, MOST_COLUMNS)]
            self.cells_cut += sum(len(" ".join(cell.split())) > MOST_CHARACTERS for cell in shown)
            self.rows.append([type(cell)(_cell(cell)) for cell in shown])
            self.budget.cells -= max(1, len(self.rows[-1]))

    @property
    def is_cut(self) -> bool:
        return self.rows_left_out > 0 or self.cells_cut > 0 or self.widest > MOST_COLUMNS

    def placed_blocks(self) -> Iterator[tuple[tuple[int, int], list[DocumentBlock]]]:
        """Yield the tables of a sheet, each with the row and column at which it starts.

        Tables are separated by empty rows and empty columns. A single column belongs to the table next to it, even if
        an empty column is between them.
        """
        for top, left, bottom, right in _find_parts(self.rows):
            rows = [row[left : right + 1] for row in self.rows[top : bottom + 1]]
            yield (top, left), list(_table(rows))

    def blocks(self, *, has_header: bool = True) -> Iterator[DocumentBlock]:
        """Write a table for each group of rows between empty rows, and a note about omitted content.

        A group that contains a single cell becomes a paragraph. If `has_header` is false, a header with column numbers
        is added.
        """
        for is_empty, group in groupby(self.rows, key=lambda row: not any(row)):
            if is_empty:
                continue
            rows = _without_empty_columns(list(group))
            if len(rows) == 1 and len(rows[0]) == 1:
                yield Paragraph(rows[0][0])
            else:
                yield Table(
                    rows if has_header else [[f"Column {place}" for place in range(1, _columns(rows) + 1)], *rows]
                )
        yield from self.note()

    def note(self) -> Iterator[DocumentBlock]:
        """Yield a note about omitted rows, columns and text, if there are any."""
        if self.is_cut:
            yield Paragraph(self._note())

    def _note(self) -> str:
        parts: list[str] = []
        if self.rows_left_out:
            first = len(self.rows) + 1
            parts.append(f"the rows after the first {first - 1:,} ({self.rows_left_out:,} more)")
        if self.widest > MOST_COLUMNS:
            parts.append(f"the columns after the first {MOST_COLUMNS} ({self.widest - MOST_COLUMNS:,} more)")
        if self.cells_cut:
            parts.append(f"text of a cell after the first {MOST_CHARACTERS:,} characters ({self.cells_cut:,} cells)")
        return f"*Omitted: {' and '.join(parts)}. The file contains everything.*"


Part = tuple[int, int, int, int]


def _find_parts(rows: Sequence[Sequence[str]]) -> list[Part]:
    """Find the areas of connected filled cells.

    Returns the top, left, bottom and right of each area. Overlapping areas are merged.
    """
    parts: list[Part] = []
    above: list[tuple[int, int, int]] = []  # first and last column of each run of cells in the row above, and its area
    merged: dict[int, int] = {}
    for number, row in enumerate(rows):
        runs: list[tuple[int, int, int]] = []
        for first, last in _runs(row):
            touching = {_root(merged, part) for left, right, part in above if left <= last and first <= right}
            part = min(touching, default=len(parts))
            if part == len(parts):
                parts.append((number, first, number, last))
            for other in touching:
                merged[other] = part
                parts[part] = _union(parts[part], parts[other])
            parts[part] = _union(parts[part], (number, first, number, last))
            runs.append((first, last, part))
        above = runs
    alone = [part for number, part in enumerate(parts) if _root(merged, number) == number]
    return _join_rows(_join_overlapping(alone)) if len(alone) <= MOST_PARTS else _between_empty_rows(rows)


def _join_rows(parts: list[Part]) -> list[Part]:
    """Join areas of cells that are side by side and form one table."""
    merged: dict[int, int] = {}
    for first, one in enumerate(parts):
        for second, other in enumerate(parts[:first]):
            if _is_beside(one, other):
                merged[_root(merged, first)] = _root(merged, second)
    joined: dict[int, Part] = {}
    for number, part in enumerate(parts):
        root = _root(merged, number)
        joined[root] = _union(joined.get(root, part), part)
    return _join_overlapping(list(joined.values()))


def _is_beside(one: Part, other: Part) -> bool:
    """Whether two areas of filled cells form one table.

    Exactly one empty column must be between them, and one of them must be a single column. The taller area must have
    several rows and extend over all rows of the other.
    """
    left, right = (one, other) if one[1] < other[1] else (other, one)
    if right[1] - left[3] != 2 or not (one[1] == one[3] or other[1] == other[3]):  # noqa: PLR2004 - one column between
        return False
    shorter, longer = sorted((one, other), key=lambda part: part[2] - part[0])
    return longer[0] <= shorter[0] and shorter[2] <= longer[2] and longer[2] > longer[0]


def _runs(row: Sequence[str]) -> Iterator[tuple[int, int]]:
    for is_filled, group in groupby(enumerate(row), key=lambda cell: bool(cell[1])):
        places = [place for place, _ in group] if is_filled else []
        if places:
            yield places[0], places[-1]


def _root(merged: dict[int, int], part: int) -> int:
    while merged.get(part, part) != part:
        part = merged[part]
    return part


def _union(one: Part, other: Part) -> Part:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


def _join_overlapping(parts: list[Part]) -> list[Part]:
    joined: list[Part] = []
    for part in parts:
        whole = part
        while overlapping := [one for one in joined if _overlap(one, whole)]:
            joined = [one for one in joined if one not in overlapping]
            for one in overlapping:
                whole = _union(whole, one)
        joined.append(whole)
    return sorted(joined)


def _overlap(one: Part, other: Part) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def _between_empty_rows(rows: Sequence[Sequence[str]]) -> list[Part]:
    parts: list[Part] = []
    for is_empty, group in groupby(enumerate(rows), key=lambda row: not any(row[1])):
        numbers = [] if is_empty else [number for number, _ in group]
        if numbers:
            parts.append((numbers[0], 0, numbers[-1], max(len(rows[number]) for number in numbers) - 1))
    return parts


def _table(rows: list[list[str]]) -> Iterator[DocumentBlock]:
    """Write a table. Rows at the top that contain only one text become paragraphs before the table."""
    while rows and len({cell for cell in rows[0] if cell}) == 1 and (len(rows) == 1 or _filled(rows[1]) > 1):
        yield Paragraph(next(cell for cell in rows[0] if cell))
        rows = rows[1:]
    if rows:
        yield Table(_filled_columns(rows))


def _filled(row: Sequence[str]) -> int:
    return sum(map(bool, row))


def _width(row: Sequence[str]) -> int:
    """Return the number of cells in a row, without the empty cells at its end."""
    width = len(row)
    while width and not row[width - 1]:
        width -= 1
    return width


def _columns(rows: Sequence[Sequence[str]]) -> int:
    return max(map(len, rows), default=0)


def _without_empty_columns(rows: list[list[str]]) -> list[list[str]]:
    """Drop empty columns on the left, because tables do not always start in the first column."""
    used = sorted({place for row in rows for place, cell in enumerate(row) if cell})
    first = used[0] if used else 0
    return [row[first:] for row in rows] if first else rows


def _filled_columns(rows: list[list[str]]) -> list[list[str]]:
    """Drop columns in which no cell begins: empty columns, and columns that merged cells cover in every row."""
    used = sorted({place for row in rows for place, cell in enumerate(row) if cell and not isinstance(cell, Repeated)})
    return [[row[place] for place in used if place < len(row)] for row in rows]


def _cell(text: str) -> str:
    text = " ".join(text.split())
    if len(text) > MOST_CHARACTERS:
        text = text[: MOST_CHARACTERS - 1] + "…"
    return escape_inline(text, r"\\")
