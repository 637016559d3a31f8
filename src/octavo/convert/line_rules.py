"""Tables by patterns for their lines: a row begins with a first line, goes on with lines and ends with a last one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from octavo.convert.contract import Place, around
from octavo.convert.layout import PageText
from octavo.convert.mapping import Field, LineRule
from octavo.convert.patterns import as_type
from octavo.convert.tables import Cell, Row, Table
from octavo.convert.types import Habits

Patterns = Sequence[re.Pattern[str]]
_MOST_ROWS = 2000


def find_by_rules(text: PageText, wanted: Field, habits: Habits) -> Table:
    """The rows of every rule, one rule after the other."""
    types = {column.name: column.type for column in wanted.columns}
    table = Table()
    for rule in wanted.rules:
        for start, end in _blocks(text.text, rule):
            for row in _Block(text, rule).rows(start, end):
                typed = {name: value for name, cell in row.items() if (value := _typed(cell, types[name], habits))}
                if typed and len(table.rows) < _MOST_ROWS:
                    table.rows.append(typed)
    return table


def _typed(cell: Cell, kind: str, habits: Habits) -> Cell | None:
    """Line ends within a text stay."""
    value = cell.value if kind == "text" else as_type(cell.value, kind, habits)
    return Cell(value, cell.place) if value else None


def _blocks(text: str, rule: LineRule) -> Iterator[tuple[int, int]]:
    position = 0
    while start := rule.start.search(text, position):
        end = rule.end.search(text, start.end())
        if not end:
            return
        yield start.end(), end.start()
        position = max(end.end(), start.end() + 1)


class _Block:
    """The lines between one start and one end."""

    def __init__(self, text: PageText, rule: LineRule) -> None:
        self._text = text
        self._rule = rule

    def rows(self, start: int, end: int) -> Iterator[Row]:
        row: Row = {}
        for offset, line in _lines(self._text.text, start, end):
            if not line.strip() or _match(self._rule.skip, line):
                continue
            if found := _match(self._rule.first, line):
                if row:
                    yield row
                row = {}
                self._add(row, found, offset)
            elif row and (found := _match(self._rule.last, line)):
                self._add(row, found, offset)
                yield row
                row = {}
            elif (row or not self._rule.first) and (found := _match(self._rule.line, line)):
                self._add(row, found, offset)
                if not self._rule.first:
                    yield row
                    row = {}
        if row:
            yield row

    def _add(self, row: Row, found: re.Match[str], offset: int) -> None:
        for name, value in found.groupdict().items():
            if value is None:
                continue
            begin, until = (offset + index for index in found.span(name))
            place = self._text.place(begin, until)
            if place is None:
                continue
            before = row.get(name)
            row[name] = _joined(before, value.strip(), place) if before else Cell(value.strip(), place)


def _joined(before: Cell, value: str, place: Place) -> Cell:
    quote = f"{before.place.quote}\n{place.quote}"
    box = around([before.place.box, place.box]) if before.place.page == place.page else before.place.box
    return Cell(f"{before.value}\n{value}", Place(before.place.page, box, quote))


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    position = start
    for line in text[start:end].split("\n"):
        yield position, line
        position += len(line) + 1


def _match(patterns: Patterns, line: str) -> re.Match[str] | None:
    return next((found for pattern in patterns if (found := pattern.search(line))), None)
