"""Finds grids of drawn lines that touch each other, and makes tables from the grids and the words inside them.

In this module, a ruling is a straight line drawn on the page.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, Word
from octavo.extract.pdf.table_geometry import (
    LEAST_WIDTH,
    MOST_GRIDS,
    NEAR,
    Line,
    Ruling,
    Rulings,
    Span,
    columns_of,
    segment_of,
    text_lines,
)
from octavo.extract.pdf.table_rows import (
    NOTE,
    NUMBER,
    PROSE,
    Piece,
    Row,
    Table,
    assemble,
    band_groups,
    header_levels,
    is_sure,
    row_cells,
    row_of,
    share,
)

_MOST_REACH = 30.0  # points
_LEAST_CENTRED = 3
_LEAST_CELLS = 4
_MOST_CELLS = 10_000
_LEAST_GAP = 5.0
_LEAST_HEIGHT = 15.0
_WIDEST_LABEL = 200.0
_FEW_RULES = 3
UNSURE_GRID = 0.71  # confidence of a grid whose rows are not certain
_MOST_OVER = 0.25  # of the height of a word; how far it may extend over a drawn line
_COLUMN_GAP = 0.7  # of the height of a line
_MOST_LABELLED, _HALF = 0.85, 0.6  # of the lines of a table


class Grid(NamedTuple):
    """Drawn lines that touch each other and form a grid.

    `xs` and `ys` are the positions of the vertical and horizontal lines between columns and rows.
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    rulings: Rulings

    @property
    def box(self) -> Box:
        return Box(self.xs[0], self.ys[0], self.xs[-1], self.ys[-1])


def grids(rulings: Rulings) -> list[Grid]:
    """Return the largest grids of a page.

    A grid consists of drawn lines that touch each other, and has at least two columns.
    """
    found: list[tuple[float, Grid]] = []
    for part in _touching(rulings):
        xs = _with_ends(_positions(one.at for one in part.vertical), part.horizontal)
        ys = _with_ends(_positions(one.at for one in part.horizontal), part.vertical)
        width, height = xs[-1] - xs[0], ys[-1] - ys[0]
        is_small = width < LEAST_WIDTH or height < _LEAST_HEIGHT or len(xs) < 3  # noqa: PLR2004
        if not is_small and (len(xs) - 1) * (len(ys) - 1) <= _MOST_CELLS:
            found.append((-width * height, Grid(xs, ys, part)))
    return [grid for _, grid in sorted(found)[:MOST_GRIDS]]


def _positions(values: Iterable[float]) -> tuple[float, ...]:
    kept: list[float] = []
    for value in sorted(values):
        if not kept or value - kept[-1] > _LEAST_GAP:
            kept.append(value)
    return tuple(kept)


def _with_ends(positions: tuple[float, ...], crossing: Sequence[Ruling]) -> tuple[float, ...]:
    """Add the outer edges of a grid on sides where no line is drawn.

    An edge is added if at least two lines cross the outermost drawn line and extend beyond it. A single
    crossing line is enough if it crosses more than three lines.
    """
    starts = sorted(one.start for one in crossing)
    ends = sorted((one.end for one in crossing), reverse=True)
    if not positions or not starts:
        return positions
    if len(crossing) == 1 and len(positions) > _FEW_RULES:  # the only line between two columns
        starts, ends = 2 * starts, 2 * ends
    if not starts[1:]:
        return positions
    before = (starts[0],) if starts[1] < positions[0] - 2 * _LEAST_GAP else ()
    after = (ends[0],) if ends[1] > positions[-1] + 2 * _LEAST_GAP else ()
    return before + positions + after


def _touching(rulings: Rulings) -> list[Rulings]:
    horizontal, vertical = rulings
    parents = list(range(len(horizontal) + len(vertical)))
    places = [one.at for one in vertical]
    for row, line in enumerate(horizontal):
        for index in range(bisect_left(places, line.start - NEAR), bisect_right(places, line.end + NEAR)):
            if vertical[index].start - NEAR <= line.at <= vertical[index].end + NEAR:
                parents[_root(parents, row)] = _root(parents, len(horizontal) + index)
    parts: defaultdict[int, tuple[list[Ruling], list[Ruling]]] = defaultdict(lambda: ([], []))
    for index, line in enumerate((*horizontal, *vertical)):
        parts[_root(parents, index)][index >= len(horizontal)].append(line)
    return [Rulings(tuple(across), tuple(down)) for across, down in parts.values() if across and down]


def _root(parents: list[int], index: int) -> int:
    """Return the representative of the set that contains `index` in a union-find forest."""
    while parents[index] != index:
        parents[index] = parents[parents[index]]
        index = parents[index]
    return index


def spans(grid: Grid) -> Iterator[Span]:
    """Yield the cells of a grid as ranges of rows and columns.

    Neighbouring cells without a line between them are merged if they form a rectangle.
    """
    height, width = len(grid.ys) - 1, len(grid.xs) - 1
    parents = list(range(height * width))
    across, down = _at(grid.ys, grid.rulings.horizontal), _at(grid.xs, grid.rulings.vertical)
    for place in range(height * width):
        row, column = divmod(place, width)
        if column + 1 < width and not _covers(down[column + 1], (grid.ys[row] + grid.ys[row + 1]) / 2):
            parents[_root(parents, place + 1)] = _root(parents, place)
        if row + 1 < height and not _covers(across[row + 1], (grid.xs[column] + grid.xs[column + 1]) / 2):
            parents[_root(parents, place + width)] = _root(parents, place)
    members: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for place in range(height * width):
        members[_root(parents, place)].append(divmod(place, width))
    for places in members.values():
        (top, left), (bottom, right) = map(min, zip(*places, strict=True)), map(max, zip(*places, strict=True))
        if (bottom - top + 1) * (right - left + 1) == len(places):
            yield Span(top, left, bottom, right)
        else:
            yield from (Span(row, column, row, column) for row, column in places)


def _at(positions: Sequence[float], rulings: Sequence[Ruling]) -> list[list[Ruling]]:
    """Return, for each of the given positions, the drawn lines near it."""
    ordered = sorted(rulings)
    places = [one.at for one in ordered]
    return [
        ordered[bisect_left(places, one - _LEAST_GAP) : bisect_right(places, one + _LEAST_GAP)] for one in positions
    ]


def _covers(rulings: Iterable[Ruling], middle: float) -> bool:
    return any(one.start - NEAR <= middle <= one.end + NEAR for one in rulings)


def ruled_tables(page: PageContent, words: Sequence[Word], found: Sequence[Grid]) -> Iterator[Table]:
    turned = [Word(*run.box, run.text.strip()) for run in page.runs if abs(run.rotation) >= 1]
    for grid in found:
        others = [one.box for one in found if one is not grid]
        whole = _with_labels(_with_outer_rows(grid, words, others), words, others)
        table = _ruled_table(whole, _words_in(whole.box, (*words, *turned)))
        if table:
            yield table
            words = [word for word in words if not is_inside(word, table.box)]


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
    return assemble(rest, box, 0.9 if sure else UNSURE_GRID, sure=sure)


def _ruled_cells(grid: Grid, words: Sequence[Word]) -> list[Piece]:
    """Return the cells of a grid with their words.

    Returns an empty list if the grid is a drawing: its lines cross words, or few cells have words.
    """
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
        edge = min(max(2.0, _MOST_OVER * (word.bottom - word.top)), 0.45 * (word.right - word.left))
        crossed += places[row, _slot(grid.xs, word.left + edge)] != places[row, _slot(grid.xs, word.right - edge)]
    return [] if crossed > 0.03 * len(words) or len(texts) < 0.25 * len(found) else list(texts.items())


def _slot(edges: Sequence[float], value: float) -> int:
    return min(max(bisect_right(edges, value) - 1, 0), len(edges) - 2)


def _with_outer_rows(grid: Grid, words: Sequence[Word], others: Sequence[Box]) -> Grid:
    """Extend a grid by the text line directly above it, which is the header, and the text line directly below it.

    A line is added only if it has text in most columns. `others` contains the boxes of other grids. Words inside them
    are ignored.
    """
    if len(grid.xs) < 4 or len(grid.ys) < 3:  # noqa: PLR2004
        return grid
    (left, top, right, bottom), reach = grid.box, min(2 * (grid.ys[1] - grid.ys[0]), _MOST_REACH)
    strips = Box(left, top - reach, right, top), Box(left, bottom, right, bottom + reach)
    above, below = (
        text_lines([word for word in _words_in(strip, words) if not any(is_inside(word, box) for box in others)])
        for strip in strips
    )
    first = [line[0].top - 1 for line in above[-1:] if _fills(line, grid)]
    last = [line[0].bottom + 1 for line in below[:1] if _fills(line, grid)]
    across = (*grid.rulings.horizontal, Ruling(top, left, right), Ruling(bottom, left, right))
    return Grid(grid.xs, (*first, *grid.ys, *last), grid.rulings._replace(horizontal=across)) if first or last else grid


def _with_labels(grid: Grid, words: Sequence[Word], others: Sequence[Box]) -> Grid:
    """Extend a grid of numbers by a column of labels that is printed to its left.

    Nearly every row must have a label.
    """
    (left, top, right, bottom) = grid.box
    if len(grid.xs) < 4 or any(is_inside(word, box) for word in _words_in(grid.box, words) for box in others):  # noqa: PLR2004
        return grid
    inside = text_lines(_words_in(Box(left, top, right, bottom), words))
    figures = [line for line in inside if NUMBER.fullmatch(line[0].text)]
    beside = text_lines(_words_in(Box(left - _WIDEST_LABEL, top, left, bottom), words))
    labels = [line[0] for line in beside if len(line) == 1 and not NUMBER.fullmatch(line[0].text)]
    level = [
        line
        for line in figures
        if any(abs(one.top + one.bottom - line[0].top - line[0].bottom) < line[0].height for one in labels)
    ]
    first = min((one.left for one in labels), default=left)
    aligned = [one for one in labels if one.left - first < _LEAST_HEIGHT]
    is_complete = len(labels) > _LEAST_CELLS and len(level) > _MOST_LABELLED * len(figures)
    if not is_complete or len(figures) < _HALF * len(inside) or len(aligned) < _HALF * len(labels):
        return grid
    flat = (one._replace(start=first - 1) if one.start < left + NEAR else one for one in grid.rulings.horizontal)
    sides = (Ruling(first - 1, top, bottom), Ruling(left, top, bottom), *grid.rulings.vertical)
    return Grid((first - 1, *grid.xs), grid.ys, Rulings(tuple(flat), sides))


def _fills(line: Line, grid: Grid) -> bool:
    """Whether a text line fits the columns of a grid: no segment covers two columns, and most columns have text."""
    places = [(_slot(grid.xs, part.left + 1), _slot(grid.xs, part.right - 1)) for part in line]
    return all(first == last for first, last in places) and len(set(places)) >= max(3, 0.6 * (len(grid.xs) - 1))


def _with_columns(grid: Grid, words: Sequence[Word]) -> Grid:
    """Split a column of the grid into several columns if white space divides its text from top to bottom."""
    inside: defaultdict[int, list[Word]] = defaultdict(list)
    for word in words:
        inside[_slot(grid.xs, (word.left + word.right) / 2)].append(word)
    more: list[float] = []
    for lines in map(text_lines, inside.values()):
        parts = [part for line in lines for part in line]
        several = sum(len(line) > 1 for line in lines)
        if several >= max(4, 0.6 * len(lines)) and share(NUMBER.fullmatch, parts) >= 0.3:  # noqa: PLR2004
            columns = columns_of(lines)
            more.extend((before[1] + after[0]) / 2 for before, after in pairwise(columns))
        else:
            more.extend(_divided_headings(lines, grid.ys[1]))
    return grid._replace(xs=tuple(sorted((*grid.xs, *more))))


def _divided_headings(lines: Sequence[Line], head: float) -> Iterator[float]:
    """Yield the horizontal positions at which white space divides all text lines of a column.

    The white space must also divide the heading of the column and at least one row with numbers.
    """
    header = [part for line in lines for part in line if part.bottom < head + NEAR]
    below = [line for line in lines if min(part.top for part in line) > head - NEAR]
    sides = sorted((part.left, part.right) for line in lines for part in line)
    end = sides[0][1]
    for left, right in sides[1:]:
        if left - end > _COLUMN_GAP * lines[0][0].height:
            at = (left + end) / 2
            rows = [line for line in below if line[0].left < at < line[-1].right]
            figures = any(part.left > at and NUMBER.fullmatch(part.text) for line in rows for part in line)
            if figures and min((part.left for part in header), default=at) < at < max(part.right for part in header):
                yield at
        end = max(end, right)


def _without_titles(cells: list[Piece], width: int, box: Box) -> tuple[list[Piece], Box]:
    """Remove the first rows of a table if they consist of a single cell, because they are titles inside the table's
    frame.
    """
    while (
        len(cells) > _LEAST_CELLS
        and cells[0][0].right - cells[0][0].left == width - 1
        and cells[1][0].top > cells[0][0].bottom
    ):
        cells = cells[1:]
        box = box._replace(top=min(word.top for _, words in cells for word in words) - 1)
    return cells, box


def _without_notes_inside(cells: list[Piece], box: Box, width: int) -> tuple[list[Piece], Box]:
    """Remove the last rows of a table if they are notes inside the table's frame.

    Such a row consists of a single cell with a long text or a word such as "Source".
    """
    while len(cells) > _LEAST_CELLS and cells[-1][0].right - cells[-1][0].left == width - 1:
        words = cells[-1][1]
        if len(words) <= PROSE and not NOTE.match(words[0].text):
            break
        cells = cells[:-1]
        box = box._replace(bottom=min(word.top for word in words) - 1)
    return cells, box


def _unjoined(span: Span, words: list[Word], xs: Sequence[float]) -> Iterator[Piece]:
    """Split a cell that covers several columns, if its words are aligned with these columns.

    In the top row, a heading above aligned words remains one cell across all of these columns.
    """
    parts = [part for line in text_lines(words) for part in line] if span.right > span.left else []
    used = {_slot(xs, part.left + 1) for part in parts}
    fits = {part: _slot(xs, part.left + 1) == _slot(xs, part.right - 1) for part in parts}
    across = [part for part in parts if not fits[part]]
    is_heading = span.top == 0 and len(across) == 1 and across[0] is parts[0] and len(used) > 1
    is_sum = len(parts) == 1 and fits[parts[0]] and NUMBER.fullmatch(parts[0].text) is not None
    if not is_sum and not is_heading and (len(used) < 2 or across):  # noqa: PLR2004
        yield span, words
        return
    if is_heading:
        yield span, list(across[0].words)
        parts = parts[1:]
    for column in sorted({_slot(xs, part.left + 1) for part in parts}):
        inside = [word for part in parts if _slot(xs, part.left + 1) == column for word in part.words]
        yield Span(span.top, column, span.bottom, column), inside


def _with_bands(cells: Sequence[Piece], height: int) -> tuple[list[Piece], bool]:
    """Split each grid row that contains several rows of text with no drawn line between them.

    Returns the resulting cells, and whether every split is certain.
    """
    bands: defaultdict[int, list[Piece]] = defaultdict(list)
    for span, words in cells:
        if span.top == span.bottom:
            bands[span.top].append((span, words))
    starts, sures = [0], list[bool]()
    result: list[Piece] = []
    texts = [_band_lines(bands[band]) for band in range(height)]
    # Drawn lines divide all rows if most strips between them have a single line of text.
    divides = height > _FEW_RULES and 2 * sum(len(lines) == 1 for lines in texts) > sum(map(bool, texts))
    for band, lines in enumerate(texts):
        if lines and (_are_centred(bands[band]) or (divides and _is_one_row(lines))):
            groups = [lines]
        else:
            groups = (header_levels(lines) if band == 0 else band_groups(lines)) if lines else []
        sures.append(all(map(is_sure, groups)))
        for top, group in enumerate(groups, starts[-1]):
            result.extend(row_cells(group, top))
        starts.append(starts[-1] + max(1, len(groups)))
    tall = [cell for cell in cells if cell[0].top < cell[0].bottom]
    # If drawn lines divide all rows of the body, they also divide the header from it.
    sure = all(sures[1:] if len(sures) > _FEW_RULES else sures)
    sure = sure and not any(_has_stacked_numbers(words) for _, words in tall)
    result.extend(
        (span._replace(top=starts[span.top], bottom=starts[span.bottom + 1] - 1), words) for span, words in tall
    )
    return result, sure


def _is_one_row(lines: Sequence[Row]) -> bool:
    """Whether the text lines between two drawn lines can be one row.

    No column may contain several numbers, and no cell may cover several columns.
    """
    numbers = Counter(place for row in lines for place in row.numbers)
    return max(numbers.values(), default=0) <= 1 and all(
        first == last for row in lines for first, (last, _) in row.parts.items()
    )


def _are_centred(cells: Sequence[Piece]) -> bool:
    """Whether the texts of all cells are centred at the same height although they have different numbers of lines.

    If so, the cells form one row.
    """
    texts = [list(text_lines(words)) for _, words in cells if words]
    counts = [len(lines) for lines in texts]
    if (
        len(texts) < _LEAST_CENTRED
        or min(counts) == max(counts)
        or any(_has_stacked_numbers(words) for _, words in cells)
    ):
        return False
    middles = [lines[0][0].top + lines[-1][0].bottom for lines in texts]
    return max(middles) - min(middles) < texts[0][0][0].height / 2


def _has_stacked_numbers(words: Sequence[Word]) -> bool:
    """Whether a cell has several lines of numbers, which are probably rows that no drawn line separates."""
    return sum(len(line) == 1 and NUMBER.fullmatch(line[0].text) is not None for line in text_lines(words)) > 1


def _band_lines(cells: Sequence[Piece]) -> list[Row]:
    owner = {word: span for span, words in cells for word in words}
    rows: list[Row] = []
    for line in text_lines([word for _, words in cells for word in words]):
        inside: defaultdict[Span, list[Word]] = defaultdict(list)
        for word in (word for part in line for word in part.words):
            inside[owner[word]].append(word)
        rows.append(row_of((span.left, span.right, segment_of(words)) for span, words in inside.items()))
    return rows


def _words_in(box: Box, words: Iterable[Word]) -> list[Word]:
    left, top, right, bottom = box
    return [
        word
        for word in words
        if left <= (word.left + word.right) / 2 <= right and top <= (word.top + word.bottom) / 2 <= bottom
    ]


def is_inside(word: Word, box: Box) -> bool:
    middle = (word.top + word.bottom) / 2
    return box.left <= (word.left + word.right) / 2 <= box.right and box.top <= middle <= box.bottom
