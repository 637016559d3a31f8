"""Turns the contents of a page into lines of text with their style. Also finds line numbers and frames."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple
from unicodedata import normalize

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, Shape, TextRun, Word
from octavo.extract.pdf.letters import (
    AS_RAISED,
    clean_letters,
    has_right_to_left,
    is_right_to_left,
    with_right_marks,
    without_wide_spaces,
)

_WIDE_GAP = 0.75  # as a share of the letter size; a wider gap between words may be a gutter between columns
_EQUAL = 1.15
_MOST_AROUND = 0.8  # as a share of the width of a letter
_TOUCHING, _LEAST_SPACE = 0.25, 0.6  # as a share of the width of a letter in a monospaced font
_FEW_WORDS = 3
_TERM_GAP = 1.2
_CELL_GAP = 2.0  # as a share of the letter size
_FAR_CELL = 12.0
_SPACE = 0.12  # as a share of the letter size; parts closer than this are one word
_INNER = 0.2  # as a share of the height; boxes of lines are higher than their letters and overlap
_LARGER = 1.15
_SMALL = 0.8  # as a share of the size of the line; smaller letters that are raised are marks of notes
_LONE_BULLET = re.compile("[•◦▪▫‣●○■□▶►➢➤✓✔∙·❑❖☐☑☒\u2043\uf0a7\uf0b7\uf0d8\uf0fc\uf06e]\\Z")
_LONE_BRACE = re.compile(r"[{}][;)]{0,2}\Z")
_PAGE_LEADER = re.compile(r"(?:\s?\.){5,}\s*(?=(?:\d{1,4}|[ivxlc]{1,6})\Z)")
_NUMBER_OF_TITLE = re.compile(r"(\d{1,2}(?:\.\d{1,2}){1,4}\.?)(?=[^\W\da-z_][a-z]{2})")
_MOST_TO_BULLET = 4.0  # as a share of the letter size
_RAISED = 0.1  # as a share of the letter size
_EXPONENT = re.compile(r"[-+\u2212\u2013]?\d{1,3}[,;]?|n")
_LETTER_EXPONENT = re.compile(r"[a-z]")
_VARIABLE = re.compile(r"(?:(?<![^\W_])[a-z]|[\d)\]])\Z")
_MOST_SPACES = 40
_SHORT_WORD = 4  # letters
_LEAST_CODE_RUNS = 4
_MARK = re.compile(r"[\d*†‡§¶a-z]{1,3}\Z")
_MONOSPACED = re.compile(
    r"mono|nimbusmon|mplus1m|m\+1m|cour|consol|typewriter|cm(?:sl|i)?tt|ectt|sf(?:tt|it|st)\d|menlo|fixed|inconsolata|lucidacons|sourcecode|firacode"
    r"|(?:\A|\+)(?:t1x|tx|px|lm|eb|rm|ul|pc)\w?tt(?:\W|\d|_|\Z)"
)
_VALUE = re.compile(r"\W{0,3}(?:[A-Z]{3}\s)?\d[\d.,\s\u2013-]*\W{0,3}(?:[A-Z]{3})?")
_SAME_PLACE = 4.0  # points
_LEAST_BOX = 40.0, 18.0
_LEAST_NUMBERS = 8
_LEAST_LOWER = 3
_MOST_CELL_WORDS = 2
_MOST_CELL_LINES = 4
_MOST_SHAPES = 3000
_MOST_FRAME_LINES = 400
_WHITE = frozenset({"ffffffff", None})
_MOST_OF_PAGE = 0.6
_WHOLE_HEIGHT = 0.9
_HALF_PAGE = 0.4
_LARGE_INITIAL = 1.7  # as a multiple of the size of the next letters


class Segment(NamedTuple):
    """Words on one line in one font, without a wide gap between them.

    `block` is set if the segment is a placeholder for a finished block, such as a table.
    """

    left: float
    top: float
    right: float
    bottom: float
    text: str = ""
    size: float = 0.0
    bold: bool = False
    mono: bool = False
    italic: bool = False
    tag: int | None = None
    block: Any = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text in one column.

    `marks` contains the superscript numbers and symbols that refer to footnotes. `has_cells` is true if the line has
    several wide gaps, like a table row. `has_value` is true if the line ends with a number after a wide gap. `second`
    is the position of the text after the only wide gap of the line. It is 0 if there is no such gap.
    """

    left: float
    top: float
    right: float
    bottom: float
    text: str
    size: float
    bold: bool
    mono: bool
    italic: bool
    marks: tuple[str, ...] = ()
    starts_raised: bool = False
    letter: float = 0.0
    tag: int | None = None
    first_word: str = ""
    block: Any = None
    has_cells: bool = False
    has_value: bool = False
    second: float = 0.0


def segments_of(runs: Iterable[TextRun]) -> list[Segment]:
    """Split text runs at wide gaps, so that no segment extends from one column into the next."""
    found: list[Segment] = []
    runs = list(runs)
    widths = _code_widths(runs) if any(not run.font or _is_numbered(run) for run in runs) else frozenset[float]()
    for run in runs:
        words, limit = run.words, max(_WIDE_GAP * run.size, 5.0)
        mono = is_monospaced(run.font) and _has_equal_letters(words)
        if widths and not mono and (not run.font or _is_numbered(run)):
            mono = all(_letter_width(word) in widths for word in (words[1:] if _is_numbered(run) else words))
        start = 0
        for index in range(1, len(words)):
            if words[index][0] - words[index - 1][2] > limit:
                found.append(_segment(run, start, index, mono=mono))
                start = index
        found.append(_segment(run, start, len(words), mono=mono))
    found = _with_bullets(found) if any(_LONE_BULLET.match(one.text) for one in found) else found
    return _with_braces(found) if any(_LONE_BRACE.match(one.text) for one in found) else found


def _with_braces(segments: Sequence[Segment]) -> list[Segment]:
    """Treat a segment that is only a brace as code, if a line of code is directly above or below it.

    Some monospaced TeX fonts contain no braces, so the braces of a program are in another font.
    """
    code = [one for one in segments if one.mono]
    return [
        one._replace(mono=True)
        if _LONE_BRACE.fullmatch(one.text) and any(abs(line.bottom - one.bottom) < 2 * line.size for line in code)
        else one
        for one in segments
    ]


def _is_numbered(run: TextRun) -> bool:
    """Whether a text run may be a line of code with a line number, which can be in a different font from the code.

    It must begin with a number. The next word must not consist only of letters, because text such as "3 Results" is
    probably not code.
    """
    return len(run.words) > 1 and run.words[0].text.isdecimal() and not run.words[1].text.isalpha()


def _code_widths(runs: Sequence[TextRun]) -> frozenset[float]:
    """Return the letter widths that occur in monospaced fonts.

    A font without a name is monospaced if several text runs have letters of exactly the same width.
    """
    words = (word for run in runs if is_monospaced(run.font) and _has_equal_letters(run.words) for word in run.words)
    found = {_letter_width(word) for word in words if len(word.text) > _SHORT_WORD}
    nameless = (run.words for run in runs if not run.font and len(run.words) > 1)
    widths = Counter(next(iter(of_run)) for words in nameless if len(of_run := set(map(_letter_width, words))) == 1)
    return frozenset(found | {width for width, count in widths.items() if count >= _LEAST_CODE_RUNS})


def _letter_width(word: Word) -> float:
    return round(10 * (word.right - word.left) / max(len(word.text), 1)) / 10


def _with_bullets(segments: Sequence[Segment]) -> list[Segment]:
    """Join each bullet that is stored separately with the text to its right.

    Otherwise the bullets would be read as a separate column.
    """
    bullets = [one for one in segments if _LONE_BULLET.match(one.text)]
    texts = sorted((one for one in segments if not _LONE_BULLET.match(one.text)), key=attrgetter("left"))
    joined: dict[Segment, Segment] = {}
    alone: list[Segment] = []
    for bullet in bullets:
        middle = (bullet.top + bullet.bottom) / 2
        near = (one for one in texts if one.top < middle < one.bottom and one.left >= bullet.right - 1)
        text = next(near, None)
        if text is None or text in joined or text.left - bullet.right > _MOST_TO_BULLET * text.size:
            alone.append(bullet)
        else:
            joined[text] = text._replace(left=bullet.left, text=f"{bullet.text} {text.text}")
    return [*(joined.get(one, one) for one in segments if not _LONE_BULLET.match(one.text)), *alone]


def _has_equal_letters(words: Sequence[Word]) -> bool:
    """Whether the letters of all words have about the same width, as in a monospaced font.

    The font name is not enough, because a text run reports only the font of its first letter.
    """
    widths = [(word.right - word.left) / len(word.text) for word in words if len(word.text) > 2]  # noqa: PLR2004
    if widths and max(widths) >= _EQUAL * min(widths):
        return False
    # The box of a word ends at its ink, so a word can be narrower than its letters by a part of one letter.
    letter = max(widths, default=0.0)
    if any(len(word.text) * letter - (word.right - word.left) > _MOST_AROUND * letter for word in words):
        return False
    # A space is as wide as a letter. After a short word, narrow spaces mean that only this word is monospaced.
    gaps = [other.left - one.right for one, other in pairwise(words)]
    is_narrow = gaps and _TOUCHING * letter < min(gaps) and max(gaps) < _LEAST_SPACE * letter
    is_short = len(words) <= _FEW_WORDS and 2 * len(words[0].text) < sum(len(word.text) for word in words)
    return not (is_narrow and is_short)


def _segment(run: TextRun, start: int, end: int, *, mono: bool) -> Segment:
    if start == 0 and end == len(run.words):
        text = run.text.strip()
        if has_right_to_left(text):
            text = in_logical_order([word.text for word in run.words])
        return Segment(*run.box, text, run.size, run.bold, mono, run.italic, run.tag)
    words = run.words[start:end]
    texts = [word.text for word in words]
    text = " ".join(texts) if not has_right_to_left(run.text) else in_logical_order(texts)
    left, right = words[0].left, words[-1].right
    return Segment(left, run.box.top, right, run.box.bottom, text, run.size, run.bold, mono, run.italic, run.tag)


def in_logical_order(words: Sequence[str]) -> str:
    """Put the words of a line, which are sorted from left to right, into reading order.

    In a right-to-left line, neighbouring numbers and left-to-right words keep their order.
    """
    if not is_right_to_left(" ".join(words)):
        return " ".join(words)
    ordered: list[str] = []
    foreign: list[str] = []
    for word in reversed(words):
        if has_right_to_left(word) or not any(letter.isalnum() for letter in word):
            ordered += reversed(foreign)
            foreign = []
            ordered.append(word)
        else:
            foreign.append(word)
    return " ".join([*ordered, *reversed(foreign)])


@cache
def is_monospaced(font: str) -> bool:
    return _MONOSPACED.search(font.lower().replace(" ", "")) is not None


def lines_of(segments: Sequence[Segment], right_text: Callable[[Box], str] | None = None) -> list[Line]:
    """Group the text of one column into lines, from top to bottom.

    `right_text` is a function that takes a box and returns the text inside it in reading order. It is used for
    right-to-left lines.
    """
    return [_line(group, right_text) for group in rows_of(segments)]


def rows_of(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Yield the segments of each line, from left to right.

    Segments that overlap vertically are on the same line.
    """
    rows: list[tuple[float, float, list[Segment]]] = []
    apart = _beside_several(segments)
    leading = _leading_blocks(segments)
    for one in sorted(segments, key=lambda one: _height_in(one, apart, leading)):
        if one.block is not None or (apart and one in apart):
            rows.append((one.top, one.top, [one]))
            continue
        if rows and _is_level(rows[-1], one):
            row = rows[-1]
            top, bottom = inner(one)
            row[2].append(one)
            rows[-1] = min(row[0], top), max(row[1], bottom), row[2]
        else:
            rows.append((*inner(one), [one]))
    yield from (sorted(row[2]) for row in rows)


def _height_of(large: Segment) -> float:
    """Return the sort key of large text that has smaller lines beside it. A smaller key is read first.

    The key is twice the top of a chapter number, so that the number comes before the lines beside it. For other large
    text, the key is twice the bottom.
    """
    return 2 * (large.top if large.text.isdecimal() else large.bottom)


def _height_in(one: Segment, apart: set[Segment], leading: Sequence[Segment]) -> float:
    """Return the key by which segments are sorted into lines: usually twice the vertical middle of the segment."""
    if leading and any(one is block for block in leading):
        return 2 * one.top
    return _height_of(one) if apart and one in apart else one.top + one.bottom


def _leading_blocks(segments: Sequence[Segment]) -> list[Segment]:
    """Find the blocks that are read before the text beside them.

    These are blocks with text to their right, such as the frame of a question beside its answer, and pictures with text
    on either side.
    """
    blocks = [one for one in segments if one.block is not None]
    texts = [one for one in segments if one.block is None] if blocks else []
    return [
        block
        for block in blocks
        if any(
            (one.left >= block.right - 1 or (_is_picture(block) and one.right <= block.left + 1))
            and block.top < (one.top + one.bottom) / 2 < block.bottom
            for one in texts
        )
    ]


def _is_picture(one: Segment) -> bool:
    return one.block is not None and all(part.block.figure for part in one.block)


def _is_level(row: tuple[float, float, list[Segment]], one: Segment) -> bool:
    """Whether a segment is on the same line as the segments in `row`.

    The middle of the segment must be within the height of the row. If the last segment in the row is much smaller, such
    as a superscript, it is enough that the middle of the row is within the height of the new segment.
    """
    top, bottom, segments = row
    if top <= (one.top + one.bottom) / 2 <= bottom:
        return True
    return one.size > _LARGER * segments[-1].size > 0 and one.top <= (top + bottom) / 2 <= one.bottom


def _beside_several(segments: Sequence[Segment]) -> set[Segment]:
    """Find text in large letters that has several lines of small text beside it, such as a title beside an address."""
    usual = size_of([one for one in segments if one.block is None])
    found: set[Segment] = set()
    for large in segments:
        is_number = large.text.isdecimal()
        if large.block is not None or large.size <= _LARGE_INITIAL * usual or (len(large.text) < 2 and not is_number):  # noqa: PLR2004
            continue
        gap = 0.0 if is_number else 2 * large.size
        level = {
            round(one.bottom)
            for one in segments
            if one.size * _LARGE_INITIAL < large.size
            and large.top < (one.top + one.bottom) / 2 < large.bottom
            and max(one.left - large.right, large.left - one.right) > gap
        }
        if len(level) > 1:
            found.add(large)
    return found


def inner(one: Segment) -> tuple[float, float]:
    """Return the top and bottom of the letters in a segment. The box of a segment is taller than its letters."""
    if one.block is not None:
        return one.top, one.bottom
    height = one.bottom - one.top
    return one.top + _INNER * height, one.bottom - _INNER * height


def _line(row: Sequence[Segment], right_text: Callable[[Box], str] | None) -> Line:
    first = row[0]
    if len(row) == 1:
        text, marks, starts_raised = without_wide_spaces(clean_letters(first.text)), (), False
        size, bold, mono, italic = first.size, first.bold, first.mono, first.italic
        box = Box(first.left, first.top, first.right, first.bottom)
    else:
        size, bold, mono, italic = _style(row)
        box = _box(row, size)
        marks, starts_raised = _marks(row, size)
        text = without_wide_spaces(clean_letters(_joined(row)))
    if has_right_to_left(text):
        text = _right_to_left(text, row, box, right_text)
    if text[:1].isdecimal() and (found := _NUMBER_OF_TITLE.match(text)) and (bold or found[1].count(".") > 1):
        text = f"{found[1]} {text[found.end() :]}"
    if "...." in text or ". . ." in text:
        text = _PAGE_LEADER.sub(" ", text)
    letters = sum(len(one.text) for one in row)
    letter = sum(one.right - one.left for one in row) / letters if letters else 0.0
    return Line(
        *box,
        text,
        size,
        bold,
        mono,
        italic,
        marks,
        starts_raised,
        letter,
        first.tag,
        text.split(" ", 1)[0],
        first.block,
        len(row) > 1 and _has_cells(row, size),
        len(row) > 1 and row[-1].left - row[-2].right > _CELL_GAP * size and _VALUE.fullmatch(row[-1].text) is not None,
        _second(row, size) if len(row) > 1 else 0.0,
    )


def _style(row: Sequence[Segment]) -> tuple[float, bool, bool, bool]:
    """Return the font size of a line, and whether most of its letters are bold, monospaced or italic."""
    sizes: dict[float, int] = {}
    bold = mono = italic = letters = 0
    for one in row:
        length = len(one.text)
        sizes[one.size] = sizes.get(one.size, 0) + length
        letters += length
        bold += length * one.bold
        mono += length * one.mono
        italic += length * one.italic
    size = max(sizes, key=lambda one: (sizes[one], one))
    if row[0].text.isdecimal() and not row[0].mono and mono:  # the number of a line of code
        letters -= len(row[0].text)
        size = size if len(row) > 2 else row[1].size  # noqa: PLR2004
    return size, bold > 0.9 * letters, mono > 0.7 * letters, italic > 0.7 * letters


def _second(row: Sequence[Segment], size: float) -> float:
    wide = [one.left for before, one in pairwise(row) if one.left - before.right > _TERM_GAP * size]
    return wide[0] if len(wide) == 1 else 0.0


def _has_cells(row: Sequence[Segment], size: float) -> bool:
    """Whether a line has several wide gaps, or a very wide one, like a table header."""
    gaps = [one.left - before.right for before, one in pairwise(row)]
    return sum(gap > _CELL_GAP * size for gap in gaps) > 1 or max(gaps) > _FAR_CELL * size


def _box(row: Sequence[Segment], size: float) -> Box:
    """Return the box of a line.

    Its height is that of the letters in the line's main size, so that superscripts do not affect the line spacing.
    """
    main = [one for one in row if one.size == size]
    top, bottom = min(one.top for one in main), max(one.bottom for one in main)
    return Box(row[0].left, top, max(one.right for one in row), bottom)


def _marks(row: Sequence[Segment], size: float) -> tuple[tuple[str, ...], bool]:
    main = next(one for one in row if one.size == size)
    raised = [one for one in row if one.size <= _SMALL * size and one.bottom < main.bottom - 0.1 * size]
    texts = (normalize("NFKC", one.text).strip() for one in raised)
    marks = tuple(text for text in texts if _MARK.match(text))
    return marks, bool(marks) and row[0] in raised


def _joined(row: Sequence[Segment]) -> str:
    text, end = row[0].text, row[0].right
    for before, one in pairwise(row):
        initial = before.size > _LARGE_INITIAL * one.size and len(before.text) == 1 and before.text.isalpha()
        apart = one.left - end > _SPACE * max(one.size, before.size) and not initial
        if not apart and (raised := _raised(before, one)):
            text += raised
        elif one.mono and (before.mono or before.text.isdecimal()):
            text += " " * max(_spaces(one.left - end, one), apart) + one.text
        else:
            text += (" " if apart else "") + one.text
        end = max(end, one.right)
    return text


def _raised(before: Segment, one: Segment) -> str:
    """Return an exponent as superscript characters, or with "^" if it is a letter. Returns an empty string for other
    text.
    """
    if one.size > _SMALL * before.size or one.bottom > before.bottom - _RAISED * before.size:
        return ""
    if _EXPONENT.fullmatch(one.text):
        return one.text.translate(AS_RAISED)
    return f"^{one.text}" if _LETTER_EXPONENT.fullmatch(one.text) and _VARIABLE.search(before.text) else ""


def _spaces(gap: float, code: Segment) -> int:
    """Convert the width of the gap before a segment of code to a number of spaces.

    A space is assumed to be as wide as the average letter of the code.
    """
    letter = (code.right - code.left) / max(len(code.text), 1)
    return min(max(round(gap / letter), 0), _MOST_SPACES) if letter > 0 else 1


def _right_to_left(text: str, row: Sequence[Segment], box: Box, right_text: Callable[[Box], str] | None) -> str:
    own = in_logical_order([one.text for one in row]) if len(row) > 1 else text
    return in_right_order(own, box, right_text)


def in_right_order(own: str, box: Box, right_text: Callable[[Box], str] | None) -> str:
    """Return the text that PDFium finds in a box, in reading order.

    `own` is liteparse's text. If the two texts differ in length, not counting spaces, liteparse's text is returned
    instead.
    """
    found = clean_letters(right_text(box)) if right_text else ""
    found = found if len(found.replace(" ", "")) == len(own.replace(" ", "")) else clean_letters(own)
    return with_right_marks(found) if is_right_to_left(found) else found


def box_around(boxes: Sequence[Line | Box]) -> Box:
    return Box(
        round(min(one.left for one in boxes), 1),
        round(min(one.top for one in boxes), 1),
        round(max(one.right for one in boxes), 1),
        round(max(one.bottom for one in boxes), 1),
    )


def size_of(lines: Sequence[Line | Segment]) -> float:
    """Return the most common letter size. Returns 0 if there are no letters."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return max(sizes, key=lambda size: (sizes[size], size), default=0.0)


def line_numbers(runs: Sequence[TextRun]) -> list[TextRun]:
    """Return the line numbers printed to the left of a text, from top to bottom.

    Returns an empty list if the numbers belong to table rows or list items.
    """
    found = sorted((run for run in runs if run.text.strip().isdecimal()), key=lambda run: run.box.top)
    if len(found) < _LEAST_NUMBERS:
        return []
    edge = min(run.box.right for run in found) + _SAME_PLACE
    found = [run for run in found if run.box.left < edge]
    values = [int(run.text) for run in found if len(run.text.strip()) < _LEAST_NUMBERS]
    if len(found) < _LEAST_NUMBERS or [one - values[0] for one in values] != list(range(len(found))):
        return []
    tops = {round(run.box.bottom / 4) for run in found}
    beside = [run for run in runs if run.box.left > edge and round(run.box.bottom / 4) in tops]
    firsts = {round(run.box.bottom / 4): run for run in sorted(beside, key=lambda run: -run.box.left)}.values()
    lower = sum(run.text[:1].islower() for run in firsts)
    is_text = 3 * lower > len(firsts) or (lower >= _LEAST_LOWER and _is_prose(beside))
    return found if is_text and len(firsts) > 2 else []  # noqa: PLR2004


def _is_prose(runs: Sequence[TextRun]) -> bool:
    """Whether a text is prose: several lines are full, and no line has the wide gaps of a table row."""
    lines: defaultdict[int, list[Box]] = defaultdict(list)
    for run in runs:
        lines[round(run.box.bottom / 4)].append(run.box)
    height = runs[0].box.bottom - runs[0].box.top
    gaps = (two.left - one.right for line in lines.values() for one, two in pairwise(sorted(line)))
    right = max(run.box.right for run in runs)
    full = sum(max(box.right for box in line) > right - 3 * height for line in lines.values())
    return full >= _LEAST_LOWER and not any(gap > _CELL_GAP * height for gap in gaps)


def frames_of(page: PageContent, segments: Sequence[Segment]) -> list[Box]:
    """Return filled or framed areas that contain several lines of text.

    Areas that cover most of the page are left out.
    """
    found: list[Box] = []
    whole = page.width * page.height
    framed = [Shape(box, filled=False, stroked=True, curved=False, colour=None) for box in line_frames(page)]
    for shape in [*page.shapes[:_MOST_SHAPES], *framed]:
        box = shape.box
        wide, high = box.right - box.left, box.bottom - box.top
        if wide < _LEAST_BOX[0] or high < _LEAST_BOX[1] or wide * high > _MOST_OF_PAGE * whole:
            continue
        if high > _WHOLE_HEIGHT * page.height and wide > _HALF_PAGE * page.width:  # one page of a spread of two
            continue
        if not (shape.stroked or (shape.filled and shape.colour not in _WHITE)):
            continue
        inside = [one for one in segments if is_inside(one, box)]
        rows = {round((one.top + one.bottom) / 8) for one in inside}
        if len(rows) < 2 or len(inside) > _MOST_OF_PAGE * len(segments) or _is_cut(box, segments):  # noqa: PLR2004
            continue
        if not shape.stroked and _is_cell(box, inside, segments):
            continue
        found.append(box)
    found.sort(key=lambda box: -(box.right - box.left) * (box.bottom - box.top))
    return [box for index, box in enumerate(found) if not is_inside_any(box, found[:index])]


def line_frames(page: PageContent) -> list[Box]:
    """Return the rectangles that are drawn as four separate lines and have no other horizontal line inside."""
    if not 4 <= len(page.lines) <= _MOST_FRAME_LINES:  # noqa: PLR2004
        return []
    flat: defaultdict[tuple[int, int], set[float]] = defaultdict(set)
    upright: defaultdict[int, list[Box]] = defaultdict(list)
    for line in page.lines:
        if line.bottom - line.top < 1 < line.right - line.left:
            flat[round(line.left / 2), round(line.right / 2)].add(line.top)
        elif line.right - line.left < 1:
            upright[round(line.left / 2)].append(line)
    found: list[Box] = []
    for (left, right), places in flat.items():
        for top, bottom in pairwise(sorted(places)):
            sides = [
                any(one.top < top + 2 and one.bottom > bottom - 2 for one in upright.get(side, ()))
                for side in (left, right)
            ]
            if all(sides) and bottom - top > _LEAST_BOX[1]:
                found.append(Box(2.0 * left, top, 2.0 * right, bottom))
    return found


def _is_cell(box: Box, inside: Sequence[Segment], segments: Sequence[Segment]) -> bool:
    """Whether a shaded area is a table cell: it contains a few short lines, and other text is beside it."""
    words = sum(len(one.text.split()) for one in inside)
    level = [one for one in segments if not is_inside(one, box) and box.top < (one.top + one.bottom) / 2 < box.bottom]
    return words <= _MOST_CELL_WORDS * len(inside) and len(level) > 1 and len(inside) <= _MOST_CELL_LINES


def _is_cut(box: Box, segments: Sequence[Segment]) -> bool:
    """Whether text crosses the left or right edge of an area, so that the area is only a background."""
    return any(
        one.block is None and one.top < box.bottom - 2 and one.bottom > box.top + 2
        and (one.left < box.left - 4 < one.right - 8 or one.left + 8 < box.right + 4 < one.right)
        for one in segments
    )  # fmt: skip


def is_inside(one: Segment | Word | Box, box: Box) -> bool:
    return box.left <= (one.left + one.right) / 2 <= box.right and box.top <= (one.top + one.bottom) / 2 <= box.bottom


def is_inside_any(one: Segment | Word | Box, boxes: Iterable[Box]) -> bool:
    across, down = (one.left + one.right) / 2, (one.top + one.bottom) / 2
    for left, top, right, bottom in boxes:  # noqa: SIM110 - a generator takes twice the time
        if left <= across <= right and top <= down <= bottom:
            return True
    return False
