"""Finds tables by their header or by patterns for their lines.

A header is a line with column names. The table extends from the header down to its totals.

If a table is found by patterns, a row starts at a line that matches `first`, continues with lines that match `line`,
and ends at a line that matches `last`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from octavo.convert.mappings.mapping import FIELD_TYPES, Column, Field, LineRule, UserPattern
from octavo.convert.rules.candidates import Label, LabelFinder, LabelHit
from octavo.convert.rules.patterns import as_type, limit_time
from octavo.facts.layout import Line, PageText, make_run
from octavo.facts.words import Box, Notation, Place, Word, enclosing_box

_NUMBERS = {"amount", "number"}
_LEAST_COLUMNS = 2
_ALIGNED = 14.0  # points by which a number may miss the edge of its column's header
_MOST_BETWEEN = 2.5  # gap between lines of one table, in line heights
_MOST_ROWS = 2000
CONFIDENCE = 0.8


@dataclass(frozen=True, slots=True)
class Cell:
    value: str
    place: Place


Row = dict[str, Cell]


@dataclass(slots=True)
class Table:
    """A table in the document. `taken` contains its line numbers; these lines are not searched for other fields."""

    rows: list[Row] = field(default_factory=list[Row])
    taken: set[int] = field(default_factory=set[int])


@dataclass(frozen=True, slots=True)
class _Head:
    columns: tuple[tuple[Column, Box], ...]

    @property
    def numbers(self) -> list[tuple[Column, Box]]:
        return [one for one in self.columns if one[0].type in _NUMBERS]

    @property
    def texts(self) -> list[tuple[Column, Box]]:
        return [one for one in self.columns if one[0].type not in _NUMBERS]


@lru_cache(maxsize=32)
def column_labels(columns: tuple[Column, ...]) -> LabelFinder:
    return LabelFinder((text, Label(column.name)) for column in columns for text in column.labels)


def find_table(lines: Sequence[Line], wanted: Field, notation: Notation, is_end: Callable[[Line], bool]) -> Table:
    """Find a table by its header. `is_end` recognises lines below the table, such as totals."""
    finder = column_labels(wanted.columns)
    table = Table()
    head: _Head | None = None
    before: Line | None = None
    for line in lines:
        found = _head(wanted, [hit for run in line.runs for hit in finder.find(run)])
        if found:
            head, before = found, line
            table.taken.add(line.number)
            continue
        if head is None or before is None or len(table.rows) >= _MOST_ROWS:
            continue
        begun = bool(table.rows) and before.number - 1 in table.taken
        far = line.box.top - before.box.bottom > _MOST_BETWEEN * line.box.height * (1 if begun else 2)
        row = _row(line, head, notation)
        is_row = any(name in row for name in _amounts(wanted))
        if line.page != before.page or is_end(line) or (far and not is_row):
            head = None
            continue
        table.taken.add(line.number)
        before = line
        if is_row:
            table.rows.append(row)
        elif table.rows:
            _continue(table.rows[-1], row)
    return table


def _amounts(wanted: Field) -> list[str]:
    return [column.name for column in wanted.columns if column.type == "amount"]


def _head(wanted: Field, hits: Sequence[LabelHit]) -> _Head | None:
    """Recognise a table header by the labels in a line. Returns None if the line is not a header.

    A header names at least two columns, including an amount column. If it names only two columns, one of them must be
    the first column in the mapping. If it names a column twice, the first position is used.
    """
    by_name: dict[str, Box] = {}
    for hit in hits:
        if hit.field:
            by_name.setdefault(hit.field, hit.box)
    columns = tuple((column, by_name[column.name]) for column in wanted.columns if column.name in by_name)
    has_amount = any(column.type == "amount" for column, _ in columns)
    is_whole = wanted.columns[0].name in by_name or len(columns) > _LEAST_COLUMNS
    return _Head(columns) if len(columns) >= _LEAST_COLUMNS and has_amount and is_whole else None


def _row(line: Line, head: _Head, notation: Notation) -> Row:
    """Read the cells of a line.

    A number belongs to the column with which it is aligned. Other text belongs to the column with the nearest left
    edge.
    """
    taken: dict[str, list[Word]] = {}
    missed: dict[str, float] = {}
    for run in line.runs:
        for words in _tokens(run.words, head, notation):
            column, distance = _column(words, head, notation)
            if column and column.type in _NUMBERS and distance < missed.get(column.name, float("inf")):
                taken[column.name], missed[column.name] = list(words), distance
            elif column and column.type not in _NUMBERS:
                taken.setdefault(column.name, []).extend(words)
    row: Row = {}
    types = {column.name: column.type for column, _ in head.columns}
    for name, words in taken.items():
        run = make_run(line.page, line.number, words)
        found = FIELD_TYPES[types[name]].find(run.text, notation)
        if found:
            row[name] = Cell(found[0].value, run.place(found[0].start, found[0].end))
    return row


def _tokens(words: Sequence[Word], head: _Head, notation: Notation) -> list[list[Word]]:
    """Split a group of words into cells. A number below the header of a number column is a separate cell."""
    parts: list[list[Word]] = []
    text: list[Word] = []
    for word in words:
        if _is_number([word], notation) and _nearest(word.box, head.numbers)[1] <= _ALIGNED:
            if text:
                parts.append(text)
                text = []
            parts.append([word])
        else:
            text.append(word)
    return [*parts, text] if text else parts


def _column(words: Sequence[Word], head: _Head, notation: Notation) -> tuple[Column | None, float]:
    """Return the column to which these words belong, and their distance from its header."""
    box = enclosing_box(word.box for word in words)
    if _is_number(words, notation) and head.numbers:
        column, distance = _nearest(box, head.numbers)
        if distance <= 3 * _ALIGNED or not head.texts:
            return column, distance
    if not head.texts or not any(letter.isalnum() for word in words for letter in word.text):
        return None, 0.0
    return min(head.texts, key=lambda one: abs(one[1].left - box.left))[0], 0.0


def _is_number(words: Sequence[Word], notation: Notation) -> bool:
    """Whether the words form one number, with or without a currency."""
    text = " ".join(word.text for word in words)
    found = FIELD_TYPES["amount"].find(text, notation)
    if len(found) != 1:
        return False
    rest = text[: found[0].start] + text[found[0].end :]
    signs = FIELD_TYPES["currency"].find(rest, notation)
    return len(rest.strip(" -()\u2212")) <= sum(one.end - one.start for one in signs)


def _nearest(box: Box, columns: Sequence[tuple[Column, Box]]) -> tuple[Column, float]:
    def distance(head: Box) -> float:
        middle = abs((box.left + box.right) - (head.left + head.right)) / 2
        return min(abs(box.left - head.left), abs(box.right - head.right), middle)

    if not columns:
        return Column("", "text", ""), float("inf")
    column, head = min(columns, key=lambda one: distance(one[1]))
    return column, distance(head)


def _continue(row: Row, more: Row) -> None:
    """Add the text of a continuation line to the cells of the row above."""
    for name, cell in more.items():
        before = row.get(name)
        if before and before.place.page == cell.place.page and not before.value.replace(".", "").isdigit():
            box = enclosing_box([before.place.box, cell.place.box])
            quote = f"{before.place.quote}\n{cell.place.quote}"
            row[name] = Cell(f"{before.value} {cell.value}", Place(cell.place.page, box, quote))


Patterns = Sequence[UserPattern]


def find_by_rules(text: PageText, wanted: Field, notation: Notation) -> Table:
    """Find the rows of a table by applying the mapping's line rules in order."""
    types = {column.name: column.type for column in wanted.columns}
    table = Table()
    for rule in wanted.rules:
        with limit_time(f"{wanted.name}.rules"):
            for row in _rows(text, rule):
                typed = {name: value for name, cell in row.items() if (value := _typed(cell, types[name], notation))}
                if typed:
                    table.rows.append(typed)
                if len(table.rows) >= _MOST_ROWS:
                    return table
    return table


def _rows(text: PageText, rule: LineRule) -> Iterator[Row]:
    for start, end in _blocks(text.text, rule):
        yield from _Block(text, rule).rows(start, end)


def _typed(cell: Cell, kind: str, notation: Notation) -> Cell | None:
    """Convert a cell to the type of its column. Text columns keep their text unchanged, including line breaks."""
    value = cell.value if kind == "text" else as_type(cell.value, kind, notation)
    return Cell(value, cell.place) if value else None


def _blocks(text: str, rule: LineRule) -> Iterator[tuple[int, int]]:
    position = 0
    while start := rule.start.compiled.search(text, position):
        end = rule.end.compiled.search(text, start.end())
        if not end:
            return
        yield start.end(), end.start()
        position = max(end.end(), start.end() + 1)


class _Block:
    """Reads table rows from the text lines between the start and end patterns of a rule."""

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
    box = enclosing_box([before.place.box, place.box]) if before.place.page == place.page else before.place.box
    return Cell(f"{before.value}\n{value}", Place(before.place.page, box, quote))


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    position = start
    for line in text[start:end].split("\n"):
        yield position, line
        position += len(line) + 1


def _match(patterns: Patterns, line: str) -> re.Match[str] | None:
    return next((found for pattern in patterns if (found := pattern.compiled.search(line))), None)
