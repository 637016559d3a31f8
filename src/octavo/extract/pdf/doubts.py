"""Finds signs that a page was read wrongly. If a page has such signs, the quality of the document is `partial`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, pairwise

from octavo.extract.extracted import BlockKind, Box, RegionKind
from octavo.extract.pdf.content import PageContent, Shape
from octavo.extract.pdf.item_tables import is_figure
from octavo.extract.pdf.lines import is_inside_any, segments_of, size_of
from octavo.extract.pdf.page_batches import PageBlock
from octavo.extract.pdf.table_rows import PROSE, Table
from octavo.extract.pdf.tables import overlaps

_ORDER = "The columns on this page may be in the wrong order."
MOVED = "Words on this page may be in the wrong order."
_NOT_SURE = "A table may have wrong rows or columns."
_SCATTERED = "Formulas on this page may be incomplete."
_TEXT = frozenset({RegionKind.BODY, RegionKind.BOX})
_EDGES = frozenset({RegionKind.HEADER, RegionKind.FOOTER})
_LEAST_FIGURES = 3
_GRID = 0.9  # confidence of tables with a grid of lines
_AMOUNT = re.compile(r"[^\w\s]?\s?-?\d[\d.,]*\s?(?:[^\w\s]|[A-Z]{3})?\s?(?:[A-Z]{3})?")
_AMOUNT_AFTER_LABEL = re.compile(r"[^\W\d_]{3}\W[^\d|]{0,20}?-?\d[\d.,]*[.,]\d\d(?!\d)")
_FUSED_HEADING = re.compile(r"[^\W\d_]{3}.*\s-?\d[\d.]*,\d\d|[^\W\d_]{3}.*\s-?\d[\d,]*\.\d\d")
_LABELS = re.compile(r"(?:[^:]{2,30}:\s*){2,}")
_LEAST_CUT = 5  # cells
_MANY_LONE = 7
_MATH_FONT = re.compile(r"cmmi|cmsy|cmex|lmmath|math|mtmi|mtsy|rmtmi|stix\w*math")
_MOST_LONE = 3
_PAGE_END = re.compile(r"\s(?:\d{1,4}|[ivxlc]{1,6})\Z|\]\Z")  # also the kind of a function, such as "[Function]"
_TABLE_CAPTION = re.compile(
    r"(?:table|tab\.|tabelle|tableau|tabla|tabela|tabella|tabel|таблица)\s*[A-Z]?\d|表\s*\d", re.IGNORECASE
)
_NEAR_CAPTION = 2  # blocks
_LONGEST_LABEL, _MANY_LABELS, _VERY_MANY, _PLACE = 25, 8, 40, 12.0  # letters; labels; labels; points
_LONGEST_BESIDE, _MANY_BESIDE = 100, 4  # letters; labels
_MOST_OF_SYMBOL = 3  # letters
_NEXT_TABLE = 40.0  # points
_RULED_AMOUNT = re.compile(r"\d\s+[-=_]{4,}|[-=_]{4,}\s+\d")
_RULED_TABLE = 0.8  # confidence of tables with drawn lines
_TWICE = re.compile(r"([^\W\d_].{3,40}) \1")  # the same heading in two columns that were read across
_WORDS_AND_AMOUNT = re.compile(r"\W*(?:[^\W\d_]{2,}\.?\s+){2,}-?\d[\d.,]*[.,]\d\d\s?[^\w\s]?")
_LABEL_AND_VALUE = re.compile(r"[^:]{2,30}:\s+\S.*")
_LARGE_SYMBOLS = re.compile(r"cmex|lmex|mtex|txex|math ?extension")
_FEWEST_CONTINUED = 2
_FIGURES = re.compile(r"\W*\d[\W\d]*")
_MOST_SHAPES, _MOST_BARS = 1500, 200
_SMALL = 0.85  # letters of a fraction, as a share of the size of the text
_MOST_OF_PART = 20  # letters
_THIN, _LONGEST_BAR = 2.0, 80.0  # points
_LINE_NUMBER = re.compile(r"(?:^|(?<=\s))(\d{1,3}):\s(?=\D)")
_WORD, _CELL_ENDS = re.compile(r"[^\W_]+"), re.compile(r"[|\n]| / ")  # " / " is between the levels of a header
_PLAIN_WORD = re.compile(r"(?!\w*f[fil])(?=\w*[a-z])[a-z0-9]{3,}")  # without ligatures and accents, which fonts change
_COMPARED = 8  # letters at the end of a word and at the beginning of the next one
_MOST_MOVED = 1  # words


def layout_doubts(
    page: PageContent, tables: Sequence[Table], blocks: Sequence[PageBlock], *, misses_rows: bool
) -> Iterator[str]:
    """Yield the reasons why the blocks of a page may be wrong."""
    if (
        misses_rows
        or any(map(_is_doubtful, tables))
        or _is_divided(tables)
        or _has_loose_rows(blocks)
        or _misses_table(blocks)
    ):
        yield _NOT_SURE
    if (
        has_lone_cells(blocks)
        or _has_stray_labels(blocks)
        or _has_labels_apart(blocks)
        or _has_code_beside_labels(blocks)
        or any(_is_read_across(block.text) for block in blocks if block.region in _TEXT)
    ):
        yield _ORDER
    if _has_scattered_formula(page, blocks) or _has_fraction(page, blocks):
        yield _SCATTERED


def has_moved_words(blocks: Sequence[PageBlock], own: str) -> bool:
    """Whether neighbouring words of a paragraph or cell are not neighbours in PDFium's text (`own`).

    PDFium keeps the order in which the words were written by the program that made the file. Such a program rarely
    interrupts a sentence. If the order differs, words from different columns, cells or labels were probably joined.
    """
    written = "".join(_WORD.findall(own.casefold()))
    texts = (text for block in blocks if _is_ordered(block) for text in _cells_of(block))
    moved = (pair for text in texts for pair in _neighbours(text.casefold()) if _is_moved(*pair, written))
    return len(list(islice(moved, _MOST_MOVED + 1))) > _MOST_MOVED


def _is_ordered(block: PageBlock) -> bool:
    return not block.figure and block.kind is not BlockKind.CODE and block.region not in _EDGES


def _cells_of(block: PageBlock) -> list[str]:
    is_divided = block.kind in {BlockKind.TABLE, BlockKind.LIST}
    return _CELL_ENDS.split(block.text) if is_divided else [block.text]


def _neighbours(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words before and after each space."""
    words = [found for one in text.split() if (found := _WORD.findall(one))]
    return ((one[-1], other[0]) for one, other in pairwise(words))


def _is_moved(one: str, other: str, written: str) -> bool:
    """Whether `written` contains both words, but never one directly after the other. Line ends do not matter."""
    if not _PLAIN_WORD.fullmatch(one) or not _PLAIN_WORD.fullmatch(other):
        return False
    end, start = one[-_COMPARED:], other[:_COMPARED]
    return end + start not in written and end in written and start in written


def _has_loose_rows(blocks: Sequence[PageBlock]) -> bool:
    """Whether several lines outside the tables have wide gaps like table rows.

    Lines that end with a page number are ignored, because they belong to a table of contents.
    """
    rows = (block for block in blocks if block.region is RegionKind.TABLE and block.kind is BlockKind.PARAGRAPH)
    return sum(_PAGE_END.search(block.text) is None for block in rows) >= _LEAST_FIGURES


def _misses_table(blocks: Sequence[PageBlock]) -> bool:
    """Whether a table was probably missed, because no block near a table caption is a table or a picture."""
    for place, block in enumerate(blocks):
        if block.region is not RegionKind.CAPTION or not _TABLE_CAPTION.match(block.text):
            continue
        near = blocks[max(0, place - _NEAR_CAPTION) : place + _NEAR_CAPTION + 1]
        # The table of a caption at the edge of a page can be on another page.
        is_inside = _NEAR_CAPTION <= place < len(blocks) - _NEAR_CAPTION
        if is_inside and not any(one.figure or one.kind is BlockKind.TABLE for one in near):
            return True
    return False


def _has_stray_labels(blocks: Sequence[PageBlock]) -> bool:
    """Whether a page has many short labels in many places, like a diagram that was not recognised."""
    texts = [block for block in blocks if block.region in _TEXT and block.box and block.kind is BlockKind.PARAGRAPH]
    labels = [block for block in texts if len(block.text) <= _LONGEST_LABEL and block.text[-1:].isalnum()]
    places = {round(block.box.left / _PLACE) for block in labels if block.box}
    are_spread = 2 * len(places) > len(labels) or (len(labels) >= _VERY_MANY and len(places) >= _MANY_LABELS)
    return len(labels) >= _MANY_LABELS and 2 * len(labels) > len(texts) and are_spread


def _has_labels_apart(blocks: Sequence[PageBlock]) -> bool:
    """Whether most short labels are at the same height as a paragraph to their right, but were not read before it.

    The labels and paragraphs are then probably the rows of a table that was read column by column.
    """
    texts = [(place, block) for place, block in enumerate(blocks) if block.region in _TEXT and block.box]
    labels = [one for one in texts if len(one[1].text) <= _LONGEST_LABEL]
    if len(labels) < _MANY_BESIDE:
        return False
    long = [one for one in texts if len(one[1].text) > _LONGEST_LABEL]
    tops = {round(block.box.top / 2): place for place, block in reversed(long) if block.box}
    beside = [(place, tops.get(round(block.box.top / 2), place)) for place, block in labels if block.box]
    apart = sum(
        abs(other - place) > _NEAR_CAPTION and _is_left_of(blocks[place], blocks[other]) for place, other in beside
    )
    return apart >= _MANY_BESIDE and 2 * apart > len(labels)


def _is_left_of(one: PageBlock, other: PageBlock) -> bool:
    return one.box is not None and other.box is not None and one.box.right < other.box.left


def _has_code_beside_labels(blocks: Sequence[PageBlock]) -> bool:
    """Whether short texts that are printed beside a block of code were read before or after the whole block.

    This happens in tables with examples.
    """
    code = [block.box for block in blocks if block.kind is BlockKind.CODE and block.box]
    texts = (block for block in blocks if block.kind is BlockKind.PARAGRAPH and block.region in _TEXT) if code else ()
    labels = [block.box for block in texts if block.box and len(block.text) <= _LONGEST_BESIDE]
    return sum(any(_is_beside(label, box) for box in code) for label in labels) >= _MANY_BESIDE


def _is_beside(label: Box, code: Box) -> bool:
    middle = (label.top + label.bottom) / 2
    return code.top <= middle <= code.bottom and (label.right <= code.left or label.left >= code.right)


def _is_read_across(text: str) -> bool:
    """Whether a paragraph was probably read across two columns.

    This is assumed if it consists of the same heading twice, or if one of its lines contains two consecutive line
    numbers of a program.
    """
    if _TWICE.fullmatch(text):
        return True
    numbers = ([int(number) for number in _LINE_NUMBER.findall(line)] for line in text.split("\n"))
    return any(other == one + 1 for line in numbers for one, other in pairwise(line))


def _is_doubtful(table: Table) -> bool:
    if not table.sure or _has_stacked_rows(table) or _is_ragged(table) or _has_false_span(table):
        return True
    return table.confidence < _GRID and (_has_false_header(table) or _has_cut_cells(table))


def _has_false_span(table: Table) -> bool:
    """Whether a heading covers several columns, although the rows below it do not have separate texts in these columns.

    This suggests that two columns were read as one, or one as two.
    """
    below = table.grid[1:3]
    left = 0
    for cell in table.rows[0]:
        places = range(left, left + cell.columns)
        left += cell.columns
        if cell.columns > 1 and cell.text and not any(_divides(row, places) for row in below):
            return True
    return False


def _divides(row: Sequence[str], places: range) -> bool:
    """Whether a row has texts in several of the given columns.

    If the row begins with a label outside these columns, the texts must not all be numbers.
    """
    texts = [row[place] for place in places if row[place]]
    return len(texts) > 1 and not (row[0] and 0 not in places and all(map(is_figure, texts)))


def _has_false_header(table: Table) -> bool:
    """Whether the first row is probably not a header.

    This is assumed if it contains a label with its value, a sentence, a number followed by a heading, or an empty cell
    after its first heading.
    """
    if any(_LABEL_AND_VALUE.fullmatch(text) or len(text.split()) > PROSE for text in table.grid[0]):
        return True
    figures = [_FIGURES.fullmatch(text) is not None for text in table.grid[0]]
    if len(figures) > _FEWEST_CONTINUED and any(one and not other for one, other in pairwise(figures[1:])):
        return True  # a value, and the heading of another column beside it
    if any(cell.columns > 1 for cell in table.rows[0]):
        return False
    first = next((place for place, text in enumerate(table.grid[0]) if text), 0)
    return not all(table.grid[0][first:])


def _has_cut_cells(table: Table) -> bool:
    """Whether several cells continue the cell above them. This suggests that one row was read as several rows."""
    continued = sum(
        bool(above and below) and above[0].isupper() and above[-1].isalpha() and below[0].islower()
        for column in zip(*table.grid[1:], strict=True)
        for above, below in pairwise(column)
    )
    return continued >= _FEWEST_CONTINUED


def _has_stacked_rows(table: Table) -> bool:
    """Whether several rows of a table were probably read as one.

    A sign of this is a cell that contains several labels or several amounts with labels.
    """
    cells = [cell.text for row in table.rows for cell in row]
    stacked = (
        _LABELS.fullmatch(text)
        or _RULED_AMOUNT.search(text)
        or len(_AMOUNT_AFTER_LABEL.findall(text)) >= _LEAST_FIGURES
        for text in cells
    )
    fused = sum(_FUSED_HEADING.fullmatch(text) is not None for text in table.grid[0])
    return any(stacked) or fused > 1 or any(map(_has_mixed_cell, zip(*table.grid, strict=True))) or _is_cut(table)


def _is_cut(table: Table) -> bool:
    """Whether a table was probably read wrongly.

    Either a row is a sentence that was split into cells, or an amount is in the column next to its heading.
    """
    sentences = sum(map(_is_cut_sentence, table.grid[1:]))
    return 0 < 4 * sentences <= len(table.grid) or _is_shifted(table)


def _is_cut_sentence(row: Sequence[str]) -> bool:
    """Whether many cells of a row begin with different lower-case words. The row is then probably a split sentence."""
    return len({text.split()[0] for text in row if text[:1].islower()}) >= _LEAST_CUT


def _is_shifted(table: Table) -> bool:
    """Whether an amount is probably in the wrong column: its column has no heading, but an empty cell next to it has
    one.
    """
    if any(cell.columns > 1 or cell.rows > 1 for cell in table.rows[0]):
        return False
    head, *rows = table.grid
    unnamed = [place for place in range(1, len(head)) if not head[place] and sum(map(bool, head)) > 1]
    return any(
        _AMOUNT.fullmatch(row[place]) and any(head[beside] and not row[beside] for beside in _beside(place, head))
        for row in rows
        for place in unnamed
    )


def _is_ragged(table: Table) -> bool:
    """Whether two rows of a table without drawn lines contain the same number of numeric cells, but the cells of one
    row are all shifted by the same number of columns.

    The numbers probably belong to the same columns, although they are not aligned.
    """
    if table.confidence >= _RULED_TABLE:
        return False
    rows = {tuple(place for place, text in enumerate(row) if is_figure(text)) for row in table.grid[1:]}
    full = [row for row in rows if len(row) >= _LEAST_FIGURES]
    return any(
        len(one) == len(other) and len({place - beside for place, beside in zip(one, other, strict=True)}) == 1
        for one, other in combinations(full, 2)
    )


def _beside(place: int, head: Sequence[str]) -> Iterator[int]:
    yield from (one for one in (place - 1, place + 1) if 0 < one < len(head))


def _has_mixed_cell(column: Sequence[str]) -> bool:
    """Whether a cell in a column of amounts has several words before its amount.

    These words are probably a heading that was read as part of the wrong row.
    """
    filled = [text for text in column[1:] if text]
    amounts = sum(_AMOUNT.fullmatch(text) is not None for text in filled)
    return 2 * amounts >= len(filled) > 1 and any(_WORDS_AND_AMOUNT.fullmatch(text) for text in filled)


def _has_scattered_formula(page: PageContent, blocks: Sequence[PageBlock]) -> bool:
    """Whether a formula was probably read as text.

    This is assumed if a page with mathematical fonts has a paragraph of only a few letters, or a large symbol outside
    the pictures, such as a sum or a tall bracket.
    """
    fonts = {font for font in {run.font for run in page.runs} if _MATH_FONT.search(font.lower())}
    if fonts and any(_is_symbol(block.text) and block.region in _TEXT for block in blocks):
        return True
    large = {font for font in fonts if _LARGE_SYMBOLS.search(font.lower())}
    pictures = [block.box for block in blocks if block.figure and block.box] if large else []
    return any(run.font in large and not is_inside_any(run.box, pictures) for run in page.runs) if large else False


def _has_fraction(page: PageContent, blocks: Sequence[PageBlock]) -> bool:
    """Whether the page has a fraction outside the pictures and tables: small text above and below a short line.

    The numerator and the denominator were then read as parts of different text lines.
    """
    rules = [one.box for one in page.shapes[:_MOST_SHAPES] if _is_fraction_bar(one)][:_MOST_BARS]
    if not rules:
        return False
    body = size_of(segments_of(page.runs))
    small = [run.box for run in page.runs if run.size < _SMALL * body and len(run.text) <= _MOST_OF_PART]
    taken = [block.box for block in blocks if block.box and (block.figure or block.kind is BlockKind.TABLE)]
    return any(
        any(_is_next_to(box, rule, box.bottom - rule.top) for box in small)
        and any(_is_next_to(box, rule, rule.bottom - box.top) for box in small)
        for rule in rules
        if not is_inside_any(rule, taken)
    )


def _is_fraction_bar(shape: Shape) -> bool:
    wide, high = shape.box.right - shape.box.left, shape.box.bottom - shape.box.top
    return high < _THIN < wide < _LONGEST_BAR


def _is_next_to(box: Box, rule: Box, overlap: float) -> bool:
    """Whether a part of a fraction is centred directly above or below the fraction bar.

    `overlap` is how far the part extends over the bar. It is negative if there is a gap between the part and the bar.
    """
    is_centred = abs(box.left + box.right - rule.left - rule.right) < 2 * _THIN
    return is_centred and box.right - box.left <= rule.right - rule.left + _THIN and -_THIN < overlap < 2 * _THIN


def _is_symbol(text: str) -> bool:
    """Whether a paragraph is so short that it is probably a part of a formula.

    It has at most three characters, and is not a word with a capital letter.
    """
    return len(text) <= _MOST_OF_SYMBOL and not (len(text) > 1 and text.isalpha() and not text.islower())


def _is_divided(tables: Sequence[Table]) -> bool:
    """Whether one table was probably read as two tables, one directly below the other.

    The lower table begins with a row of numbers and has a different number of columns.
    """
    return any(
        0 <= below.box.top - above.box.bottom < _NEXT_TABLE
        and overlaps(above.box, below.box._replace(top=above.box.top))
        and sum(is_figure(cell.text) for cell in below.rows[0]) > 1
        and len(above.rows[0]) != len(below.rows[0])
        for above, below in pairwise(tables)
    )


def has_lone_cells(blocks: Sequence[PageBlock]) -> bool:
    """Whether the page probably shows a table that was read column by column.

    This is assumed if several paragraphs are single words at the same height as other blocks, or if very many
    paragraphs are single words.
    """
    heights = Counter(round(block.box.bottom / 3) for block in blocks if block.box)
    words = (block for block in blocks if block.region in _TEXT and block.box and not block.text.endswith(":"))
    single = [block for block in words if len(block.text.split()) == 1]
    level = sum(heights[round(block.box.bottom / 3)] > 1 for block in single if block.box)
    return level > _MOST_LONE or len(single) > max(_MANY_LONE, len(blocks) / 3)
