"""The geometry of tables: text lines, columns, and rulings, which are straight lines drawn on the page."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import MOST_LINES, PageContent, Shape, Word

_MOST_RULINGS = 500
MOST_GRIDS = 30
_MANY_WORDS = 60
_MOST_COLUMNS = 60
_MOST_MERGES = 40
_THIN = 3.0
NEAR = 3.0
_TOUCH = 1.0
_LINK = re.compile(r"\S{3,}[./@]\S*")  # a web address, or the second line of one
_SHORT = 10.0
_LEAST_LENGTH = 6.0
LEAST_WIDTH = 60.0
_SAME_END = 8.0
_EQUAL, _LEAST_EQUAL, _MOST_SPACE = 0.04, 3, 3.0  # share of a space; spaces; share of the letter height
GAP = 0.8  # as a share of the letter height; a wider gap separates cells
NUMBER_GAP = 0.5
LEADER_MARKS = (".", "…", "_", "·")
_LEAST_LEADER = 4
_CURRENCY = re.compile(r"[$€£¥]|US\$|EUR|USD")
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


class Segment:
    """Words on one line without a wide gap between them, usually one table cell.

    The text is joined from the words when it is first needed.
    """

    __slots__ = ("_text", "bottom", "left", "right", "top", "words")

    def __init__(self, left: float, top: float, right: float, bottom: float, words: tuple[Word, ...]) -> None:
        self.left = left
        self.top = top
        self.right = right
        self.bottom = bottom
        self.words = words
        self._text: str | None = None

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = joined(self.words)
        return self._text

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2

    @property
    def height(self) -> float:
        return self.bottom - self.top


Line = tuple[Segment, ...]
Column = tuple[float, float]


def box_of(parts: Sequence[Word] | Sequence[Segment]) -> Box:
    return Box(
        min([part.left for part in parts]),
        min([part.top for part in parts]),
        max([part.right for part in parts]),
        max([part.bottom for part in parts]),
    )


def segment_of(words: Sequence[Word]) -> Segment:
    if len(words) == 1:
        left, top, right, bottom, _ = words[0]
        return Segment(left, top, right, bottom, tuple(words))
    lefts, tops, rights, bottoms, _ = zip(*words, strict=True)
    return Segment(min(lefts), min(tops), max(rights), max(bottoms), tuple(words))


def is_right_to_left(text: str) -> bool:
    return not text.isascii() and 2 * len(_RIGHT_TO_LEFT.findall(text)) > sum(map(str.isalpha, text))


def joined(words: Sequence[Word]) -> str:
    """Return the text of the words on a line.

    Words that touch are joined into one, and right-to-left words are put in reading order.
    """
    if len(words) == 1:
        return words[0].text.strip()
    texts: list[str] = []
    end = float("inf")
    for left, top, right, bottom, text in words:
        if abs(left - end) < 0.05 * (bottom - top):
            texts[-1] += text.strip()
        else:
            texts.append(text.strip())
        end = right
    text = " ".join(texts)
    return " ".join(_reversed(texts)) if is_right_to_left(text) else text


def _reversed(texts: Sequence[str]) -> list[str]:
    """Return the words of a right-to-left line in reading order. Adjacent left-to-right words keep their order."""
    result: list[str] = []
    place = 0
    for text in reversed(texts):
        place = 0 if _RIGHT_TO_LEFT.search(text) else place + 1
        result.insert(len(result) - max(place - 1, 0), text)
    return result


def without_leader(word: Word) -> Word:
    """Remove the row of dots at the end of a word such as "Introduction.....", which leads to a page number."""
    if not word.text.endswith(LEADER_MARKS):
        return word
    text = word.text.rstrip("".join(LEADER_MARKS))
    if len(word.text) - len(text) < _LEAST_LEADER:
        return word
    right = word.left + (word.right - word.left) * len(text) / len(word.text)
    return Word(word.left, word.top, right, word.bottom, text)


def text_lines(words: Sequence[Word]) -> list[Line]:
    """Group words into lines by their vertical centres, from top to bottom. Each line is divided at wide gaps."""
    if len(words) < 2:  # noqa: PLR2004
        return [(segment_of(words),)] if words else []
    return list(_lines_of_page(tuple(words)) if len(words) > _MANY_WORDS else _lines(words))


@lru_cache(maxsize=2)
def _lines_of_page(words: tuple[Word, ...]) -> list[Line]:
    """Group the words of a whole page into lines.

    The result is cached, because the lines are needed several times: for tables, for labels and for missed rows.
    """
    return _lines(words)


def _lines(words: Sequence[Word]) -> list[Line]:
    usual = 1.5 * median([word.bottom - word.top for word in words])
    lines: list[list[Word]] = []
    middle = height = 0.0
    for word in sorted(words, key=_double_middle):
        top, bottom = word.top, word.bottom
        tall = min(usual, bottom - top)
        tallest = max(height, tall)
        if lines and (top + bottom) / 2 - middle <= 0.45 * tallest:
            lines[-1].append(word)
            height = tallest
        else:
            lines.append([word])
            middle, height = (top + bottom) / 2, tall
    return [tuple(_segments(sorted(line))) for line in lines]


def _double_middle(word: Word) -> float:
    return word.top + word.bottom


def _segments(line: Sequence[Word]) -> Iterator[Segment]:
    start, end, height = 0, float("inf"), 0.0
    justified: frozenset[int] | None = None
    for index, (left, top, right, bottom, _) in enumerate(line):
        gap, before, height = left - end, height, bottom - top
        # Most gaps are spaces between words. Only wider ones are examined.
        if gap > 0 and (gap > NUMBER_GAP * height or gap > NUMBER_GAP * before) and _is_apart(line, start, index):
            justified = _justified(line) if justified is None else justified
            if index in justified:
                end = right
                continue
            yield segment_of(line[start:index])
            start = index
        end = right
    yield segment_of(line[start:])


def _justified(line: Sequence[Word]) -> frozenset[int]:
    """Return the indexes of words for which the wide gap before the word is only a space in justified text.

    In justified text, at least three consecutive spaces, or all spaces of the line, are equally wide, although the
    words differ in length. None of the words may be a number.
    """
    found: set[int] = set()
    gaps = [other.left - one.right for one, other in pairwise(line)]
    start = 0
    for index in range(1, len(gaps) + 1):
        if index < len(gaps) and abs(gaps[index] - gaps[start]) < _EQUAL * gaps[start]:
            continue
        words = line[start : index + 1]
        widths = [word.right - word.left for word in words]
        is_text = all(any(map(str.isalpha, word.text)) for word in words) and max(widths) > 2 * min(widths)
        is_far = gaps[start] > _MOST_SPACE * (words[0].bottom - words[0].top)
        is_whole = index - start > 1 and start == 0 and index == len(gaps)
        if is_text and not is_far and (is_whole or index - start >= _LEAST_EQUAL):
            found.update(range(start + 1, index + 1))
        start = index
    return frozenset(found)


def _is_apart(line: Sequence[Word], start: int, index: int) -> bool:
    """Whether the gap before a word separates two table cells.

    A currency sign stays with its number even if the gap between them is wide.
    """
    before, word = line[index - 1], line[index]
    gap = word.left - before.right
    height = min(word.bottom - word.top, before.bottom - before.top)
    if gap <= NUMBER_GAP * height:
        return False
    if gap <= GAP * height:
        return all(text[0].isdigit() and text[-1].isdigit() for text in (before.text, word.text))
    return index - start > 1 or not word.text[0].isdigit() or not _CURRENCY.fullmatch(before.text)


def columns_of(lines: Sequence[Line]) -> list[Column]:
    """Find the left and right edge of each column.

    Segments that are one below the other form a column. Narrow segments are used first, because wide ones may cover
    several columns.
    """
    pieces = sorted((part for line in lines if len(line) > 1 for part in line), key=lambda part: part.right - part.left)
    columns: list[Column] = []
    for part in pieces:
        hit = overlapped(columns, part)
        if not hit:
            columns.insert(hit.start, (part.left, part.right))
            if len(columns) > _MOST_COLUMNS:
                return []
        elif len(hit) == 1:
            left, right = columns[hit[0]]
            columns[hit[0]] = (min(left, part.left), max(right, part.right))
    return _merged(columns, lines)


def overlapped(columns: Sequence[Column], part: Segment) -> range:
    """Return the indexes of the columns that a segment overlaps, ignoring tiny overlaps."""
    slack = min(1.0, (part.right - part.left) / 4)
    start = part.left + slack
    first = bisect_left(columns, (start,))
    while first and columns[first - 1][1] > start:
        first -= 1
    last = bisect_left(columns, (part.right - slack,))
    return range(first, max(first, last))


def _merged(columns: list[Column], lines: Sequence[Line]) -> list[Column]:
    """Merge and drop columns that are not real columns of the table.

    Two neighbouring columns are merged in two cases:

    - More lines have text that spans both columns than have separate text in each.
    - No line has separate text in each column. If one of the two columns has text in only a few lines, that column is
      dropped instead.
    """
    for _ in range(_MOST_MERGES):
        joins, apart, filled = _neighbours(columns, lines)
        pairs = range(len(columns) - 1)
        place = max(pairs, key=lambda one: joins[one] - apart[one], default=0)
        if joins[place] <= apart[place]:
            never = [one for one in pairs if not apart[one]]
            if not never:
                break
            place = min(never, key=lambda one: columns[one + 1][0] - columns[one][1])
            few = [one for one in (place, place + 1) if filled[one] < min(3, 0.3 * len(lines))]
            if few and len(lines) > 4:  # noqa: PLR2004
                columns.pop(few[0])
                continue
        columns[place : place + 2] = [(columns[place][0], columns[place + 1][1])]
    return columns


def _neighbours(columns: Sequence[Column], lines: Sequence[Line]) -> tuple[list[int], list[int], list[int]]:
    """Count three kinds of text lines for each column. Returns a list of counts for each kind:

    - lines with a text that also covers the next column
    - lines with separate texts in this and the next column
    - lines with any text in this column
    """
    joins, apart, filled = ([0] * (len(columns) + 1) for _ in range(3))
    for line in lines:
        ranges = [overlapped(columns, part) for part in line]
        used = {place for one in ranges for place in one}
        for place in used:
            filled[place] += 1
        for one in ranges:
            for place in one[:-1]:
                joins[place] += 1
            if one and one[-1] + 1 in used:
                apart[one[-1]] += 1
    return joins, apart, filled


class Ruling(NamedTuple):
    """A straight line drawn on a page.

    For a horizontal line, `at` is its vertical position. For a vertical line, `at` is its horizontal position.
    """

    at: float
    start: float
    end: float


class Rulings(NamedTuple):
    horizontal: tuple[Ruling, ...]
    vertical: tuple[Ruling, ...]


class Span(NamedTuple):
    """The position of a cell: its first row and column, and its last row and column."""

    top: int
    left: int
    bottom: int
    right: int


def page_rulings(page: PageContent) -> tuple[Rulings, Rulings | None]:
    """Return the straight lines drawn on a page in two versions: without and with the edges of filled areas such as
    stripes.

    The second version is None if both are the same. No lines are returned if the page has very many, because they are
    probably a drawing.
    """
    none = Rulings((), ())
    if max(len(page.lines), len(page.shapes)) > MOST_LINES:
        return none, None
    thin, filled = _thin_and_filled(page.shapes)
    straight = [box for box in page.lines if (box[2] - box[0] < _TOUCH) != (box[3] - box[1] < _TOUCH)]
    if links := [run.box for run in page.runs if _LINK.fullmatch(run.text.strip())]:
        thin, straight = ([box for box in boxes if not _underlines(box, links)] for boxes in (thin, straight))
    known = _known(thin)
    lines = [box for box in straight if not _is_known(box, known)] if known else straight
    all_rulings = _rulings([*thin, *lines])
    if not filled or not lines:
        return all_rulings or none, None
    known = _known(filled)
    return _rulings([*thin, *(box for box in lines if not _is_known(box, known))]) or none, all_rulings


def _underlines(line: Box, links: Sequence[Box]) -> bool:
    """Whether a drawn line is the underline of a web address, from end to end, and therefore not part of a table."""
    return any(
        abs(line.left - box.left) < 2 * _TOUCH
        and abs(line.right - box.right) < 2 * _TOUCH
        and (box.top + box.bottom) / 2 < line.top <= box.bottom + 1
        for box in links
    )


def _thin_and_filled(shapes: Sequence[Shape]) -> tuple[list[Box], list[Box]]:
    thin: list[Box] = []
    filled: list[Box] = []
    for box, is_filled, is_stroked, is_curved, _ in shapes:
        left, top, right, bottom = box
        width, height = right - left, bottom - top
        if width >= _THIN and height >= _THIN:
            if is_filled and not is_stroked:
                filled.append(box)
        elif not is_curved and (width >= _THIN or height >= _THIN):
            thin.append(box)
    return thin, filled


def _rulings(boxes: Sequence[Box]) -> Rulings | None:
    flat: list[Ruling] = []
    upright: list[Ruling] = []
    for left, top, right, bottom in boxes:
        width, height = right - left, bottom - top
        if height < _THIN and width > 2 * height:
            flat.append(Ruling((top + bottom) / 2, left, right))
        if width < _THIN and height > 2 * width:
            upright.append(Ruling((left + right) / 2, top, bottom))
    horizontal, vertical = _join(flat), _join(upright)
    return Rulings(horizontal, vertical) if max(len(horizontal), len(vertical)) <= _MOST_RULINGS else None


def _known(boxes: Sequence[Box]) -> dict[tuple[bool, int], tuple[float, float]]:
    """Index the edges of shapes, so that `_is_known` can recognise these edges in the page's list of lines.

    The result maps the direction of an edge (true for a horizontal edge) and its position, rounded to a point, to the
    start and end of the edge.
    """
    known: dict[tuple[bool, int], tuple[float, float]] = {}
    for box in boxes:
        for flat, at in ((True, box.top), (True, box.bottom), (False, box.left), (False, box.right)):
            start, end = (box.left, box.right) if flat else (box.top, box.bottom)
            if end - start >= _THIN:
                before = known.get((flat, round(at)), (start, end))
                known[flat, round(at)] = (min(before[0], start), max(before[1], end))
    return known


def _is_known(box: Box, known: dict[tuple[bool, int], tuple[float, float]]) -> bool:
    flat = _is_flat(box)
    at, start, end = (box.top, box.left, box.right) if flat else (box.left, box.top, box.bottom)
    middle = round(at)
    for near in (middle, middle - 1, middle + 1):
        extent = known.get((flat, near))
        if extent and extent[0] - NEAR <= start and end <= extent[1] + NEAR:
            return True
    return False


def _is_flat(box: Box) -> bool:
    height = box.bottom - box.top
    return height < _THIN and box.right - box.left > 2 * height


def _join(rulings: Iterable[Ruling]) -> tuple[Ruling, ...]:
    """Join straight lines that lie end to end. Also joins the two edges of a thick line into one line."""
    groups: list[list[Ruling]] = []
    for ruling in sorted(rulings):
        if groups and ruling.at - groups[-1][0].at <= NEAR:
            groups[-1].append(ruling)
        else:
            groups.append([ruling])
    return tuple(one for group in groups for one in _joined(group) if one.end - one.start >= _LEAST_LENGTH)


def _joined(group: Sequence[Ruling]) -> list[Ruling]:
    at = sum(ruling.at for ruling in group) / len(group)
    result: list[Ruling] = []
    for ruling in sorted(group, key=lambda one: one.start):
        touch = NEAR if ruling.end - ruling.start < _SHORT else _TOUCH
        if result and ruling.start <= result[-1].end + touch:
            result[-1] = Ruling(at, result[-1].start, max(result[-1].end, ruling.end))
        else:
            result.append(Ruling(at, ruling.start, ruling.end))
    return result


def wide_rules(rulings: Rulings) -> Iterator[tuple[float, float, list[float]]]:
    """Yield groups of horizontal lines with the same left and right end.

    Each group consists of the left end, the right end, and the vertical positions of the lines.
    """
    rows: dict[float, tuple[float, float, float]] = {}
    for one in rulings.horizontal:
        start, end, length = rows.get(one.at, (one.start, one.end, 0.0))
        rows[one.at] = (min(start, one.start), max(end, one.end), length + one.end - one.start)
    groups: dict[tuple[float, float], list[float]] = {}
    for at, (start, end, length) in sorted(rows.items()):
        if length < 0.5 * (end - start) or end - start < LEAST_WIDTH:
            continue
        same = (key for key in groups if max(abs(key[0] - start), abs(key[1] - end)) < _SAME_END)
        groups.setdefault(next(same, (start, end)), []).append(at)
    ends = sorted(groups.items(), key=lambda group: -len(group[1]))[:MOST_GRIDS]
    yield from ((left, right, ys) for (left, right), ys in ends if len(ys) > 1)
