"""Finds the tables of a PDF page from its words, rulings and backgrounds. Pure: positions in, tables out.

Rulings that touch make a grid; what they leave open, and tables without rulings, is decided by white space, by how
words are aligned, and by numbers: two numbers above each other are never in the same row.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import NamedTuple

from octavo.extract.extracted import Box
from octavo.extract.pdf import markup
from octavo.extract.pdf.content import PageContent, TextRun, Word
from octavo.extract.pdf.table_geometry import (
    GAP,
    LEADER_MARKS,
    NUMBER_GAP,
    Column,
    Grid,
    Line,
    Ruling,
    Rulings,
    Segment,
    Span,
    box_of,
    columns_of,
    grids,
    is_right_to_left,
    overlapped,
    page_rulings,
    segment_of,
    spans,
    text_lines,
    wide_rules,
    without_leader,
)

_MOST_WORDS = 8000
_MOST_SINGLE = 4  # lines with one cell between lines with several
_MOST_SPANNED = 12
_MOST_HEADER_LINES = 8
_MOST_REACH = 30.0  # points
_MOST_APART = 60.0
_LEAST_CELLS = 4
_LEAST_PARTS = 6
_FEW = 3
_LONG = 7  # words; a cell with more is likely prose
_PROSE = 12
_SENTENCE = 5
_SAME_START = 8.0  # points
_SIGNS = r"[^\w\s]*[$€£¥~<>≤≥±+\-\u2212\u2013(]*\s*"
_NUMBER = re.compile(
    _SIGNS + r"\d[\d.,' \u00a0/:]*\s*[%)*a-z†‡]{0,2}|[-\u2013\u2014.*‡†n/a]{1,4}|\(\d+\)", re.IGNORECASE
)
_MARK = re.compile(r"[(\[]?(\d{1,3}|[a-z]|[ivx]{1,5})[.:)\]]{1,2}|[^\w\s]{1,2}", re.IGNORECASE)
_EQUATION = re.compile(r"\(\d+(\.\d+)*[a-z]?\)")
_CODE = re.compile(r"[=∑∏∫√∂∈∀←→⇐⇒≔{};]|//|/\*|\*/")
_PAGE = re.compile(r"(?:^|[^\d.,])(\d{1,4})$")
_NOTE = re.compile(r"(notes?|sources?|anmerkung|quelle|remarque)\b", re.IGNORECASE)
_TITLE = re.compile(r"(table|tab\.|exhibit|figure|fig\.|chart|tabelle|tableau|tabla|tabella)\b", re.IGNORECASE)

Piece = tuple[Span, list[Word]]


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

    `sure` is False if rows could not be separated with certainty.
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
            left = 0
            for cell in row:
                while (top, left) in taken:
                    left += 1
                texts[top, left] = cell.text
                taken.update((top + down, left + right) for down in range(cell.rows) for right in range(cell.columns))
        width = max((column for _, column in taken), default=-1) + 1
        return tuple(tuple(texts.get((row, column), "") for column in range(width)) for row in range(len(self.rows)))


def find_tables(page: PageContent) -> tuple[Table, ...]:
    """The tables of a page, from top to bottom."""
    if _is_turned(page):
        return tuple(replace(table, box=_back(table.box, page)) for table in find_tables(_upright(page)))
    gaps = _gap_places(page.runs)
    has_rulings = len(page.lines) + len(page.shapes) > _LEAST_CELLS
    if not gaps and not has_rulings:
        return ()
    drawn = [(one, grids(one)) for one in page_rulings(page) if one]
    rulings = drawn[-1][0]
    if len(gaps) < _FEW and next(wide_rules(rulings), None) is None:
        gaps = []
    if not gaps and not any(found for _, found in drawn):
        return ()
    return tuple(sorted(_tables(page, drawn, gaps), key=lambda table: (table.box.top, table.box.left)))


def _tables(page: PageContent, drawn: Sequence[tuple[Rulings, list[Grid]]], gaps: Sequence[float]) -> Iterator[Table]:
    """The tables in grids, and those in the words that are left near the gaps."""
    words = [word for run in page.runs if abs(run.rotation) < 1 for word in run.words if _is_usable(word)]
    if len(words) > _MOST_WORDS:
        return
    for _, found in drawn:
        for table in _ruled_tables(page, words, found):
            yield table
            words = [word for word in words if not _is_inside(word, table.box)]
    if gaps:
        yield from _aligned_tables(text_lines(_near(words, gaps)), drawn[-1][0])


def _is_usable(word: Word) -> bool:
    """Whether a word has a place and is not only dots that lead to a number."""
    left, top, right, bottom, text = word
    if not isfinite(left + top + right + bottom):
        return False
    return bool((without_leader(word).text if text.endswith(LEADER_MARKS) else text).strip())


def _ruled_tables(page: PageContent, words: Sequence[Word], found: Sequence[Grid]) -> Iterator[Table]:
    turned = [Word(*run.box, run.text.strip()) for run in page.runs if abs(run.rotation) >= 1]
    for grid in found:
        whole = _with_outer_rows(grid, words)
        box = whole.box
        table = _ruled_table(whole, [word for word in (*words, *turned) if _is_inside(word, box)])
        if table:
            yield table
            words = [word for word in words if not _is_inside(word, table.box)]


def to_markdown(table: Table) -> str:
    """Write a table as Markdown. The text of a spanning cell is in the first of its places."""
    return markup.table(table.grid)


def continues(previous: Table, following: Table) -> bool:
    """Whether a table at the top of a page continues the one at the end of the page before: the same columns."""
    near = 0.05 * (previous.box.right - previous.box.left)
    ends = (previous.box.left - following.box.left, previous.box.right - following.box.right)
    return len(previous.grid[0]) == len(following.grid[0]) and max(map(abs, ends)) <= near


def repeats_header(previous: Table, following: Table) -> bool:
    """Whether a table that continues another one starts with the same first row."""
    return continues(previous, following) and previous.grid[0] == following.grid[0]


def _gap_places(runs: Sequence[TextRun]) -> list[float]:
    """A quick check: where lines have words with a wide gap between them, if another such line is near."""
    height = median(run.box.bottom - run.box.top for run in runs) if runs else 0.0
    lines: list[list[TextRun]] = []
    at = 0.0
    for run in sorted(runs, key=lambda run: run.box.top + run.box.bottom):
        middle = run.box.top + run.box.bottom
        if lines and middle - at < height:
            lines[-1].append(run)
        else:
            lines.append([run])
            at = middle
    gaps = [(line[0].box.top + line[0].box.bottom) / 2 for line in lines if len(line) > 1 and _has_gap(line)]
    return sorted({at for high, low in pairwise(gaps) if low - high < _MOST_APART for at in (high, low)})


def _has_gap(line: list[TextRun]) -> bool:
    """Whether two runs are as far apart as cells are. Numbers are closer to each other than words."""
    line.sort(key=lambda run: run.box.left)
    before = line[0]
    for run in line[1:]:
        gap, height = run.box.left - before.box.right, min(_height(run), _height(before))
        if gap > GAP * height or (gap > NUMBER_GAP * height and run.text[0].isdigit()):
            return True
        if run.box.right > before.box.right:
            before = run
    return False


def _height(run: TextRun) -> float:
    return run.box.bottom - run.box.top


def _near(words: Sequence[Word], places: Sequence[float]) -> list[Word]:
    """The words near these places, without the dots that lead to numbers."""
    bands = {round(at / _MOST_APART) + add for at in places for add in (-1, 0, 1)}
    near = (word for word in words if round((word.top + word.bottom) / 2 / _MOST_APART) in bands)
    return [without_leader(word) for word in near]


def _is_turned(page: PageContent) -> bool:
    turned = sum(45 < abs(run.rotation) % 180 < 135 for run in page.runs)  # noqa: PLR2004
    return turned > 0.7 * len(page.runs)


def _upright(page: PageContent) -> PageContent:
    """A page whose text runs from bottom to top or from top to bottom, turned so that it runs to the right."""
    runs = tuple(
        run._replace(
            box=_turn(run.box, page),
            rotation=0.0,
            words=tuple(Word(*_turn(Box(*word[:4]), page), word.text) for word in run.words),
        )
        for run in page.runs
    )
    shapes = tuple(shape._replace(box=_turn(shape.box, page)) for shape in page.shapes)
    lines = tuple(_turn(line, page) for line in page.lines)
    return replace(page, width=page.height, height=page.width, runs=runs, shapes=shapes, lines=lines)


def _reads_up(page: PageContent) -> bool:
    """Whether turned text runs from bottom to top, by the order of the words in its longest run."""
    words = max((run.words for run in page.runs), key=len)
    return words[0].top >= words[-1].top


def _turn(box: Box, page: PageContent) -> Box:
    if _reads_up(page):
        return Box(page.height - box.bottom, box.left, page.height - box.top, box.right)
    return Box(box.top, page.width - box.right, box.bottom, page.width - box.left)


def _back(box: Box, page: PageContent) -> Box:
    if _reads_up(page):
        return Box(box.top, page.height - box.right, box.bottom, page.height - box.left)
    return Box(page.width - box.bottom, box.left, page.width - box.top, box.right)


def _is_inside(word: Word, box: Box) -> bool:
    middle = (word.top + word.bottom) / 2
    return box.left <= (word.left + word.right) / 2 <= box.right and box.top <= middle <= box.bottom


# Tables with words in columns


class Area(NamedTuple):
    """Consecutive lines that may be a table. `ruled`: between horizontal rulings of the same width."""

    lines: tuple[Line, ...]
    ruled: bool


def _aligned_tables(lines: list[Line], rulings: Rulings) -> Iterator[Table]:
    for left, right, ys in wide_rules(rulings):
        for area in _ruled_areas(lines, left, right, ys):
            table = _aligned_table(area, rulings)
            if table:
                yield table
                rest = (tuple(part for part in line if not _touches(part, table.box)) for line in lines)
                lines = [line for line in rest if line]
    for block in _blocks(_without_prose(lines)):
        table = _aligned_table(Area(tuple(block), ruled=False), rulings)
        if table:
            yield table


def _touches(part: Segment, box: Box) -> bool:
    return part.left < box.right and part.right > box.left and box.top <= (part.top + part.bottom) / 2 <= box.bottom


def _ruled_areas(lines: Sequence[Line], left: float, right: float, ys: Sequence[float]) -> Iterator[Area]:
    """Runs of bands between wide rulings that look like parts of a table, and the lines that go on outside of them."""
    parts = (tuple(part for part in line if left - 10 < part.left and part.right < right + 10) for line in lines)
    near = [line for line in parts if line]
    bands = [bisect_right(ys, (line[0].top + line[0].bottom) / 2) for line in near]
    tabular = {band: _is_tabular(near[bisect_left(bands, band) : bisect_right(bands, band)]) for band in set(bands)}
    start = 0
    while start < len(near):
        end = start
        while end < len(near) and 0 < bands[end] < len(ys) and tabular[bands[end]]:
            end += 1
        if end > start:
            start, end = _extended(near, start, end)
            yield Area(tuple(near[start:end]), ruled=True)
        start = end + 1


def _is_tabular(lines: Sequence[Line]) -> bool:
    widest = max(map(len, lines))
    return len(lines[0]) > 1 or widest > _FEW or sum(len(line) > 1 for line in lines) >= 0.4 * len(lines)


def _extended(lines: Sequence[Line], start: int, end: int) -> tuple[int, int]:
    """Add lines above the first ruling and below the last one that have several cells."""
    while start > 0 and len(lines[start - 1]) > 1 and _is_next(lines[start - 1], lines[start]):
        start -= 1
    while end < len(lines) and len(lines[end]) > 1 and _is_next(lines[end - 1], lines[end]):
        end += 1
    return start, end


def _is_next(above: Line, below: Line) -> bool:
    is_near = below[0].top - above[0].bottom < 1.5 * below[0].height
    return is_near and all(len(part.words) <= _LONG for part in (*above, *below))


def _without_prose(lines: Sequence[Line]) -> list[Line]:
    """Leave out a column of prose beside other words: many long segments that start at one place, often small."""
    starts: defaultdict[int, list[Segment]] = defaultdict(list)
    for part in (part for line in lines if len(line) > 1 for part in line if len(part.words) >= _SENTENCE):
        starts[round(part.left / _SAME_START)].append(part)
    prose = {at for at, parts in starts.items() if len(parts) > _LONG and _share(_starts_lower, parts) > 0.4}  # noqa: PLR2004
    if not prose:
        return list(lines)
    ends: dict[int, float] = {}
    result: list[Line] = []
    for line in lines:
        kept: list[Segment] = []
        for part in line:
            at = round(part.left / _SAME_START)
            if at in prose and (len(part.words) >= _SENTENCE or part.top - ends.get(at, 0.0) < 0.6 * part.height):
                ends[at] = part.bottom
            else:
                kept.append(part)
        result.append(tuple(kept))
    return [line for line in result if line]


def _blocks(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Runs of lines with several segments, with a few lines of one segment between them."""
    start = end = -1
    for place, line in enumerate(lines):
        if start >= 0:
            is_far = line[0].top - lines[place - 1][0].bottom > 2.5 * line[0].height
            if is_far or place - end > _MOST_SINGLE or max(len(part.words) for part in line) > _PROSE:
                yield from _trimmed(lines, start, end)
                start = -1
        if len(line) > 1:
            start, end = (place if start < 0 else start), place
    if start >= 0:
        yield from _trimmed(lines, start, end)


def _trimmed(lines: Sequence[Line], start: int, end: int) -> Iterator[Sequence[Line]]:
    while start <= end and (_TITLE.match(lines[start][0].text) or len(lines[start]) == 1):
        start += 1
    if end - start > 1:
        left = min(line[0].left for line in lines[start : end + 1])
        while start > 0 and len(lines[start - 1]) == 1 and _is_heading(lines[start - 1][0], lines[start], left):
            start -= 1
        yield lines[start : end + 1]


def _is_heading(part: Segment, below: Line, left: float) -> bool:
    """Whether a line of one segment belongs to the header below it: close, short, and not over the first column."""
    is_near = below[0].top - part.bottom < 0.8 * part.height and part.left > left + 5 * part.height
    return is_near and len(part.words) < _LONG and not _TITLE.match(part.text)


class Row(NamedTuple):
    """A line of text: for the first column of each part, its last column and the words; and columns with numbers."""

    top: float
    bottom: float
    parts: dict[int, tuple[int, Segment]]
    numbers: frozenset[int]

    @property
    def height(self) -> float:
        return self.bottom - self.top


def _row(placed: Iterable[tuple[int, int, Segment]]) -> Row:
    """A row; parts that start in the same column are joined."""
    parts: dict[int, tuple[int, Segment]] = {}
    for first, last, part in placed:
        if first in parts:
            before = parts[first]
            parts[first] = (max(last, before[0]), segment_of((*before[1].words, *part.words)))
        else:
            parts[first] = (last, part)
    numbers = frozenset(place for place, (_, part) in parts.items() if _NUMBER.fullmatch(part.text))
    tops, bottoms = [part.top for _, part in parts.values()], [part.bottom for _, part in parts.values()]
    return Row(min(tops), max(bottoms), parts, numbers)


def _aligned_table(area: Area, rulings: Rulings) -> Table | None:
    lines = _without_notes(area.lines, rulings if area.ruled else None)
    parts = [part for line in lines for part in line]
    columns = columns_of(lines) if _may_be_table(lines, parts, ruled=area.ruled) else []
    if len(columns) < 2:  # noqa: PLR2004
        return None
    rows = [_row(_fit(line, columns)) for line in lines]
    box = box_of(parts)
    rules = _full_rules(box, rulings)
    if not _is_table(rows, len(columns), len(rules) if area.ruled else 0, ruled=area.ruled):
        return None
    head = _header_length(rows, rules)
    fresh = _fresh_lines(rows[:head])
    head = 1 if fresh > _FEW else head
    cells = list(_header_cells(rows[:head], columns, rulings))
    height = 1 + max((span.bottom for span, _ in cells), default=-1)
    groups = list(_body_groups([_without_overhang(row, columns) for row in rows[head:]], rules))
    for top, group in enumerate(groups, height):
        cells.extend(_row_cells(group, top))
    return _assemble(cells, box, 0.8 if area.ruled else 0.6, sure=fresh < _FEW and all(map(_is_sure, groups)))


def _may_be_table(lines: Sequence[Line], parts: Sequence[Segment], *, ruled: bool) -> bool:
    """A quick check before columns are looked for: enough cells, little code and mathematics, no prose.

    It is less strict than `_is_table`, because columns can still divide and join parts.
    """
    several = sum(len(line) > 1 for line in lines)
    if several < 2 or 3 * sum(bool(_CODE.search(part.text)) for part in parts) > len(parts):  # noqa: PLR2004
        return False
    if ruled or _share(_NUMBER.fullmatch, parts) >= 0.25:  # noqa: PLR2004
        return True
    words = _mean_words(parts)
    if several < 0.6 * len(lines) or words >= _FEW:
        return False
    return words < 2.2 or _share(_starts_upper, parts) > 0.7  # noqa: PLR2004


def _without_notes(lines: Sequence[Line], rulings: Rulings | None) -> Sequence[Line]:
    """Leave out notes below a table: the last lines, if they have one segment, or a long one and no number.

    If rulings divide a table into many rows, these lines are in its last row.
    """
    box = box_of([part for line in lines for part in line])
    if rulings and len(_full_rules(box, rulings)) > _FEW:
        return lines
    end = len(lines)
    while end and _is_note(lines[end - 1]):
        end -= 1
    return lines[:end]


def _is_note(line: Line) -> bool:
    if len(line) == 1 or any(_NUMBER.fullmatch(part.text) for part in line):
        return len(line) == 1
    return bool(_NOTE.match(line[0].text)) or max(len(part.words) for part in line) > _LONG


def _without_overhang(row: Row, columns: Sequence[Column]) -> Row:
    """Keep a long label that is alone on its line and starts in the first column in that column."""
    if list(row.parts) == [0] and row.parts[0][1].left < columns[0][0] + 3 * row.height:
        return row._replace(parts={0: (0, row.parts[0][1])})
    return row


def _full_rules(box: Box, rulings: Rulings) -> list[float]:
    """The positions of rulings from one side of a box to the other."""
    slack = 0.2 * (box.right - box.left)
    wide = (rule for rule in rulings.horizontal if rule.start < box.left + slack and rule.end > box.right - slack)
    return sorted({rule.at for rule in wide if box.top - 10 < rule.at < box.bottom + 10})


def _fit(line: Line, columns: Sequence[Column]) -> Iterator[tuple[int, int, Segment]]:
    for whole in line:
        for part in _split(whole, columns):
            if hit := overlapped(columns, part):
                yield hit[0], hit[-1], part
            else:
                place = min(range(len(columns)), key=lambda one: abs(sum(columns[one]) / 2 - part.middle))
                yield place, place, part


def _split(part: Segment, columns: Sequence[Column]) -> Iterator[Segment]:
    """Split a segment where two narrow headings of neighbouring columns nearly touch."""
    start = 0
    for place in overlapped(columns, part)[:-1]:
        low, high = columns[place][1], columns[place + 1][0]
        for index in range(start + 1, len(part.words)):
            before, after = part.words[index - 1], part.words[index]
            height = after.bottom - after.top
            is_between = before.right <= high and after.left >= low and after.left - before.right > 0.31 * height
            if is_between and min(abs(before.right - low), abs(after.left - high)) <= 0.12 * height:
                yield segment_of(part.words[start:index])
                start = index
                break
    yield segment_of(part.words[start:]) if start else part


# What is a table, and what only looks like one


def _is_table(rows: Sequence[Row], columns: int, rules: int, *, ruled: bool) -> bool:
    """Whether lines with cells are a table: not prose in columns, a list, code, formulas or a table of contents."""
    parts = [part for row in rows for _, part in row.parts.values()]
    several = sum(len(row.parts) > 1 for row in rows)
    numbers = _share(_NUMBER.fullmatch, parts)
    least = (0.4 if several > _FEW else 0.75) * len(rows) * columns
    if several < (2 if ruled else _FEW) or len(parts) < max(_LEAST_PARTS, least) or _share(_CODE.search, parts) > 0.15:  # noqa: PLR2004
        return False
    if _is_list(rows, columns) or _is_contents(rows) or _is_prose(rows, columns, rules):
        return False
    aligned = _alignment(rows, columns)
    if ruled:
        return aligned > 0.65  # noqa: PLR2004
    if _is_formula(rows) or columns == 2:  # noqa: PLR2004
        return several > _FEW and numbers >= 0.4 and aligned > 0.7  # noqa: PLR2004
    return aligned > 0.6 and (numbers >= 0.3 or (several > 0.7 * len(rows) and _is_text_table(parts, aligned)))  # noqa: PLR2004


def _is_prose(rows: Sequence[Row], columns: int, rules: int) -> bool:
    """Whether cells are lines of prose, not labels or a text that rulings and labels divide."""
    parts = [part for row in rows for _, part in row.parts.values()]
    if sum(len(part.words) > _LONG for part in parts) > 0.2 * len(parts):
        return not (rules > _FEW and _has_labels(rows))
    prose = [place for place in range(columns) if _mean_words(_column(rows, place)) > 4]  # noqa: PLR2004
    return not rules and any(_share(_starts_lower, _column(rows, place)) > 0.4 for place in prose)  # noqa: PLR2004


def _has_labels(rows: Sequence[Row]) -> bool:
    """Whether the first column has short labels beside the text of the others."""
    labels = _column(rows, 0)
    return len(labels) > 2 and sum(len(part.words) for part in labels) < 4 * len(labels)  # noqa: PLR2004


def _is_text_table(parts: Sequence[Segment], aligned: float) -> bool:
    """Whether cells are aligned and short; if they have several words, they must not start like lines of prose."""
    words = _mean_words(parts)
    return aligned > 0.85 and (words < 2 or (words < _FEW and _share(_starts_upper, parts) > 0.8))  # noqa: PLR2004


def _starts_upper(text: str) -> bool:
    return text[0].isupper() or text[0].isdigit()


def _starts_lower(text: str) -> bool:
    return text[0].islower()


def _share(test: Callable[[str], object], parts: Sequence[Segment]) -> float:
    return sum(bool(test(part.text)) for part in parts) / max(1, len(parts))


def _column(rows: Sequence[Row], place: int) -> list[Segment]:
    """The cells of a column that do not span others."""
    return [part for row in rows for first, (last, part) in row.parts.items() if first == last == place]


def _is_list(rows: Sequence[Row], columns: int) -> bool:
    """Whether one column only numbers the lines: a list, code, or formulas; or a form: labels that end in colons."""
    first, last = _column(rows, 0), _column(rows, columns - 1)
    if columns < 4 and max(_share(_MARK.fullmatch, first), _share(_EQUATION.fullmatch, last)) > 0.6:  # noqa: PLR2004
        return True
    return columns == 2 and _share(lambda text: text.endswith(":"), first) > 0.6  # noqa: PLR2004


def _is_contents(rows: Sequence[Row]) -> bool:
    """Whether most lines end in a number that grows like page numbers, and have no other one after their title."""
    lines = [[part.text for _, part in row.parts.values()] for row in rows]
    pages = [int(found[1]) for line in lines if (found := _PAGE.search(line[-1]))]
    inner = [text for line in lines for text in line[1:-1]]
    if len(pages) < max(5, 0.7 * len(rows)) or sum(bool(_NUMBER.fullmatch(text)) for text in inner) > 0.3 * len(inner):
        return False
    growing = sum(before <= after for before, after in pairwise(pages))
    return growing > 0.9 * (len(pages) - 1) and pages[-1] > pages[0]


def _is_formula(rows: Sequence[Row]) -> bool:
    """Whether many lines overlap the one above, as fractions, sums and indices do."""
    overlaps = sum(low.top < high.bottom - 0.25 * min(high.height, low.height) for high, low in pairwise(rows))
    return overlaps > 0.3 * len(rows)


def _mean_words(parts: Sequence[Segment]) -> float:
    return sum(len(part.words) for part in parts) / max(1, len(parts))


def _alignment(rows: Sequence[Row], columns: int) -> float:
    """The share of cells that share their left, right or middle with most others of their column."""
    aligned = total = 0
    for parts in (_column(rows, place) for place in range(columns)):
        if len(parts) > 1:
            slack = 0.6 * parts[0].height
            edges = ([part.left for part in parts], [part.right for part in parts], [part.middle for part in parts])
            aligned += max(_most_near(sorted(values), slack) for values in edges)
            total += len(parts)
    return aligned / max(1, total)


def _most_near(ordered: Sequence[float], slack: float) -> int:
    return max(bisect_right(ordered, value + slack) - place for place, value in enumerate(ordered))


# Headers


def _header_length(rows: Sequence[Row], rules: Sequence[float]) -> int:
    """The number of lines above the first wide ruling, or above the first line with numbers."""
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


def _header_cells(rows: Sequence[Row], columns: Sequence[Column], rulings: Rulings) -> Iterator[Piece]:
    """The cells of the header. A column below no wide heading has one cell, over all levels of the header."""
    levels = _levels([_with_spanners(row, rows[place + 1 :], columns, rulings) for place, row in enumerate(rows)])
    wide = [(first, last) for level in levels for row in level for first, last in _wide(row)]
    covered = {place for first, last in wide for place in range(first, last + 1)}
    alone: defaultdict[int, list[Word]] = defaultdict(list)
    for top, level in enumerate(levels):
        for span, words in _row_cells(level, top):
            if span.left in covered:
                yield span, words
            else:
                alone[span.left].extend(words)
    for place, words in alone.items():
        yield Span(0, place, len(levels) - 1, place), words


def _wide(row: Row) -> list[tuple[int, int]]:
    return [(first, last) for first, (last, _) in row.parts.items() if last > first]


def _with_spanners(row: Row, below: Sequence[Row], columns: Sequence[Column], rulings: Rulings) -> Row:
    """Widen headings that have a ruling or several columns below them."""
    placed: list[tuple[int, int, Segment]] = []
    for first, (last, part) in row.parts.items():
        wide = _under_rule(part, below, columns, rulings) or _over(row, first, below, columns)
        start, end = wide or (first, last)
        placed.append((start, end, part))
    return _row(placed)


def _under_rule(
    part: Segment, below: Sequence[Row], columns: Sequence[Column], rulings: Rulings
) -> tuple[int, int] | None:
    """The columns below a short ruling under a heading."""
    limit = below[0].bottom if below else part.top
    for rule in rulings.horizontal:
        if part.bottom - 3 <= rule.at <= limit - 4 and rule.start <= part.left + 2 and rule.end >= part.right - 2:
            places = [place for place, column in enumerate(columns) if rule.start <= sum(column) / 2 <= rule.end]
            return (places[0], places[-1]) if 1 < len(places) < len(columns) else None
    return None


def _over(row: Row, first: int, below: Sequence[Row], columns: Sequence[Column]) -> tuple[int, int] | None:
    """The columns over which a heading is centred, if each of them has a heading below it."""
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
    """How far a heading is from the middle of columns: the middle of their area, or the mean of their middles."""
    middles = ((first[0] + last[1]) / 2, (sum(first) + sum(last)) / 4)
    return min(abs(middle - part.middle) for middle in middles)


def _levels(rows: Sequence[Row]) -> list[list[Row]]:
    """Lines of a header grouped into levels: a new one starts below a heading that covers several columns."""
    levels: list[list[Row]] = []
    for row in rows:
        is_below = bool(levels) and any(map(_wide, levels[-1])) and not _wide(row)
        if levels and not is_below:
            levels[-1].append(row)
        else:
            levels.append([row])
    return levels


# Rows


def _body_groups(rows: Sequence[Row], rules: Sequence[float]) -> Iterator[list[Row]]:
    """The rows of the body. If rulings separate most of its lines, each band between them is a row."""
    bands: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        bands[bisect_left(rules, (row.top + row.bottom) / 2)].append(row)
    if len(bands) < max(3, 0.2 * len(rows)):
        yield from _grouped(rows)
    else:
        for band in bands.values():
            yield from _band_groups(band)


def _grouped(rows: Sequence[Row]) -> list[list[Row]]:
    """Lines grouped into rows: a line that continues cells of the line above belongs to the same row."""
    groups = [[row] for row in rows[:1]]
    limit = _row_gap(rows)
    for above, row in pairwise(rows):
        if _continues_row(groups[-1], row, row.top - above.bottom, limit):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _row_gap(rows: Sequence[Row]) -> float | None:
    """The gap above which a new row starts, if the gaps between lines are clearly of two sizes."""
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
    """Whether a line has a new label: values follow a header, or the label column was empty in the line above."""
    if 0 not in line.parts or not any(0 in one.parts for one in row):
        return False
    others = set(line.parts) - {0}
    if others and others <= line.numbers and all(any(place in one.parts for one in row) for place in others):
        return True
    is_apart = line.top > row[-1].bottom - 0.2 * line.height
    return is_apart and 0 not in row[-1].parts and not line.parts[0][1].text[0].islower()


def _goes_on(row: Sequence[Row], line: Row) -> bool:
    """Whether the text of a line continues the cells above it: it starts small, or the one above is not complete."""
    for place, (_, part) in line.parts.items():
        before = next((one.parts[place][1].text for one in reversed(row) if place in one.parts), "")
        if before and not (part.text[0].islower() or part.text[0] in "(&/" or before[-1] in "-,(&/"):
            return False
    return bool(row)


def _band_groups(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows between two rulings: one, unless numbers are stacked, white space divides it, or lines start afresh."""
    stacked = Counter(place for row in rows for place in row.numbers)
    used = {place for row in rows for place in row.parts}
    if sum(count > 1 for count in stacked.values()) >= max(1, (len(used) - 1) / 2):
        return _grouped(rows)
    height = median(row.height for row in rows)
    cuts = [place for place in range(1, len(rows)) if _gap(rows, place - 1) > 0.7 * height]
    parts = [list(rows[start:end]) for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
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
    full = (
        place for place, row in enumerate(rows) if len(row.parts) >= max(2, 0.7 * len(used)) and min(used) in row.parts
    )
    return sum(not _goes_on(rows[:place], rows[place]) for place in full)


def _is_sure(group: Sequence[Row]) -> bool:
    """Whether lines that were joined to a row are not several rows of short text."""
    return len(group) == 1 or _fresh_lines(group) < 2  # noqa: PLR2004


def _row_cells(group: Sequence[Row], top: int) -> Iterator[Piece]:
    texts: defaultdict[int, list[Word]] = defaultdict(list)
    lasts: dict[int, int] = {}
    for row in group:
        for first, (last, part) in row.parts.items():
            texts[first].extend(part.words)
            lasts[first] = max(last, lasts.get(first, first))
    for first, words in texts.items():
        yield Span(top, first, top, lasts[first]), words


# Tables in a grid of rulings


def _ruled_table(grid: Grid, words: Sequence[Word]) -> Table | None:
    if len(words) < _LEAST_CELLS or len(grid.xs) < 3:  # noqa: PLR2004
        return None
    grid = _with_columns(grid, words)
    cells = _ruled_cells(grid, words)
    width = len(grid.xs) - 1
    bands, sure = _with_bands([part for cell in cells for part in _unjoined(*cell, grid.xs)], len(grid.ys) - 1)
    rest, box = _without_notes_inside(*_without_titles(sorted(bands), width, grid.box), width)
    filled = Counter(span.top for span, _ in rest)
    if sum(count > 1 for count in filled.values()) <= max(1, 0.4 * len(filled)):
        return None
    return _assemble(rest, box, 0.9 if sure else 0.7, sure=sure)


def _ruled_cells(grid: Grid, words: Sequence[Word]) -> list[Piece]:
    """The cells of a grid with their words; none if rulings cross words or few cells are filled: a drawing."""
    found = list(spans(grid))
    places = {
        (row, column): span
        for span in found
        for row in range(span.top, span.bottom + 1)
        for column in range(span.left, span.right + 1)
    }
    texts: defaultdict[Span, list[Word]] = defaultdict(list)
    crossed = 0
    for word in words:
        row = _slot(grid.ys, (word.top + word.bottom) / 2)
        texts[places[row, _slot(grid.xs, (word.left + word.right) / 2)]].append(word)
        crossed += places[row, _slot(grid.xs, word.left + 2)] != places[row, _slot(grid.xs, word.right - 2)]
    return [] if crossed > 0.03 * len(words) or len(texts) < 0.25 * len(found) else list(texts.items())


def _slot(edges: Sequence[float], value: float) -> int:
    return min(max(bisect_right(edges, value) - 1, 0), len(edges) - 2)


def _with_outer_rows(grid: Grid, words: Sequence[Word]) -> Grid:
    """Add a header above the rulings, and a last row below them, if they have a cell in most columns."""
    if len(grid.xs) < 4 or len(grid.ys) < 3:  # noqa: PLR2004
        return grid
    (left, top, right, bottom), reach = grid.box, min(2 * (grid.ys[1] - grid.ys[0]), _MOST_REACH)
    above = text_lines([word for word in words if _is_inside(word, Box(left, top - reach, right, top))])
    below = text_lines([word for word in words if _is_inside(word, Box(left, bottom, right, bottom + reach))])
    first = [line[0].top - 1 for line in above[-1:] if _fills(line, grid)]
    last = [line[0].bottom + 1 for line in below[:1] if _fills(line, grid)]
    across = (*grid.rulings.horizontal, Ruling(top, left, right), Ruling(bottom, left, right))
    return Grid(grid.xs, (*first, *grid.ys, *last), grid.rulings._replace(horizontal=across)) if first or last else grid


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
    for lines in map(text_lines, inside.values()):
        parts = [part for line in lines for part in line]
        several = sum(len(line) > 1 for line in lines)
        if several >= max(4, 0.6 * len(lines)) and _share(_NUMBER.fullmatch, parts) >= 0.3:  # noqa: PLR2004
            columns = columns_of(lines)
            more.extend((before[1] + after[0]) / 2 for before, after in pairwise(columns))
    return grid._replace(xs=tuple(sorted((*grid.xs, *more))))


def _without_titles(cells: list[Piece], width: int, box: Box) -> tuple[list[Piece], Box]:
    """Leave out first rows that consist of one cell: the title of the table, in its frame."""
    while (
        len(cells) > _LEAST_CELLS
        and cells[0][0].right - cells[0][0].left == width - 1
        and cells[1][0].top > cells[0][0].bottom
    ):
        cells = cells[1:]
        box = box._replace(top=min(word.top for _, words in cells for word in words) - 1)
    return cells, box


def _without_notes_inside(cells: list[Piece], box: Box, width: int) -> tuple[list[Piece], Box]:
    """Leave out last rows that consist of one cell with much text: notes, in the frame of the table."""
    while len(cells) > _LEAST_CELLS and cells[-1][0].right - cells[-1][0].left == width - 1:
        words = cells[-1][1]
        if len(words) <= _PROSE and not _NOTE.match(words[0].text):
            break
        cells = cells[:-1]
        box = box._replace(bottom=min(word.top for word in words) - 1)
    return cells, box


def _unjoined(span: Span, words: list[Word], xs: Sequence[float]) -> Iterator[Piece]:
    """Divide a cell without inner vertical rulings whose words keep to the columns of the grid."""
    parts = [part for line in text_lines(words) for part in line] if span.right > span.left else []
    used = {_slot(xs, part.left + 1) for part in parts}
    if len(used) < 2 or any(_slot(xs, part.left + 1) != _slot(xs, part.right - 1) for part in parts):  # noqa: PLR2004
        yield span, words
        return
    for column in sorted(used):
        inside = [word for part in parts if _slot(xs, part.left + 1) == column for word in part.words]
        yield Span(span.top, column, span.bottom, column), inside


def _with_bands(cells: Sequence[Piece], height: int) -> tuple[list[Piece], bool]:
    """Divide the rows between two rulings that hold several rows of text. The second value: whether it is sure."""
    bands: defaultdict[int, list[Piece]] = defaultdict(list)
    for span, words in cells:
        if span.top == span.bottom:
            bands[span.top].append((span, words))
    starts, sure = [0], True
    result: list[Piece] = []
    for band in range(height):
        lines = _band_lines(bands[band])
        groups = _band_groups(lines) if lines else []
        sure = sure and all(map(_is_sure, groups))
        for top, group in enumerate(groups, starts[-1]):
            result.extend(_row_cells(group, top))
        starts.append(starts[-1] + max(1, len(groups)))
    tall = (cell for cell in cells if cell[0].top < cell[0].bottom)
    result.extend(
        (span._replace(top=starts[span.top], bottom=starts[span.bottom + 1] - 1), words) for span, words in tall
    )
    return result, sure


def _band_lines(cells: Sequence[Piece]) -> list[Row]:
    owner = {id(word): span for span, words in cells for word in words}
    rows: list[Row] = []
    for line in text_lines([word for _, words in cells for word in words]):
        inside: defaultdict[Span, list[Word]] = defaultdict(list)
        for word in (word for part in line for word in part.words):
            inside[owner[id(word)]].append(word)
        rows.append(_row((span.left, span.right, segment_of(words)) for span, words in inside.items()))
    return rows


# Cells


def _assemble(cells: Sequence[Piece], box: Box, confidence: float, *, sure: bool) -> Table:
    """A table from cells. Rows and columns in which no cell starts are left out; free places are empty cells."""
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


def _grown(
    start: tuple[int, int],
    end: tuple[int, int],
    starts: dict[tuple[int, int], list[Word]],
    taken: dict[tuple[int, int], Span],
) -> Span:
    """The part of the places from start to end that no other cell needs."""
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
            text = " ".join(part.text for line in text_lines(words) for part in _in_order(line))
            yield Cell(text, box_of(words) if words else None, span.right - column + 1, span.bottom - row + 1)


def _in_order(line: Line) -> Line:
    return line[::-1] if is_right_to_left("".join(part.text for part in line)) else line
