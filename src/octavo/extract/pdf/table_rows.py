"""Defines tables, and groups the text lines of a table into header, rows and cells."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import Word
from octavo.extract.pdf.letters import join_lines
from octavo.extract.pdf.table_geometry import (
    Column,
    Line,
    Rulings,
    Segment,
    Span,
    box_of,
    is_right_to_left,
    segment_of,
    text_lines,
)

_MOST_SPANNED = 12
_MOST_HEADER_LINES = 8
_SIGNS = r"[^\w\s]*[$€£¥~<>≤≥±+\-\u2212\u2013(]*\s*"
PROSE = 12  # words; a cell with more is a sentence or a note
NOTE = re.compile(r"(notes?|sources?|anmerkung|quelle|remarque)\b", re.IGNORECASE)
NUMBER = re.compile(
    _SIGNS + r"\d[\d.,' \u00a0/:]*\s*[%)*a-z†‡⁰¹²³⁴-⁹]{0,2}|[-\u2013\u2014.*‡†n/a]{1,4}|\(\d+\)", re.IGNORECASE
)
_CURRENCIES = frozenset({"$", "€", "£", "¥", "₹", "₽", "₩", "₺", "₴", "₪", "EUR", "USD", "GBP", "CHF", "INR"})
Piece = tuple[Span, list[Word]]

_NEARLY_FULL = 0.85  # as a share of the width of the cell
_WORDS_OF_SENTENCE = 6


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell.

    `columns` and `rows` are the numbers of columns and rows that it covers. `box` encloses its words. It is None if the
    cell is empty.
    """

    text: str
    box: Box | None
    columns: int = 1
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """A table. A cell that covers several rows or columns is listed only in the first of them, as in HTML.

    `sure` is false if rows could not be separated with certainty.
    """

    box: Box
    rows: tuple[tuple[Cell, ...], ...]
    confidence: float
    sure: bool

    @property
    def grid(self) -> tuple[tuple[str, ...], ...]:
        """The texts of the cells, in rows of equal length.

        If a cell covers several rows or columns, its text is only in the first of them.
        """
        taken: set[tuple[int, int]] = set()
        texts: dict[tuple[int, int], str] = {}
        for top, row in enumerate(self.rows):
            left = 0
            for cell in row:
                while (top, left) in taken:
                    left += 1
                texts[top, left] = cell.text
                taken.update((top + down, left + right) for down in range(cell.rows) for right in range(cell.columns))
        width = max((column for _, column in taken), default=-1) + 1
        return tuple(tuple(texts.get((row, column), "") for column in range(width)) for row in range(len(self.rows)))


def share(test: Callable[[str], object], parts: Sequence[Segment]) -> float:
    return sum(bool(test(part.text)) for part in parts) / max(1, len(parts))


class Row(NamedTuple):
    """One text line of a table, divided into segments.

    `parts` maps the first column that a segment covers to the last column and the segment itself.
    `numbers` contains the indexes of columns with numbers.
    """

    top: float
    bottom: float
    parts: dict[int, tuple[int, Segment]]
    numbers: frozenset[int]

    @property
    def height(self) -> float:
        return self.bottom - self.top


def row_of(placed: Iterable[tuple[int, int, Segment]]) -> Row:
    """Make a row from segments, each with the first and last column that it covers.

    Segments that start in the same column are joined.
    """
    parts: dict[int, tuple[int, Segment]] = {}
    for first, last, part in placed:
        if first in parts:
            before = parts[first]
            parts[first] = (max(last, before[0]), segment_of((*before[1].words, *part.words)))
        else:
            parts[first] = (last, part)
    numbers = frozenset(place for place, (_, part) in parts.items() if NUMBER.fullmatch(part.text))
    tops, bottoms = [part.top for _, part in parts.values()], [part.bottom for _, part in parts.values()]
    return Row(min(tops), max(bottoms), parts, numbers)


def header_length(rows: Sequence[Row], rules: Sequence[float]) -> int:
    """Return the number of header lines.

    The header ends at the first wide drawn line. Without such a line, it ends above the first row of numbers.
    """
    inner = [at for at in rules if rows[0].top < at < rows[-1].top]
    above = sum((row.top + row.bottom) / 2 < inner[0] for row in rows) if inner else 0
    while above > 1 and _starts_row(rows[: above - 1], rows[above - 1]):
        above -= 1
    if 0 < above <= _MOST_HEADER_LINES and not any(map(_has_numbers, rows[: above - 1])):
        return above
    head = next((place for place, row in enumerate(rows) if _has_numbers(row)), 0)
    unlabelled = next((place for place, row in enumerate(rows) if 0 in row.parts), 0)
    if 1 < unlabelled <= _MOST_HEADER_LINES and not 0 < head <= _MOST_HEADER_LINES:
        return unlabelled
    if 0 < head < len(rows) - 1 and _gap(rows, head) > _gap(rows, head - 1) + 0.4 * rows[head].height:
        head += 1
    while head > 1 and list(rows[head - 1].parts) == [0] and not _goes_on(rows[: head - 1], rows[head - 1]):
        head -= 1
    return head


def _gap(rows: Sequence[Row], place: int) -> float:
    return rows[place + 1].top - rows[place].bottom


def _has_numbers(row: Row) -> bool:
    places = set(row.parts) - {0}
    return 2 * len(row.numbers & places) >= max(1, len(places))


def header_cells(rows: Sequence[Row], columns: Sequence[Column], rulings: Rulings) -> Iterator[Piece]:
    """Yield the cells of the header.

    A heading covers all rows of the header if its column is not part of a heading that covers several columns.
    """
    levels = _levels([_with_spanners(row, rows[place + 1 :], columns, rulings) for place, row in enumerate(rows)])
    wide = [(first, last) for level in levels for row in level for first, last in _wide(row)]
    covered = {place for first, last in wide for place in range(first, last + 1)}
    alone: defaultdict[int, list[Word]] = defaultdict(list)
    for top, level in enumerate(levels):
        for span, words in row_cells(level, top):
            if span.left in covered:
                yield span, words
            else:
                alone[span.left].extend(words)
    for place, words in alone.items():
        yield Span(0, place, len(levels) - 1, place), words


def _wide(row: Row) -> list[tuple[int, int]]:
    return [(first, last) for first, (last, _) in row.parts.items() if last > first]


def _with_spanners(row: Row, below: Sequence[Row], columns: Sequence[Column], rulings: Rulings) -> Row:
    """Extend each heading to all columns that it covers.

    An underlined heading covers the columns below its line. Any other heading covers the columns below it that have
    their own headings.
    """
    placed: list[tuple[int, int, Segment]] = []
    for first, (last, part) in row.parts.items():
        wide = _under_rule(part, below, columns, rulings) or _over(row, first, below, columns)
        start, end = wide or (first, last)
        placed.append((start, end, part))
    return row_of(placed)


def _under_rule(
    part: Segment, below: Sequence[Row], columns: Sequence[Column], rulings: Rulings
) -> tuple[int, int] | None:
    """Return the first and last column below a short drawn line that underlines a heading.

    Returns None if there is no such line.
    """
    limit = below[0].bottom if below else part.top
    for rule in rulings.horizontal:
        if part.bottom - 3 <= rule.at <= limit - 4 and rule.start <= part.left + 2 and rule.end >= part.right - 2:
            places = [place for place, column in enumerate(columns) if rule.start <= sum(column) / 2 <= rule.end]
            return (places[0], places[-1]) if 1 < len(places) < len(columns) else None
    return None


def _over(row: Row, first: int, below: Sequence[Row], columns: Sequence[Column]) -> tuple[int, int] | None:
    """Return the first and last column that a heading covers, such as "Sales" above "2023" and "2024".

    The heading must be centred above the columns, and each column must also have its own heading. Returns None if the
    heading covers only one column.
    """
    last, part = row.parts[first]
    left, right = columns[first]
    edges = (part.left - left, part.right - right, part.middle - (left + right) / 2)
    if first == last and min(map(abs, edges)) < 0.5 * part.height:
        return None
    headed = {place for line in below for place, (end, _) in line.parts.items() if place == end}
    taken = {place for start, (end, _) in row.parts.items() if start != first for place in range(start, end + 1)}
    free = headed - taken
    best = [
        (_distance(part, columns[start], columns[end]), start, end)
        for start in range(max(0, first - _MOST_SPANNED), first + 1)
        for end in range(max(last, start + 1), min(len(columns), last + _MOST_SPANNED))
        if free.issuperset(range(start, end + 1))
    ]
    distance, start, end = min(best, default=(0.0, -1, -1))
    return (start, end) if start >= 0 and (last > first or distance < part.height) else None


def _distance(part: Segment, first: Column, last: Column) -> float:
    """Return the horizontal distance between the middle of a heading and the middle of a range of columns.

    The middle of the range is computed both from its outer edges and from the middles of its first and last column. The
    smaller of the two distances is returned.
    """
    middles = ((first[0] + last[1]) / 2, (sum(first) + sum(last)) / 4)
    return min(abs(middle - part.middle) for middle in middles)


def _levels(rows: Sequence[Row]) -> list[list[Row]]:
    """Group the text lines of a header into levels. A new level starts below a heading that covers several columns."""
    levels: list[list[Row]] = []
    for row in rows:
        is_below = bool(levels) and any(map(_wide, levels[-1])) and not _wide(row)
        if levels and not is_below:
            levels[-1].append(row)
        else:
            levels.append([row])
    return levels


def header_levels(rows: Sequence[Row]) -> list[list[Row]]:
    """Group the text lines above the first drawn line into rows.

    If the first line has a heading above several columns, each level of headings becomes one row.
    """
    levels = _levels(rows)
    below = {place for row in rows[1:] for place in row.parts}
    is_header = any(len(below & {*range(first, last + 1)}) > 1 for first, last in _wide(rows[0]))
    return levels if is_header and len(levels) > 1 and not any(map(_has_numbers, rows)) else band_groups(rows)


def body_groups(rows: Sequence[Row], rules: Sequence[float]) -> Iterator[list[Row]]:
    """Group the text lines of the table body into rows.

    If there are enough drawn lines, the text lines between two drawn lines are grouped separately.
    """
    bands: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        bands[bisect_left(rules, (row.top + row.bottom) / 2)].append(row)
    if len(bands) < max(3, 0.2 * len(rows)):
        yield from _grouped(rows)
    else:
        for band in bands.values():
            yield from band_groups(band)


def _grouped(rows: Sequence[Row]) -> list[list[Row]]:
    """Group text lines into table rows. A line that continues the cells of the line above belongs to the same row."""
    groups = [[row] for row in rows[:1]]
    limit = _row_gap(rows)
    for above, row in pairwise(rows):
        if _continues_row(groups[-1], row, row.top - above.bottom, limit):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _row_gap(rows: Sequence[Row]) -> float | None:
    """Return the limit for the gap between two text lines: lines that are further apart belong to different rows.

    Returns None if the gaps cannot be clearly divided into small and large ones.
    """
    neighbours = list(pairwise(rows))
    pairs = sorted((low.top - high.bottom, bool(high.numbers & low.numbers - {0})) for high, low in neighbours)
    steps = [(after[0] - before[0], place) for place, (before, after) in enumerate(pairwise(pairs), 1)]
    step, place = max(steps, default=(0.0, 0))
    tight = sum(conflict for _, conflict in pairs[:place])
    if not steps or step < 0.25 * median(row.height for row in rows) or tight > 0.2 * place:
        return None
    return (pairs[place - 1][0] + pairs[place][0]) / 2


def _continues_row(row: Sequence[Row], line: Row, gap: float, limit: float | None) -> bool:
    if any(one.numbers & line.numbers for one in row):
        return False
    if gap < -0.2 * line.height:
        return True
    if gap > (1.2 * line.height if limit is None else limit) or _starts_row(row, line):
        return False
    if limit is not None:
        return True
    used, new = {place for one in row for place in one.parts}, set(line.parts)
    if new <= used and 0 not in new:
        return len(new) <= len(used) / 2 or _goes_on(row, line)
    return 0 in used and (new == {0} or used == {0} or new < used) and _goes_on(row, line)


def _starts_row(row: Sequence[Row], line: Row) -> bool:
    """Whether a text line with a label starts a new table row.

    It does if all its other cells are numbers in columns that already have text, or if the line above has no label.
    """
    if 0 not in line.parts or not any(0 in one.parts for one in row):
        return False
    others = set(line.parts) - {0}
    if others and others <= line.numbers and all(any(place in one.parts for one in row) for place in others):
        return True
    is_apart = line.top > row[-1].bottom - 0.2 * line.height
    return is_apart and 0 not in row[-1].parts and not line.parts[0][1].text[0].islower()


def _goes_on(row: Sequence[Row], line: Row) -> bool:
    """Whether a text line continues the cells above it.

    It does if each of its texts starts in lower case or follows a text that ends with a hyphen or comma.
    """
    for place, (_, part) in line.parts.items():
        before = next((one.parts[place][1].text for one in reversed(row) if place in one.parts), "")
        if before and not (part.text[0].islower() or part.text[0] in "(&/" or before[-1] in "-,(&/"):
            return False
    return bool(row)


def band_groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Group the text lines between two drawn lines into table rows.

    All the lines form one row, unless numbers are stacked in the columns, a vertical gap separates the lines, or some
    lines clearly start a new row.
    """
    stacked = Counter(place for row in rows for place in row.numbers)
    used = {place for row in rows for place in row.parts}
    if sum(count > 1 for count in stacked.values()) >= max(1, (len(used) - 1) / 2):
        return _grouped(rows)
    height = median(row.height for row in rows)
    cuts = [place for place in range(1, len(rows)) if _gap(rows, place - 1) > 0.7 * height]
    parts = [list(rows[start:end]) for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    if sum(len({place for row in part for place in row.parts}) > 1 for part in parts) > 1:
        return parts
    if _is_prose(rows):
        return [list(rows)]
    if fresh_lines(rows) >= max(3, 0.5 * len(rows)):
        return _grouped(rows)
    groups = [[rows[0]]]
    for row in rows[1:]:
        if _starts_row(groups[-1], row):
            groups.append([row])
        else:
            groups[-1].append(row)
    return groups


def _is_prose(rows: Sequence[Row]) -> bool:
    """Whether all columns between two drawn lines contain sentences: long lines that end near the same right edge."""
    columns: defaultdict[int, list[Segment]] = defaultdict(list)
    for row in rows:
        for place, (_, part) in row.parts.items():
            columns[place].append(part)
    return len(rows) > 2 and all(map(_are_sentences, columns.values()))  # noqa: PLR2004


def _are_sentences(parts: Sequence[Segment]) -> bool:
    left, right = min(part.left for part in parts), max(part.right for part in parts)
    full = sum(part.right > left + _NEARLY_FULL * (right - left) for part in parts)
    return full >= 0.6 * len(parts) and sum(len(part.words) for part in parts) > _WORDS_OF_SENTENCE * len(parts)


def fresh_lines(rows: Sequence[Row]) -> int:
    """Count the text lines that start a new table row.

    Such lines have text in most columns and do not continue the text above.
    """
    used = {place for row in rows for place in row.parts}
    full = (
        place for place, row in enumerate(rows) if len(row.parts) >= max(2, 0.7 * len(used)) and min(used) in row.parts
    )
    return sum(not _goes_on(rows[:place], rows[place]) for place in full)


def is_sure(group: Sequence[Row]) -> bool:
    """Whether these text lines are certainly one table row, and not several rows of short text."""
    return len(group) == 1 or fresh_lines(group) < 2  # noqa: PLR2004


def row_cells(group: Sequence[Row], top: int) -> Iterator[Piece]:
    texts: defaultdict[int, list[Word]] = defaultdict(list)
    lasts: dict[int, int] = {}
    for row in group:
        for first, (last, part) in row.parts.items():
            texts[first].extend(part.words)
            lasts[first] = max(last, lasts.get(first, first))
    for first, words in texts.items():
        yield Span(top, first, top, lasts[first]), words


def assemble(cells: Sequence[Piece], box: Box, confidence: float, *, sure: bool) -> Table:
    """Make a table from cells.

    Rows and columns in which no cell starts are dropped, and missing cells are added as empty cells.
    """
    tops, lefts = sorted({span.top for span, _ in cells}), sorted({span.left for span, _ in cells})
    starts: defaultdict[tuple[int, int], list[Word]] = defaultdict(list)
    ends: dict[tuple[int, int], tuple[int, int]] = {}
    for span, words in cells:
        start = (bisect_left(tops, span.top), bisect_left(lefts, span.left))
        starts[start].extend(words)
        ends[start] = (bisect_right(tops, span.bottom) - 1, bisect_right(lefts, span.right) - 1)
    taken: dict[tuple[int, int], Span] = {}
    for start in sorted(starts):
        whole = _grown(start, ends[start], starts, taken)
        taken |= {
            (row, column): whole
            for row in range(whole.top, whole.bottom + 1)
            for column in range(whole.left, whole.right + 1)
        }
    if is_right_to_left("".join(word.text for _, words in cells for word in words)):
        width = len(lefts) - 1
        starts = defaultdict(
            list, {(top, width - taken[top, left].right): words for (top, left), words in starts.items()}
        )
        taken = {
            (row, width - column): span._replace(left=width - span.right, right=width - span.left)
            for (row, column), span in taken.items()
        }
    rows = tuple(tuple(_cells(row, len(lefts), taken, starts)) for row in range(len(tops)))
    return Table(box, rows, confidence, sure)


def with_currencies(table: Table) -> Table:
    """Join each column that contains only currency signs, and has no heading, with the amounts to its right."""
    if not any(cell.text in _CURRENCIES for row in table.rows for cell in row):
        return table
    columns = list(zip(*table.grid, strict=True))
    signs = [place for place in range(len(columns) - 1) if _are_currencies(columns[place], columns[place + 1])]
    if not signs or any(cell.rows > 1 for row in table.rows for cell in row):
        return table
    return replace(table, rows=tuple(tuple(_with_signs(row, signs)) for row in table.rows))


def _are_currencies(column: Sequence[str], amounts: Sequence[str]) -> bool:
    signs = [(sign, amount) for sign, amount in zip(column[1:], amounts[1:], strict=True) if sign]
    if column[0] or not amounts[0] or not signs:
        return False
    return all(sign in _CURRENCIES and NUMBER.fullmatch(amount) for sign, amount in signs)


def _with_signs(row: Sequence[Cell], signs: Sequence[int]) -> Iterator[Cell]:
    """Yield the cells of a row without the columns of currency signs.

    Each sign is written before the text of the next cell.
    """
    left, sign = 0, None
    for cell in row:
        places = range(left, left + cell.columns)
        left += cell.columns
        if cell.columns == 1 and places[0] in signs:
            sign = cell
            continue
        whole = replace(cell, columns=cell.columns - sum(place in signs for place in places))
        if sign and sign.box and cell.box:
            whole = replace(whole, text=f"{sign.text} {cell.text}", box=_around(sign.box, cell.box))
        yield whole
        sign = None


def _around(one: Box, other: Box) -> Box:
    return Box(
        min(one.left, other.left), min(one.top, other.top), max(one.right, other.right), max(one.bottom, other.bottom)
    )


def _grown(
    start: tuple[int, int],
    end: tuple[int, int],
    starts: dict[tuple[int, int], list[Word]],
    taken: dict[tuple[int, int], Span],
) -> Span:
    """Return the largest rectangle of free cells that begins at `start` and does not extend beyond `end`."""
    (top, left), bottom, right = start, start[0], start[1]
    while right < end[1] and (top, right + 1) not in starts and (top, right + 1) not in taken:
        right += 1
    while bottom < end[0] and not any(
        (bottom + 1, column) in starts or (bottom + 1, column) in taken for column in range(left, right + 1)
    ):
        bottom += 1
    return Span(top, left, bottom, right)


def _cells(
    row: int, width: int, taken: dict[tuple[int, int], Span], starts: dict[tuple[int, int], list[Word]]
) -> Iterator[Cell]:
    for column in range(width):
        span = taken.get((row, column), Span(row, column, row, column))
        if (span.top, span.left) == (row, column):
            words = starts.get((row, column), [])
            text = join_lines([" ".join(part.text for part in _in_order(line)) for line in text_lines(words)] or [""])
            yield Cell(text, box_of(words) if words else None, span.right - column + 1, span.bottom - row + 1)


def _in_order(line: Line) -> Line:
    return line[::-1] if is_right_to_left("".join(part.text for part in line)) else line
