"""Finds tables without a drawn grid. Their words are aligned in columns, and horizontal lines may separate the rows.

A "ruling" is a straight line drawn on the page. A "segment" is a group of words on one text line without a wide gap
between them, usually one table cell.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from statistics import median
from typing import NamedTuple

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import Word
from octavo.extract.pdf.table_geometry import (
    Column,
    Line,
    Rulings,
    Segment,
    box_of,
    columns_of,
    overlapped,
    segment_of,
    wide_rules,
)
from octavo.extract.pdf.table_rows import (
    NOTE,
    NUMBER,
    PROSE,
    Row,
    Table,
    assemble,
    body_groups,
    fresh_lines,
    header_cells,
    header_length,
    is_sure,
    row_cells,
    row_of,
    share,
)

_MOST_SINGLE = 4  # the most lines with one cell between lines with several
_LEAST_PARTS = 6
_FEW = 3
_LONG = 7  # words; a cell with more is likely prose
_SENTENCE = 5
_SAME_START = 8.0  # points
_FAR = 4.0  # in line heights
_LARGER = 1.2
_LEAST_LABELS = 4
_BREAK = 1.5  # in line heights
_MOSTLY = 0.8
_COLUMN_GAP = 0.6  # the least space between two columns, as a share of the height of a line
_ROW_GAP = 0.25  # the least difference between spaces inside and between rows, as a share of the height of a line
_VALUE = re.compile(r":\s?\S")  # the value of a label, such as ": 549910"
_MARK = re.compile(r"[(\[]?(\d{1,3}|[a-z]|[ivx]{1,5})[.:)\]]{1,2}|[^\w\s]{1,2}", re.IGNORECASE)
_ITEM = re.compile(r"[(\[]?(\d{1,3}|[a-z]|[ivx]{1,5})[.:)\]]{1,2}", re.IGNORECASE)
_END = re.compile(r"[.!?:;)]\Z")
_EQUATION = re.compile(r"\(\d+(\.\d+)*[a-z]?\)")
_CODE = re.compile(r"[=∑∏∫√∂∈∀←→⇐⇒≔{};]|//|/\*|\*/")
_PAGE = re.compile(r"(?:^|[^\d.,])(\d{1,4})$")
_TITLE = re.compile(r"(table|tab\.|exhibit|figure|fig\.|chart|tabelle|tableau|tabla|tabella)\b", re.IGNORECASE)


class Area(NamedTuple):
    """Consecutive text lines that may be a table.

    `ruled` is true if drawn lines of the same width are above and below them.
    """

    lines: tuple[Line, ...]
    ruled: bool


def aligned_tables(lines: list[Line], rulings: Rulings) -> Iterator[Table]:
    for left, right, ys in wide_rules(rulings):
        for area in _ruled_areas(lines, left, right, ys):
            table = _aligned_table(area, rulings)
            if table:
                yield table
                lines = _outside(table, lines)
    for block in _blocks(_without_prose(lines)):
        table = _aligned_table(Area(tuple(block), ruled=False), rulings)
        if table:
            yield table


def _outside(table: Table, lines: Sequence[Line]) -> list[Line]:
    rest = (tuple(part for part in line if not _touches(part, table.box)) for line in lines)
    return [line for line in rest if line]


def titled_tables(lines: Sequence[Line], rulings: Rulings) -> Iterator[Table]:
    """Find tables with sentences in their cells, and with drawn lines above and below their header."""
    for left, right, ys in wide_rules(rulings):
        yield from _titled_tables(lines, left, right, ys)


def _titled_tables(lines: Sequence[Line], left: float, right: float, ys: Sequence[float]) -> Iterator[Table]:
    """Find tables by drawn lines with the same left and right ends: a header between two lines, and rows below it.

    Wide spaces between the words of a sentence look like gaps between cells. Therefore, white space must divide the
    header and all rows at the same positions, and each column must have a heading.
    """
    for at, (first, second) in enumerate(pairwise(ys)):
        head = [line for line in _within(lines, left, right) if first < _middle(line) < second]
        if not 0 < len(head) <= _FEW or max(map(len, head)) < 2 or _longest(head) > _LONG:  # noqa: PLR2004
            continue
        end = ys[at + 2] if at + 2 < len(ys) else None
        below = [line for line in _within(lines, left, right) if second < _middle(line)]
        body = [line for line in below if _middle(line) < end] if end else _without_break(below)
        if not body or _longest(body) <= _FEW:
            continue
        columns = _divided([*head, *body])
        titles = row_of(_by_column(head, columns))
        if len(columns) < 2 or len(titles.parts) < len(columns):  # noqa: PLR2004
            continue
        table = _table_of_texts([titles], [row_of(_by_column([line], columns)) for line in body], confidence=0.8)
        if table:
            yield table


def open_tables(lines: Sequence[Line]) -> Iterator[Table]:
    """Find tables without drawn lines in which one column contains sentences, and the first column short labels.

    The same white space must divide all lines into at least three columns.
    """
    for block in _open_blocks(lines):
        columns = _divided(block)
        rows = [row_of(_by_column([line], columns)) for line in block]
        if _are_labelled(rows, len(columns)) and (table := _table_of_texts([], rows, confidence=0.8)):
            yield table


def _open_blocks(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Yield groups of lines that the same white space divides into at least three columns."""
    end = 0
    for seed, line in enumerate(lines):
        if seed < end or len(line) < _FEW:
            continue
        gaps = [(one.right, other.left) for one, other in pairwise(line)]
        first, last = seed, seed + 1
        while last < len(lines) and (narrowed := _beside_gaps(gaps, lines[last - 1], lines[last])):
            gaps, last = narrowed, last + 1
        while first > end and (narrowed := _beside_gaps(gaps, lines[first - 1], lines[first])):
            gaps, first = narrowed, first - 1
        end = last
        yield lines[first:last]


def _beside_gaps(gaps: Sequence[Column], above: Line, below: Line) -> list[Column]:
    """Return the parts of the gaps that the words of two neighbouring lines leave free.

    Returns an empty list if fewer than two gaps are left, or if the lines are far apart.
    """
    height = below[0].height
    if below[0].top - max(part.bottom for part in above) > _FAR * height:
        return []
    words = [word for line in (above, below) for part in line for word in part.words]
    kept = [gap for gap in (_narrowed(gap, words) for gap in gaps) if gap[1] - gap[0] > height]
    return kept if len(kept) > 1 else []


def _narrowed(gap: Column, words: Sequence[Word]) -> Column:
    """Return the part of a gap that is left free by the given words."""
    left, right = gap
    for word in words:
        if word.right > left and word.left < right:
            left, right = (left, word.left) if word.left - left >= right - word.right else (word.right, right)
    return left, right


def _are_labelled(rows: Sequence[Row], columns: int) -> bool:
    """Whether the lines are rows with a label and sentences. The sentences can continue on the next lines."""
    sides = [_column(rows, place) for place in range(columns)]
    starts = [row for row in rows if 0 in row.parts]
    if columns < _FEW or not all(sides) or len(starts) < _LEAST_LABELS:
        return False
    words = [_mean_words(side) for side in sides]
    texts = [side for side in sides[1:] if _mean_words(side) >= _SENTENCE - 1]
    if (
        words[0] > _FEW
        or len(texts) != 1
        or len(sides[-1]) < _LEAST_LABELS
        or len({one.text for one in sides[0]}) < _FEW
    ):
        return False
    if _alignment(rows, columns) < _MOSTLY or share(_ITEM.fullmatch, sides[0]) > 0.3:  # noqa: PLR2004
        return False
    if share(_CODE.search, sides[0]) > 0.3 or share(lambda text: text.endswith(":"), sides[0]) > 0.3:  # noqa: PLR2004
        return False
    first = [part for row in starts for _, part in row.parts.values() if part in texts[0]]
    if share(_starts_upper, first) < _MOSTLY or share(NUMBER.fullmatch, sides[-1]) > 0.3:  # noqa: PLR2004
        return False
    full = sum(len(row.parts) == columns for row in rows)
    level = sum(len(row.parts) > 1 for row in starts)
    return full >= _MOSTLY * len(rows) > _LEAST_LABELS or (
        level >= _MOSTLY * len(starts) and len(starts) < _MOSTLY * len(rows) and 2 * full >= len(starts)
    )


def _table_of_texts(titles: Sequence[Row], rows: Sequence[Row], confidence: float) -> Table | None:
    """Make a table from lines that are divided into columns. Returns None if no row has several cells."""
    groups = [[*titles], *_grouped_by_label(rows)] if titles else _grouped_by_label(rows)
    if sum(len({place for row in group for place in row.parts}) > 1 for group in groups) < 2:  # noqa: PLR2004
        return None
    if _runs_on(groups[len(titles) :]):
        return None
    cells = [cell for top, group in enumerate(groups) for cell in row_cells(group, top)]
    box = box_of([part for row in (*titles, *rows) for _, part in row.parts.values()])
    return assemble(cells, box, confidence, sure=all(map(_is_one_row, groups)))


def _runs_on(groups: Sequence[Sequence[Row]]) -> bool:
    """Whether sentences often continue in the next row, so that the rows are really lines of running text."""
    right = max(part.right for group in groups for row in group for _, part in row.parts.values())
    lasts = [group[-1].parts[max(group[-1].parts)][1] for group in groups]
    full = [part for part in lasts if part.right > right - 2 * part.height and not _END.search(part.text)]
    firsts = [part for group in groups for _, part in group[0].parts.values() if len(part.words) >= _FEW]
    return len(full) > 0.3 * len(groups) or share(_starts_lower, firsts) > 0.3  # noqa: PLR2004


def _grouped_by_label(rows: Sequence[Row]) -> list[list[Row]]:
    """Group lines into rows. Text in the first column begins a new row, unless it continues the label above it."""
    groups: list[list[Row]] = []
    most = max((len(row.parts) for row in rows), default=0)
    gaps = [low.top - high.bottom for high, low in pairwise(rows)]
    limit = min(gaps, default=0.0) + _ROW_GAP * median([row.height for row in rows])
    for above, row in zip([None, *rows], rows, strict=False):
        is_apart = above is None or row.top - above.bottom > limit
        is_label = 0 in row.parts and (is_apart or (len(row.parts) > 1 and above is not None and 0 not in above.parts))
        is_full = len(row.parts) == most > _FEW - 1 and (above is None or len(above.parts) == most)
        is_uniform = 0 in row.parts and len(row.parts) > 1 and not any(gap > limit for gap in gaps)
        is_label = is_label or is_uniform or (is_full and not row.parts[0][1].text[0].islower())
        if groups and not is_label:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _is_one_row(group: Sequence[Row]) -> bool:
    """Whether lines are certainly one row: they have at most one label, and no column has several numbers."""
    numbers = Counter(place for row in group for place in row.numbers)
    labels = [place for place, row in enumerate(group) if 0 in row.parts]
    return max(numbers.values(), default=0) < 2 and labels == list(range(len(labels)))  # noqa: PLR2004


def _within(lines: Sequence[Line], left: float, right: float) -> list[Line]:
    parts = (tuple(part for part in line if left - 10 < part.left and part.right < right + 10) for line in lines)
    return [line for line in parts if line]


def _without_break(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines above the first wide vertical gap, or all lines if there is none.

    Used if no line is drawn below the table, for example because it continues on the next page.
    """
    wide = (place for place, (high, low) in enumerate(pairwise(lines), 1) if _is_far(high, low))
    return lines[: next(wide, len(lines))]


def _is_far(above: Line, below: Line) -> bool:
    return below[0].top - max(part.bottom for part in above) > _BREAK * below[0].height


def _middle(line: Line) -> float:
    return (line[0].top + line[0].bottom) / 2


def _longest(lines: Sequence[Line]) -> int:
    return max(len(part.words) for line in lines for part in line)


def _divided(lines: Sequence[Line]) -> list[Column]:
    """Return the columns that are separated by white space in every line."""
    words = sorted((word.left, word.right) for line in lines for part in line for word in part.words)
    least = _COLUMN_GAP * median([part.height for line in lines for part in line])
    columns = [words[0]]
    for left, right in words[1:]:
        if left - columns[-1][1] > least:
            columns.append((left, right))
        elif right > columns[-1][1]:
            columns[-1] = (columns[-1][0], right)
    return columns


def _by_column(lines: Sequence[Line], columns: Sequence[Column]) -> Iterator[tuple[int, int, Segment]]:
    """Yield one segment of text per column. The column index is given twice, as the segment's first and last column."""
    inside: defaultdict[int, list[Word]] = defaultdict(list)
    for word in (word for line in lines for part in line for word in part.words):
        inside[bisect_right(columns, (word.left + word.right) / 2, key=itemgetter(0)) - 1].append(word)
    for place, words in inside.items():
        yield place, place, segment_of(words)


def _touches(part: Segment, box: Box) -> bool:
    return part.left < box.right and part.right > box.left and box.top <= (part.top + part.bottom) / 2 <= box.bottom


def _ruled_areas(lines: Sequence[Line], left: float, right: float, ys: Sequence[float]) -> Iterator[Area]:
    """Yield groups of text lines that look like a table between wide drawn lines.

    Neighbouring text lines with several cells are included.
    """
    parts = (tuple(part for part in line if left - 10 < part.left and part.right < right + 10) for line in lines)
    near = [line for line in parts if line]
    bands = [bisect_right(ys, (line[0].top + line[0].bottom) / 2) for line in near]
    tabular = {band: _is_tabular(near[bisect_left(bands, band) : bisect_right(bands, band)]) for band in set(bands)}
    start = 0
    while start < len(near):
        end = start
        while end < len(near) and 0 < bands[end] < len(ys) and tabular[bands[end]]:
            end += 1
        end = next((at for at in range(start + 1, end) if _ends_table(near[at - 1], near[at], ys)), end)
        if end > start:
            first, last = _extended(near, start, end)
            yield Area(tuple(near[_first_row(near, first, last) : last]), ruled=True)
        start = max(start + 1, end)


def _ends_table(above: Line, below: Line, ys: Sequence[float]) -> bool:
    """Whether a table ends between two neighbouring text lines.

    It ends if the lines are far apart and no line is drawn between them, or if the lower text is a heading in larger
    letters.
    """
    gap = below[0].top - above[0].bottom
    if len(below) == 1 and below[0].height > _LARGER * above[0].height and gap > below[0].height:
        return True
    return gap > _FAR * below[0].height and bisect_left(ys, above[0].bottom - 1) == bisect_left(ys, below[0].top + 1)


def _first_row(lines: Sequence[Line], start: int, end: int) -> int:
    """Return the index of the table's first row.

    It can be above the first drawn line, because some tables have a line below each row but none above the first row.
    """
    steps = [low[0].top - high[0].top for high, low in pairwise(lines[start:end])]
    if len(steps) < _FEW - 1 or max(steps) > 1.3 * min(steps):
        return start
    first, left, end_cell = start, lines[start][0].left, lines[start][-1]
    for at in range(start - 1, max(start - _MOST_SINGLE - 1, -1), -1):
        line = lines[at]
        if abs(line[0].left - left) > _SAME_START / 2 or lines[at + 1][0].top - line[0].top > 1.3 * max(steps):
            break
        shift = min(abs(line[-1].right - end_cell.right), abs(line[-1].left - end_cell.left))
        if len(line) == len(lines[start]) > 1 and shift < _SAME_START / 2:
            first = at
    return first


def _is_tabular(lines: Sequence[Line]) -> bool:
    widest = max(map(len, lines))
    return len(lines[0]) > 1 or widest > _FEW or sum(len(line) > 1 for line in lines) >= 0.4 * len(lines)


def _extended(lines: Sequence[Line], start: int, end: int) -> tuple[int, int]:
    """Extend a range of lines to neighbouring lines that also have several cells. Returns the new start and end."""
    while start > 0 and len(lines[start - 1]) > 1 and _is_next(lines[start - 1], lines[start]):
        start -= 1
    while end < len(lines) and len(lines[end]) > 1 and _is_next(lines[end - 1], lines[end]):
        end += 1
    return start, end


def _is_next(above: Line, below: Line) -> bool:
    is_near = below[0].top - above[0].bottom < 1.5 * below[0].height
    return is_near and all(len(part.words) <= _LONG for part in (*above, *below))


def _without_prose(lines: Sequence[Line]) -> list[Line]:
    """Remove paragraphs that are printed beside other text.

    A paragraph is recognised by many long segments that have the same left edge and often start in lower case.
    """
    starts: defaultdict[int, list[Segment]] = defaultdict(list)
    for part in (part for line in lines if len(line) > 1 for part in line if len(part.words) >= _SENTENCE):
        starts[round(part.left / _SAME_START)].append(part)
    prose = {at for at, parts in starts.items() if len(parts) > _LONG and share(_starts_lower, parts) > 0.4}  # noqa: PLR2004
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
    """Yield groups of neighbouring text lines with several cells. A few lines with a single cell may be in between."""
    start = end = -1
    for place, line in enumerate(lines):
        if start >= 0:
            is_far = line[0].top - lines[place - 1][0].bottom > 2.5 * line[0].height
            if is_far or place - end > _MOST_SINGLE or max(len(part.words) for part in line) > PROSE:
                yield from _trimmed(lines, start, end)
                start = -1
        if len(line) > 1:
            start, end = (place if start < 0 else start), place
    if start >= 0:
        yield from _trimmed(lines, start, end)


def _trimmed(lines: Sequence[Line], start: int, end: int) -> Iterator[Sequence[Line]]:
    start = _below_page_title(lines, start, end)
    while start <= end and (_TITLE.match(lines[start][0].text) or len(lines[start]) == 1):
        start += 1
    if end - start > 1:
        left = min(line[0].left for line in lines[start : end + 1])
        while start > 0 and len(lines[start - 1]) == 1 and _is_heading(lines[start - 1][0], lines[start], left):
            start -= 1
        yield lines[start : end + 1]


def _below_page_title(lines: Sequence[Line], start: int, end: int) -> int:
    """Return the index of the first line of a table, after the page title. Returns `start` if there is no page title.

    The title can have a page number beside it and continue with centred lines. It has fewer columns than the table.
    """
    if len(lines[start]) > 2 or max(map(len, lines[start : end + 1])) <= _FEW:  # noqa: PLR2004
        return start
    left = min(line[0].left for line in lines[start : end + 1])
    after = start + 1
    while after < end and len(lines[after]) == 1 and _is_centred(lines[after][0], lines[start], left):
        after += 1
    return after if after > start + 1 else start


def _is_centred(part: Segment, title: Line, left: float) -> bool:
    """Whether a line of several words is centred below a title, and not above the first column of a table."""
    is_indented = len(part.words) >= _FEW and part.left > left + 5 * part.height
    return is_indented and any(abs(part.middle - one.middle) < part.height for one in title)


def _is_heading(part: Segment, below: Line, left: float) -> bool:
    """Whether a line with a single segment belongs to the table header below it.

    Such a line is short, close to the header, and not above the first column.
    """
    is_near = below[0].top - part.bottom < 0.8 * part.height and part.left > left + 5 * part.height
    return is_near and len(part.words) < _LONG and not _TITLE.match(part.text)


def _aligned_table(area: Area, rulings: Rulings) -> Table | None:
    lines = _without_notes(area.lines, rulings if area.ruled else None)
    parts = [part for line in lines for part in line]
    columns = columns_of(lines) if _may_be_table(lines, parts, ruled=area.ruled) else []
    if len(columns) < 2:  # noqa: PLR2004
        return None
    rows = [row_of(_fit(line, columns)) for line in lines]
    box = box_of(parts)
    rules = _full_rules(box, rulings)
    if not _is_table(rows, len(columns), len(rules) if area.ruled else 0, ruled=area.ruled):
        return None
    head = header_length(rows, rules)
    fresh = fresh_lines(rows[:head])
    head = 1 if fresh > _FEW else head
    cells = list(header_cells(rows[:head], columns, rulings))
    height = 1 + max((span.bottom for span, _ in cells), default=-1)
    groups = list(body_groups([_without_overhang(row, columns) for row in rows[head:]], rules))
    for top, group in enumerate(groups, height):
        cells.extend(row_cells(group, top))
    return assemble(cells, box, 0.8 if area.ruled else 0.6, sure=fresh < _FEW and all(map(is_sure, groups)))


def _may_be_table(lines: Sequence[Line], parts: Sequence[Segment], *, ruled: bool) -> bool:
    """Quickly check whether the lines may be a table, before searching for columns.

    Enough lines must have several cells, and only a few may contain code, formulas or prose. `_is_table` later checks
    more strictly.
    """
    several = sum(len(line) > 1 for line in lines)
    if several < 2 or 3 * sum(bool(_CODE.search(part.text)) for part in parts) > len(parts):  # noqa: PLR2004
        return False
    if ruled or share(NUMBER.fullmatch, parts) >= 0.25:  # noqa: PLR2004
        return True
    words = _mean_words(parts)
    if several < 0.6 * len(lines) or words >= _FEW:
        return False
    return words < 2.2 or share(_starts_upper, parts) > 0.7  # noqa: PLR2004


def _without_notes(lines: Sequence[Line], rulings: Rulings | None) -> Sequence[Line]:
    """Remove the last lines of a table if they are notes, such as "Source: ...".

    A note has only one cell, or it has a long cell and no number. If drawn lines divide the table into many rows,
    nothing is removed, because the last lines can then belong to the last row.
    """
    box = box_of([part for line in lines for part in line])
    if rulings and len(_full_rules(box, rulings)) > _FEW:
        return lines
    end = len(lines)
    while end and _is_note(lines[end - 1]):
        end -= 1
    return lines[:end]


def _is_note(line: Line) -> bool:
    if len(line) == 1 or any(NUMBER.fullmatch(part.text) for part in line):
        return len(line) == 1
    return bool(NOTE.match(line[0].text)) or max(len(part.words) for part in line) > _LONG


def _without_overhang(row: Row, columns: Sequence[Column]) -> Row:
    """If the only text in a row is a label that starts in the first column, assign it to the first column only."""
    if list(row.parts) == [0] and row.parts[0][1].left < columns[0][0] + 3 * row.height:
        return row._replace(parts={0: (0, row.parts[0][1])})
    return row


def _full_rules(box: Box, rulings: Rulings) -> list[float]:
    """Return the vertical positions of the drawn lines that are as wide as the box, apart from gaps between columns."""
    slack = 0.2 * (box.right - box.left)
    rules: dict[float, tuple[float, float, float]] = {}
    for rule in rulings.horizontal:
        if box.top - 10 < rule.at < box.bottom + 10:
            start, end, length = rules.get(rule.at, (rule.start, rule.end, 0.0))
            rules[rule.at] = min(start, rule.start), max(end, rule.end), length + rule.end - rule.start
    return sorted(
        at
        for at, (start, end, length) in rules.items()
        if start < box.left + slack and end > box.right - slack and length > 0.9 * (end - start)
    )


def _fit(line: Line, columns: Sequence[Column]) -> Iterator[tuple[int, int, Segment]]:
    for whole in line:
        for part in _split(whole, columns):
            if hit := overlapped(columns, part):
                yield hit[0], hit[-1], part
            else:
                place = min(range(len(columns)), key=lambda one: abs(sum(columns[one]) / 2 - part.middle))
                yield place, place, part


def _split(part: Segment, columns: Sequence[Column]) -> Iterator[Segment]:
    """Split a group of words that contains the headings of several columns.

    Headings that are printed close together, such as "Price Total", look like one heading.
    """
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


def _is_table(rows: Sequence[Row], columns: int, rules: int, *, ruled: bool) -> bool:
    """Whether these rows are a table. Prose in columns, lists, code, formulas and tables of contents are not tables."""
    parts = [part for row in rows for _, part in row.parts.values()]
    several = sum(len(row.parts) > 1 for row in rows)
    numbers = share(NUMBER.fullmatch, parts)
    least = (0.4 if several > _FEW else 0.75) * len(rows) * columns
    if several < (2 if ruled else _FEW) or len(parts) < max(_LEAST_PARTS, least) or share(_CODE.search, parts) > 0.15:  # noqa: PLR2004
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
    """Whether the cells are lines of running text, because many of them are long or start in lower case.

    Long cells are allowed if many drawn lines separate the rows and the first column contains labels.
    """
    parts = [part for row in rows for _, part in row.parts.values()]
    if sum(len(part.words) > _LONG for part in parts) > 0.2 * len(parts):
        return not (rules > _FEW and _has_labels(rows))
    prose = [place for place in range(columns) if _mean_words(_column(rows, place)) > 4]  # noqa: PLR2004
    lower = [share(_starts_lower, _column(rows, place)) for place in prose]
    if 0 < rules <= _FEW:
        return sum(one > 0.3 for one in lower) > 1  # noqa: PLR2004
    return not rules and any(one > 0.4 for one in lower)  # noqa: PLR2004


def _has_labels(rows: Sequence[Row]) -> bool:
    """Whether the first column contains short labels."""
    labels = _column(rows, 0)
    return len(labels) > 2 and sum(len(part.words) for part in labels) < 4 * len(labels)  # noqa: PLR2004


def _is_text_table(parts: Sequence[Segment], aligned: float) -> bool:
    """Whether cells with words instead of numbers form a table.

    They must be well aligned and very short. Slightly longer cells are accepted if most of them start with a capital
    letter or a digit.
    """
    words = _mean_words(parts)
    return aligned > 0.85 and (words < 2 or (words < _FEW and share(_starts_upper, parts) > 0.8))  # noqa: PLR2004


def _starts_upper(text: str) -> bool:
    return text[0].isupper() or text[0].isdigit()


def _starts_lower(text: str) -> bool:
    return text[0].islower()


def _column(rows: Sequence[Row], place: int) -> list[Segment]:
    """Return the cells of a column, without cells that span several columns."""
    return [part for row in rows for first, (last, part) in row.parts.items() if first == last == place]


def _is_list(rows: Sequence[Row], columns: int) -> bool:
    """Whether the lines are a list, code, formulas or a form instead of a table.

    In lists, code and formulas, one column contains only bullets, line numbers or equation numbers. In a form, the
    labels in the first column end with a colon.
    """
    first, last = _column(rows, 0), _column(rows, columns - 1)
    if columns < 4 and max(share(_MARK.fullmatch, first), share(_EQUATION.fullmatch, last)) > 0.6:  # noqa: PLR2004
        return True
    if share(_VALUE.match, [part for row in rows for place, (_, part) in row.parts.items() if place]) > 0.6:  # noqa: PLR2004
        return True
    labels = [share(lambda text: text.endswith(":"), _column(rows, place)) > 0.6 for place in range(columns - 1)]  # noqa: PLR2004
    return labels == [True] if columns == 2 else sum(labels) > 1 and not any(labels[1::2])  # noqa: PLR2004


def _is_contents(rows: Sequence[Row]) -> bool:
    """Whether the lines are a table of contents.

    Most of the lines end with a page number, the page numbers ascend, and there are few other numbers.
    """
    lines = [[part.text for _, part in row.parts.values()] for row in rows]
    pages = [int(found[1]) for line in lines if (found := _PAGE.search(line[-1]))]
    inner = [text for line in lines for text in line[1:-1]]
    if len(pages) < max(5, 0.7 * len(rows)) or sum(bool(NUMBER.fullmatch(text)) for text in inner) > 0.3 * len(inner):
        return False
    growing = sum(before <= after for before, after in pairwise(pages))
    return growing > 0.9 * (len(pages) - 1) and pages[-1] > pages[0]


def _is_formula(rows: Sequence[Row]) -> bool:
    """Whether many lines overlap vertically with the line above them, as in fractions, sums and indices."""
    overlaps = sum(low.top < high.bottom - 0.25 * min(high.height, low.height) for high, low in pairwise(rows))
    return overlaps > 0.3 * len(rows)


def _mean_words(parts: Sequence[Segment]) -> float:
    return sum(len(part.words) for part in parts) / max(1, len(parts))


def _alignment(rows: Sequence[Row], columns: int) -> float:
    """Return the share of cells that are aligned with the other cells in their column.

    The cells of a column can be aligned by their left edges, right edges or middles.
    """
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
