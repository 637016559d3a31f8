"""Finds the tables of a PDF page from its words, rulings and backgrounds. Pure: positions in, tables out."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from octavo.extract.extracted import Box
from octavo.extract.pdf import markup
from octavo.extract.pdf.content import PageContent, Word
from octavo.extract.pdf.rulings import Grid, Ruling, Rulings, grids, page_rulings, spans, wide_rules

_MOST_WORDS = 20_000
_MOST_COLUMNS = 60
_NUMBER = re.compile(
    r"[^\w\s]*[$€£¥~<>≤≥±+\-−–(]*\s*\d[\d.,' \u00a0/:]*\s*[%)*a-z†‡]{0,2}|[-–—.*‡†n/a]{1,4}|\(\d+\)", re.IGNORECASE
)
_LEADER = re.compile(r"[.…_·\s]{4,}")
_CURRENCY = re.compile(r"[$€£¥]|US\$|EUR|USD")
_GAP = 0.8  # of the height of the letters: a wider gap separates cells
_MOST_SINGLE = 4
_MOST_REACH = 30.0
_MOST_SPANNED = 12
_MOST_MERGES = 40
_LEAST_CELLS = 4
_LONG = 7  # words
_PROSE = 12
_NOTE = re.compile(r"(notes?|sources?|anmerkung|quelle|remarque)\b", re.IGNORECASE)
_TITLE = re.compile(r"(table|tab\.|exhibit|figure|fig\.|chart|tabelle|tableau|tabla|tabella)\b", re.IGNORECASE)
_MARK = re.compile(r"[(\[]?(\d{1,3}|[a-z]|[ivx]{1,5})[.:)\]]{1,2}|[^\w\s]{1,2}", re.IGNORECASE)
_EQUATION = re.compile(r"\(\d+(\.\d+)*[a-z]?\)")
_LABEL = re.compile(r":$")
_CODE = re.compile(r"[=∑∏∫√∂∈∀←→⇐⇒≔{};]|//|/\*|\*/")
_SMALL = re.compile(r"[^\W\d_]")


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
        taken: set[tuple[int, int]] = set()
        texts: dict[tuple[int, int], str] = {}
        for top, row in enumerate(self.rows):
            texts.update(_places(row, top, taken))
        width = max((column for _, column in taken), default=-1) + 1
        return tuple(tuple(texts.get((row, column), "") for column in range(width)) for row in range(len(self.rows)))


def _places(row: Sequence[Cell], top: int, taken: set[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], str]]:
    place = 0
    for cell in row:
        while (top, place) in taken:
            place += 1
        yield (top, place), cell.text
        taken.update((top + down, place + across) for down in range(cell.rows) for across in range(cell.columns))


class Segment(NamedTuple):
    """Words of one line with no wide gap between them."""

    left: float
    top: float
    right: float
    bottom: float
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        return joined(self.words)

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2


Line = tuple[Segment, ...]


def joined(words: Sequence[Word]) -> str:
    """The text of words on a line. Parts of a word that touch are one word."""
    texts = [words[0].text.strip()]
    for before, word in zip(words, words[1:], strict=False):
        texts.append("" if abs(word.left - before.right) < 0.05 * (word.bottom - word.top) else " ")
        texts.append(word.text.strip())
    return "".join(texts)


class Span(NamedTuple):
    """A cell of a table: its first row and column, and its last ones."""

    top: int
    left: int
    bottom: int
    right: int


class Frame(NamedTuple):
    """The structure of a table before its words are placed."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    spans: tuple[Span, ...]
    sure: bool


def find_tables(page: PageContent) -> tuple[Table, ...]:
    """The tables of a page, from top to bottom."""
    words = [
        _without_leader(word) for run in page.runs if abs(run.rotation) < 1 for word in run.words if word.text.strip()
    ]
    if len(words) > _MOST_WORDS:
        return ()
    turned = [Word(*run.box, run.text.strip()) for run in page.runs if abs(run.rotation) >= 1]
    found: list[Table] = []
    for edges in (False, True):
        rulings = page_rulings(page, edges=edges)
        for grid in grids(rulings):
            grid = _with_outer_rows(grid, words)
            table = _ruled_table(grid, [word for word in (*words, *turned) if _is_inside(word, grid.box)])
            if table:
                found.append(table)
                words = [word for word in words if not _is_inside(word, table.box)]
    lines = text_lines(words)
    if any(len(line) > 1 for line in lines):
        found.extend(_aligned_tables(lines, rulings))
    return tuple(sorted(found, key=lambda table: (table.box.top, table.box.left)))


def _aligned_tables(lines: list[Line], rulings: Rulings) -> Iterator[Table]:
    for left, right, ys in wide_rules(rulings):
        for area in _ruled_areas(lines, left, right, ys):
            table = _aligned_table(area, rulings)
            if table:
                yield table
                lines = [
                    rest for line in lines if (rest := tuple(part for part in line if not _touches(part, table.box)))
                ]
    for block in _blocks(lines):
        table = _aligned_table(Area(tuple(block), ruled=False), rulings)
        if table:
            yield table


def _touches(part: Segment, box: Box) -> bool:
    return part.left < box.right and part.right > box.left and box.top <= (part.top + part.bottom) / 2 <= box.bottom


def to_markdown(table: Table) -> str:
    """Write a table as Markdown."""
    return markup.table(table.grid)


def continues(previous: Table, following: Table) -> bool:
    """Whether a table at the top of a page continues the one at the end of the page before: the same columns."""
    near = 0.05 * (previous.box.right - previous.box.left)
    return (
        len(previous.grid[0]) == len(following.grid[0])
        and abs(previous.box.left - following.box.left) <= near
        and abs(previous.box.right - following.box.right) <= near
    )


def _is_inside(word: Word, box: Box) -> bool:
    return (
        box.left <= (word.left + word.right) / 2 <= box.right and box.top <= (word.top + word.bottom) / 2 <= box.bottom
    )


# Lines and segments


def text_lines(words: Sequence[Word]) -> list[Line]:
    """Words grouped into lines by their vertical middle, from top to bottom, and lines split at wide gaps."""
    if not words:
        return []
    usual = 1.5 * median(word.bottom - word.top for word in words)
    lines: list[list[Word]] = []
    middle = height = 0.0
    for word in sorted(words, key=lambda one: one.top + one.bottom):
        tall = min(usual, word.bottom - word.top)
        if lines and (word.top + word.bottom) / 2 - middle <= 0.45 * max(height, tall):
            lines[-1].append(word)
            height = max(height, tall)
        else:
            lines.append([word])
            middle, height = (word.top + word.bottom) / 2, tall
    return [parts for line in lines if (parts := tuple(_segments(sorted(line))))]


def _segments(line: Sequence[Word]) -> Iterator[Segment]:
    part: list[Word] = []
    for word in line:
        if _LEADER.fullmatch(word.text):
            continue
        if part and _is_apart(part, word):
            yield segment_of(part)
            part = []
        part.append(word)
    if part:
        yield segment_of(part)


def _is_apart(part: Sequence[Word], word: Word) -> bool:
    """Whether a gap before a word separates cells. A currency sign belongs to its number, however far it is."""
    gap = word.left - max(one.right for one in part[-3:])
    height = min(word.bottom - word.top, part[-1].bottom - part[-1].top)
    if gap <= _GAP * height:
        numbers = gap > 0.5 * height and part[-1].text[-1].isdigit() and word.text[0].isdigit()
        return numbers and word.text[-1].isdigit() and part[-1].text[0].isdigit()
    return not _CURRENCY.fullmatch(part[-1].text) or len(part) > 1 or not word.text[0].isdigit()


def _without_leader(word: Word) -> Word:
    """Cut the dots that lead from a label to its number."""
    text = word.text.rstrip("._…· ")
    if len(word.text) - len(text) < 4 or not text:
        return word
    return Word(
        word.left, word.top, word.left + (word.right - word.left) * len(text) / len(word.text), word.bottom, text
    )


def segment_of(words: Sequence[Word]) -> Segment:
    return Segment(*box_of(words), tuple(words))


def box_of(words: Sequence[Word] | Sequence[Segment]) -> Box:
    return Box(
        min(word.left for word in words),
        min(word.top for word in words),
        max(word.right for word in words),
        max(word.bottom for word in words),
    )


# Columns


def columns_of(lines: Sequence[Line]) -> list[tuple[float, float]]:
    """The columns of lines: segments that lie above each other, narrow ones first; a wide one spans columns."""
    pieces = sorted((part for line in lines if len(line) > 1 for part in line), key=lambda part: part.right - part.left)
    columns: list[tuple[float, float]] = []
    for part in pieces:
        hit = _overlapped(columns, part)
        if not hit:
            columns.append((part.left, part.right))
            columns.sort()
            if len(columns) > _MOST_COLUMNS:
                return []
        elif len(hit) == 1:
            left, right = columns[hit[0]]
            columns[hit[0]] = (min(left, part.left), max(right, part.right))
    return _merged_columns(columns, lines)


def _overlapped(columns: Sequence[tuple[float, float]], part: Segment) -> range:
    """The columns that a segment overlaps by more than a hair."""
    slack = min(1.0, (part.right - part.left) / 4)
    first = bisect_right(columns, part.left + slack, key=lambda column: column[1])
    last = bisect_right(columns, part.right - slack, key=lambda column: column[0])
    return range(first, max(first, last))


def _merged_columns(columns: list[tuple[float, float]], lines: Sequence[Line]) -> list[tuple[float, float]]:
    """Merge neighbours that more lines join than separate; leave out those that single headings made."""
    for _ in range(_MOST_MERGES):
        joined, apart, filled = _neighbours(columns, lines)
        places = [place for place in range(len(columns) - 1) if joined[place] > apart[place]]
        if places:
            place = max(places, key=lambda one: joined[one] - apart[one])
            columns[place : place + 2] = [(columns[place][0], columns[place + 1][1])]
            continue
        places = [place for place in range(len(columns) - 1) if not apart[place]]
        if not places:
            break
        place = min(places, key=lambda one: columns[one + 1][0] - columns[one][1])
        few = [one for one in (place, place + 1) if filled[one] < min(3, 0.3 * len(lines)) and len(lines) > 4]
        if few:
            columns.pop(few[0])
        else:
            columns[place : place + 2] = [(columns[place][0], columns[place + 1][1])]
    return columns


def _neighbours(
    columns: Sequence[tuple[float, float]], lines: Sequence[Line]
) -> tuple[Counter[int], Counter[int], Counter[int]]:
    """For each column, the lines that join it with the next one, that separate the two, and that fill it."""
    joined: Counter[int] = Counter()
    apart: Counter[int] = Counter()
    filled: Counter[int] = Counter()
    for line in lines:
        ranges = [_overlapped(columns, part) for part in line]
        used = {place for one in ranges for place in one}
        filled.update(used)
        for one in ranges:
            joined.update(one[:-1])
            if one and one[-1] + 1 in used:
                apart[one[-1]] += 1
    return joined, apart, filled


# Areas


class Area(NamedTuple):
    """Consecutive lines that may be a table. `ruled`: between horizontal rulings of the same width."""

    lines: tuple[Line, ...]
    ruled: bool


def _ruled_areas(lines: Sequence[Line], left: float, right: float, ys: Sequence[float]) -> Iterator[Area]:
    """Runs of bands between wide rulings that look like parts of a table, and the lines that go on outside of them."""
    near = [
        inside
        for line in lines
        if (inside := tuple(part for part in line if left - 10 < part.left and part.right < right + 10))
    ]
    bands = [bisect_right(ys, _middle(line)) for line in near]
    start = 0
    while start < len(near):
        if bands[start] in (0, len(ys)) or not _is_tabular(near, bands, bands[start]):
            start += 1
            continue
        end = start
        while end + 1 < len(near) and bands[end + 1] < len(ys) and _is_tabular(near, bands, bands[end + 1]):
            end += 1
        start, end = _extended(near, start, end)
        yield Area(tuple(near[start : end + 1]), ruled=True)
        start = end + 1


def _middle(line: Line) -> float:
    return (line[0].top + line[0].bottom) / 2


def _is_tabular(lines: Sequence[Line], bands: Sequence[int], band: int) -> bool:
    inside = lines[bisect_left(bands, band) : bisect_right(bands, band)]
    return sum(len(line) > 1 for line in inside) >= 0.4 * len(inside)


def _extended(lines: Sequence[Line], start: int, end: int) -> tuple[int, int]:
    """Add lines above the first ruling and below the last one that have several cells."""
    while start > 0 and len(lines[start - 1]) > 1 and _is_next(lines[start - 1], lines[start]):
        start -= 1
    while end + 1 < len(lines) and len(lines[end + 1]) > 1 and _is_next(lines[end], lines[end + 1]):
        end += 1
    return start, end


def _is_next(above: Line, below: Line) -> bool:
    height = below[0].bottom - below[0].top
    return below[0].top - above[0].bottom < 1.5 * height and not any(len(part.words) > 7 for part in (*above, *below))


def _blocks(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Runs of lines with several segments, with a few lines of one segment between them."""
    start = end = -1
    for place, line in enumerate(lines):
        height = line[0].bottom - line[0].top
        far = start >= 0 and line[0].top - lines[place - 1][0].bottom > 2.5 * height
        if far or (start >= 0 and (place - end > _MOST_SINGLE or max(len(part.words) for part in line) > _PROSE)):
            yield from _ended(lines, start, end)
            start = -1
        if len(line) > 1:
            start, end = (place if start < 0 else start), place
    if start >= 0:
        yield from _ended(lines, start, end)


def _ended(lines: Sequence[Line], start: int, end: int) -> Iterator[Sequence[Line]]:
    while start <= end and (_TITLE.match(lines[start][0].text) or len(lines[start]) == 1):
        start += 1
    if end - start < 2:
        return
    left = min(line[0].left for line in lines[start : end + 1])
    while start > 0 and len(lines[start - 1]) == 1 and _is_heading(lines[start - 1][0], lines[start], left):
        start -= 1
    yield lines[start : end + 1]


def _is_heading(part: Segment, below: Line, left: float) -> bool:
    """Whether a line of one segment belongs to the header below it: close, short, and not over the first column."""
    height = part.bottom - part.top
    return (
        below[0].top - part.bottom < 0.8 * height
        and len(part.words) < _LONG
        and part.left > left + 5 * height
        and not _TITLE.match(part.text)
    )


# Structure


class Row(NamedTuple):
    """A line of text, and what each column holds: its first column, its last one, and the words."""

    top: float
    bottom: float
    parts: dict[int, tuple[int, Segment]]

    def numbers(self) -> set[int]:
        return {place for place, (_, part) in self.parts.items() if _is_number(part)}


def _aligned_table(area: Area, rulings: Rulings) -> Table | None:
    area = Area(_without_notes(area.lines), area.ruled)
    columns = columns_of(area.lines)
    if len(columns) < 2:
        return None
    rows = [_fit(line, columns) for line in area.lines]
    box = box_of([part for line in area.lines for part in line])
    if not _is_table(area, rows, len(columns), len(_full_rules(box, rulings)) if area.ruled else 0):
        return None
    head = _header_length(rows, box, rulings)
    cells = list(_header_cells(rows[:head], columns, rulings))
    height = 1 + max((span.bottom for span, _ in cells), default=-1)
    for group in _body_groups([_without_overhang(row, columns) for row in rows[head:]], box, rulings):
        cells.extend(_row_cells(group, height))
        height += 1
    return _assemble(cells, height, len(columns), box, 0.8 if area.ruled else 0.6)


def _without_notes(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Leave out notes below a table: the last lines, if they have one segment, or a long one and no number."""
    end = len(lines)
    while end and _is_note(lines[end - 1]):
        end -= 1
    return tuple(lines[:end])


def _is_note(line: Line) -> bool:
    if len(line) == 1 or any(map(_is_number, line)):
        return len(line) == 1
    return bool(_NOTE.match(line[0].text)) or max(len(part.words) for part in line) > _LONG


def _without_overhang(row: Row, columns: Sequence[tuple[float, float]]) -> Row:
    """Keep a long label that stands alone and starts in the first column in that column."""
    if list(row.parts) == [0] and row.parts[0][1].left < columns[0][0] + 3 * (row.bottom - row.top):
        return Row(row.top, row.bottom, {0: (0, row.parts[0][1])})
    return row


def _full_rules(box: Box, rulings: Rulings) -> list[float]:
    """The positions of rulings from one side of a box to the other."""
    slack = 0.2 * (box.right - box.left)
    return sorted(
        {
            rule.at
            for rule in rulings.horizontal
            if rule.start < box.left + slack
            and rule.end > box.right - slack
            and box.top - 10 < rule.at < box.bottom + 10
        }
    )


def _body_groups(rows: Sequence[Row], box: Box, rulings: Rulings) -> Iterator[list[Row]]:
    """The rows of the body. If rulings separate most of its lines, each band between them is a row."""
    ys = _full_rules(box, rulings)
    bands: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        bands[bisect_left(ys, (row.top + row.bottom) / 2)].append(row)
    if len(bands) < max(3, 0.2 * len(rows)):
        yield from _grouped(rows)
        return
    for band in bands.values():
        yield from _band_groups(band)


def _fit(line: Line, columns: Sequence[tuple[float, float]]) -> Row:
    parts: dict[int, tuple[int, Segment]] = {}
    for whole in line:
        for part in _split(whole, columns):
            hit = _overlapped(columns, part)
            first, last = (hit[0], hit[-1]) if hit else _nearest(columns, part)
            if first in parts:
                last, part = max(last, parts[first][0]), segment_of((*parts[first][1].words, *part.words))
            parts[first] = (last, part)
    return Row(min(part.top for part in line), max(part.bottom for part in line), parts)


def _nearest(columns: Sequence[tuple[float, float]], part: Segment) -> tuple[int, int]:
    place = min(range(len(columns)), key=lambda index: abs(sum(columns[index]) / 2 - part.middle))
    return place, place


def _split(part: Segment, columns: Sequence[tuple[float, float]]) -> Iterator[Segment]:
    """Split a segment where two narrow headings of neighbouring columns nearly touch."""
    start = 0
    for place in _overlapped(columns, part)[:-1]:
        low, high = columns[place][1], columns[place + 1][0]
        for index in range(start + 1, len(part.words)):
            before, after = part.words[index - 1], part.words[index]
            height = after.bottom - after.top
            is_between = before.right <= high and after.left >= low and after.left - before.right > 0.31 * height
            if is_between and min(abs(before.right - low), abs(after.left - high)) <= 0.12 * height:
                yield segment_of(part.words[start:index])
                start = index
                break
    yield segment_of(part.words[start:])


def _is_table(area: Area, rows: Sequence[Row], columns: int, rules: int) -> bool:
    """Whether lines with cells are a table: not prose in columns, a list, code, formulas or a table of contents."""
    parts = [part for row in rows for _, part in row.parts.values()]
    several = sum(len(row.parts) > 1 for row in rows)
    if several < (2 if area.ruled else 3) or len(parts) < (0.4 if several > 3 else 0.75) * len(rows) * columns:
        return False
    is_long = sum(len(part.words) > _LONG for part in parts) > 0.2 * len(parts)
    if (is_long and not (rules > 3 and _has_labels(rows))) or _share(_CODE.search, parts) > 0.15:
        return False
    if _is_list(rows, columns) or _is_contents(rows, columns):
        return False
    aligned = _alignment(rows, columns)
    numbers = _share(_NUMBER.fullmatch, parts)
    if area.ruled:
        return aligned > 0.5
    if columns == 2:
        return several >= 4 and numbers >= 0.4 and aligned > 0.7
    return aligned > 0.6 and (numbers >= 0.3 or _is_text_table(parts, several, len(rows), aligned))


def _has_labels(rows: Sequence[Row]) -> bool:
    """Whether the first column has short labels beside the text of the others."""
    labels = _column(rows, 0)
    return len(labels) > 2 and sum(len(part.words) for part in labels) < 4 * len(labels)


def _is_text_table(parts: Sequence[Segment], several: int, height: int, aligned: float) -> bool:
    words = sum(len(part.words) for part in parts)
    small = _share(_SMALL.match, parts)
    return several >= max(4, 0.7 * height) and aligned > 0.85 and words < 4 * len(parts) and small < 0.25


def _share(test: Callable[[str], object], parts: Sequence[Segment]) -> float:
    return sum(bool(test(part.text)) for part in parts) / max(1, len(parts))


def _column(rows: Sequence[Row], place: int) -> list[Segment]:
    """The cells of a column that do not span others."""
    return [part for row in rows for first, (last, part) in row.parts.items() if first == last == place]


def _is_list(rows: Sequence[Row], columns: int) -> bool:
    """Whether one column only numbers the lines: a list, code, or formulas; or a form: labels that end in colons."""
    first, last = _column(rows, 0), _column(rows, columns - 1)
    if _share(_MARK.fullmatch, first) > 0.6 and columns < 4:
        return True
    if columns < 4 and _share(_EQUATION.fullmatch, last) > 0.6:
        return True
    return columns == 2 and _share(_LABEL.search, first) > 0.6


def _is_contents(rows: Sequence[Row], columns: int) -> bool:
    """Whether only the last column has numbers, and they grow like page numbers."""
    pages = [int(part.text) for part in _column(rows, columns - 1) if part.text.isdecimal() and len(part.text) < 6]
    if columns > 4 or len(pages) < 4 or len(pages) < 0.7 * len(_column(rows, columns - 1)):
        return False
    growing = sum(before <= after for before, after in zip(pages, pages[1:], strict=False))
    inner = [part for place in range(1, columns - 1) for part in _column(rows, place)]
    return growing > 0.9 * (len(pages) - 1) and pages[-1] > pages[0] and _share(_NUMBER.fullmatch, inner) < 0.3


def _alignment(rows: Sequence[Row], columns: int) -> float:
    """The share of cells that share their left, right or middle with most others of their column."""
    aligned = total = 0
    for place in range(columns):
        parts = _column(rows, place)
        if len(parts) > 1:
            slack = 0.3 * (parts[0].bottom - parts[0].top)
            edges = ([part.left for part in parts], [part.right for part in parts], [part.middle for part in parts])
            aligned += max(_most_near(values, slack) for values in edges)
            total += len(parts)
    return aligned / total if total else 0.0


def _most_near(values: list[float], slack: float) -> int:
    ordered = sorted(values)
    return max(bisect_right(ordered, value + 2 * slack) - place for place, value in enumerate(ordered))


def _is_number(part: Segment) -> bool:
    return _NUMBER.fullmatch(part.text) is not None


# Headers


def _header_length(rows: Sequence[Row], box: Box, rulings: Rulings) -> int:
    """The number of lines above the first wide ruling, or above the first line with numbers."""
    width = box.right - box.left
    for rule in rulings.horizontal:
        if rows[0].top < rule.at < rows[-1].top and rule.length > 0.8 * width and rule.start < box.left + 0.2 * width:
            above = sum((row.top + row.bottom) / 2 < rule.at for row in rows)
            if above <= 8 and not any(_has_numbers(row) for row in rows[: above - 1]):
                return above
            break
    head = next((place for place, row in enumerate(rows) if _has_numbers(row)), 0)
    if 0 < head < len(rows) - 1 and _gap(rows, head) > _gap(rows, head - 1) + 0.4 * (
        rows[head].bottom - rows[head].top
    ):
        head += 1
    while head > 1 and list(rows[head - 1].parts) == [0] and not _goes_on(rows[: head - 1], rows[head - 1]):
        head -= 1
    return head


def _gap(rows: Sequence[Row], place: int) -> float:
    return rows[place + 1].top - rows[place].bottom


def _has_numbers(row: Row) -> bool:
    places = set(row.parts) - {0}
    return 2 * len(row.numbers() & places) >= max(1, len(places))


def _header_cells(
    rows: Sequence[Row], columns: Sequence[tuple[float, float]], rulings: Rulings
) -> Iterator[tuple[Span, list[Word]]]:
    levels = _levels([_with_spanners(row, rows[place + 1 :], columns, rulings) for place, row in enumerate(rows)])
    covered = {
        place
        for level in levels
        for row in level
        for first, (last, _) in row.parts.items()
        if last > first
        for place in range(first, last + 1)
    }
    alone: defaultdict[int, list[Word]] = defaultdict(list)
    for top, level in enumerate(levels):
        texts: defaultdict[int, list[Word]] = defaultdict(list)
        lasts: dict[int, int] = {}
        for row in level:
            for first, (last, part) in row.parts.items():
                (texts if first in covered else alone)[first].extend(part.words)
                lasts[first] = max(last, lasts.get(first, first))
        for first, words in texts.items():
            yield Span(top, first, top, lasts[first]), words
    for place, words in alone.items():
        yield Span(0, place, len(levels) - 1, place), words


def _with_spanners(row: Row, below: Sequence[Row], columns: Sequence[tuple[float, float]], rulings: Rulings) -> Row:
    """Widen headings that have a ruling or several columns below them."""
    if not below:
        return row
    parts: dict[int, tuple[int, Segment]] = {}
    for first, (last, part) in row.parts.items():
        wide = _under_rule(part, below[0].bottom, columns, rulings) or _over_columns(row, first, below, columns)
        parts[wide[0] if wide else first] = (wide[1] if wide else last, part)
    return Row(row.top, row.bottom, parts)


def _over_columns(
    row: Row, first: int, below: Sequence[Row], columns: Sequence[tuple[float, float]]
) -> tuple[int, int] | None:
    """The columns over which a heading is centred, if each of them has a heading below it."""
    last, part = row.parts[first]
    near = 0.5 * (part.bottom - part.top)
    left, right = columns[first]
    if (
        first == last
        and min(abs(part.left - left), abs(part.right - right), abs(part.middle - (left + right) / 2)) < near
    ):
        return None
    headed = {place for line in below for place, (end, _) in line.parts.items() if place == end}
    taken = {place for start, (end, _) in row.parts.items() if start != first for place in range(start, end + 1)}
    free = [place in headed and place not in taken for place in range(len(columns))]
    best: tuple[float, tuple[int, int]] | None = None
    for start in range(max(0, first - _MOST_SPANNED), first + 1):
        for end in range(max(last, start + 1), min(len(columns), last + _MOST_SPANNED)):
            if all(free[start : end + 1]):
                distance = abs((columns[start][0] + columns[end][1]) / 2 - part.middle)
                best = min(best or (distance, (start, end)), (distance, (start, end)))
    return best[1] if best and (last > first or best[0] < 2 * near) else None


def _under_rule(
    part: Segment, limit: float, columns: Sequence[tuple[float, float]], rulings: Rulings
) -> tuple[int, int] | None:
    for rule in rulings.horizontal:
        if part.bottom - 3 <= rule.at <= limit - 4 and rule.start <= part.left + 2 and rule.end >= part.right - 2:
            places = [
                place for place, (left, right) in enumerate(columns) if rule.start <= (left + right) / 2 <= rule.end
            ]
            if 1 < len(places) < len(columns):
                return places[0], places[-1]
            return None
    return None


def _levels(rows: Sequence[Row]) -> list[list[Row]]:
    """Lines of a header grouped into levels: a new one starts below a heading that covers several columns."""
    levels: list[list[Row]] = []
    for row in rows:
        spanned = bool(levels) and any(last > first for above in levels[-1] for first, (last, _) in above.parts.items())
        again = spanned and any(last > first for first, (last, _) in row.parts.items())
        if levels and (not spanned or again):
            levels[-1].append(row)
        else:
            levels.append([row])
    return levels


# Rows


def _grouped(rows: Sequence[Row]) -> list[list[Row]]:
    """Lines grouped into rows: a line that continues cells of the line above belongs to the same row."""
    if not rows:
        return []
    groups = [[rows[0]]]
    limit = _row_gap(rows)
    for above, row in zip(rows, rows[1:], strict=False):
        if _continues_row(groups[-1], row, row.top - above.bottom, limit):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _row_gap(rows: Sequence[Row]) -> float | None:
    """The gap above which a new row starts, if the gaps between lines are clearly of two sizes."""
    pairs = sorted(
        (below.top - above.bottom, bool(above.numbers() & below.numbers() - {0}))
        for above, below in zip(rows, rows[1:], strict=False)
    )
    height = median(row.bottom - row.top for row in rows)
    best = max(
        ((after[0] - before[0], place) for place, (before, after) in enumerate(zip(pairs, pairs[1:], strict=False), 1)),
        default=(0.0, 0),
    )
    tight = pairs[: best[1]]
    if best[0] < 0.25 * height or sum(conflict for _, conflict in tight) > 0.2 * len(tight):
        return None
    return (pairs[best[1] - 1][0] + pairs[best[1]][0]) / 2


def _continues_row(row: Sequence[Row], line: Row, gap: float, limit: float | None) -> bool:
    numbers = {place for one in row for place in one.numbers()}
    height = line.bottom - line.top
    if numbers & line.numbers():
        return False
    if gap < -0.2 * height:
        return True
    if gap > (1.2 * height if limit is None else limit) or _starts_row(row, line):
        return False
    if limit is not None:
        return True
    used = {place for one in row for place in one.parts}
    new = set(line.parts)
    if new <= used and 0 not in new:
        return len(new) <= len(used) / 2 or _goes_on(row, line)
    if new == {0} or used == {0} or (new < used):
        return 0 in used and _goes_on(row, line)
    return False


def _starts_row(row: Sequence[Row], line: Row) -> bool:
    """Whether a line has a new label: values follow a header, or the label column was empty in the line above."""
    if 0 not in line.parts or not any(0 in one.parts for one in row):
        return False
    others = set(line.parts) - {0}
    if others and others <= line.numbers() and all(any(place in one.parts for one in row) for place in others):
        return True
    apart = line.top > row[-1].bottom - 0.2 * (line.bottom - line.top)
    return apart and 0 not in row[-1].parts and not line.parts[0][1].text[0].islower()


def _goes_on(row: Sequence[Row], line: Row) -> bool:
    """Whether the text of a line continues the cells above it: it starts small, or the one above is not complete."""
    for place, (_, part) in line.parts.items():
        before = next((one.parts[place][1].text for one in reversed(row) if place in one.parts), "")
        start = part.text[0]
        if before and not (start.islower() or start in "(&/" or before[-1] in "-,(&/"):
            return False
    return bool(row)


def _row_cells(group: Sequence[Row], top: int) -> Iterator[tuple[Span, list[Word]]]:
    texts: defaultdict[int, list[Word]] = defaultdict(list)
    lasts: dict[int, int] = {}
    for row in group:
        for first, (last, part) in row.parts.items():
            texts[first].extend(part.words)
            lasts[first] = max(last, lasts.get(first, first))
    for first, words in texts.items():
        yield Span(top, first, top, lasts[first]), words


def _assemble(
    cells: Sequence[tuple[Span, list[Word]]], height: int, width: int, box: Box, confidence: float, *, sure: bool = True
) -> Table:
    """A table from cells; places that no cell covers are empty cells."""
    cells, height, width = _compact([cell for cell in cells if cell[1]])
    taken: dict[tuple[int, int], tuple[Span, list[Word]]] = {}
    starts = {(span.top, span.left) for span, _ in cells}
    for span, words in sorted(cells, key=lambda cell: cell[0]):
        bottom, right = span.top, span.left
        while (
            right < min(span.right, width - 1)
            and (span.top, right + 1) not in starts
            and (span.top, right + 1) not in taken
        ):
            right += 1
        while bottom < min(span.bottom, height - 1) and not any(
            (bottom + 1, place) in starts or (bottom + 1, place) in taken for place in range(span.left, right + 1)
        ):
            bottom += 1
        whole = Span(span.top, span.left, bottom, right)
        for row in range(span.top, bottom + 1):
            for column in range(span.left, right + 1):
                taken[row, column] = (whole, words)
    rows: list[tuple[Cell, ...]] = []
    for row in range(height):
        line: list[Cell] = []
        for column in range(width):
            span, words = taken.get((row, column), (Span(row, column, row, column), []))
            if (span.top, span.left) == (row, column):
                line.append(cell_of(words, span.right - column + 1, span.bottom - row + 1))
        rows.append(tuple(line))
    return Table(box, tuple(rows), confidence, sure)


def _compact(cells: Sequence[tuple[Span, list[Word]]]) -> tuple[list[tuple[Span, list[Word]]], int, int]:
    """Leave out rows and columns in which no cell starts."""
    tops = sorted({span.top for span, _ in cells})
    lefts = sorted({span.left for span, _ in cells})
    moved = [
        (
            Span(
                bisect_left(tops, span.top),
                bisect_left(lefts, span.left),
                bisect_right(tops, span.bottom) - 1,
                bisect_right(lefts, span.right) - 1,
            ),
            words,
        )
        for span, words in cells
    ]
    return moved, len(tops), len(lefts)


# Ruled tables


def _ruled_table(grid: Grid, words: Sequence[Word]) -> Table | None:
    if len(words) < _LEAST_CELLS or len(grid.xs) < 3:
        return None
    grid = _with_columns(grid, words)
    places = {
        (row, column): Span(*span)
        for span in spans(grid)
        for row in range(span[0], span[2] + 1)
        for column in range(span[1], span[3] + 1)
    }
    texts: defaultdict[Span, list[Word]] = defaultdict(list)
    crossed = 0
    for word in words:
        row, column = _slot(grid.ys, (word.top + word.bottom) / 2), _slot(grid.xs, (word.left + word.right) / 2)
        texts[places[row, column]].append(word)
        crossed += places[row, _slot(grid.xs, word.left + 2)] != places[row, _slot(grid.xs, word.right - 2)]
    if crossed > 0.03 * len(words) or len(texts) < 0.25 * len(set(places.values())):
        return None
    cells = [part for span, inside in texts.items() for part in _unjoined(span, inside, grid.xs)]
    cells, height = _with_bands(cells, len(grid.ys) - 1)
    cells, box = _without_titles(cells, len(grid.xs) - 1, grid.box)
    if not _is_grid(cells):
        return None
    return _assemble(cells, height, len(grid.xs) - 1, box, 0.9)


def _with_outer_rows(grid: Grid, words: Sequence[Word]) -> Grid:
    """Add a header above the rulings, and a last row below them, if they have a cell in most columns."""
    if len(grid.xs) < 4 or len(grid.ys) < 3:
        return grid
    reach = min(2 * (grid.ys[1] - grid.ys[0]), _MOST_REACH)
    top, bottom = grid.box.top, grid.box.bottom
    above = [word for word in words if _is_inside(word, Box(grid.xs[0], top - reach, grid.xs[-1], top))]
    below = [word for word in words if _is_inside(word, Box(grid.xs[0], bottom, grid.xs[-1], bottom + reach))]
    first = [line[0].top - 1 for line in text_lines(above)[-1:] if _fills(line, grid)]
    last = [line[0].bottom + 1 for line in text_lines(below)[:1] if _fills(line, grid)]
    if not first and not last:
        return grid
    closed = tuple(Ruling(y, grid.xs[0], grid.xs[-1]) for y in (top, bottom))
    return Grid(grid.xs, (*first, *grid.ys, *last), Rulings((*grid.rulings.horizontal, *closed), grid.rulings.vertical))


def _fills(line: Line, grid: Grid) -> bool:
    """Whether each segment of a line keeps to a column of the grid, and most columns have one."""
    places = [(_slot(grid.xs, part.left + 1), _slot(grid.xs, part.right - 1)) for part in line]
    return all(first == last for first, last in places) and len(set(places)) >= max(3, 0.6 * (len(grid.xs) - 1))


def _with_columns(grid: Grid, words: Sequence[Word]) -> Grid:
    """Add columns that white space separates inside a column of the grid."""
    inside: defaultdict[int, list[Word]] = defaultdict(list)
    for word in words:
        inside[_slot(grid.xs, (word.left + word.right) / 2)].append(word)
    more: list[float] = []
    for column in inside.values():
        lines = text_lines(column)
        several = [line for line in lines if len(line) > 1]
        if (
            len(several) < max(4, 0.6 * len(lines))
            or _share(_NUMBER.fullmatch, [part for line in lines for part in line]) < 0.3
        ):
            continue
        columns = columns_of(lines)
        more.extend((before[1] + after[0]) / 2 for before, after in zip(columns, columns[1:], strict=False))
    return Grid(tuple(sorted((*grid.xs, *more))), grid.ys, grid.rulings) if more else grid


def _is_grid(cells: Sequence[tuple[Span, list[Word]]]) -> bool:
    """Whether at least two rows have at least two cells with text each."""
    filled = Counter(span.top for span, words in cells if words)
    several = sum(count > 1 for count in filled.values())
    return several > max(1, 0.4 * len(filled))


def _without_titles(
    cells: list[tuple[Span, list[Word]]], width: int, box: Box
) -> tuple[list[tuple[Span, list[Word]]], Box]:
    """Leave out first rows that consist of one cell: the title of the table, in its frame."""
    rest = sorted(cells, key=lambda cell: cell[0])
    while (
        len(rest) > _LEAST_CELLS
        and rest[0][0].right - rest[0][0].left == width - 1
        and rest[1][0].top > rest[0][0].bottom
    ):
        rest = rest[1:]
        top = min(word.top for _, words in rest if words for word in words)
        box = Box(box.left, top - 1, box.right, box.bottom)
    while (
        len(rest) > _LEAST_CELLS
        and rest[-1][0].right - rest[-1][0].left == width - 1
        and (len(rest[-1][1]) > _PROSE or _NOTE.match(rest[-1][1][0].text))
    ):
        box = Box(box.left, box.top, box.right, min(word.top for word in rest[-1][1]) - 1)
        rest = rest[:-1]
    return rest, box


def _unjoined(span: Span, words: list[Word], xs: Sequence[float]) -> Iterator[tuple[Span, list[Word]]]:
    """Divide a cell without inner vertical rulings whose words keep to the columns of the grid."""
    parts = [part for line in text_lines(words) for part in line] if span.right > span.left else []
    used = {_slot(xs, part.left + 1) for part in parts}
    if len(used) < 2 or any(_slot(xs, part.left + 1) != _slot(xs, part.right - 1) for part in parts):
        yield span, words
        return
    for column in range(span.left, span.right + 1):
        inside = [word for part in parts if _slot(xs, part.middle) == column for word in part.words]
        yield Span(span.top, column, span.bottom, column), inside


def _with_bands(cells: Sequence[tuple[Span, list[Word]]], height: int) -> tuple[list[tuple[Span, list[Word]]], int]:
    """Divide the rows between two rulings that hold several rows of text."""
    bands: defaultdict[int, list[tuple[Span, list[Word]]]] = defaultdict(list)
    for span, words in cells:
        if span.top == span.bottom:
            bands[span.top].append((span, words))
    starts = [0]
    result: list[tuple[Span, list[Word]]] = []
    for row in range(height):
        groups = _band_rows(bands[row])
        starts.append(starts[-1] + max(1, len(groups)))
        for place, group in enumerate(groups):
            result.extend(
                (Span(starts[row] + place, span.left, starts[row] + place, span.right), words) for span, words in group
            )
    result.extend(
        (Span(starts[span.top], span.left, starts[span.bottom + 1] - 1, span.right), words)
        for span, words in cells
        if span.top < span.bottom
    )
    return result, starts[-1]


def _band_rows(cells: Sequence[tuple[Span, list[Word]]]) -> list[list[tuple[Span, list[Word]]]]:
    """The rows of text in a band between two rulings; one if its cells only have several lines."""
    lines = text_lines([word for _, words in cells for word in words])
    if len(lines) < 2 or sum(bool(words) for _, words in cells) < 2:
        return [list(cells)]
    owner = {id(word): span for span, words in cells for word in words}
    rows: list[Row] = []
    for line in lines:
        inside: defaultdict[Span, list[Word]] = defaultdict(list)
        for part in line:
            for word in part.words:
                inside[owner[id(word)]].append(word)
        rows.append(
            Row(
                min(part.top for part in line),
                max(part.bottom for part in line),
                {span.left: (span.right, segment_of(words)) for span, words in inside.items()},
            )
        )
    return [
        [(Span(0, span.left, 0, span.right), words) for span, words in _row_cells(group, 0)]
        for group in _band_groups(rows)
    ]


def _band_groups(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows between two rulings: one, unless numbers are stacked, white space divides it, or lines start afresh."""
    stacked = Counter(place for row in rows for place in row.numbers())
    used = {place for row in rows for place in row.parts}
    if sum(count > 1 for count in stacked.values()) >= max(1, (len(used) - 1) / 2):
        return _grouped(rows)
    height = median(row.bottom - row.top for row in rows)
    wide = [place for place in range(1, len(rows)) if _gap(rows, place - 1) > 0.7 * height]
    parts = [list(rows[start:end]) for start, end in zip([0, *wide], [*wide, len(rows)], strict=True)]
    if sum(len({place for row in part for place in row.parts}) > 1 for part in parts) > 1:
        return parts
    if _fresh_lines(rows) >= max(3, 0.5 * len(rows)):
        return _grouped(rows)
    groups = [[rows[0]]]
    for row in rows[1:]:
        if _starts_row(groups[-1], row):
            groups.append([row])
        else:
            groups[-1].append(row)
    return groups


def _fresh_lines(rows: Sequence[Row]) -> int:
    """The lines that fill most columns and do not continue the words above them."""
    used = {place for row in rows for place in row.parts}
    full = [
        place for place, row in enumerate(rows) if len(row.parts) >= max(2, 0.7 * len(used)) and min(used) in row.parts
    ]
    return sum(not _goes_on(rows[:place], rows[place]) for place in full)


def _slot(edges: Sequence[float], value: float) -> int:
    return min(max(bisect_right(edges, value) - 1, 0), len(edges) - 2)


def cell_of(words: Sequence[Word], columns: int = 1, rows: int = 1) -> Cell:
    """A cell with these words, in reading order: line by line, lines joined by a space."""
    if not words:
        return Cell("", None, columns, rows)
    text = " ".join(part.text for line in text_lines(words) for part in line)
    return Cell(text, box_of(words), columns, rows)
