"""Finds text that must be read row by row: labels with their values, and terms with their definitions beside them.

For example, "Date:" is a label and "3 May" is its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent
from octavo.extract.pdf.lines import Segment, is_inside_any, is_monospaced, rows_of
from octavo.extract.pdf.table_geometry import Segment as LineCell
from octavo.extract.pdf.table_geometry import box_of, text_lines

_MOST_WORDS = 8000
_NEXT_LABEL = 3.0  # in line heights
_SAME_PLACE = 4.0  # points
_SAME_RIGHT = 2.0
_LEAST_INDENT = 4.0  # as a multiple of the letter size
_FEWEST_TERMS = 3
_MOST_OF_MARKER = 6  # letters
_TERM_GAP = 1.2  # between a term and its definition, as a share of the letter size
_NEXT_TERM = 2.2  # the most distance between the lines of two terms, as a multiple of the letter size
_MARKER = re.compile(r"[(\[]?(?:\d{1,3}(?:\.\d{1,3})*|[a-zA-Z]|[ivxIVX]{1,5})[.)\]:]?|[^\w\s]{1,2}")
_FIGURES = re.compile(r"[\d\s.,:;/%€$£()+-]+\Z")

Row = list[Segment]  # the pieces of text of one line


class LabelRows(NamedTuple):
    """A group of labels with their values, such as "Date: 3 May". `texts` has one line for each label."""

    box: Box
    texts: tuple[str, ...]
    height: float


def find_label_rows(page: PageContent, taken: Sequence[Box], *, reads_code: bool = True) -> Iterator[LabelRows]:
    """Find groups of labels that end with a colon and are followed by values, such as "Date: 3 May".

    In a group, all labels have the same left edge, and all values have the same left edge. If `reads_code` is false,
    text in monospaced fonts is ignored, because it is code.
    """
    runs = page.runs if reads_code else [run for run in page.runs if not is_monospaced(run.font)]
    words = [word for run in runs for word in run.words if word.text.strip() and not is_inside_any(word, taken)]
    if len(words) > _MOST_WORDS:
        return
    found = list(text_lines(words))
    yield from _labels_above_values(found)
    group: list[list[LineCell]] = []
    ahead: list[LineCell] = []
    for place, line in enumerate(found):
        after = found[place + 1] if place + 1 < len(found) else ()
        if group and _is_ahead(group, line, after):
            ahead += line
            continue
        pair = len(line) == 2 and _is_label(line[0].text) and not line[1].text.endswith(":")  # noqa: PLR2004
        if (
            group
            and line[0].top - max(part.bottom for part in group[-1]) < _NEXT_LABEL * line[0].height
            and _is_below(group[0], line, pair=pair)
        ):
            row = [line[0], *ahead, *line[1:]] if pair else list(line)
            group = [*group, row] if pair else [*group[:-1], [*group[-1], *row]]
        else:
            yield from _label_rows(group)
            group = [list(line)] if pair else []
        ahead = []
    yield from _label_rows(group)


def _is_ahead(group: Sequence[Sequence[LineCell]], line: Sequence[LineCell], after: Sequence[LineCell]) -> bool:
    """Whether a line is the first line of a value whose label is beside the second line."""
    if len(line) != 1 or len(after) != 2 or not _is_label(after[0].text):  # noqa: PLR2004
        return False
    if not _is_below(group[0], line, pair=False) or not _is_below(group[0], after, pair=True):
        return False
    above, below = line[0].top - max(part.bottom for part in group[-1]), after[1].top - line[0].bottom
    return below < 0.5 * line[0].height and below < 0.5 * above


def _labels_above_values(lines: Sequence[Sequence[LineCell]]) -> Iterator[LabelRows]:
    """Find rows of labels with one row of values below them, such as "Date:" and "Due:" above two dates.

    If further aligned lines follow, the labels are the headings of columns, such as columns of addresses, and are
    skipped.
    """
    for index, (labels, values) in enumerate(pairwise(lines)):
        if len(labels) < 2 or len(labels) != len(values) or not all(_is_label(one.text) for one in labels):  # noqa: PLR2004
            continue
        after = lines[index + 2] if index + 2 < len(lines) else ()
        height = labels[0].height
        is_last = not after or after[0].top - values[0].bottom > height or not _are_aligned(after, labels)
        if is_last and _are_aligned(values, labels) and values[0].top - labels[0].bottom < _NEXT_LABEL * height / 2:
            texts = tuple(f"{label.text} {value.text}" for label, value in zip(labels, values, strict=True))
            yield LabelRows(box_of([*labels, *values]), texts, height)


def _are_aligned(line: Sequence[LineCell], labels: Sequence[LineCell]) -> bool:
    return all(any(abs(part.left - label.left) < _SAME_PLACE for label in labels) for part in line)


def _is_label(text: str) -> bool:
    return text.endswith((":", "\uff1a")) and sum(map(str.isalpha, text)) > 1


def _is_below(first: Sequence[LineCell], line: Sequence[LineCell], *, pair: bool) -> bool:
    places = zip(line, first if pair else first[1:2], strict=False)
    return (pair or len(line) == 1) and all(abs(part.left - above.left) < _SAME_PLACE for part, above in places)


def _label_rows(group: Sequence[Sequence[LineCell]]) -> Iterator[LabelRows]:
    if len(group) > 1:
        texts = tuple(" ".join(part.text for part in row) for row in group)
        yield LabelRows(box_of([part for row in group for part in row]), texts, group[0][0].height)


class Terms(NamedTuple):
    """Terms with their definitions beside them. Each entry is a list of lines, and each line a list of segments.

    `edge` is the left edge of the definitions, or their right edge if `at_right` is true.
    """

    entries: list[list[Row]]
    edge: float
    at_right: bool

    @property
    def segments(self) -> list[Segment]:
        return [one for entry in self.entries for row in entry for one in row]


def find_terms(segments: Sequence[Segment]) -> Iterator[Terms]:
    """Find groups of terms with definitions in a column of text, as on a reference card.

    All definitions of a group have the same left edge or the same right edge. A definition can have several lines.
    """
    rows = list(rows_of(segments))
    found = list(_groups(rows, at_right=False))
    yield from found
    taken = {id(row) for terms in found for entry in terms.entries for row in entry}
    yield from _groups([row for row in rows if id(row) not in taken], at_right=True)


def _groups(rows: Sequence[Row], *, at_right: bool) -> Iterator[Terms]:
    group, waiting = Terms([], 0.0, at_right), list[Row]()
    for row in rows:
        above = waiting[-1:] or group.entries[-1][-1:] if group.entries else []
        if above and _is_near(above[0], row):
            if _has_term(row, group):
                group.entries.extend([[one] for one in (*waiting, row)])
                waiting = []
                continue
            if not waiting and _continues_definition(row, group):
                group.entries[-1].append(row)
                continue
            if not waiting and _may_have_long_term(row, group):
                waiting = [row]
                continue
        if _are_terms(group):
            yield group
        second = _second_start(row)
        edge = row[-1].right if at_right else second
        group, waiting = Terms([[row]] if second else [], edge, at_right), []
    if _are_terms(group):
        yield group


def _is_near(above: Row, row: Row) -> bool:
    return row[0].block is None and row[0].bottom - above[0].bottom < _NEXT_TERM * max(row[0].size, above[0].size)


def _has_term(row: Row, group: Terms) -> bool:
    """Whether a line has a term, and a definition at the edge of the group.

    A long term can end close to its definition.
    """
    if group.at_right:
        return _second_start(row) > 0 and abs(row[-1].right - group.edge) < _SAME_RIGHT
    starts = [one for one in row[1:] if abs(one.left - group.edge) < _SAME_PLACE]
    beside = (one.right < group.edge + 1 or one.left > group.edge - 1 for one in row)
    return bool(starts) and row[0].left < group.edge and all(beside)


def _continues_definition(row: Row, group: Terms) -> bool:
    if group.at_right:
        indent = row[0].left - group.entries[0][0][0].left
        return abs(row[-1].right - group.edge) < _SAME_RIGHT and indent > _LEAST_INDENT * row[0].size
    return -_SAME_PLACE < row[0].left - group.edge < row[0].size + _SAME_PLACE


def _may_have_long_term(row: Row, group: Terms) -> bool:
    """Whether a line may have a term that is so long that there is no gap between it and the definition.

    The line is accepted only if a line with a term and a gap follows.
    """
    first = group.entries[0][0][0]
    if group.at_right or row[-1].right <= group.edge + first.size:
        return False
    return abs(row[0].left - first.left) < _SAME_PLACE and row[0].size == first.size


def _second_start(row: Row) -> float:
    """Return the left edge of the text after the only wide gap of a line.

    Returns 0 if the line does not have exactly one wide gap.
    """
    if row[0].block is not None:
        return 0.0
    wide = [one.left for before, one in pairwise(row) if one.left - before.right > _TERM_GAP * one.size]
    return wide[0] if len(wide) == 1 else 0.0


def _are_terms(group: Terms) -> bool:
    """Whether a group of lines contains terms and definitions, and not a list, a table of contents or code."""
    rows = [entry[0] for entry in group.entries]
    if len(rows) < _FEWEST_TERMS or 2 * sum(all(one.mono for one in row) for row in rows) > len(rows):
        return False
    if 2 * sum(_second_start(row) > 0 for row in rows) < len(rows):
        return False
    lefts = [row[0].left for row in rows]
    if max(lefts) - min(lefts) > _SAME_PLACE:
        return False
    markers = sum(_MARKER.fullmatch(row[0].text) is not None and len(row[0].text) < _MOST_OF_MARKER for row in rows)
    figures = sum(_FIGURES.match(row[-1].text) is not None for row in rows)
    return 2 * markers < len(rows) and 2 * figures < len(rows)
