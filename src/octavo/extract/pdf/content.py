"""Reads the contents of PDF pages with the liteparse library: words, text runs, drawn lines and other shapes.

All contents have positions. Other modules turn them into lines, regions and tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import isfinite
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

from liteparse import _liteparse as liteparse

from octavo.extract.extracted import Box
from octavo.extract.pdf.letters import as_signs, as_symbols, is_symbol_font, signs_of, with_right_bytes

_native: Any = liteparse  # has no types
_BOLD_NAMES = ("bold", "black", "heavy", "demi", "cmbx", "sfbx", "ecbx", "lmbx", "cmssbx")
_BOLD_ENDINGS = (".b", ".bi", "-b", "-bd")
_ITALIC_NAMES = ("italic", "oblique")
_BOLD_WEIGHT = 600
WHITE = "ffffffff"
_STRETCHED = 0.06  # as a share of the letter size
_SMALLER = 0.85  # as a share of the height of the other words
_SAME_HEIGHT = 0.1  # points
_MOST_OF_ICON = 2  # letters
_TOO_HIGH = 4.0  # times the size of the letters
_USUAL_HEIGHT = 1.1
# The boxes of TeX's symbols extend far below the line.
_MOST_OF_SYMBOLS = 1.4
_SYMBOL_FONT = re.compile(r"(?:\w+\+)?(?:cmb?sy|lmmathsymbols)", re.IGNORECASE)
_TEX_FONT = re.compile(r"(?:\w+\+)?(?:cm[a-z]{1,5}|lm[a-z]+|sf[a-z]{2})\d", re.IGNORECASE)
_MOST_OF_TEX = 2.2
_MOST_SLANT = 30.0  # degrees
_SLANTED_HEIGHT = 1.5
_MOST_OF_SYMBOL = 3  # letters
_SOFT_HYPHEN = "\u00ad"
_DRAWN_HYPHEN = re.compile("(?<![^\\W\\d_])\u00ad|\u00ad(?=[^\\w\\s])")
MOST_LINES = 6000  # a page with more shapes is a drawing; its lines are not read
THIN = 3.0  # points; a filled shape that is thinner is a ruling
# A page can have thousands of words and shapes. The constructors of named tuples take twice as long as this.
_new: Any = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


class Word(NamedTuple):
    """A word and its box on the displayed page."""

    left: float
    top: float
    right: float
    bottom: float
    text: str


class TextRun(NamedTuple):
    """Words on one line in one font.

    `tag` is the id of the marked content that they belong to, if the PDF is tagged. `white` is true if the letters are
    white, so that they can be seen only on a darker background.
    """

    box: Box
    text: str
    size: float
    font: str
    bold: bool
    italic: bool
    rotation: float
    tag: int | None
    words: tuple[Word, ...]
    white: bool = False


class Shape(NamedTuple):
    """A filled or stroked shape.

    A thin shape is a straight line: a line of a table, an underline, or the edge of a frame. `colour` is the fill
    colour, if the shape has no stroke.
    """

    box: Box
    filled: bool
    stroked: bool
    curved: bool
    colour: str | None

    @property
    def is_ruling(self) -> bool:
        return min(self.box.right - self.box.left, self.box.bottom - self.box.top) < THIN


@dataclass(frozen=True, slots=True)
class PageContent:
    """Everything that is drawn on one page, in file order. `number` counts from 1.

    `lines` includes the edges of shapes. If the page has more than `MOST_LINES` shapes, `lines` is empty.
    """

    number: int
    width: float
    height: float
    runs: tuple[TextRun, ...]
    shapes: tuple[Shape, ...]
    lines: tuple[Box, ...]


class ContentError(Exception):
    """Raised if liteparse cannot open the file."""


def read_contents(file: bytes) -> Iterator[PageContent]:
    """Yield the contents of all readable pages, in order. Raises `ContentError` if the file cannot be opened."""
    for page in _parse(file).pages:
        graphics = page.vector_graphics
        shapes = tuple(_shapes(graphics.shapes)) if graphics else ()
        lines = tuple(_lines(graphics.lines)) if graphics and len(shapes) <= MOST_LINES else ()
        found = (run for item in page.text_items if (run := text_run(item)) and _fits(run.box, page))
        found = (run if run.text.isascii() else _replaced(run, with_right_bytes) for run in found)
        runs = with_right_weights(tuple(run for one in found if (run := with_signs(one))))
        runs = with_hyphens(with_right_sizes(runs))
        yield PageContent(page.page_num, page.width, page.height, runs, shapes, lines)


def _fits(box: Box, page: Any) -> bool:  # noqa: ANN401
    """Whether a box is on the page and not much larger than the page.

    Text in broken fonts can have boxes of any size and position.
    """
    left, top, right, bottom = box
    if right < 0 or bottom < 0 or left > page.width or top > page.height:
        return False
    return right - left <= 2 * page.width and bottom - top <= 2 * page.height


def _parse(file: bytes) -> Any:  # noqa: ANN401
    # This bypasses the library's wrapper class, which copies every word into an object and takes as long as
    # reading the page.
    try:
        parser = _native.LiteParse(
            ocr_enabled=False,
            output_format="text",
            max_pages=10**9,
            quiet=True,
            num_workers=1,
            extract_links=False,
            emit_word_boxes=True,
            extract_text_metadata=True,
            extract_vector_graphics=True,
            continue_on_page_error=True,
        )
        return parser.parse_bytes(file)
    except BaseException as error:
        # A Rust panic is not an `Exception`. Other errors of that kind do not come from the library.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ContentError from error
        raise


def text_run(item: Any) -> TextRun | None:  # noqa: ANN401
    text, left, top = item.text, item.x, item.y
    right, bottom = left + item.width, top + item.height
    if not isfinite(right + bottom) or not text.strip():
        return None
    name = item.font_name or ""
    bold, italic = _style(name)
    size = _size(item)
    words = tuple([_new(Word, (x := one.x, y := one.y, x + one.width, y + one.height, one.text)) for one in item.words])
    if bottom - top > _MOST_OF_SYMBOLS * size and (
        _SYMBOL_FONT.match(name)
        or (bottom - top > _TOO_HIGH * size and _is_too_high(item, text, size))
        or (bottom - top > _MOST_OF_TEX * size and not item.rotation and _TEX_FONT.match(name))
    ):
        bottom = top + _USUAL_HEIGHT * size
        words = tuple(word._replace(top=top, bottom=bottom) for word in words)
    return TextRun(
        Box(left, top, right, bottom),
        text,
        size,
        name,
        bold or (item.font_weight or 0) >= _BOLD_WEIGHT,
        italic,
        _rotation(item, size),
        item.mcid,
        words or (Word(left, top, right, bottom, text),),
        item.fill_color == WHITE,
    )


def with_hyphens(runs: tuple[TextRun, ...]) -> tuple[TextRun, ...]:
    """Replace soft hyphens with hyphens in the fonts that use them for all hyphens.

    Such a font is recognised by a soft hyphen next to a digit or sign, where no word can be divided.
    """
    soft = [run for run in runs if _SOFT_HYPHEN in run.text]
    fonts = {run.font for run in soft if _DRAWN_HYPHEN.search(run.text)}
    if not fonts:
        return runs
    return tuple(_replaced(run, _with_hyphens) if run.font in fonts else run for run in runs)


def _with_hyphens(text: str) -> str:
    return text.replace(_SOFT_HYPHEN, "-")


def with_right_sizes(runs: tuple[TextRun, ...]) -> tuple[TextRun, ...]:
    """Correct the letter sizes of text runs that begin with smaller or larger letters, such as the number of a note.

    liteparse reports only the size of a run's first letter. If the other words are as tall as the words of another run
    in the same font, the size of that run is used.
    """
    heights = [(run.words[0].bottom - run.words[0].top, run.words[-1].bottom - run.words[-1].top) for run in runs]
    uneven = [place for place, (first, last) in enumerate(heights) if not _SMALLER * last < first < last / _SMALLER]
    if not uneven:
        return runs
    sizes = {
        (run.font, round(first, 1)): run.size
        for run, (first, last) in zip(runs, heights, strict=True)
        if abs(first - last) < _SAME_HEIGHT
    }
    changed = list(runs)
    for place in uneven:
        run = runs[place]
        usual = median(word.bottom - word.top for word in run.words[1:])
        steps = (0.0, -_SAME_HEIGHT, _SAME_HEIGHT)
        found = (sizes[key] for step in steps if (key := (run.font, round(usual + step, 1))) in sizes)
        changed[place] = run._replace(size=next(found, run.size))
    return tuple(changed)


def with_right_weights(runs: tuple[TextRun, ...]) -> tuple[TextRun, ...]:
    """Correct the bold flags of a page's text runs, because many fonts declare a wrong weight.

    If more than half of the text is bold only because of declared weights, these weights are ignored. Otherwise, no
    headings could be found on the page.
    """
    heavy = {font for font in {run.font for run in runs if run.bold} if not _style(font)[0]}
    letters = sum(len(run.text) for run in runs)
    if not heavy or 2 * sum(len(run.text) for run in runs if run.font in heavy) <= letters:
        return runs
    return tuple(run._replace(bold=False) if run.font in heavy else run for run in runs)


def with_signs(run: TextRun) -> TextRun | None:
    """Replace the letters of a symbol font with the symbols that they show.

    Returns None if the run contains only icons. liteparse reports only the font of a run's first letter. So if the run
    contains ordinary words, only its first letter is replaced.
    """
    signs = signs_of(run.font)
    if signs is None:
        return _replaced(run, as_symbols) if not run.text.isascii() and is_symbol_font(run.font) else run
    is_icons = not signs and all(len(word.text) <= _MOST_OF_ICON for word in run.words)
    if is_icons or all(len(set(word.text)) == 1 for word in run.words):
        run = _replaced(run, partial(as_signs, signs=signs))
    else:
        first = run.words[0]
        text = f"{as_signs(first.text[0], signs)} {first.text[1:]}".strip()
        words = (first._replace(text=text), *run.words[1:])
        run = run._replace(words=words, text=" ".join(word.text for word in words))
    kept = tuple(word for word in run.words if word.text)
    return run._replace(words=kept, text=" ".join(word.text for word in kept)) if kept else None


def _replaced(run: TextRun, change: Callable[[str], str]) -> TextRun:
    words = tuple(word._replace(text=change(word.text)) for word in run.words)
    return run._replace(text=change(run.text), words=words)


def _rotation(item: Any, size: float) -> float:  # noqa: ANN401
    """Return the rotation of a text run, or 0 for italic letters.

    liteparse reports italic letters as rotated, too. Slightly rotated letters whose box is not tall are treated as
    italic.
    """
    rotation = item.rotation or 0.0
    # A short symbol with its exponent is higher.
    most = _SLANTED_HEIGHT if len(item.text) > _MOST_OF_SYMBOL else 2 * _SLANTED_HEIGHT
    is_slanted = rotation and abs((rotation + 180) % 360 - 180) < _MOST_SLANT and item.height < most * size
    return 0.0 if is_slanted else rotation


def _is_too_high(item: Any, text: str, size: float) -> bool:  # noqa: ANN401
    """Whether the box of a text run is much taller than its letters are wide.

    This happens if the font declares a wrong height.
    """
    wide = max(item.width / len(text), size)
    return not item.rotation and len(text) > 1 and item.height > _TOO_HIGH * wide


@lru_cache(maxsize=1000)
def _style(font: str) -> tuple[bool, bool]:
    """Return whether a font is bold and whether it is italic, judging by its name."""
    lowered = font.lower()
    bold = lowered.endswith(_BOLD_ENDINGS) or any(word in lowered for word in _BOLD_NAMES)
    return bold, any(word in lowered for word in _ITALIC_NAMES)


def _size(item: Any) -> float:  # noqa: ANN401
    # Many programs scale the page: the declared size can be 1, or 16 for letters of 12 points. `font_height` is the
    # true size, but differs a little from line to line if a program stretches the letters.
    size, height = item.font_size or 0.0, item.font_height or item.height
    return round(size if abs(size - height) < _STRETCHED * height else height, 1)


_drawn = attrgetter("bbox", "fill", "stroke", "has_curve")
_place = attrgetter("x", "y", "width", "height")
_ends = attrgetter("x1", "y1", "x2", "y2")


def _shapes(shapes: Sequence[Any]) -> Iterator[Shape]:
    # A drawing can have thousands of shapes, so this loop avoids unnecessary calls and attributes.
    for one, (place, filled, stroked, curved) in zip(shapes, map(_drawn, shapes), strict=True):
        left, top, width, height = _place(place)
        right, bottom = left + width, top + height
        if isfinite(right + bottom):
            colour = one.fill_color if filled and not stroked else None
            box = _new(Box, (left, top, right, bottom))
            yield _new(Shape, (box, filled, stroked, curved, colour))


def _lines(lines: Iterable[Any]) -> Iterator[Box]:
    for left, top, right, bottom in map(_ends, lines):
        if isfinite(left + top + right + bottom):
            start, end = (left, right) if left <= right else (right, left)
            yield _new(Box, (start, top, end, bottom) if top <= bottom else (start, bottom, end, top))
