"""Finds the tables of a PDF page from its words, drawn lines and backgrounds.

Drawn lines that touch form a grid. Tables without drawn lines are found by white space, aligned words and numbers. Two
numbers that are one below the other are never put into the same row. The functions are pure.

Also joins the levels of a table header into one row, because a Markdown table has only one header row.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from statistics import median

from octavo.extract.extracted import Box
from octavo.extract.pdf import markup
from octavo.extract.pdf.aligned_tables import aligned_tables, open_tables, titled_tables
from octavo.extract.pdf.content import PageContent, TextRun, Word
from octavo.extract.pdf.item_tables import find_item_tables, is_figure
from octavo.extract.pdf.lines import is_inside, is_inside_any, is_monospaced, line_frames
from octavo.extract.pdf.ruled_tables import UNSURE_GRID, Grid, grids, ruled_tables
from octavo.extract.pdf.table_geometry import (
    GAP,
    LEADER_MARKS,
    NUMBER_GAP,
    Rulings,
    page_rulings,
    text_lines,
    wide_rules,
    without_leader,
)
from octavo.extract.pdf.table_rows import Cell, Table

_BETWEEN = " / "
_YEAR = re.compile(r"\D{0,8}(?:19|20)\d\d\D{0,8}")
_MOST_LEVELS = 4
_MOST_HEADING = 100  # letters


def rows_of(table: Table) -> Sequence[Sequence[str]]:
    """Return the texts of a table for Markdown.

    A heading above several columns is written before the heading of each of these columns: "Sales / 2024".
    """
    places = _places(table)
    depth = 0
    while depth < min(_MOST_LEVELS, len(places)) - 2 and _is_level(places, depth):
        depth += 1
    if not depth:
        return table.grid
    header = [_joined([row[column] for row in places[: depth + 1]]) for column in range(len(places[0]))]
    return [header, *table.grid[depth + 1 :]]


def _places(table: Table) -> list[list[Cell | None]]:
    """Return the cell at each position of the grid. A cell that covers several positions is repeated."""
    width = max(sum(cell.columns for cell in row) for row in table.rows)
    taken: dict[tuple[int, int], Cell] = {}
    for top, row in enumerate(table.rows):
        left = 0
        for cell in row:
            while (top, left) in taken:
                left += 1
            taken |= {(top + down, left + across): cell for down in range(cell.rows) for across in range(cell.columns)}
    return [[taken.get((row, column)) for column in range(width)] for row in range(len(table.rows))]


def _is_level(places: Sequence[Sequence[Cell | None]], depth: int) -> bool:
    """Whether the row below is also part of the header: it divides each heading that covers several columns.

    A heading that covers all columns is the title of the table and is not part of the header.
    """
    above, below = places[depth], places[depth + 1]
    groups = {id(cell): cell for cell in above if cell and cell.columns > 1 and cell.text}
    if not groups or any(cell.columns >= len(above) or len(cell.text) > _MOST_HEADING for cell in groups.values()):
        return False
    covered = [column for column, cell in enumerate(above) if cell and id(cell) in groups]
    texts = {column: cell.text for column in covered if (cell := below[column]) and cell.text}
    if any(_is_value(text) for text in texts.values()):
        return False
    others = (column for column in range(len(above)) if column not in covered)
    if any(_begins_row(above[column], below[column]) for column in others):
        return False
    return all(_is_divided([below[column] for column in covered if above[column] is cell]) for cell in groups.values())


def _is_value(text: str) -> bool:
    return (is_figure(text) and not _YEAR.fullmatch(text)) or len(text) > _MOST_HEADING


def _begins_row(above: Cell | None, below: Cell | None) -> bool:
    """Whether a column has its own heading in the row above, so that the row below is not part of the header."""
    return below is not None and above is not below and bool(below.text) and bool(above and above.text)


def _is_divided(cells: Sequence[Cell | None]) -> bool:
    """Whether each column, or each group of columns, below a heading has its own heading."""
    different = 1 + sum(one is not other for one, other in pairwise(cells))
    return different > 1 and all(cell and cell.text for cell in cells)


def _joined(cells: Sequence[Cell | None]) -> str:
    texts = [cell.text for before, cell in zip([None, *cells], cells, strict=False) if cell and cell is not before]
    return _BETWEEN.join(filter(None, texts))


_MOST_WORDS = 8000
_LEAST_FILLED = 0.15  # as a share of the cells
_ABOVE_ITEMS = 40.0  # points
_HEADER = 6.0
_MOST_MISSED = 0.2  # as a share of the height of a table
_BETWEEN_RULES = 0.8  # confidence in tables between horizontal lines
_RULED = 0.9  # confidence in tables with a grid of lines
_MOST_APART = 60.0
_FEW_STROKES = 4
_EDGE = 3.0  # points
_LEAST_HALF = 60.0
_WIDE = 0.5  # as a share of the width of the text
_LEAST_ROWS = 3
_FEW_AREAS = 4  # rows
_WHOLE_PAGE = 0.75  # as a share of its height
_BULLETS = re.compile("[•◦▪‣●▶►]")

Columns = tuple[Box, ...]  # side by side


def page_tables(
    page: PageContent, pictures: Sequence[Box], columns: Callable[[], Sequence[Columns]], *, has_cells: bool = True
) -> list[Table]:
    """Return the tables of a page that are not inside pictures.

    Tables of items, as on invoices, are searched for separately. The result of this search is used if the general
    search found only parts of the table or merged it with other text. `columns` is a function that returns the columns
    of running text. `has_cells` is false if no line of the page is divided into several cells.
    """
    found = _within_columns(page, _outside(page, pictures), pictures, columns)
    items = [
        one
        for one in (find_item_tables(page) if has_cells else ())
        if not is_inside_any(one.box, pictures) and not _is_whole(one, found)
    ]
    if not items:
        return found
    boxes = [one.box for one in items]
    rest = replace(page, runs=tuple(run for run in page.runs if not is_inside_any(run.box, boxes)))
    others = (one for one in _outside(rest, pictures) if not any(overlaps(one.box, box) for box in boxes))
    return sorted([*items, *others], key=lambda table: table.box.top)


def _outside(page: PageContent, pictures: Sequence[Box]) -> list[Table]:
    return [
        one
        for one in find_tables(page)
        if not is_inside_any(one.box, pictures) and not _is_code(one, page.runs) and _has_rows(one)
    ]


def _within_columns(
    page: PageContent, tables: list[Table], pictures: Sequence[Box], columns: Callable[[], Sequence[Columns]]
) -> list[Table]:
    """Search for tables in each text column separately.

    This is done only if a table without a drawn grid extends from one text column or frame into another.
    """
    if all(table.confidence >= _RULED for table in tables):
        return tables
    framed = [(sides, _RULED) for sides in _frames_side_by_side(page)]
    unruled = any(table.confidence < _BETWEEN_RULES for table in tables)
    in_columns = [(sides, _BETWEEN_RULES) for sides in columns()] if unruled else []
    for sides, most in [*framed, *in_columns]:
        crossing = [table for table in tables if table.confidence < most and _crosses(table.box, sides)]
        if not crossing:
            continue
        tables = [table for table in tables if table not in crossing]
        for side in sides:
            part = replace(page, runs=tuple(run for run in page.runs if is_inside(run.box, side)))
            tables += [one for one in _outside(part, pictures) if not any(overlaps(one.box, it.box) for it in tables)]
    return sorted(tables, key=lambda table: (table.box.top, table.box.left))


def _frames_side_by_side(page: PageContent) -> Iterator[Columns]:
    """Yield pairs of frames that are side by side, such as the two halves of a form.

    They must have the same top and bottom edges, with a gap between the frames.
    """
    frames = sorted(box for box in line_frames(page) if min(box.bottom - box.top, box.right - box.left) > _LEAST_HALF)
    for one, other in pairwise(frames):
        is_level = abs(one.top - other.top) < _EDGE and abs(one.bottom - other.bottom) < _EDGE
        if is_level and one.right + _EDGE < other.left:
            yield one, other


def _crosses(box: Box, sides: Columns) -> bool:
    return sum(overlaps(box, side) for side in sides) > 1


def _is_whole(item: Table, tables: Sequence[Table]) -> bool:
    """Whether the general table search found the complete table of items: its header, all rows, and little else."""
    lowest = item.box.bottom - _MOST_MISSED * (item.box.bottom - item.box.top)
    return any(
        overlaps(table.box, item.box)
        and len(table.rows) >= len(item.rows)
        and (
            table.confidence >= _RULED
            or (len(table.grid[0]) >= len(item.grid[0]) and _has_more(table, item))
            or (-_HEADER < item.box.top - table.box.top < _ABOVE_ITEMS and table.box.bottom > lowest)
        )
        for table in tables
    )


def _has_more(table: Table, item: Table) -> bool:
    """Whether a table contains the rows of a table of items, and many more.

    Always true for a grid whose rows could not be separated with certainty.
    """
    if table.confidence == UNSURE_GRID:
        return True
    is_near = abs(item.box.top - table.box.top) < _ABOVE_ITEMS and table.box.bottom > item.box.bottom
    return is_near and len(table.rows) > 2 * len(item.rows)


def _is_code(table: Table, runs: Sequence[TextRun]) -> bool:
    """Whether a table is really code.

    In a monospaced font, letters are aligned even outside tables. A table with a drawn grid is treated as code only if
    its first column contains line numbers.
    """
    inside = [run for run in runs if is_inside(run.box, table.box)]
    letters = sum(len(run.text) for run in inside)
    mono = sum(len(run.text) for run in inside if is_monospaced(run.font))
    numbers = [row[0].text for row in table.rows] if len(table.rows[0]) == 2 else []  # noqa: PLR2004
    is_numbered = len(numbers) > 1 and numbers == [str(number) for number in range(1, len(numbers) + 1)]
    return (table.confidence < _RULED or is_numbered) and 2 * mono > letters


def _has_rows(table: Table) -> bool:
    """Whether at least two rows have text and enough cells are filled.

    Otherwise, the table is only framed text with a single row, or decoration with many empty cells.
    """
    cells = [cell for row in table.rows for cell in row]
    texts = sum(bool(cell.text) for cell in cells)
    return sum(any(cell.text for cell in row) for row in table.rows) > 1 and texts > _LEAST_FILLED * len(cells)


def overlaps(one: Box, other: Box) -> bool:
    return (
        min(one.right, other.right) - max(one.left, other.left) > 2  # noqa: PLR2004
        and min(one.bottom, other.bottom) - max(one.top, other.top) > 2  # noqa: PLR2004
    )


def find_tables(page: PageContent) -> tuple[Table, ...]:
    """Return the tables of a page, from top to bottom."""
    if _is_turned(page):
        return tuple(replace(table, box=_back(table.box, page)) for table in find_tables(_upright(page)))
    gaps = _gap_places(page.runs)
    has_rulings = len(page.lines) + len(page.shapes) > _FEW_STROKES
    if not gaps and not has_rulings:
        return ()
    drawn = [(one, grids(one)) for one in (_without_edges(one, page) for one in page_rulings(page) if one)]
    rulings = drawn[-1][0]
    if len(gaps) < _LEAST_ROWS and next(wide_rules(rulings), None) is None:
        gaps = []
    if not gaps and not any(found for _, found in drawn):
        return ()
    return tuple(sorted(_tables(page, drawn, gaps), key=lambda table: (table.box.top, table.box.left)))


def _without_edges(rulings: Rulings, page: PageContent) -> Rulings:
    """Remove the line below the header of a page and the line above its footer, if the page has both.

    They have the same ends, and would look like the upper and lower edge of a table.
    """
    flat = sorted(rulings.horizontal)
    if len(flat) < 2 or (flat[-1].at - flat[0].at) < _WHOLE_PAGE * page.height or rulings.vertical:  # noqa: PLR2004
        return rulings
    first, last = flat[0], flat[-1]
    if abs(first.start - last.start) > _EDGE or abs(first.end - last.end) > _EDGE:
        return rulings
    return rulings._replace(horizontal=tuple(one for one in rulings.horizontal if one not in {first, last}))


def _tables(page: PageContent, drawn: Sequence[tuple[Rulings, list[Grid]]], gaps: Sequence[float]) -> Iterator[Table]:
    """Find tables in grids of drawn lines, and then tables among the remaining words near wide gaps."""
    words = [word for run in page.runs if abs(run.rotation) < 1 for word in run.words if _is_usable(word)]
    if len(words) > _MOST_WORDS:
        return
    boxes: list[Box] = []
    for place, (_, found) in enumerate(drawn):
        for table in ruled_tables(page, words, found):
            if place and _is_of_areas(table):
                continue
            yield table
            boxes.append(table.box)
            words = [word for word in words if not is_inside(word, table.box)]
    if gaps:
        rulings = _outside_of(boxes, drawn[-1][0])
        lines = text_lines([without_leader(word) for word in words])
        texts = list(titled_tables(lines, rulings))
        rest = [word for word in words if not is_inside_any(word, [table.box for table in texts])]
        texts += open_tables(text_lines([without_leader(word) for word in rest]) if texts else lines)
        for table in texts:
            yield table
            boxes.append(table.box)
            words = [word for word in words if not is_inside(word, table.box)]
        rulings = _outside_of(boxes, rulings)
        for part in _between(boxes, _near(words, gaps)):
            yield from aligned_tables(text_lines(part), rulings)


def _is_of_areas(table: Table) -> bool:
    """Whether a table made from the edges of filled areas is really the layout of a slide: one cell contains a list."""
    cells = [cell.text for row in table.rows for cell in row]
    return len(table.rows) <= _FEW_AREAS and any(len(_BULLETS.findall(text)) > 1 for text in cells)


def _outside_of(boxes: Sequence[Box], rulings: Rulings) -> Rulings:
    """Return the drawn lines that are outside the given boxes."""
    if not boxes:
        return rulings
    flat = (
        one
        for one in rulings.horizontal
        if not is_inside_any(Box(one.start, one.at, one.end, one.at), [_with_edges(box) for box in boxes])
    )
    return rulings._replace(horizontal=tuple(flat))


def _with_edges(box: Box) -> Box:
    return Box(box.left - _EDGE, box.top - _EDGE, box.right + _EDGE, box.bottom + _EDGE)


def _between(boxes: Sequence[Box], words: Sequence[Word]) -> Iterator[list[Word]]:
    """Yield groups of words that are outside tables. Words above and below a wide table are in different groups."""
    if not words:
        return
    width = max(word.right for word in words) - min(word.left for word in words)
    cuts = sorted((box.top + box.bottom) / 2 for box in boxes if box.right - box.left > _WIDE * width)
    parts: list[list[Word]] = [[] for _ in range(len(cuts) + 1)]
    for word in words:
        parts[bisect_right(cuts, (word.top + word.bottom) / 2)].append(word)
    yield from filter(None, parts)


def _is_usable(word: Word) -> bool:
    """Whether a word has a valid position and is not just a row of dots."""
    left, top, right, bottom, text = word
    if not isfinite(left + top + right + bottom):
        return False
    # The fastest check comes first, because nearly all words are plain.
    return text.isalnum() or bool((without_leader(word).text if text.endswith(LEADER_MARKS) else text).strip())


def to_markdown(table: Table) -> str:
    """Write a table as Markdown.

    The levels of the header are joined into one row. If a cell below the header covers several rows or columns, its
    text is only in the first of them.
    """
    return markup.table(rows_of(table))


def _gap_places(runs: Sequence[TextRun]) -> list[float]:
    """Quickly find lines that may be part of a table.

    Returns the vertical positions of lines with a wide gap between words, if another such line is nearby.
    """
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
    """Whether two neighbouring text runs are as far apart as table cells. A smaller gap is enough before a number."""
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
    """Return the words near the given vertical positions, without rows of dots that lead from a word to a number."""
    bands = {round(at / _MOST_APART) + add for at in places for add in (-1, 0, 1)}
    near = (word for word in words if round((word.top + word.bottom) / 2 / _MOST_APART) in bands)
    return [without_leader(word) for word in near]


def _is_turned(page: PageContent) -> bool:
    turned = sum(45 < abs(run.rotation) % 180 < 135 for run in page.runs)  # noqa: PLR2004
    return turned > 0.7 * len(page.runs)


def _upright(page: PageContent) -> PageContent:
    """Rotate a page that contains vertical text, so that the text runs from left to right."""
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
    """Whether rotated text reads from bottom to top, judging by the order of its words."""
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
