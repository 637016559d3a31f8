"""A header of several levels becomes one row of Markdown, and rows of values never become headings."""

from __future__ import annotations

from octavo.extract.extracted import Box
from octavo.extract.pdf.table_rows import Cell, Table
from octavo.extract.pdf.tables import rows_of

AREA = Box(0, 0, 100, 100)


def table(*rows: str) -> Table:
    """A table whose cells are separated by "|". A cell "<" belongs to the cell to its left."""
    made: list[tuple[Cell, ...]] = []
    for row in rows:
        cells: list[Cell] = []
        for text in map(str.strip, row.split("|")):
            if text == "<":
                cells[-1] = Cell(cells[-1].text, AREA, cells[-1].columns + 1)
            else:
                cells.append(Cell(text, AREA if text else None))
        made.append(tuple(cells))
    return Table(AREA, tuple(made), 0.9, sure=True)


def header(*rows: str) -> list[str]:
    return list(rows_of(table(*rows))[0])


def test_a_heading_above_several_columns_is_written_before_each_of_their_headings() -> None:
    found = rows_of(table("Town | Sales | < | Total", " | 2023 | 2024 | ", "Rome | 3 | 4 | 7", "Bern | 1 | 2 | 3"))
    assert list(found[0]) == ["Town", "Sales / 2023", "Sales / 2024", "Total"]
    assert list(map(list, found[1:])) == [["Rome", "3", "4", "7"], ["Bern", "1", "2", "3"]]


def test_three_levels_are_joined() -> None:
    rows = ("Town | All | < | < | <", " | Men | < | Women | <", " | old | young | old | young", "Rome | 1 | 2 | 3 | 4")
    assert header(*rows) == ["Town", "All / Men / old", "All / Men / young", "All / Women / old", "All / Women / young"]


def test_a_row_below_a_wide_heading_that_is_not_a_header_stays_a_row() -> None:
    assert header("Town | Sales | <", "Rome | 31 | 42", "Bern | 1 | 2") == ["Town", "Sales", ""]  # values
    assert header("Town | Sales | <", " | first | ", "Bern | 1 | 2") == ["Town", "Sales", ""]  # not divided
    assert header("Town | Sales | <", "Rome | first | second", "Bern | 1 | 2") == ["Town", "Sales", ""]  # a label
    assert header("Sales of all towns | < | <", "Town | 2023 | 2024", "Bern | 1 | 2")[1:] == ["", ""]  # a title
