"""Finds the columns of a page, so that they can be read one after the other.

A gutter is the white space between two columns. To find gutters, each wide gap between words is followed up and down
the page until a line of text crosses it (XY-cut). In this module, a band is a horizontal strip of the page with text,
usually one line across the page, and a side is the text on one side of a gutter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from statistics import median
from typing import NamedTuple

from octavo.extract.extracted import Box
from octavo.extract.pdf.lines import Segment, inner

_LEAST_GUTTER = 0.65  # as a share of the median letter size
_DEEPEST = 6
_NARROW = 0.5  # as a share of the width of the main column; a narrower column is at the margin
_LONG_LINES = 1.2  # the most width of a column, as a multiple of a line that is longer than three quarters of all lines
_PROSE = 17.0  # letters per line; columns have more, table cells have fewer
_LABEL = re.compile(r":\s*\Z")
_FIGURES = re.compile(r"[\d\s.,:;/%€$£()+-]+\Z")
_LABELLED = re.compile(r"[^\W\d_][^:]{1,30}:(?:\s|\Z)")
_ADDRESS = re.compile(
    r"\S@\S+\.\w|\bwww\.|(?:\A|[\s-])\d{4,6}(?:-\d{3,4})?\s+[^\W\d_]{2}|\b[A-Z]{2}\s+\d{5}\b|\b[A-Z]{1,2}\d[\dA-Z]?\s\d[A-Z]{2}\b"
    r"|[^\W\d_]{3,}\.?\s+\d{1,4}\s?[a-z]?\Z|\A\d{1,5}\s+[^\W\d_]+\s+[^\W\d_]{2}|\+\d[\d ()/-]{6,}"
)
_MOST_OF_ADDRESS = 6  # lines
_POSTCODE = re.compile(r"\A(?:[A-Z]{1,3}[- ])?\d{4,5}\s+[^\W\d_]{3}|\b[A-Z]{2}\s+\d{5}(?:-\d{4})?\Z")
_WIDE_GUTTER = 3.0  # as a multiple of the letter size
_CLOSE = 2.0  # the most line spacing, as a multiple of the letter size
_MOST_TRIED = 6
_AMOUNT = re.compile(r"[-+(]?(?:[$€£]\s?-?\d[\d.,]*|\d[\d.,]*[.,]\d\d(?:\s?(?:[$€£]|[A-Z]{3}))?)\)?")
_SHORT = 40  # letters
_LONG_LINE = 0.6  # as a share of the width of a column
_MARKER = re.compile(r"[(\[]?(?:\d{1,3}(?:\.\d{1,3})*|[a-zA-Z]|[ivxIVX]{1,5})[.)\]:]?|[^\w\s]{1,2}")
_FEW_LINES = 3
_ROW_STEP = 1.45  # the least distance between rows, as a multiple of the letter size
_OTHER_STYLE = 0.5  # as a share of the pieces of text on one side
_LEVEL = 0.35  # the most distance between the middles of two pieces of text on a line, as a share of the size
_NARROW_GUTTER = 1.3  # as a multiple of the letter size
_SAME_EDGE = 4.0  # points
_FAR = 2.5  # in line heights; a heading with this much space around it separates columns

Gap = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Flow:
    """Text in a single column, which is read from top to bottom."""

    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns that are side by side, in reading order.

    `beside` contains narrow columns with text such as margin notes. If `leading` is true, each block in a narrow column
    is read before the main text at the same height.
    """

    columns: tuple[Layout, ...]
    beside: tuple[Layout, ...] = ()
    leading: bool = False


@dataclass(frozen=True, slots=True)
class Stack:
    """Parts of a page that are one below the other. Each part can itself have columns."""

    parts: tuple[Layout, ...]


Layout = Flow | Columns | Stack


@dataclass(frozen=True, slots=True)
class Band:
    """A horizontal strip of the page with text, usually one line across the page.

    White space separates it from the strips above and below.
    """

    top: float
    bottom: float
    segments: tuple[Segment, ...]


def find_columns(segments: Sequence[Segment], *, backwards: bool = False, depth: int = 0) -> Layout:
    """Arrange the text of a page into columns. If `backwards` is true, the columns are read from right to left."""
    # Two columns have at least two lines each, or contain tables, pictures or boxes.
    few = len(segments) < 4 and sum(one.block is not None for one in segments) < 2  # noqa: PLR2004
    if few or depth > _DEEPEST:
        return Flow(tuple(segments))
    gutter = _LEAST_GUTTER * median(one.size or 10.0 for one in segments)
    parts: list[Layout] = []
    for part in _parts(list(bands_of(segments)), gutter, backwards=backwards, depth=depth):
        if isinstance(part, Flow) and parts and isinstance(parts[-1], Flow):
            parts[-1] = Flow((*parts[-1].segments, *part.segments))
        else:
            parts.append(part)
    return parts[0] if len(parts) == 1 else Stack(tuple(parts))


def text_columns(layout: Layout) -> Iterator[tuple[Box, ...]]:
    """Yield the boxes of each group of columns that are side by side and all contain paragraphs."""
    if isinstance(layout, Flow):
        return
    if isinstance(layout, Columns):
        sides = [list(segments_in(one)) for one in layout.columns]
        if len(sides) > 1 and all(map(_has_paragraph, sides)):
            yield tuple(_box(side) for side in sides)
    for one in layout.columns if isinstance(layout, Columns) else layout.parts:
        yield from text_columns(one)


def segments_in(layout: Layout) -> Iterator[Segment]:
    if isinstance(layout, Flow):
        yield from layout.segments
        return
    parts = (*layout.columns, *layout.beside) if isinstance(layout, Columns) else layout.parts
    for part in parts:
        yield from segments_in(part)


def _has_paragraph(side: Sequence[Segment]) -> bool:
    """Whether a column contains a paragraph: three or more long lines of words, one directly below the other."""
    least = _LONG_LINE * _width(side)
    long = [one for one in side if one.right - one.left > least and _is_wordy(one.text)]
    long.sort(key=lambda one: (round(one.left / 8), one.bottom))
    steps = ((abs(one.left - other.left), (other.bottom - one.bottom) / one.size) for one, other in pairwise(long))
    return sum(across < 8 and 0 < down < 1.8 for across, down in steps) > 1  # noqa: PLR2004


def _is_wordy(text: str) -> bool:
    return len(text) > _PROSE and 3 * sum(map(str.isalpha, text)) > 2 * len(text)


def _box(side: Sequence[Segment]) -> Box:
    return Box(
        min(one.left for one in side),
        min(one.top for one in side),
        max(one.right for one in side),
        max(one.bottom for one in side),
    )


def _parts(bands: Sequence[Band], least: float, *, backwards: bool, depth: int) -> Iterator[Layout]:
    """Split a page at the longest white space between two columns.

    Yields the text above the columns, the columns, and the text below them.
    """
    ranked = sorted(_gutters(bands, least), key=lambda one: (one.rows, one.end - one.start), reverse=True)[:_MOST_TRIED]
    for one, facing in [(one, facing) for facing in (False, True) for one in ranked]:
        if _is_justified(bands, one):
            continue
        start, end = _trimmed(bands, one), _trimmed_end(bands, one)
        inner_cuts = {*_headings(bands[start:end], one.gap, start), *_blank_strips(bands[start:end], one.gap, start)}
        cuts = [start, *sorted(inner_cuts), end]
        columns = [
            _columns(bands[a:b], one.gap, facing=facing, backwards=backwards, depth=depth) for a, b in pairwise(cuts)
        ]
        if any(columns):
            if start:
                yield from _parts(bands[:start], least, backwards=backwards, depth=depth)
            yield from (column or _flow(bands[a:b]) for column, (a, b) in zip(columns, pairwise(cuts), strict=True))
            if end < len(bands):
                yield from _parts(bands[end:], least, backwards=backwards, depth=depth)
            return
    yield _flow(bands)


def _flow(bands: Sequence[Band]) -> Flow:
    return Flow(tuple(one for band in bands for one in band.segments))


def _trimmed(bands: Sequence[Band], gutter: _Gutter) -> int:
    """Return the index of the line at which two columns really begin.

    The white space between columns can start too high: short lines at the end of the text above the columns look like
    lines of the left column.
    """
    first = next((at for at in range(gutter.start, gutter.end) if _sides([bands[at]], gutter.gap)[1]), gutter.start)
    if first > gutter.start and bands[first].top - bands[first - 1].bottom < 0.3 * _height(bands[first]):
        first -= 1
    while gutter.start < first and _continues_column(bands[first - 1 : first + 4], gutter.gap):
        first -= 1
    if not gutter.start or first == gutter.start:
        return gutter.start
    above = bands[first - 2] if first > gutter.start + 1 else None
    return gutter.start if _is_closer(bands[first - 1], bands[first], above) else first


def _continues_column(bands: Sequence[Band], gap: Gap) -> bool:
    """Whether the first line belongs to the paragraph below it in the left column.

    It must have the same left edge, font size and line spacing as the paragraph.
    """
    lines = [min(left) for band in bands if (left := _split_at(band.segments, gap)[0])]
    if len(lines) < _FEW_LINES or any(one.block is not None for one in lines[:_FEW_LINES]):
        return False
    first, second, third = lines[:_FEW_LINES]
    is_alike = abs(first.left - second.left) < 1 and abs(second.left - third.left) < 1 and second.size == third.size
    step, usual = second.bottom - first.bottom, third.bottom - second.bottom
    return is_alike and first.size == second.size and 0 < step < 1.1 * usual


def _is_justified(bands: Sequence[Band], gutter: _Gutter) -> bool:
    """Whether a presumed gutter is only a few wide word spaces in justified text that happen to be one below the other.

    In such text, the lines around the gutter are close together and equally long.
    """
    start, end = gutter.start, gutter.end
    if end - start > _FEW_LINES or start == 0 or end == len(bands):
        return False
    lines = bands[start - 1 : end + 1]
    close = all(low.top - high.bottom < 1.2 * _height(high) for high, low in pairwise(lines))
    lefts = [min(one.left for one in line.segments) for line in lines]
    rights = [max(one.right for one in line.segments) for line in lines]
    return close and max(lefts) - min(lefts) < _SAME_EDGE and max(rights) - min(rights) < _SAME_EDGE


def _trimmed_end(bands: Sequence[Band], gutter: _Gutter) -> int:
    """Return the index after the line at which two columns really end.

    The white space between columns can end too low: a short line at the start of the text below the columns looks like
    a line of the left column.
    """
    last = gutter.end - 1
    if gutter.end == len(bands) or last <= gutter.start or _sides([bands[last]], gutter.gap)[1]:
        return gutter.end
    above, below = bands[last].top - bands[last - 1].bottom, bands[gutter.end].top - bands[last].bottom
    size = median(one.size or 10.0 for band in bands[gutter.start : gutter.end] for one in band.segments)
    is_title = all(one.size > 1.3 * size for one in bands[last].segments) and below < _height(bands[last])
    return last if below < 0.5 * above or is_title else gutter.end


def _height(band: Band) -> float:
    return band.bottom - band.top


def bands_of(segments: Sequence[Segment]) -> Iterator[Band]:
    found: list[Segment] = []
    top = bottom = 0.0
    for first, last, one in sorted([(*inner(one), one) for one in segments], key=itemgetter(0)):
        if found and first >= bottom:
            yield Band(top, bottom, tuple(found))
            found = []
        if not found:
            top, bottom = first, last
        found.append(one)
        bottom = max(bottom, last)
    if found:
        yield Band(top, bottom, tuple(found))


def _gaps(segments: Sequence[Segment], least: float) -> Iterator[Gap]:
    """Yield the start and end of each wide horizontal gap between segments, from left to right."""
    ordered = sorted(segments, key=lambda one: one.left)
    end, size = ordered[0].right, ordered[0].size
    for one in ordered[1:]:
        if one.left - end >= max(least, _LEAST_GUTTER * min(size, one.size)):
            yield end, one.left
        if one.right > end:
            end, size = one.right, one.size


def _narrowed(gap: Gap, band: Band, least: float) -> Gap | None:
    """Return the part of a horizontal gap that is still free of text in this strip of the page.

    Returns None if that part is too narrow to separate columns.
    """
    left, right = gap
    sizes: list[float] = []
    for one in band.segments:
        if one.right <= left or one.left >= right:
            continue
        if one.left - left >= right - one.right:
            right = one.left
        else:
            left = one.right
        sizes.append(one.size)
    # A gap between two words in large letters can be as wide as a gutter.
    need = max(least, _LEAST_GUTTER * min(sizes)) if len(sizes) > 1 else least
    return (left, right) if right - left >= need else None


class _Gutter(NamedTuple):
    """White space between two columns, from strip `start` to strip `end` of the page.

    Some strips have text to the left of the gutter, and some have text to its right. Both groups are counted, and
    `rows` is the smaller count.
    """

    rows: int
    start: int
    end: int
    gap: Gap


def _gutters(bands: Sequence[Band], least: float) -> Iterator[_Gutter]:
    """Yield all vertical white spaces that may separate columns.

    Each wide gap between words is followed up and down until text closes it.
    """
    found: list[_Gutter] = []
    for index, gap in _seeds(bands, least):
        if any(one.start <= index < one.end and one.gap[0] < gap[1] and gap[0] < one.gap[1] for one in found):
            continue
        start, end, gutter = index, index, gap
        while end < len(bands) and (narrowed := _narrowed(gutter, bands[end], least)):
            gutter, end = narrowed, end + 1
        while start > 0 and (narrowed := _narrowed(gutter, bands[start - 1], least)):
            gutter, start = narrowed, start - 1
        sides = [_sides([one], gutter) for one in bands[start:end]]
        rows = min(sum(left for left, _ in sides), sum(right for _, right in sides))
        found.append(_Gutter(rows, start, end, gutter))
    yield from found


def _seeds(bands: Sequence[Band], least: float) -> Iterator[tuple[int, Gap]]:
    """Yield wide gaps at which to start the search for column separators.

    Usually, a gap is between two segments on the same line. The lines of two columns can be at different heights, so a
    gap can also be between two neighbouring lines with only one segment each.
    """
    for index, band in enumerate(bands):
        for gap in _gaps(band.segments, least):
            yield index, gap
        if len(band.segments) == 1 and index + 1 < len(bands) and len(bands[index + 1].segments) == 1:
            for gap in _gaps([*band.segments, *bands[index + 1].segments], least):
                yield index, gap


def _is_closer(band: Band, below: Band, above: Band | None) -> bool:
    """Whether a line is closer to the columns below it than to the text above it."""
    return above is not None and below.top - band.bottom < 0.7 * (band.top - above.bottom)


def _headings(group: Sequence[Band], gap: Gap, start: int) -> Iterator[int]:
    """Yield the indexes of headings that divide two columns into an upper and a lower part.

    Such a heading is in the left column, and a large space surrounds it.
    """
    segments = [one for band in group for one in band.segments]
    size = median(one.size or 10.0 for one in segments)
    if not any(map(_is_running, _split_at(segments, gap))):
        return  # An address in large letters is not a heading.
    for index in range(1, len(group) - 1):
        if _sides([group[index]], gap)[1] or not _is_heading(group[index], size):
            continue
        space = group[index + 1].top - group[index - 1].bottom
        if space > _FAR * size and all(map(all, (_sides(group[:index], gap), _sides(group[index + 1 :], gap)))):
            yield start + index


def _blank_strips(group: Sequence[Band], gap: Gap, start: int) -> Iterator[int]:
    """Yield the indexes of lines at which a large vertical gap divides columns of short lines, such as addresses."""
    segments = [one for band in group for one in band.segments]
    if any(map(_is_running, _split_at(segments, gap))):
        return
    size = median(one.size or 10.0 for one in segments)
    spaces = [other.top - one.bottom for one, other in pairwise(group)]
    for index, space in enumerate(spaces, start + 1):
        # Equal spaces that repeat are the spaces between the rows of a form.
        if space > _FAR * size and sum(0.8 < one / space < 1.25 for one in spaces) < 3:  # noqa: PLR2004
            yield index


def _is_running(side: Sequence[Segment]) -> bool:
    """Whether a column contains running text: several lines, most of them long and ending near the right edge."""
    lines = [one for one in side if one.block is None]
    if len(lines) < 3:  # noqa: PLR2004
        return False
    left, right = min(one.left for one in lines), max(one.right for one in lines)
    full = sum(one.right > left + 0.7 * (right - left) for one in lines)
    return 2 * full > len(lines) and _letters_per_line(lines) >= _PROSE


def _split_at(segments: Sequence[Segment], gap: Gap) -> tuple[list[Segment], list[Segment]]:
    left = [one for one in segments if one.right <= gap[0] + 0.1]
    return left, [one for one in segments if one.right > gap[0] + 0.1]


def _is_heading(band: Band, size: float) -> bool:
    return all(one.block is None and (one.bold or one.size > 1.1 * size) for one in band.segments)


def _sides(bands: Sequence[Band], gap: Gap) -> tuple[bool, bool]:
    left = any(one.right <= gap[0] + 0.1 for band in bands for one in band.segments)
    right = any(one.left >= gap[1] - 0.1 for band in bands for one in band.segments)
    return left, right


def _columns(group: Sequence[Band], gap: Gap, *, facing: bool, backwards: bool, depth: int) -> Layout | None:
    """Divide lines into a left and a right column at an empty space (`gap`) between them.

    Returns None if the two sides are not columns, for example because they are cells of a table. If `facing` is true,
    the two sides must be groups of short lines, such as the two addresses in a letter.
    """
    segments = [one for band in group for one in band.segments]
    left, right = _split_at(segments, gap)
    if not left or not right or not (_are_facing_blocks if facing else _are_columns)(left, right):
        return None
    if (
        _are_rows(left, right)
        or _are_amounts(right, left)
        or _are_stacked(left, right)
        or _are_definitions(left, right)
    ):
        return None
    if all(one.mono for one in right) and _heads_lines(right, [one for one in left if one.mono]):
        return None  # The output of a program.
    if min(_rows(left), _rows(right)) < _FEW_LINES and gap[1] - gap[0] < _NARROW_GUTTER * left[0].size:
        return None  # The wide gaps after two sentences can be one below the other.
    return _in_order([left, right], backwards=backwards, depth=depth)


def _in_order(sides: list[list[Segment]], *, backwards: bool, depth: int) -> Layout:
    main = max(sides, key=lambda side: _width(side) * len(side))
    beside = [side for side in sides if side is not main and _is_margin(side, main) and _stays_beside(side, main)]
    others = [side for side in sides if not any(side is one for one in beside)]
    if backwards:
        others.reverse()
    laid = tuple(find_columns(side, backwards=backwards, depth=depth + 1) for side in others)
    notes = tuple(find_columns(side, backwards=backwards, depth=depth + 1) for side in beside)
    if not notes:
        return Columns(laid)
    leads = _heads_lines(beside[0], main) or _are_single(beside[0])
    leading = len(beside) == 1 and beside[0][0].left < main[0].left and leads
    return Columns(laid, notes, leading)


def _are_rows(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    """Whether two columns form widely spaced rows of short texts, each line level with one in the other column."""
    if len(left) != len(right) or len(left) < _FEW_LINES or _has_block(left) or _has_block(right):
        return False
    places = sorted(one.bottom for one in right)
    apart = all(low - high > _ROW_STEP * left[0].size for high, low in pairwise(places))
    return apart and _heads_lines(left, right) and _heads_lines(right, left)


def _are_stacked(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    """Whether one side ends before the other begins, for example because the right side is only an indented line."""
    return max(left[0].top, right[0].top) > min(_lowest(left), _lowest(right))


def _lowest(side: Sequence[Segment]) -> float:
    return max(one.bottom for one in side)


def _are_amounts(side: Sequence[Segment], main: Sequence[Segment]) -> bool:
    """Whether a column contains only amounts for the lines beside them, apart from an optional heading at the top."""
    lines = sorted(side, key=lambda one: one.bottom)
    amounts = [one for one in lines if _AMOUNT.fullmatch(one.text)]
    if not amounts or len(amounts) < len(lines) - 1 or (len(amounts) < len(lines) and lines[0] in amounts):
        return False
    return all(any(one.top < (it.top + it.bottom) / 2 < one.bottom for it in main) for one in amounts)


def _are_definitions(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    """Whether the two sides are terms and their definitions: nearly every line is beside a line in another style.

    The columns of an article can also differ in style, so neither side may contain running text.
    """
    left, right = ([one for one in side if one.block is None] for side in (left, right))
    if min(len(left), len(right)) < _FEW_LINES:
        return False
    shares = [sum(map(_has_style, side)) / len(side) for side in (left, right)]
    if abs(shares[0] - shares[1]) < _OTHER_STYLE:
        return False
    small, large = sorted((left, right), key=_rows)
    middles = [(one.top + one.bottom) / 2 for one in large]
    level = sum(any(abs((one.top + one.bottom) / 2 - it) < _LEVEL * one.size for it in middles) for one in small)
    return level > 0.8 * len(small) and not _is_running(left) and not _is_running(right)


def _has_style(one: Segment) -> bool:
    return one.mono or one.bold or one.italic


def _are_columns(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    if all(_MARKER.fullmatch(one.text) for one in left):
        return False
    if 2 * sum(one.text.startswith(":") for one in right) > len(right):  # the values of labels
        return False
    if _is_column(left) and _is_column(right):
        return True
    if _are_cells(right, left):
        return False
    small, large = sorted((left, right), key=_letters_per_line)
    if _is_column(large) and _is_margin(small, large) and (_rows(large) > 2 * _rows(small) or _has_block(small)):
        return True
    return _are_blocks_of_short_lines(left, right)


def _are_cells(side: Sequence[Segment], main: Sequence[Segment]) -> bool:
    """Whether the lines in `side` are table cells that belong to the rows in `main`.

    Each line in `side` must be at the same height as a line in `main`. In addition, all lines in `side` must be
    numbers, or they must be few, short and far apart.
    """
    if _has_block(side) or not _heads_lines(side, main):
        return False
    few = 2 * _rows(side) < _rows(main) or _rows(main) == 1
    return (few and _are_single(side)) or all(_FIGURES.match(one.text) for one in side)


def _are_single(side: Sequence[Segment]) -> bool:
    """Whether all lines of a column are short and far apart, like labels and table cells."""
    places = sorted({round(one.bottom) for one in side})
    apart = all(low - high > 1.7 * side[0].size for high, low in pairwise(places) if low - high > 2)  # noqa: PLR2004
    return apart and not _has_block(side) and all(len(one.text) <= _SHORT for one in side)


def _stays_beside(side: Sequence[Segment], main: Sequence[Segment]) -> bool:
    """Whether each block of a narrow column is read next to the main text at the same height, like a margin note.

    Otherwise the whole column is read before or after the main text.
    """
    is_drawn = all(one.block is not None for one in side)
    if is_drawn and _height_of(side) > _NARROW * _height_of(main) and _is_mostly_drawn(main):
        return False  # Tables or pictures are side by side.
    level = _heads_lines(side, main)
    comments = level and 2 * _rows(side) < _rows(main)
    leads = side[0].left < main[0].left and (level or _are_single(side))
    return _is_running(main) or is_drawn or _has_block(main) or leads or comments


def _is_column(side: Sequence[Segment]) -> bool:
    return _has_block(side) or (_rows(side) > 1 and _letters_per_line(side) >= _PROSE)


def _has_block(side: Sequence[Segment]) -> bool:
    return any(one.block is not None for one in side)


def _are_blocks_of_short_lines(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    """Whether two columns are blocks of short lines, such as addresses, and are read one after the other.

    Forms and tables are read row by row instead.
    """
    if min(_rows(left), _rows(right)) < 3 or min(_letters_per_line(left), _letters_per_line(right)) < 6:  # noqa: PLR2004
        return False
    labels = sum(_LABEL.search(one.text) is not None for one in left)
    figures = sum(_FIGURES.match(one.text) is not None for one in right)
    return 3 * labels < len(left) and 3 * figures < len(right) and not _are_aligned(left, right)


def _are_facing_blocks(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    """Whether two groups of short lines are side by side with a wide gap between them, such as the addresses in a
    letter.

    Table rows look similar, so these conditions must also be met:

    - The lines of each group are close together, or both groups contain a postcode.
    - Both groups contain a label or a line of an address, or one group is much longer than the other.
    """
    size = median(one.size or 10.0 for one in (*left, *right))
    gap = min(one.left for one in right) - max(one.right for one in left)
    if gap > _WIDE_GUTTER * size and (_is_line_beside(left, right, size) or _is_line_beside(right, left, size)):
        return True
    are_addresses = all(any(map(_POSTCODE.search, _line_texts(side))) for side in (left, right))
    if gap < (1.0 if are_addresses else _WIDE_GUTTER) * size or min(_rows(left), _rows(right)) < 2:  # noqa: PLR2004
        return False
    if not are_addresses and not (_is_close_set(left) and _is_close_set(right)):
        return False
    lines = _line_texts(right)
    figures = sum(_FIGURES.match(line) is not None for line in lines)
    if any(map(_has_block, (left, right))) or 3 * figures > len(lines) or _has_values(left, right):
        return False
    if _names_something(left) and _names_something(right):
        return True
    low, high = sorted((_rows(left), _rows(right)))
    return low >= _FEW_LINES and 2 * low < high and abs(left[0].top - right[0].top) < size


def _is_line_beside(line: Sequence[Segment], block: Sequence[Segment], size: float) -> bool:
    """Whether a line is beside the middle of an address, like the sender's name in many letters."""
    if _rows(line) > 1 or any(map(_has_block, (line, block))) or any(_FIGURES.match(one.text) for one in line):
        return False
    if not any(_ADDRESS.search(one.text) for one in block):
        return False
    middle = (line[0].top + line[0].bottom) / 2
    places = sorted((one.top + one.bottom) / 2 for one in block)
    between = places[0] + _LEVEL * size < middle < places[-1] - _LEVEL * size
    return between and _rows(block) <= _MOST_OF_ADDRESS and _is_close_set(block)


def _is_close_set(side: Sequence[Segment]) -> bool:
    """Whether the lines are close together and at least half of them have the same left edge or the same right edge."""
    places = sorted({round(one.bottom): one.size for one in side}.items())
    if any(low - high > _CLOSE * max(size, other) for (high, size), (low, other) in pairwise(places)):
        return False
    lefts, rights = Counter(round(one.left / 2) for one in side), Counter(round(one.right / 2) for one in side)
    return 2 * max(*lefts.values(), *rights.values()) >= _rows(side)


def _has_values(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    """Whether a line on the right is the value of a label on the left, such as "Date:" and "3 May".

    Such a line is at the same height as the label, contains no colon, and is not directly below another label.
    """
    labels = [one.bottom for one in left if _LABEL.search(one.text) and not _has_right_neighbour(one, left)]
    ordered = sorted(right, key=attrgetter("bottom"))
    is_label = [_LABEL.search(one.text) is not None for one in ordered]
    return any(
        not above
        and ":" not in one.text
        and any(abs(label - one.bottom) < 0.4 * (one.size or 10.0) for label in labels)
        for above, one in zip([False, *is_label], ordered, strict=False)
    )


def _has_right_neighbour(one: Segment, side: Sequence[Segment]) -> bool:
    return any(other.left > one.right and abs(other.bottom - one.bottom) < 2 for other in side)  # noqa: PLR2004


def _line_texts(side: Sequence[Segment]) -> list[str]:
    """Return the text of each line of a column. If a line was split at wide gaps, its pieces are joined again."""
    ordered = sorted(side, key=lambda one: (round(one.bottom), one.left))
    lines = groupby(ordered, key=lambda one: round(one.bottom))
    return [" ".join(one.text for one in line) for _, line in lines]


def _names_something(side: Sequence[Segment]) -> bool:
    """Whether a group of lines contains a label or a line of an address."""
    return any(_ADDRESS.search(one.text) or _LABELLED.match(one.text) for one in side)


def _are_aligned(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    """Whether most lines of one column are at the same height as a line of the other column."""
    heights = {round(one.bottom) for one in right}
    level = sum(any(round(one.bottom) + shift in heights for shift in (-1, 0, 1)) for one in left)
    return level > 0.7 * min(len(left), len(right))


def _heads_lines(beside: Sequence[Segment], main: Sequence[Segment]) -> bool:
    """Whether every line of a narrow column is at the same height as a line of the main column, as in a glossary."""
    heights = {round(one.bottom) for one in main}
    return all(any(round(one.bottom) + shift in heights for shift in (-1, 0, 1)) for one in beside)


def _is_margin(side: Sequence[Segment], main: Sequence[Segment]) -> bool:
    """Whether a column is less than half as wide as the main text.

    If the main text itself has several columns, the column is compared with one of them.
    """
    lines = sorted(one.right - one.left for one in main)
    return _width(side) < _NARROW * min(_width(main), _LONG_LINES * lines[len(lines) * 3 // 4])


def _width(side: Sequence[Segment]) -> float:
    return max(one.right for one in side) - min(one.left for one in side)


def _is_mostly_drawn(side: Sequence[Segment]) -> bool:
    drawn = sum((one.right - one.left) * (one.bottom - one.top) for one in side if one.block is not None)
    return 2 * drawn > _width(side) * _height_of(side)


def _height_of(side: Sequence[Segment]) -> float:
    return max(one.bottom for one in side) - min(one.top for one in side)


def _rows(side: Sequence[Segment]) -> int:
    return len({round(one.bottom / 4) for one in side})


def _letters_per_line(side: Sequence[Segment]) -> float:
    return sum(len(one.text) for one in side) / max(_rows(side), 1)
