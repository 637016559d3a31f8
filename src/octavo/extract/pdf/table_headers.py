"""Joins the levels of a table header into one row, because a Markdown table has only one header row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from octavo.extract.pdf.item_tables import is_figure
from octavo.extract.pdf.table_rows import Cell, Table

_BETWEEN = " / "
_YEAR = re.compile(r"\D{0,8}(?:19|20)\d\d\D{0,8}")
_MOST_LEVELS = 4
_MOST_HEADING = 100  # letters


def rows_of(table: Table) -> Sequence[Sequence[str]]:
    """Return the texts of a table for Markdown.

    A heading above several columns is written before the heading of each of these columns: "Sales / 2024".
    """
    places = _places(table)
    depth = 0
    while depth < min(_MOST_LEVELS, len(places)) - 2 and _is_level(places, depth):
        depth += 1
    if not depth:
        return table.grid
    header = [_joined([row[column] for row in places[: depth + 1]]) for column in range(len(places[0]))]
    return [header, *table.grid[depth + 1 :]]


def _places(table: Table) -> list[list[Cell | None]]:
    """Map each position in the grid to its cell. A cell that covers several positions is returned for all of them."""
    width = max(sum(cell.columns for cell in row) for row in table.rows)
    taken: dict[tuple[int, int], Cell] = {}
    for top, row in enumerate(table.rows):
        left = 0
        for cell in row:
            while (top, left) in taken:
                left += 1
            taken |= {(top + down, left + across): cell for down in range(cell.rows) for across in range(cell.columns)}
    return [[taken.get((row, column)) for column in range(width)] for row in range(len(table.rows))]


def _is_level(places: Sequence[Sequence[Cell | None]], depth: int) -> bool:
    """Whether the row below is also part of the header: all headings that cover several columns are divided there.

    A heading above all columns is the title of the table.
    """
    above, below = places[depth], places[depth + 1]
    groups = {id(cell): cell for cell in above if cell and cell.columns > 1 and cell.text}
    if not groups or any(cell.columns >= len(above) or len(cell.text) > _MOST_HEADING for cell in groups.values()):
        return False
    covered = [column for column, cell in enumerate(above) if cell and id(cell) in groups]
    texts = {column: cell.text for column in covered if (cell := below[column]) and cell.text}
    if any(_is_value(text) for text in texts.values()):
        return False
    others = (column for column in range(len(above)) if column not in covered)
    if any(_begins_row(above[column], below[column]) for column in others):
        return False
    return all(_is_divided([below[column] for column in covered if above[column] is cell]) for cell in groups.values())


def _is_value(text: str) -> bool:
    return (is_figure(text) and not _YEAR.fullmatch(text)) or len(text) > _MOST_HEADING


def _begins_row(above: Cell | None, below: Cell | None) -> bool:
    """Whether a column has its own heading in the row above, so that the row below is not part of the header."""
    return below is not None and above is not below and bool(below.text) and bool(above and above.text)


def _is_divided(cells: Sequence[Cell | None]) -> bool:
    """Whether each column, or each group of columns, below a heading has its own heading."""
    different = 1 + sum(one is not other for one, other in pairwise(cells))
    return different > 1 and all(cell and cell.text for cell in cells)


def _joined(cells: Sequence[Cell | None]) -> str:
    texts = [cell.text for before, cell in zip([None, *cells], cells, strict=False) if cell and cell is not before]
    return _BETWEEN.join(filter(None, texts))
