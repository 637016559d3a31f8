"""Turns the lines of a column into paragraphs, lists and code blocks."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from octavo.extract.extracted import BlockKind, RegionKind, is_caption
from octavo.extract.pdf import markup
from octavo.extract.pdf.letters import IDEOGRAPH, ends_in_hyphen, join_lines
from octavo.extract.pdf.lines import Line, Segment, box_around, size_of
from octavo.extract.pdf.page_batches import PageBlock

_MOST_LEADING = 2.5  # as a multiple of the letter size
_USUAL_LEADING = 1.35
_LARGER_GAP = 1.2
_GAP_AFTER_SENTENCE = 1.15
_WIDE_STEP = 1.5  # as a multiple of the line spacing
_OTHER_SIZE = 0.08
_INDENT = 0.6  # as a multiple of the letter size
_MOST_INDENT = 8.0
_MOST_FIRST_INDENT = 4.0
_FEW_LINES = 6
_MOST_FOREIGN, _FOREIGN_LEADING = 4, 2.0  # lines; multiple of the letter size
_MARK_SIZE, _SAME_WIDTH = 1.15, 0.15  # the size and width of letters, as a multiple and a share of those below
_GLUED_MARK = re.compile(r"\d{1,2}[^\W\d_]{2}|\d{1,2}[\"\u201c(][^\W\d_]")
_MOST_TYPED_LINES = 3  # of a sentence that continues in a monospaced font
_CENTRED = 4.0  # points; twice the largest distance between the middles of centred lines
_SAME_PLACE = 1.5
_SAME_START = 40.0  # points
_LEAST_ENDS, _BEYOND, _FLUSH = 6, 0.04, 0.01  # lines; shares of the width of the column
_FEW_BESIDE, _LEAST_JUSTIFIED = 3, 4  # lines
_LONG_LINE = 20.0  # as a multiple of the letter size
_LINES_BESIDE = 60  # lines above and below a line
_FAR_FROM_EDGE = 0.3  # as a share of the width of the column
_BULLET = re.compile(
    r"([•◦▪▫‣●○■□▶►➢➤✓✔∙·❑❖\u2043])\s*(?=\S)|([\uf000-\uf0ff\u2217\u22c6\u25a1-\u25ff\u2605\u2606\u2756-\u2794])\s+(?=\S)"
)
_CHECK_BOXES = ("☐", "☑", "☒")
_DASH = re.compile(r"([-\u2013\u2014*])\s+(?=\S)")
_CIRCLE = re.compile(r"(o)\s+(?=\S)")  # office programs draw the circle of a second list level with this letter
_HANGUL_LETTERS = "가나다라마바사아자차카타파하"
_NUMBERED = re.compile(
    rf"(\(?(?:\d{{1,3}}|[a-zA-Z]|[ivx]{{2,4}}|[{_HANGUL_LETTERS}])[.)])\s+(?=\S)|(\d{{1,3}}[.)])(?=[^\W\d_]{{3}})"
)
_REFERENCE = re.compile(r"\[\w{1,8}\]\s")
# Abbreviations that often end a line without ending a sentence.
_ABBREVIATION = "".join(
    rf"(?<!\b{word}\.)" for word in ("Inc", "Ltd", "Co", "Corp", "St", "No", "Nr", "Dr", "Mr", "vs", "cf", "Prof")
)
_SENTENCE_END = re.compile(f"[.!?:…\u3002\uff01\uff1f\uff1a]{_ABBREVIATION}[\"'\u201d\u2019»)\\]]*\\Z")
_FULL_STOP = re.compile(f"[.!?]{_ABBREVIATION}[\"'\u201d\u2019»)\\]]*\\Z")
_NEW_START = re.compile("[\"'\u201c\u2018«(\\[]*[^\\W_a-z]")
_OPENING = "\"'\u201c\u2018«(["
# Prose can begin a line with a reference to a figure. In a caption, a mark, a title or the line end follows.
_AFTER_LABEL = re.compile(r"\S+\s*[\w.-]*\d[\w-]{0,6}(?:[.:|\u2013\u2014]|\s*\Z|\s+[^\Wa-z\d_])")
_TYPED_RULE = re.compile(r"([=_*~#-])\1{7,}|(?:\* +){2,}\*|(?:[=~-] ){7,}[=~-]?")
_DEFINITION = re.compile(r"[\w.]+\([^)]*\)\s?:")  # a function, and what it does
_LABELLED = re.compile(r"[^\W\d_][^:.]{0,30}:\s+\S")
_LABEL_START = re.compile(r"[^\W\d_a-z][^:.,;]{0,24}:\s+\S")
_CONTENTS_LINE = re.compile(r"[^\W\d_].*[\s.](?:[0-9]{1,4}|[ivxlc]{1,6})\Z")
_TYPED_END, _TYPED_START = re.compile(r"[\w)\"'][.,:]\Z"), re.compile(r"\w{0,4}[>$#%+]")  # of a sentence; of a program
_INDEX_LINE = re.compile(r"[^\W\d_]\S*,(?:\s\d{1,4}(?:[\u2013-]\d{1,4})?,?)+\Z")
_NUMBERED_TITLE, _TITLE = re.compile(r"\d{1,2}(?:\.\d{1,2}){1,4}\.?\s"), 1.1  # the size as a multiple of the others
_LEAST_INDEX, _MOSTLY_INDEX = 8, 0.7  # lines; share of the lines
_SHORT = 40  # letters
_CONTACT = re.compile(r"[\d+]|www\.|https?:|\S+@\S|(?:tel|fon|fax|phone|mobile?|e-?mail|web)\b", re.IGNORECASE)
_CONTACT_WORD = re.compile(r"www\.|https?:|\S+@\S|(?:tel|fon|fax|phone)\b", re.IGNORECASE)
_PAGE_ENDS = frozenset("0123456789ivxlc")
_PYTHON = re.compile(r"^\s*(?:def \w+\(|class \w+[(:]|import \w|from [\w.]+ import )", re.MULTILINE)
_AMOUNT_END = re.compile(r"(?:[$€£]\s?-?\d[\d.,]*|\d[.,]\d\d(?:\s?(?:[$€£]|[A-Z]{3}))?)\)?\Z")
_MOST_CODE_INDENT = 40
_PROGRAM_END = re.compile(r"(?:[\w)\]\"'];|[{}]);?\Z")
_LEAST_PROGRAM, _MOSTLY_PROGRAM = 3, 0.7  # lines; share of the lines


class Part(NamedTuple):
    """A block of a page.

    `marks` contains the superscript numbers and symbols in its text that refer to footnotes. If the block is a
    footnote, `note` is the number or symbol at its beginning. If the block is inside a text box, `anchor` is the top of
    the text box.
    """

    block: PageBlock
    marks: tuple[str, ...] = ()
    note: str | None = None
    anchor: float | None = None


@dataclass(frozen=True, slots=True)
class _Column:
    """The lines of a column.

    `starts` and `ends` are the positions at which each line starts and ends in reading direction.
    """

    lines: Sequence[Line]
    starts: Sequence[float]
    ends: Sequence[float]
    items: Mapping[int, tuple[str, str]]
    leading: Mapping[float, float]
    # A cache of the results of `_edge`, by the start of a line and, in a long column, its index.
    edges: dict[tuple[float, int], float] = field(default_factory=dict[tuple[float, int], float])


def usual_leading(segments: Iterable[Segment]) -> dict[float, float]:
    """Return the usual line spacing for each font size, measured between lines with the same left edge."""
    counts: defaultdict[float, Counter[float]] = defaultdict(Counter)
    by_edge = sorted((round(one.left / 4), one.bottom, one.size, len(one.text)) for one in segments)
    for (left, bottom, size, letters), (other_left, other_bottom, other_size, _) in pairwise(by_edge):
        distance = round(2 * (other_bottom - bottom)) / 2
        if left == other_left and size == other_size and 0.9 * size < distance <= _MOST_LEADING * size:
            counts[size][distance] += letters
    return {size: min(d for d, n in found.items() if n >= 0.3 * max(found.values())) for size, found in counts.items()}


def parts_of(lines: Sequence[Line], leading: Mapping[float, float], *, backwards: bool = False) -> list[Part]:
    """Group the lines of one column into blocks: paragraphs, list items, headings and code."""
    if _are_index(lines):
        lines = [replace(line, mono=False) for line in lines]
    elif any(line.mono for line in lines):
        usual = median(line.size for line in lines)
        titles = (line.mono and line.size > _TITLE * usual and _NUMBERED_TITLE.match(line.text) for line in lines)
        lines = [replace(line, mono=False) if title else line for line, title in zip(lines, titles, strict=True)]
        lines = _with_foreign_code(lines)
    lines = _with_sizes_of_notes(lines)
    starts = [-line.right if backwards else line.left for line in lines]
    ends = [-line.left if backwards else line.right for line in lines]
    column = _Column(lines, starts, ends, {}, leading)
    column = replace(column, items=_items(column))
    groups: list[list[int]] = []
    for index in range(len(lines)):
        if groups and not _begins(column, groups[-1], index):
            groups[-1].append(index)
        else:
            groups.append([index])
    return list(_parts(column, groups))


def _with_sizes_of_notes(lines: Sequence[Line]) -> Sequence[Line]:
    """Correct the size of lines that begin with the raised number of a footnote.

    liteparse reports only the size of the first letter. If the next line has a larger size, but its letters are equally
    wide, the line gets the size of the next line.
    """
    if not any(_GLUED_MARK.match(line.text) for line in lines):
        return lines
    made = list(lines)
    for index, (line, after) in enumerate(pairwise(lines)):
        is_small = line.size < after.size / _MARK_SIZE and _GLUED_MARK.match(line.text)
        is_near = 0 < after.bottom - line.bottom < _MOST_LEADING * after.size
        if is_small and is_near and abs(line.letter - after.letter) < _SAME_WIDTH * after.letter:
            made[index] = replace(line, size=after.size)
    return made


def _with_foreign_code(lines: Sequence[Line]) -> Sequence[Line]:
    """Treat lines with Chinese or Japanese characters inside code as code, although these characters have another font.

    The lines directly above and below them must be code, and none of them may start further left than both lines.
    """
    made = list(lines)
    starts = [index for index in range(1, len(lines)) if _is_foreign(lines[index]) and lines[index - 1].mono]
    for start in starts:
        end = start
        while end < len(lines) and _is_foreign(lines[end]) and end - start < _MOST_FOREIGN:
            end += 1
        if end == len(lines) or not lines[end].mono:
            continue
        near = lines[start - 1 : end + 1]
        left = min(lines[start - 1].left, lines[end].left) - 1
        is_close = all(low.bottom - high.bottom < _FOREIGN_LEADING * low.size for high, low in pairwise(near))
        if is_close and all(line.left > left for line in near):
            made[start:end] = [replace(line, mono=True) for line in lines[start:end]]
    return made


def _is_foreign(line: Line) -> bool:
    return not line.mono and line.block is None and IDEOGRAPH.search(line.text) is not None


def _are_index(lines: Sequence[Line]) -> bool:
    """Whether monospaced lines belong to an index: most lines end with a comma and page numbers."""
    if len(lines) < _LEAST_INDEX or not any(line.mono for line in lines):
        return False
    return sum(_INDEX_LINE.search(line.text) is not None for line in lines) > _MOSTLY_INDEX * len(lines)


def _items(column: _Column) -> dict[int, tuple[str, str]]:
    """Find the lines that begin a list item.

    Maps the index of each such line to the item's marker and the text after it.
    """
    found: dict[int, tuple[str, str]] = {}
    unsure: dict[int, tuple[str, str]] = {}
    for index, line in enumerate(column.lines):
        if (line.mono and not line.text.startswith("•")) or _TYPED_RULE.fullmatch(line.text):
            continue
        if match := _BULLET.match(line.text):
            text = line.text[match.end() :]
            twice = _BULLET.match(text)  # The bullet is drawn twice: as a letter and as a shape.
            found[index] = match[1] or match[2], text[twice.end() :] if twice else text
        elif (match := _DASH.match(line.text) or _NUMBERED.match(line.text)) and not _is_title(column, index):
            unsure[index] = match[1] or match[2], line.text[match.end() :]
    found |= _circles(column)
    numbers = list(unsure)
    for place, after in enumerate(numbers):
        index = _item_before(column, numbers[:place], after)
        if index is not None and _follows(unsure[index][0], unsure[after][0]):
            found[index], found[after] = unsure[index], unsure[after]
    for before, index, after in zip(numbers, numbers[1:], numbers[2:], strict=False):
        is_inside = (
            max(column.starts[before], column.starts[after]) < column.starts[index] - column.lines[index].size / 2
        )
        if is_inside and before in found and after in found and unsure[index][0].strip("().") in _FIRST:
            found[index] = unsure[index]
    return found


def _circles(column: _Column) -> dict[int, tuple[str, str]]:
    """Find list items whose bullet is the letter "o" (a hollow circle in the original).

    There must be at least two at the same indentation, and all lines between them must be indented further.
    """
    lines = [(index, match) for index, line in enumerate(column.lines) if (match := _CIRCLE.match(line.text))]
    found: dict[int, tuple[str, str]] = {}
    for (one, first), (other, second) in pairwise(lines):
        start, size = column.starts[one], column.lines[one].size
        is_level = abs(column.starts[other] - start) < _SAME_PLACE
        if is_level and all(between > start + size / 2 for between in column.starts[one + 1 : other]):
            found[one], found[other] = (
                ("\u25e6", first.string[first.end() :]),
                ("\u25e6", second.string[second.end() :]),
            )
    return found


def _item_before(column: _Column, numbers: Sequence[int], index: int) -> int | None:
    """Return the index of the preceding list item at the same level. Items that are indented further are skipped.

    Returns None if there is no such item.
    """
    size = column.lines[index].size
    level = (one for one in reversed(numbers) if column.starts[one] < column.starts[index] + size)
    before = next(level, None)
    return before if before is not None and abs(column.starts[before] - column.starts[index]) < size else None


def _is_title(column: _Column, index: int) -> bool:
    """Whether a numbered line is a bold or italic title, rather than the first line of a list item."""
    line = column.lines[index]
    after = column.lines[index + 1] if index + 1 < len(column.lines) else None
    is_italic = line.italic and after is not None and not after.italic and after.left < line.left - line.size
    return (line.bold or is_italic) and not _SENTENCE_END.search(line.text) and not _runs_on(column, index + 1)


def _follows(one: str, other: str) -> bool:
    if one == other:
        return not one.strip("().").isalnum()
    first, second = one.strip("()."), other.strip("().")
    if first.isdigit() and second.isdigit():
        return int(second) == int(first) + 1
    if f"{first}{second}" in _HANGUL_LETTERS:
        return True
    return (len(first) == len(second) == 1 and ord(second) == ord(first) + 1) or {first, second} <= _ROMAN


_FIRST = frozenset({"1", "a", "A", "i"})
_ROMAN = frozenset({"i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"})


def _begins(column: _Column, group: Sequence[int], index: int) -> bool:
    """Whether a new block begins with the line at `index`. `group` contains the lines of the preceding block."""
    before, line = column.lines[index - 1], column.lines[index]
    if before.block is not None or line.block is not None or index in column.items:
        return True
    is_code = column.lines[group[0]].mono and group[0] not in column.items
    if is_code or line.mono:
        return _begins_beside_code(column, group, index, is_code=is_code)
    if (
        _has_other_style(column, group, index)
        or _begins_by_text(before, line)
        or _has_amount(before) != _has_amount(line)
    ):
        return True
    step = line.bottom - before.bottom
    ends = _FULL_STOP.search(before.text) is not None and _NEW_START.match(line.text) is not None
    if step > (_GAP_AFTER_SENTENCE if ends else _LARGER_GAP) * _leading(column, line) + 0.5:
        return not _continues_after_gap(column, index, step)
    return (
        _begins_by_indent(column, group, index)
        or _begins_after_short_line(column, group, index)
        or _is_indented_again(column, group, index)
        or _is_after_item(column, group, index)
        or _is_below_name(column, group, index)
    )


def _begins_beside_code(column: _Column, group: Sequence[int], index: int, *, is_code: bool) -> bool:
    """Whether the line at `index` starts a new block. Call this only if that line or the line above it may be code.

    `is_code` is true if the preceding block is code.
    """
    before, line = column.lines[index - 1], column.lines[index]
    if is_code and line.mono:
        return line.bottom - before.bottom > 3 * _leading(column, line)
    if before.mono and line.mono:  # A sentence can continue in several monospaced lines.
        return _is_apart_from_typed(column, index)
    return is_code or not (before.mono or _continues_in_code(column, group, index))


def _continues_after_gap(column: _Column, index: int, step: float) -> bool:
    """Whether a sentence continues after a large gap, because the text has wide line spacing."""
    before, line = column.lines[index - 1], column.lines[index]
    alike = before.size == line.size and before.bold == line.bold and step <= _MOST_LEADING * line.size
    shift = (column.starts[index] - column.starts[index - 1]) / line.size
    is_level = -_MOST_INDENT < shift < (1 if step > _WIDE_STEP * _leading(column, line) else _MOST_INDENT)
    is_full = ends_in_hyphen(before.text) or not _ends_early(column, index - 1)
    if _DEFINITION.match(line.text):
        return False
    return alike and is_level and is_full and _runs_on(column, index)


def _continues_in_code(column: _Column, group: Sequence[int], index: int) -> bool:
    """Whether a sentence continues in one or a few monospaced lines, for example with file names."""
    before, line = column.lines[index - 1], column.lines[index]
    is_long = column.ends[index - 1] - column.starts[index - 1] > _LONG_LINE * before.size
    if before.mono or not is_long or _SENTENCE_END.search(before.text):
        return False
    if _ends_early(column, index - 1) and not before.text.endswith("-"):
        return False
    if line.bottom - before.bottom > _USUAL_LEADING * _leading(column, before):
        return False
    end = next((at for at in range(index, len(column.lines)) if not column.lines[at].mono), len(column.lines))
    if abs(column.starts[index] - column.starts[index - 1]) < 1 and end - index <= _MOST_TYPED_LINES:
        is_rest = before.text.endswith((",", "-")) and column.lines[end - 1].text.endswith(".")
        return end - index == 1 or is_rest or _runs_on(column, end)
    return _ends_in_code(column, group, index)


def _ends_in_code(column: _Column, group: Sequence[int], index: int) -> bool:
    """Whether a sentence continues in only one monospaced line.

    This line must start at the same position as the line above it. A different indent is allowed only if the line above
    is the first line of a paragraph or list item.
    """
    line = column.lines[index]
    after = index + 1
    is_open = after < len(column.lines) and not column.lines[after].mono and _runs_on(column, after)
    if not (is_open or _TYPED_END.search(line.text)) or _TYPED_START.match(line.text):
        return False
    if after < len(column.lines) and column.lines[after].mono and not _is_apart_from_typed(column, after):
        return False
    shift = column.starts[index] - column.starts[index - 1]
    if len(group) > 1:
        return abs(shift) < 1
    return -1 < (shift if group[0] in column.items else -shift) < _MOST_FIRST_INDENT * line.size


def _is_apart_from_typed(column: _Column, index: int) -> bool:
    line, step = column.lines[index], column.lines[index].bottom - column.lines[index - 1].bottom
    is_level = abs(column.starts[index] - column.starts[index - 1]) <= 1
    return not is_level or step > _LARGER_GAP * _leading(column, line)


def _begins_by_text(before: Line, line: Line) -> bool:
    """Whether a line begins a new block, judging by its text: a reference, a caption, a note or a check box with its
    label.

    A line that is drawn with characters, such as "=====", is always a separate block.
    """
    if (_TYPED_RULE.fullmatch(before.text) is None) != (_TYPED_RULE.fullmatch(line.text) is None):
        return True
    reference = _REFERENCE.match(line.text)
    is_reference = reference is not None and not line.text[reference.end() :].lstrip()[:1].islower()
    if line.text[:1] in _CHECK_BOXES or is_reference or (line.starts_raised and line.size <= before.size):
        return True
    return _is_caption(line.text) and _SENTENCE_END.search(before.text) is not None


def _has_amount(line: Line) -> bool:
    """Whether a line ends with an amount of money after a wide gap, like the row of a table."""
    return line.has_value and _AMOUNT_END.search(line.text) is not None


def _is_caption(text: str) -> bool:
    return is_caption(text) and _AFTER_LABEL.match(text) is not None


def _leading(column: _Column, line: Line) -> float:
    return column.leading.get(line.size) or _USUAL_LEADING * line.size


def _has_other_style(column: _Column, group: Sequence[int], index: int) -> bool:
    before, line = column.lines[index - 1], column.lines[index]
    is_mixed = _is_as_high(before, line) and not _ends_early(column, index - 1)
    if abs(before.size - line.size) > _OTHER_SIZE * max(before.size, line.size) and not is_mixed:
        return not _runs_on(column, index)
    if before.italic and not line.italic and _ends_early(column, index - 1) and not _SENTENCE_END.search(before.text):
        return _NEW_START.match(line.text) is not None
    bold = before.bold if len(group) == 1 else 2 * sum(column.lines[one].bold for one in group) > len(group)
    if bold == line.bold or _runs_on(column, index):
        return False
    # The first words of a paragraph or a line can be bold. The whole line then has their style.
    is_full = not _ends_early(column, index - 1) and not _SENTENCE_END.search(before.text)
    if is_full and line.bold and line.text.endswith("."):
        return False
    return line.bold or len(group) > 1 or not is_full


def _is_as_high(before: Line, line: Line) -> bool:
    """Whether two lines have the same left edge and are equally tall, even if their font sizes differ a little.

    liteparse reports only the size of a run's first letter. The reported size of a line that begins with smaller
    letters can therefore be too small.
    """
    one, other = before.bottom - before.top, line.bottom - line.top
    return (
        abs(before.left - line.left) < 1
        and abs(one - other) < 0.02 * one
        and abs(before.size - line.size) < 2 * _OTHER_SIZE * before.size
    )


def _runs_on(column: _Column, index: int) -> bool:
    """Whether a sentence continues from a full line to the line at `index`.

    If it does, a change of style between the lines is ignored, because a line is reported in the style of its first
    letters.
    """
    if not 0 < index < len(column.lines):
        return False
    before, line = column.lines[index - 1], column.lines[index]
    if before.block is not None or _SENTENCE_END.search(before.text) or _is_far_from_edge(column, index - 1):
        return False
    if IDEOGRAPH.match(line.text) and IDEOGRAPH.match(before.text, max(len(before.text) - 1, 0)):
        is_alike = abs(before.size - line.size) < 2 * _OTHER_SIZE * max(before.size, line.size)
        return is_alike and not _ends_early(column, index - 1)
    return line.text.lstrip(_OPENING)[:1].islower()


def _is_far_from_edge(column: _Column, index: int) -> bool:
    edge = _edge(column, index)
    return edge - column.ends[index] > _FAR_FROM_EDGE * (edge - column.starts[index])


def _begins_by_indent(column: _Column, group: Sequence[int], index: int) -> bool:
    line, before = column.lines[index], column.lines[index - 1]
    shift = column.starts[index] - column.starts[index - 1]
    least = max(_INDENT * line.size, 3.0)
    if abs(shift) < least or _are_centred(before, line) or _hangs(column, group, index, shift):
        return False
    if shift < 0:
        return len(group) > 1 or (group[0] in column.items and column.starts[index] <= column.starts[group[0]] + 1)
    if group[0] in column.items and shift <= _MOST_INDENT * line.size:
        return len(group) > 1 and (shift > 2 * line.size or _SENTENCE_END.search(before.text) is not None)
    if shift > _MOST_INDENT * line.size or len(group) > 1:
        return True
    following = column.starts[index + 1] if index + 1 < len(column.starts) else None
    if following is not None and abs(following - column.starts[index]) < least:
        return _is_term(column, index - 1)
    return following is not None or _SENTENCE_END.search(before.text) is not None


def _is_term(column: _Column, index: int) -> bool:
    """Whether a line is the term of a definition.

    The next line must be indented, begin a sentence and end further right, although its first word would have fitted on
    this line.
    """
    line, after = column.lines[index], column.lines[index + 1]
    if line.text[-1:] in ",;-" or not _NEW_START.match(after.text) or line.has_value or after.size > line.size + 1:
        return False
    need = (len(after.first_word) + 2) * (after.letter or 0.5 * after.size)
    return column.ends[index] + need < column.ends[index + 1]


def _is_after_item(column: _Column, group: Sequence[int], index: int) -> bool:
    """Whether a line below a list item is a paragraph: it starts where the bullet starts, and the item ends early."""
    is_flush = group[0] in column.items and abs(column.starts[index] - column.starts[group[0]]) < 1
    if not is_flush or len(group) > 1 or not _NEW_START.match(column.lines[index].text):
        return False
    return _ends_early(column, index - 1) and column.lines[index - 1].text[-1:] not in ",;-"


def _is_indented_again(column: _Column, group: Sequence[int], index: int) -> bool:
    """Whether a line begins a new paragraph below a paragraph of only one line, because both lines are indented."""
    line, start = column.lines[index], column.starts[index]
    if len(group) > 1 or group[0] in column.items or abs(start - column.starts[index - 1]) > 1:
        return False
    near = column.starts[max(0, index - _FEW_LINES) : index + _FEW_LINES]
    indents = [start - one for one in near if _INDENT * line.size < start - one < _MOST_FIRST_INDENT * line.size]
    return 2 * len(indents) >= len(near) and _NEW_START.match(line.text) is not None and _ends_early(column, index - 1)


def _is_below_name(column: _Column, group: Sequence[int], index: int) -> bool:
    """Whether a paragraph begins below a short line in the same style, such as a name or a title.

    The first line of the paragraph must be long and full, and more than twice as long as the short line.
    """
    before, line = column.lines[index - 1], column.lines[index]
    if len(group) > 1 or group[0] in column.items or len(before.text) > _SHORT or index + 1 >= len(column.lines):
        return False
    if before.text[-1:] in ",;-" or not _NEW_START.match(line.text) or before.has_value or line.has_value:
        return False
    is_flush = max(column.starts[index - 1 : index + 2]) - min(column.starts[index - 1 : index + 2]) < 1
    is_long = column.ends[index] - column.starts[index] > _LONG_LINE * line.size
    is_half = 2 * (column.ends[index - 1] - column.starts[index]) < column.ends[index] - column.starts[index]
    return is_flush and is_long and is_half and not _ends_early(column, index)


def _hangs(column: _Column, group: Sequence[int], index: int, shift: float) -> bool:
    """Whether a sentence continues in a line with a different indent.

    This occurs in lists of references and beside large initial letters.
    """
    before, line = column.lines[index - 1], column.lines[index]
    if before.text.endswith(",") and before.text.count("(") > before.text.count(")") and line.text.endswith(")"):
        return True  # The arguments of a function can be indented as far as its bracket.
    if abs(shift) > _MOST_INDENT * line.size:
        return False
    is_open = before.text[-1:] not in ".!?:" or _REFERENCE.match(before.text) is not None
    is_second = len(group) == 1 and shift > 0 and is_open and not _ends_early(column, index - 1)
    is_second = is_second and not _is_term(column, index - 1)
    return is_second or _runs_on(column, index)


def _are_centred(one: Line, other: Line) -> bool:
    return abs(one.left + one.right - other.left - other.right) < _CENTRED and abs(one.left - other.left) > 1


def _begins_after_short_line(column: _Column, group: Sequence[int], index: int) -> bool:
    before, line = column.lines[index - 1], column.lines[index]
    if not _SENTENCE_END.search(before.text) or not _NEW_START.match(line.text):
        return False
    if not _ends_early(column, index - 1):
        return False
    earlier = any(not _ends_early(column, one) for one in group[:-1])
    return earlier or (index + 1 < len(column.lines) and not _ends_early(column, index))


def _edge(column: _Column, index: int) -> float:
    """Return the right edge of the text near a line.

    It is the furthest end of the nearby lines that start at about the same position.
    """
    start, first = column.starts[index], max(0, index - _LINES_BESIDE)
    if own := _own_edge(column, index):
        return own
    # In a short column, the result is the same for all lines with the same start.
    key = start, index if len(column.lines) > _LINES_BESIDE else 0
    if key not in column.edges:
        near = zip(
            column.starts[first : index + _LINES_BESIDE], column.ends[first : index + _LINES_BESIDE], strict=True
        )
        ends = sorted(end for one, end in near if abs(one - start) < _SAME_START)
        column.edges[key] = ends[-2] if _is_too_long(ends, start, column.lines[index].size) else ends[-1]
    return column.edges[key]


def _own_edge(column: _Column, index: int) -> float:
    """Return the right edge of a justified text that is narrower than the text around it, such as an abstract.

    Returns 0 if the lines near `index` are not such a text.
    """
    start, near = (
        column.starts[index],
        range(max(0, index - _FEW_BESIDE), min(len(column.lines), index + _FEW_BESIDE + 1)),
    )
    level = [one for one in near if abs(column.starts[one] - start) < _SAME_PLACE]
    ends = sorted(column.ends[one] for one in level)
    if len(ends) < _LEAST_JUSTIFIED or ends[-1] - start < _LONG_LINE * column.lines[index].size:
        return 0.0
    is_table = any(column.lines[one].second or column.lines[one].has_cells for one in level)
    is_justified = ends[-1] - ends[-_LEAST_JUSTIFIED] < _FLUSH * (ends[-1] - start)
    return ends[-1] if is_justified and not is_table else 0.0


def _is_too_long(ends: Sequence[float], start: float, size: float) -> bool:
    """Whether one line extends beyond the right edge of the column, which is where several other long lines end."""
    if len(ends) < _LEAST_ENDS or ends[-2] - start < _LONG_LINE * size:
        return False
    width = ends[-2] - start
    return ends[-1] - ends[-2] > _BEYOND * width and ends[-2] - ends[-4] < _FLUSH * width


def _ends_early(column: _Column, index: int) -> bool:
    """Whether a line ends early, so that the first word of the next line would have fitted on it."""
    if index + 1 >= len(column.lines):
        return False
    after = column.lines[index + 1]
    # A Chinese line can end after any character.
    first = 1 if IDEOGRAPH.match(after.first_word) else len(after.first_word)
    need = (first + 2) * (after.letter or 0.5 * after.size)
    edge = _edge(column, index)
    slack = 0.02 * (edge - column.starts[index])
    return column.ends[index] + need + slack < edge


def _parts(column: _Column, groups: Sequence[list[int]]) -> Iterator[Part]:
    items: list[list[int]] = []
    code: list[int] = []
    for group in [*groups, []]:
        is_item, is_code = bool(group) and group[0] in column.items, bool(group) and column.lines[group[0]].mono
        if items and not is_item:
            yield from _lists(column, items)
            items = []
        if code and not is_code:
            yield _code(column, code)
            code = []
        if is_item:
            items.append(group)
        elif is_code:
            code += group
        elif group and column.lines[group[0]].block is not None:
            yield from column.lines[group[0]].block
        elif group:
            yield _paragraph(column, group)


def _paragraph(column: _Column, group: Sequence[int]) -> Part:
    lines = [column.lines[index] for index in group]
    texts = [line.text for line in lines]
    keep = len(lines) > 1 and _are_intended(column, group, texts)
    if keep and _are_program(texts):
        return _code(column, group)
    pieces = [[one] for one in texts] if keep else _divided(texts)
    text = "\n".join(markup.plain(join_lines(piece)) for piece in pieces)
    bold = sum(len(line.text) for line in lines if line.bold) * 2 > sum(map(len, texts))
    region = RegionKind.CAPTION if _is_caption(texts[0]) and len(lines) < 12 else RegionKind.BODY  # noqa: PLR2004
    if len(lines) == 1 and lines[0].has_cells:
        region = RegionKind.TABLE  # the header of a table is not a title
    italic = all(line.italic for line in lines)
    block = PageBlock(
        BlockKind.PARAGRAPH, text, box_around(lines), size_of(lines), bold, len(lines), region, italic=italic
    )
    marks = tuple(mark for line in lines for mark in line.marks)
    note = marks[0] if lines[0].starts_raised and marks else None
    return Part(block, marks[1:] if note else marks, note)


def _divided(texts: Sequence[str]) -> list[list[str]]:
    """Divide the lines of a paragraph before each label, if several lines begin with a label, as in "Date: 3 May"."""
    labels = [at for at, text in enumerate(texts) if _LABEL_START.match(text)]
    starts = {at for at in labels if at == 0 or _FULL_STOP.search(texts[at - 1])}
    if len(starts) < 2 or len(starts) < len(labels) or 0 not in starts:  # noqa: PLR2004
        return [list(texts)]
    ends = [*sorted(starts)[1:], len(texts)]
    return [list(texts[start:end]) for start, end in zip(sorted(starts), ends, strict=True)]


def _are_intended(column: _Column, group: Sequence[int], texts: Sequence[str]) -> bool:
    """Whether the line breaks of a paragraph are intended and must be kept, as in addresses, forms and verse."""
    if any(map(ends_in_hyphen, texts[:-1])):
        return False
    if all(map(_is_contents_line, texts)) or all(map(_LABELLED.match, texts)):
        return True
    if all(len(text) <= _SHORT and _CONTACT.match(text) for text in texts) and any(map(_CONTACT_WORD.match, texts)):
        return True
    lines = [column.lines[index] for index in group]
    if all(line.has_value for line in lines):
        return True
    seconds = [line.second for line in lines]  # terms with their definitions
    if all(seconds) and max(seconds) - min(seconds) < _SAME_PLACE:
        return True
    early = sum(_is_intended(column, index) for index in group[:-1])
    ends = [line.right for line in lines]
    middles = [line.left + line.right for line in lines]
    centred = max(middles) - min(middles) < _CENTRED and max(ends) - min(ends) > 12  # noqa: PLR2004
    return centred or 2 * early > len(group) - 1 or (_are_short_lines(texts) and (early > 0 or len(group) > 2))  # noqa: PLR2004


def _are_program(texts: Sequence[str]) -> bool:
    """Whether lines in any font are code: nearly all of them end with a character such as a semicolon or a brace."""
    ends = sum(_PROGRAM_END.search(text) is not None for text in texts)
    return len(texts) >= _LEAST_PROGRAM and ends > _MOSTLY_PROGRAM * len(texts)


def _are_short_lines(texts: Sequence[str]) -> bool:
    """Whether the lines are short and none of them continues a sentence, as in an address or a letterhead."""
    open_ends = (text.endswith((",", ";")) or (text[-1:] == "." and _FULL_STOP.search(text)) for text in texts[:-1])
    if any(len(text) > _SHORT for text in texts) or any(open_ends):
        return False
    return all(text.lstrip(_OPENING)[:1].isupper() or _CONTACT.match(text) for text in texts)


def _is_intended(column: _Column, index: int) -> bool:
    """Whether the author ended this line on purpose, so that the line break must be kept.

    The line must be shorter than the lines around it. If the next line starts in lower case, it must be much shorter.
    """
    if not _ends_early(column, index):
        return False
    return not column.lines[index + 1].text[:1].islower() or _is_far_from_edge(column, index)


def _is_contents_line(text: str) -> bool:
    return text[-1:] in _PAGE_ENDS and _CONTENTS_LINE.search(text) is not None


def _lists(column: _Column, items: Sequence[Sequence[int]]) -> Iterator[Part]:
    made: list[markup.Item] = []
    stack: list[float] = []
    for group in items:
        start, size = column.starts[group[0]], column.lines[group[0]].size
        while stack and start < stack[-1] - 0.5 * size:
            stack.pop()
        if not stack or start > stack[-1] + 0.5 * size:
            stack.append(start)
        mark, first = column.items[group[0]]
        text = join_lines([first, *(column.lines[index].text for index in group[1:])])
        made.append(markup.Item(mark, text, len(stack) - 1))
    start = 0
    for end in markup.list_ends(made):
        lines = [column.lines[index] for group in items[start:end] for index in group]
        text = markup.item_lines(made[start:end])
        region = RegionKind.LIST
        block = PageBlock(BlockKind.LIST, text, box_around(lines), size_of(lines), lines=len(lines), region=region)
        yield Part(block, tuple(mark for line in lines for mark in line.marks))
        start = end


def _code(column: _Column, group: Sequence[int]) -> Part:
    lines = [column.lines[index] for index in group]
    left = min(line.left for line in lines)
    written: list[str] = []
    for before, line in zip([None, *lines], lines, strict=False):
        if before and line.bottom - before.bottom > 1.6 * _leading(column, line):
            written.append("")
        indent = round((line.left - left) / line.letter) if line.letter > 0 else 0
        written.append(" " * min(indent, _MOST_CODE_INDENT) + line.text.lstrip())
    language = "python" if _PYTHON.search("\n".join(written)) else ""
    text = markup.code(written, language)
    return Part(PageBlock(BlockKind.CODE, text, box_around(lines), size_of(lines), lines=len(lines)))
