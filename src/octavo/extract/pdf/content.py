"""Reads what is drawn on the pages of a PDF: text runs, words, rulings, shapes, notes and form fields, with positions.

liteparse only reports positions here. How they become lines, regions and tables is decided by pure code elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from liteparse import _liteparse as liteparse

from octavo.extract.extracted import Box

_native: Any = liteparse  # has no types
_BOLD_NAMES = ("bold", "black", "heavy", "demi", "cmbx", "sfbx", "ecbx", "lmbx", "cmssbx")
_ITALIC_NAMES = ("italic", "oblique")
_BOLD_WEIGHT = 600
_LEAST_SIZE = 4.0
_THIN = 3.0  # points; a filled shape that is thinner is a ruling


class Word(NamedTuple):
    """A word and its box on the displayed page."""

    left: float
    top: float
    right: float
    bottom: float
    text: str


@dataclass(frozen=True, slots=True)
class TextRun:
    """Words on one line in one font. `tag` is the number of its marked content, if the PDF is tagged."""

    box: Box
    text: str
    size: float
    font: str
    bold: bool
    italic: bool
    rotation: float
    tag: int | None
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A filled or stroked shape. A `ruling` is thin: a line of a table, an underline, or the edge of a frame."""

    box: Box
    filled: bool
    stroked: bool
    curved: bool
    colour: str | None

    @property
    def is_ruling(self) -> bool:
        return min(self.box.right - self.box.left, self.box.bottom - self.box.top) < _THIN


@dataclass(frozen=True, slots=True)
class PageContent:
    """Everything that is drawn on one page, in the order of the file. `number` counts from 1."""

    number: int
    width: float
    height: float
    runs: tuple[TextRun, ...]
    shapes: tuple[Shape, ...]
    lines: tuple[Box, ...]


class ContentError(Exception):
    """liteparse cannot open the file."""


def read_contents(file: bytes) -> Iterator[PageContent]:
    """Read all readable pages, in order. Raises `ContentError` if the whole file cannot be read."""
    for page in _parse(file).pages:
        graphics = page.vector_graphics
        yield PageContent(
            page.page_num,
            page.width,
            page.height,
            tuple(run for item in page.text_items if (run := _run(item))),
            tuple(shape for one in graphics.shapes if (shape := _shape(one))) if graphics else (),
            tuple(line for one in graphics.lines if (line := _line(one))) if graphics else (),
        )


def _parse(file: bytes) -> Any:  # noqa: ANN401
    # This bypasses the library's own wrapper class, which copies every word into an object and takes as long as
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
        # A Rust panic is not an `Exception`; other errors that are not one do not come from the library.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ContentError from error
        raise


def _run(item: Any) -> TextRun | None:  # noqa: ANN401
    box = _box(item)
    if box is None or not item.text.strip():
        return None
    name = item.font_name or ""
    lowered = name.lower()
    bold = (item.font_weight or 0) >= _BOLD_WEIGHT or any(word in lowered for word in _BOLD_NAMES)
    words = tuple([Word(x := one.x, y := one.y, x + one.width, y + one.height, one.text) for one in item.words])
    return TextRun(
        box,
        item.text,
        _size(item),
        name,
        bold,
        any(word in lowered for word in _ITALIC_NAMES),
        item.rotation or 0.0,
        item.mcid,
        words or (Word(*box, item.text),),
    )


def _size(item: Any) -> float:  # noqa: ANN401
    # Some programs write everything in size 1 and scale the page; `font_height` is then the true size.
    size = item.font_size or 0.0
    return round(size if size >= _LEAST_SIZE else item.font_height or item.height, 1)


def _shape(one: Any) -> Shape | None:  # noqa: ANN401
    box = _box(one.bbox)
    if box is None:
        return None
    return Shape(box, one.fill, one.stroke, one.has_curve, one.fill_color if one.fill else one.stroke_color)


def _line(one: Any) -> Box | None:  # noqa: ANN401
    left, top, right, bottom = one.x1, one.y1, one.x2, one.y2
    if not isfinite(left + top + right + bottom):
        return None
    if left > right:
        left, right = right, left
    return Box(left, top, right, bottom) if top <= bottom else Box(left, bottom, right, top)


def _box(place: Any) -> Box | None:  # noqa: ANN401
    left, top = place.x, place.y
    box = Box(left, top, left + place.width, top + place.height)
    return box if isfinite(box[2] + box[3]) else None
