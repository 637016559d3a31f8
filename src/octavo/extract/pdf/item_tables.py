"""Finds tables of items, as on invoices: a header, and rows whose cells are below the cells of the header.

Such tables often have no drawn lines. An item can have several text lines, which become one row. The functions are
pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, takewhile

from octavo.extract.pdf.content import PageContent, Word
from octavo.extract.pdf.letters import join_lines
from octavo.extract.pdf.table_geometry import (
    Column,
    Line,
    Segment,
    box_of,
    columns_of,
    is_right_to_left,
    overlapped,
    page_rulings,
    segment_of,
    text_lines,
    wide_rules,
)
from octavo.extract.pdf.table_rows import Cell, Table

_MOST_WORDS = 8000
_LEAST_CELLS = 3
_MOST_CELLS = 20
_MOST_LINES = 200
_MOST_FREE_LINES = 8
_MOST_HEADER_WORDS = 5
_MOST_HEADER_LINES = 4
_LEAST_FIGURES = 2
_BELOW_HEADER = 5.0  # in line heights
_WITHIN_HEADER = 0.7
_NEXT_ITEM = 4.5
_DETAIL = 2.6
_UNDER = 1.2  # for a line below the first column, where text after the table also starts
_TOTAL = 3.0
_SAME_START = 4.0  # points
_LEVEL = 0.1  # as a share of the height of a line; smaller differences are noise
_INDENT = 2.0
_MOST_OF_FIGURE = 40  # letters
_FIGURE = re.compile(r"[^\w\s]*(?:[A-Z]{3}|Rs\.?)?[^\w]*\d[\d\s.,'/:x%-]*(?:[^\W\d]{1,8}\.?|[^\w\s]{1,3})?\W*")
_SUM = re.compile(
    r"[^\W\d_][^:]{2,50}:\s*(?:[A-Z]{3}\s|[^\w\s])?\s*-?\d[\d.,' ]*[.,]\d\d\s*(?:[A-Z]{3}|[^\w\s])?", re.DOTALL
)
_MOST_LINES_OF_SUMS = 12
_WORD = re.compile(r"[^\W\d_]{2}|\A[#№%]\Z|\A[^\W\d_]\Z")
_CONFIDENCE = 0.7

Cells = dict[int, list[Segment]]
Rules = tuple[float, float, list[float]]  # the left and right end of drawn lines, and their heights


@dataclass(slots=True)
class _Item:
    """One row of the table. `cells` maps each column to its segments, from all text lines of the item."""

    top: float
    bottom: float
    cells: Cells = field(default_factory=dict[int, list[Segment]])

    def add(self, cells: Cells, line: Line) -> None:
        for column, parts in cells.items():
            self.cells.setdefault(column, []).extend(parts)
        self.top = min(self.top, *(part.top for part in line))
        self.bottom = max(self.bottom, *(part.bottom for part in line))


def find_item_tables(page: PageContent) -> tuple[Table, ...]:
    """Return the tables of items on a page, from top to bottom. The text of the page must not be rotated."""
    words = [word for run in page.runs for word in run.words if word.text.strip()]
    if len(words) > _MOST_WORDS:
        return ()
    lines = text_lines(words)
    if not any(map(_is_header, lines)):
        return ()
    rules = list(wide_rules(page_rulings(page)[0]))
    found: list[Table] = []
    place = 0
    while place < len(lines):
        table, end = _table_at(lines, place, rules) if _is_header(lines[place]) else (None, place)
        if table:
            found.append(table)
        place = max(end, place + 1)
    return tuple(found)


def is_figure(text: str) -> bool:
    """Whether a text is an amount, quantity, percentage, date or number."""
    return len(text) <= _MOST_OF_FIGURE and _FIGURE.fullmatch(text) is not None


def _is_header(line: Line) -> bool:
    """Whether a line can be a table header: it has several short cells with words."""
    if not _LEAST_CELLS <= len(line) <= _MOST_CELLS or any(part.text.strip(":") != part.text for part in line):
        return False
    if any(len(part.words) > _MOST_HEADER_WORDS or is_figure(part.text) for part in line):
        return False
    return sum(_WORD.search(part.text) is not None for part in line) >= len(line) - 1


def _table_at(lines: Sequence[Line], place: int, rules: Sequence[Rules] = ()) -> tuple[Table | None, int]:
    """Read the table whose longest header line is at index `place`.

    Returns the table and the index after its last line. If there is no table, returns None and `place`.
    """
    start, body = _header_lines(lines, place)
    header = tuple(segment_of(words) for words in _over_each_other(lines[start:body]))
    first = next((at for at in range(body, min(body + 8, len(lines))) if _is_item(lines[at], header)), None)
    if first is None or _gap(header, lines[first]) > _BELOW_HEADER * lines[place][0].height:
        return None, place
    near = [line for line in _near(lines[first:]) if _is_item(line, header)]
    columns = _columns(header, near)
    if not _LEAST_CELLS <= len(columns) <= _MOST_CELLS:
        return None, place
    across = [y for left, right, ys in rules if left < columns[0][1] and right > columns[-1][0] for y in ys]
    reader = _Reader(columns, _Item(lines[place][0].top, lines[place][0].bottom), across)
    for line in lines[start:body]:
        reader.add_header(line)
    end = body + reader.read(lines[body : body + _MOST_LINES])
    table = reader.table()
    return (table, end) if table else (None, place)


def _columns(header: Line, items: Sequence[Line]) -> list[Column]:
    """Return the left and right edge of each column, found from the header and the item lines.

    If a heading is printed beside its cells instead of above them, the two columns are merged.
    """
    columns = columns_of([header, *items])
    headed = {place for part in header for place in overlapped(columns, part)}
    filled = {place for line in items for part in line for place in overlapped(columns, part)}
    for place in range(len(columns) - 2, -1, -1):
        one, other = (place in headed, place in filled), (place + 1 in headed, place + 1 in filled)
        if {one, other} == {(True, False), (False, True)}:
            columns[place : place + 2] = [(columns[place][0], columns[place + 1][1])]
    return columns


def _over_each_other(header: Sequence[Line]) -> list[list[Word]]:
    """Group the words of a header with several lines into cells.

    Words that are one below the other form one cell, such as "Unit" and "price".
    """
    cells: list[tuple[float, list[Word]]] = []
    for part in sorted((part for line in header for part in line), key=lambda part: (part.left, part.top)):
        if cells and part.left < cells[-1][0]:
            cells[-1] = max(cells[-1][0], part.right), [*cells[-1][1], *part.words]
        else:
            cells.append((part.right, list(part.words)))
    return [words for _, words in cells]


def _is_item(line: Line, header: Line) -> bool:
    """Whether a line looks like an item: it has at least half as many cells as the header and contains at least two
    numbers.
    """
    figures = sum(is_figure(part.text) for part in line)
    inside = (
        line[0].left > header[0].left - 12 * header[0].height and line[-1].left < header[-1].right + header[0].height
    )
    return inside and figures >= _LEAST_FIGURES and len(line) >= max(_LEAST_CELLS, len(header) / 2)


def _near(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines up to the first large vertical gap or the next header."""
    for above, line in zip([None, *lines], lines[:_MOST_LINES], strict=False):
        if above and (_gap(above, line) > 2 * _NEXT_ITEM * line[0].height or _is_header(line)):
            return
        yield line


def _gap(above: Sequence[Segment], below: Sequence[Segment]) -> float:
    return min(part.top for part in below) - max(part.bottom for part in above)


def _header_lines(lines: Sequence[Line], place: int) -> tuple[int, int]:
    """Return the index of the first header line and the index after the last one.

    The header consists of the line at `place` and the nearby lines with words but without numbers.
    """
    start, end = place, place + 1
    while start > 0 and place - start < _MOST_HEADER_LINES and _is_heading(lines[start - 1], lines[start:end]):
        start -= 1
    while end < len(lines) - 1 and end - place < _MOST_HEADER_LINES and _is_heading(lines[end], lines[start:end]):
        if _starts_body(lines, start, end):
            break
        end += 1
    return start, end


def _starts_body(lines: Sequence[Line], start: int, end: int) -> bool:
    """Whether the header ends above the line with index `end`.

    It ends there if the gap above this line is larger than the gap below it, or clearly larger than the gaps between
    the header lines.
    """
    slack = _LEVEL * lines[end][0].height
    gap = _gap(lines[end - 1], lines[end])
    within = [_gap(above, below) for above, below in pairwise(lines[start:end])]
    return gap > max(_gap(lines[end], lines[end + 1]), 0.0) + slack or bool(within and gap > max(within) + 3 * slack)


def _is_heading(line: Line, header: Sequence[Line]) -> bool:
    """Whether a line belongs to the header.

    It must be close to the header lines found so far, and have short cells with words instead of numbers.
    """
    box = box_of([part for one in header for part in one])
    height = header[0][0].height
    gap = max(box.top - max(part.bottom for part in line), min(part.top for part in line) - box.bottom)
    if gap > _WITHIN_HEADER * height or any(len(part.words) > _MOST_HEADER_WORDS for part in line):
        return False
    inside = line[0].left > box.left - 2 and line[-1].right < box.right + height
    inside = inside or all(_is_over(part, header) for part in line)
    return (inside or gap < 0) and not any(is_figure(part.text) or ":" in part.text for part in line)


def _is_over(part: Segment, header: Sequence[Line]) -> bool:
    return any(one.left < part.right and part.left < one.right for line in header for one in line)


class _Reader:
    """Groups the text lines below a header into items. Stops at the first line that is not part of the table."""

    def __init__(self, columns: Sequence[Column], header: _Item, rules: Sequence[float] = ()) -> None:
        self._columns = list(columns)
        self._rules = rules
        self._header = header
        self._items: list[_Item] = []
        self._first: Cells = {}
        self._waiting: list[tuple[Line, Cells]] = []
        self._notes: list[_Item] = []

    def add_header(self, line: Line) -> None:
        cells: Cells = {}
        for part in line:
            for column, words in self._by_column(part):
                if words:
                    cells.setdefault(column, []).append(segment_of(words))
        self._header.add(cells, line)

    def _by_column(self, part: Segment) -> Iterator[tuple[int, list[Word]]]:
        """Divide the words of a header cell that covers several columns.

        Yields the index of each column and its words.
        """
        hit = overlapped(self._columns, part)
        if len(hit) < 2:  # noqa: PLR2004
            yield self._place(part), list(part.words)
            return
        start = 0
        for column in hit[:-1]:
            end = self._end(part.words, start, column)
            yield column, list(part.words[start:end])
            start = end
        yield hit[-1], list(part.words[start:])

    def _end(self, words: Sequence[Word], start: int, column: int) -> int:
        """Return the index of the word at which to divide a cell between this column and the next.

        The division is as close as possible to the end of this column or the start of the next.
        """
        ends, starts = self._columns[column][1], self._columns[column + 1][0]
        places = range(start + 1, len(words)) or [len(words) - 1]
        return min(places, key=lambda at: min(abs(words[at - 1].right - ends), abs(words[at].left - starts)))

    def _place(self, part: Segment) -> int:
        if hit := overlapped(self._columns, part):
            return hit[0]
        return min(range(len(self._columns)), key=lambda one: _distance(self._columns[one], part.middle))

    def read(self, lines: Sequence[Line]) -> int:
        """Read lines and return how many of them are part of the table."""
        used = at = 0
        while at < len(lines):
            line, cells = lines[at], self._cells(lines[at])
            if self._items and self._is_sum_after_items(lines[at : at + _MOST_LINES_OF_SUMS]):
                break
            gap = min(part.top for part in line) - self._bottom()
            at += 1
            if cells is None or not self._fits(line, cells, gap / line[0].height, lines[at : at + 1]):
                free = self._free_lines(lines[at - 1 :])
                if not free:
                    break
                at += free - 1
            if not self._waiting:
                used = at
        return used

    def _is_sum_after_items(self, lines: Sequence[Line]) -> bool:
        """Whether the first line is a total such as "Total: 12.50", written without a wide gap, and no other item
        follows.
        """
        first = lines[0]
        if len(first) != 1 or not _SUM.fullmatch(first[0].text):
            return False
        return not any((cells := self._cells(line)) and self._starts_item(cells) for line in lines[1:])

    def _free_lines(self, lines: Sequence[Line]) -> int:
        """Add lines of running text to the last item, if another item follows them. Returns the number of lines added.

        The gaps in such lines do not match the columns of the table.
        """
        start = self._columns[0][1] - _SAME_START
        free = list(takewhile(lambda line: line[0].left > start and not _is_header(line), lines[:_MOST_FREE_LINES]))
        cells = self._cells(lines[len(free)]) if self._items and 0 < len(free) < len(lines) else None
        gaps = [_gap(above, below) / below[0].height for above, below in pairwise(lines[: len(free) + 1])]
        if cells is None or 0 not in self._first or not self._starts_item(cells) or max(gaps) > _NEXT_ITEM:
            return 0
        self._flush(self._items[-1])
        for line in free:
            self._items[-1].add({self._place(line[0]): list(line)}, line)
        return len(free)

    def _bottom(self) -> float:
        last = [self._header, *self._notes, *self._items][-1]
        return max([last.bottom, *(part.bottom for line, _ in self._waiting for part in line)])

    def _cells(self, line: Line) -> Cells | None:
        """Divide a text line into cells. Returns the segments of each column.

        Returns None if the line is not part of the table.
        """
        cells: Cells = {}
        for part in line:
            hit = overlapped(self._columns, part)
            if len(hit) > 1 and not (len(line) == 1 or self._starts_column(part, hit[0])):
                return self._free_line(line)
            if not hit and not self._is_near(part):
                return None
            cells.setdefault(self._place(part), []).append(part)
        return cells

    def _free_line(self, line: Line) -> Cells | None:
        """Put a whole line of running text into the column in which it starts, even if it extends across several
        columns.

        Returns None if the line starts in the first column or in the middle of a column.
        """
        column = self._place(line[0])
        return {column: list(line)} if column > 0 and self._starts_column(line[0], column) else None

    def _starts_column(self, part: Segment, column: int) -> bool:
        return -_SAME_START < part.left - self._columns[column][0] < _INDENT * part.height

    def _is_near(self, part: Segment) -> bool:
        return _distance(self._columns[self._place(part)], part.middle) < 4 * part.height

    def _fits(self, line: Line, cells: Cells, gap: float, following: Sequence[Line]) -> bool:
        if _is_header(line) and self._items:
            return False
        if self._starts_item(cells):
            return gap < _NEXT_ITEM and self._start(line, cells)
        if self._is_total(cells):
            return gap < _TOTAL and self._start(line, cells)
        if not self._items and len(line) == 1 and len(overlapped(self._columns, line[0])) > 1:
            return gap < _DETAIL and self._add_note(line, cells)
        return self._is_detail(line, cells, gap) and self._add_detail(line, cells, gap, following)

    def _add_detail(self, line: Line, cells: Cells, gap: float, following: Sequence[Line]) -> bool:
        """Add a line with further text to the item above it.

        A line that is closer to the item below it is kept for that item, unless a drawn line is between them. Returns
        False if too many lines are kept.
        """
        below = _gap(line, following[0]) / line[0].height if following else _NEXT_ITEM
        is_last = bool(following) and self._is_ruled(
            (line[0].top + line[0].bottom) / 2, (following[0][0].top + following[0][0].bottom) / 2
        )
        if not self._items or (gap > 1.3 * max(below, 0.2) and not is_last):
            self._waiting.append((line, cells))
            return len(self._waiting) <= _MOST_HEADER_LINES
        self._flush(self._items[-1])
        self._items[-1].add(cells, line)
        return True

    def _is_ruled(self, top: float, bottom: float) -> bool:
        """Whether a horizontal line is drawn between the heights `top` and `bottom`."""
        return any(top < rule < bottom for rule in self._rules)

    def _add_note(self, line: Line, cells: Cells) -> bool:
        """Add a line across several columns, between the header and the first item, as a separate row.

        Returns False if other lines were already found between the header and the first item.
        """
        self._notes.append(_Item(line[0].top, line[0].bottom))
        self._notes[-1].add(cells, line)
        return len(self._notes) == 1 and not self._waiting

    def _starts_item(self, cells: Cells) -> bool:
        """Whether a line starts a new item.

        The first item must have at least two numbers. Later items must have text in at least half of the columns that
        the first item fills, including the leftmost of them.
        """
        if not self._items:
            return sum(is_figure(part.text) for parts in cells.values() for part in parts) >= _LEAST_FIGURES
        wanted = self._first.keys()
        if any(part.text.endswith(":") for part in cells.get(0, [])):
            return False
        return min(wanted) in cells and len(wanted & cells.keys()) >= max(2, len(wanted) / 2)

    def _start(self, line: Line, cells: Cells) -> bool:
        if not self._items:
            self._first = cells
        self._items.append(_Item(line[0].top, line[0].bottom))
        self._flush(self._items[-1])
        self._items[-1].add(cells, line)
        return True

    def _flush(self, item: _Item) -> None:
        for line, cells in self._waiting:
            item.add(cells, line)
        self._waiting.clear()

    def _is_total(self, cells: Cells) -> bool:
        """Whether a line is a total.

        The first column of a total is empty, and its last column contains a number. The item above it also has text in
        the last column.
        """
        last = len(self._columns) - 1
        if not self._items or last not in self._items[-1].cells or last not in cells:
            return False
        return is_figure(cells[last][0].text) and len(cells) > 1 and min(cells) > 0

    def _is_detail(self, line: Line, cells: Cells, gap: float) -> bool:
        """Whether a line continues the item above it.

        A line with text only in the first column must be very close to the item.
        """
        if any(
            is_figure(part.text) and self._is_filled(column, part) for column, parts in cells.items() for part in parts
        ):
            return False
        hit = overlapped(self._columns, line[0])
        if len(line) == 1 and len(hit) > 1:
            return hit[0] > 0 and self._starts_column(line[0], hit[0]) and gap < _DETAIL
        return gap < (_UNDER if len(cells) == 1 and 0 in cells and self._items else _DETAIL)

    def _is_filled(self, column: int, part: Segment) -> bool:
        """Whether the item above already has a number in this column, with the same right edge.

        If so, the line with the number `part` belongs to another item.
        """
        above = self._items[-1].cells.get(column, []) if self._items else []
        return any(is_figure(one.text) and abs(one.right - part.right) < _SAME_START and column > 1 for one in above)

    def table(self) -> Table | None:
        rows = [self._header, *self._notes, *self._items]
        if not any(len(item.cells) >= _LEAST_CELLS for item in self._items):
            return None
        made = tuple(self._row(row.cells) for row in rows)
        box = box_of([part for row in rows for parts in row.cells.values() for part in parts])
        return Table(box, made, _CONFIDENCE, sure=self._is_sure())

    def _is_sure(self) -> bool:
        """Whether the table was probably read correctly.

        Every column with numbers must have exactly one heading, and no cell in the last column may contain two numbers.
        """
        filled = {column for item in self._items for column, parts in item.cells.items() if _has_figure(parts)}
        stacked = any(
            sum(is_figure(part.text) for part in parts) > 1 and column > 1 and column == len(self._columns) - 1
            for item in self._items
            for column, parts in item.cells.items()
        )
        return filled <= self._header.cells.keys() and not stacked and not self._has_beside()

    def _has_beside(self) -> bool:
        """Whether a column has two headings side by side, so that two columns were probably read as one."""
        pairs = (pair for parts in self._header.cells.values() for pair in combinations(parts, 2))
        return any(abs(one.top - other.top) < _LEVEL * one.height and one.right < other.left for one, other in pairs)

    def _row(self, cells: Cells) -> tuple[Cell, ...]:
        made = tuple(_cell(cells.get(column, [])) for column in range(len(self._columns)))
        return made[::-1] if is_right_to_left("".join(cell.text for cell in made)) else made


def _cell(parts: Sequence[Segment]) -> Cell:
    ordered = sorted(parts, key=lambda part: (round(part.top), part.left))
    return Cell(join_lines([part.text for part in ordered] or [""]), box_of(ordered) if ordered else None)


def _has_figure(parts: Sequence[Segment]) -> bool:
    return any(is_figure(part.text) for part in parts)


def _distance(column: Column, place: float) -> float:
    return max(column[0] - place, place - column[1], 0.0)
