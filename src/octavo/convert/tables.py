"""Tables by their heads: a line with the names of columns, and the lines below it up to the totals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from octavo.convert.contract import Box, Place, Word, around
from octavo.convert.labels import Hit, column_labels
from octavo.convert.layout import Line, make_piece
from octavo.convert.mapping import Column, Field
from octavo.convert.types import FIELD_TYPES, Habits

_NUMBERS = {"amount", "number"}
_LEAST_COLUMNS = 2
_ALIGNED = 14.0  # points by which a number may miss the edge of its column's head
_MOST_BETWEEN = 2.5  # heights of a line between the lines of one table
_MOST_ROWS = 2000
CONFIDENCE = 0.8


@dataclass(frozen=True, slots=True)
class Cell:
    value: str
    place: Place


Row = dict[str, Cell]


@dataclass(slots=True)
class Table:
    """`taken` are the numbers of its lines, which say nothing of the document as a whole."""

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


def find_table(lines: Sequence[Line], wanted: Field, habits: Habits, is_end: Callable[[Line], bool]) -> Table:
    """`is_end` tells the lines below a table, such as its totals."""
    finder = column_labels(wanted.columns)
    table = Table()
    head: _Head | None = None
    before: Line | None = None
    for line in lines:
        found = _head(wanted, [hit for piece in line.pieces for hit in finder.find(piece)])
        if found:
            head, before = found, line
            table.taken.add(line.number)
            continue
        if head is None or before is None or len(table.rows) >= _MOST_ROWS:
            continue
        begun = bool(table.rows) and before.number - 1 in table.taken
        far = line.box.top - before.box.bottom > _MOST_BETWEEN * line.box.height * (1 if begun else 2)
        row = _row(line, head, habits)
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


def _head(wanted: Field, hits: Sequence[Hit]) -> _Head | None:
    """At least two columns, the mapping's first and one of amounts; where one has two names the first counts."""
    by_name: dict[str, Box] = {}
    for hit in hits:
        if hit.field:
            by_name.setdefault(hit.field, hit.box)
    columns = tuple((column, by_name[column.name]) for column in wanted.columns if column.name in by_name)
    has_amount = any(column.type == "amount" for column, _ in columns)
    is_whole = wanted.columns[0].name in by_name or len(columns) > _LEAST_COLUMNS
    return _Head(columns) if len(columns) >= _LEAST_COLUMNS and has_amount and is_whole else None


def _row(line: Line, head: _Head, habits: Habits) -> Row:
    """Numbers go to the column that they line up with; what is left is text, from the left."""
    taken: dict[str, list[Word]] = {}
    missed: dict[str, float] = {}
    for piece in line.pieces:
        for words in _tokens(piece.words, head, habits):
            column, distance = _column(words, head, habits)
            if column and column.type in _NUMBERS and distance < missed.get(column.name, float("inf")):
                taken[column.name], missed[column.name] = list(words), distance
            elif column and column.type not in _NUMBERS:
                taken.setdefault(column.name, []).extend(words)
    row: Row = {}
    types = {column.name: column.type for column, _ in head.columns}
    for name, words in taken.items():
        piece = make_piece(line.page, line.number, words)
        found = FIELD_TYPES[types[name]].find(piece.text, habits)
        if found:
            row[name] = Cell(found[0].value, piece.place(found[0].start, found[0].end))
    return row


def _tokens(words: Sequence[Word], head: _Head, habits: Habits) -> list[list[Word]]:
    """A piece in parts: numbers at its ends that stand under heads of numbers are cells of their own."""
    parts: list[list[Word]] = []
    text: list[Word] = []
    for word in words:
        if _is_number([word], habits) and _nearest(word.box, head.numbers)[1] <= _ALIGNED:
            if text:
                parts.append(text)
                text = []
            parts.append([word])
        else:
            text.append(word)
    return [*parts, text] if text else parts


def _column(words: Sequence[Word], head: _Head, habits: Habits) -> tuple[Column | None, float]:
    """And how far from its head the words are."""
    box = around(word.box for word in words)
    if _is_number(words, habits) and head.numbers:
        column, distance = _nearest(box, head.numbers)
        if distance <= 3 * _ALIGNED or not head.texts:
            return column, distance
    if not head.texts or not any(letter.isalnum() for word in words for letter in word.text):
        return None, 0.0
    return min(head.texts, key=lambda one: abs(one[1].left - box.left))[0], 0.0


def _is_number(words: Sequence[Word], habits: Habits) -> bool:
    """Nothing but one number and its currency."""
    text = " ".join(word.text for word in words)
    found = FIELD_TYPES["amount"].find(text, habits)
    if len(found) != 1:
        return False
    rest = text[: found[0].start] + text[found[0].end :]
    signs = FIELD_TYPES["currency"].find(rest, habits)
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
    """A second line of a description."""
    for name, cell in more.items():
        before = row.get(name)
        if before and before.place.page == cell.place.page and not before.value.replace(".", "").isdigit():
            box = around([before.place.box, cell.place.box])
            quote = f"{before.place.quote}\n{cell.place.quote}"
            row[name] = Cell(f"{before.value} {cell.value}", Place(cell.place.page, box, quote))
