"""Finds the columns of a page: an XY-cut that follows gutters from line to line and stops at full-width lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from octavo.extract.pdf.letters import is_right_to_left
from octavo.extract.pdf.lines import Segment, inner

_LEAST_GUTTER = 0.65  # of the median letter size
_DEEPEST = 6
_NARROW = 0.5  # of the width of the main column; a narrower column is at the margin
_PROSE = 17.0  # letters per line; lines of columns have more, cells of tables fewer
_LABEL = re.compile(r":\s*\Z")
_FIGURES = re.compile(r"[\d\s.,:;/%€$£()+-]+\Z")
_FAR = 2.5  # lines; a heading with this much space beside it separates columns

Gap = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Flow:
    """Text that is read in one go: all of it lies in one column."""

    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns side by side, in reading order. `before` and `after` are narrow columns beside them."""

    columns: tuple[Layout, ...]
    beside: tuple[Layout, ...] = ()
    leading: bool = False


@dataclass(frozen=True, slots=True)
class Stack:
    """Parts of a page below each other."""

    parts: tuple[Layout, ...]


Layout = Flow | Columns | Stack


@dataclass(frozen=True, slots=True)
class Band:
    """A strip of the page with text, separated from the strips above and below by white space."""

    top: float
    bottom: float
    segments: tuple[Segment, ...]


def find_columns(segments: Sequence[Segment], *, backwards: bool = False, depth: int = 0) -> Layout:
    """The layout of the segments of a page. `backwards`: columns are read from right to left."""
    if len(segments) < 4 or depth > _DEEPEST:  # noqa: PLR2004 - two columns have at least two lines each
        return Flow(tuple(segments))
    gutter = _LEAST_GUTTER * median(one.size or 10.0 for one in segments)
    bands = list(bands_of(segments))
    parts: list[Layout] = []
    flow: list[Segment] = []
    for group, gaps in _groups(bands, gutter):
        columns = _columns(group, gaps, backwards=backwards, depth=depth) if gaps else None
        if columns is None:
            flow += [one for band in group for one in band.segments]
            continue
        if flow:
            parts.append(Flow(tuple(flow)))
            flow = []
        parts.append(columns)
    if flow:
        parts.append(Flow(tuple(flow)))
    return parts[0] if len(parts) == 1 else Stack(tuple(parts))


def bands_of(segments: Sequence[Segment]) -> Iterator[Band]:
    found: list[Segment] = []
    top = bottom = 0.0
    for one in sorted(segments, key=lambda one: inner(one)[0]):
        first, last = inner(one)
        if found and first >= bottom:
            yield Band(top, bottom, tuple(found))
            found = []
        if not found:
            top, bottom = first, last
        found.append(one)
        bottom = max(bottom, last)
    if found:
        yield Band(top, bottom, tuple(found))


def _gaps(band: Band, left: float, right: float, least: float) -> list[Gap]:
    """The empty intervals of a band, including those at its ends."""
    gaps: list[Gap] = []
    end = left - least
    for one in sorted(band.segments):
        if one.left - end >= least:
            gaps.append((end, one.left))
        end = max(end, one.right)
    gaps.append((end, right + least))
    return [gap for gap in gaps if gap[1] - gap[0] >= least]


def _common(one: Sequence[Gap], other: Sequence[Gap], least: float) -> list[Gap]:
    shared = ((max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other)
    return [gap for gap in shared if gap[1] - gap[0] >= least]


def _groups(bands: Sequence[Band], least: float) -> Iterator[tuple[list[Band], list[Gap]]]:
    """Consecutive bands with a common gutter, and the gutters that have text on both sides."""
    left = min(one.left for band in bands for one in band.segments)
    right = max(one.right for band in bands for one in band.segments)
    group: list[Band] = []
    gaps: list[Gap] = []
    for band in bands:
        own = [gap for gap in _gaps(band, left, right, least) if gap[1] > left and gap[0] < right]
        shared = _common(gaps, own, least) if group else own
        if group and not shared:
            yield from _closed(group, gaps)
            group, shared = [], own
        group.append(band)
        gaps = shared
    yield from _closed(group, gaps)


def _closed(group: list[Band], gaps: Sequence[Gap]) -> Iterator[tuple[list[Band], list[Gap]]]:
    """Split off bands at the start and the end of a group that are on one side of the gutter only."""
    inside = [gap for gap in gaps if _sides(group, gap) == (True, True)]
    if not inside:
        yield group, []
        return
    both = (i for i, band in enumerate(group) if any(_sides([band], gap) == (True, True) for gap in inside))
    first = next(both, 0)
    if 0 < first and not _is_closer(group[first - 1], group[first], _before(group, first)):
        yield group[:first], []
        group = group[first:]
    for part in _split_at_headings(group, inside):
        yield part, [gap for gap in inside if _sides(part, gap) == (True, True)]


def _before(group: Sequence[Band], first: int) -> Band | None:
    return group[first - 2] if first > 1 else None


def _is_closer(band: Band, below: Band, above: Band | None) -> bool:
    """Whether a line belongs to the columns below it rather than to the text above it."""
    return above is not None and below.top - band.bottom < 0.7 * (band.top - above.bottom)


def _split_at_headings(group: list[Band], gaps: Sequence[Gap]) -> Iterator[list[Band]]:
    """Cut where a heading in the left column has much space to its right: it is above both columns."""
    size = median(one.size or 10.0 for band in group for one in band.segments)
    start = 0
    for index in range(1, len(group) - 1):
        band = group[index]
        alone = not any(_sides([band], gap) == (True, True) for gap in gaps)
        if (
            alone
            and _is_heading(band, size)
            and _has_both(group[start:index], gaps)
            and _has_both(group[index + 1 :], gaps)
        ):
            space = group[index + 1].top - group[index - 1].bottom
            if space > _FAR * size and index > start:
                yield group[start:index]
                start = index
    yield group[start:]


def _is_heading(band: Band, size: float) -> bool:
    return all(one.block is None and (one.bold or one.size > 1.1 * size) for one in band.segments)


def _has_both(bands: Sequence[Band], gaps: Sequence[Gap]) -> bool:
    return any(_sides(bands, gap) == (True, True) for gap in gaps)


def _sides(bands: Sequence[Band], gap: Gap) -> tuple[bool, bool]:
    left = any(one.right <= gap[0] + 0.1 for band in bands for one in band.segments)
    right = any(one.left >= gap[1] - 0.1 for band in bands for one in band.segments)
    return left, right


def _columns(group: Sequence[Band], gaps: Sequence[Gap], *, backwards: bool, depth: int) -> Layout | None:
    """The columns of a group, or None if its gutters are only gaps between the cells of rows."""
    segments = [one for band in group for one in band.segments]
    sides: list[list[Segment]] = []
    rest = segments
    for gap in sorted(gaps):
        sides.append([one for one in rest if one.right <= gap[0] + 0.1])
        rest = [one for one in rest if one.right > gap[0] + 0.1]
    sides = [side for side in [*sides, rest] if side]
    if len(sides) < 2:  # noqa: PLR2004
        return None
    accepted = _accepted(sides)
    if accepted is None:
        return None
    return _in_order(accepted, backwards=backwards, depth=depth)


def _in_order(sides: list[list[Segment]], *, backwards: bool, depth: int) -> Layout:
    main = max(sides, key=lambda side: _width(side) * len(side))
    beside = [side for side in sides if side is not main and _is_margin(side, main)]
    others = [side for side in sides if not any(side is one for one in beside)]
    if backwards:
        others.reverse()
    laid = tuple(find_columns(side, backwards=backwards, depth=depth + 1) for side in others)
    notes = tuple(find_columns(side, backwards=backwards, depth=depth + 1) for side in beside)
    if not notes:
        return Columns(laid)
    leading = len(beside) == 1 and beside[0][0].left < main[0].left and _heads_lines(beside[0], main)
    return Columns(laid, notes, leading)


def _accepted(sides: list[list[Segment]]) -> list[list[Segment]] | None:
    """The sides that are columns; neighbours that are not are joined. None if only one is left."""
    if all(_is_column(side) for side in sides):
        return sides
    if len(sides) == 2:  # noqa: PLR2004
        small, large = sorted(sides, key=_letters_per_line)
        if _is_column(large) and _is_margin(small, large) and (_rows(large) > 2 * _rows(small) or _has_block(small)):
            return sides
        return sides if _are_blocks_of_short_lines(*sides) else None
    return None


def _is_column(side: Sequence[Segment]) -> bool:
    return _has_block(side) or (_rows(side) > 1 and _letters_per_line(side) >= _PROSE)


def _has_block(side: Sequence[Segment]) -> bool:
    return any(one.block is not None for one in side)


def _are_blocks_of_short_lines(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    """Whether two groups of short lines are read one after the other, as two addresses, and not across, as a form."""
    if min(_rows(left), _rows(right)) < 3 or min(_letters_per_line(left), _letters_per_line(right)) < 6:  # noqa: PLR2004
        return False
    labels = sum(_LABEL.search(one.text) is not None for one in left)
    figures = sum(_FIGURES.match(one.text) is not None for one in right)
    return 3 * labels < len(left) and 3 * figures < len(right) and not _are_aligned(left, right)


def _are_aligned(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    """Whether most lines of one side are at the height of a line of the other."""
    heights = {round(one.bottom) for one in right}
    level = sum(any(round(one.bottom) + shift in heights for shift in (-1, 0, 1)) for one in left)
    return level > 0.7 * min(len(left), len(right))


def _heads_lines(beside: Sequence[Segment], main: Sequence[Segment]) -> bool:
    """Whether every part of a narrow left column is level with a line of the main column, as terms are."""
    heights = {round(one.bottom) for one in main}
    return all(any(round(one.bottom) + shift in heights for shift in (-1, 0, 1)) for one in beside)


def _is_margin(side: Sequence[Segment], main: Sequence[Segment]) -> bool:
    return _width(side) < _NARROW * _width(main)


def _width(side: Sequence[Segment]) -> float:
    return max(one.right for one in side) - min(one.left for one in side)


def _rows(side: Sequence[Segment]) -> int:
    return len({round(one.bottom / 4) for one in side})


def _letters_per_line(side: Sequence[Segment]) -> float:
    return sum(len(one.text) for one in side) / max(_rows(side), 1)


def is_read_backwards(segments: Sequence[Segment]) -> bool:
    return is_right_to_left("".join(one.text for one in segments))
