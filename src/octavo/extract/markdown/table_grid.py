"""Converts rows of spreadsheet cells to Markdown tables. If a table is cut, a note says what is missing."""

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


@dataclass(slots=True)
class CellBudget:
    """The number of cells that may still be written, for all sheets of a file together."""

    cells: int = MOST_CELLS

    def rows(self, width: int) -> int:
        return min(MOST_ROWS, self.cells // max(width, 1))


@dataclass(slots=True)
class Grid:
    """Collects rows up to the limits, and counts the rows that are left out."""

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
            shown = [" ".join(cell.split()) for cell in row[: min(width, MOST_COLUMNS)]]
            self.cells_cut += sum(len(cell) > MOST_CHARACTERS for cell in shown)
            self.rows.append([_cell(cell) for cell in shown])
            self.budget.cells -= max(1, len(self.rows[-1]))

    @property
    def is_cut(self) -> bool:
        return self.rows_left_out > 0 or self.cells_cut > 0 or self.widest > MOST_COLUMNS

    def blocks(self, *, has_header: bool = True) -> Iterator[DocumentBlock]:
        """Write a table for each group of rows between empty rows. A group of a single cell becomes a paragraph."""
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


def _width(row: Sequence[str]) -> int:
    """The number of cells up to the last one that is not empty."""
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


def _cell(text: str) -> str:
    if len(text) > MOST_CHARACTERS:
        text = text[: MOST_CHARACTERS - 1] + "…"
    return escape_inline(text, r"\\")
