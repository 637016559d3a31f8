"""Defines words with their positions on pages. Facts are found in these words."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from octavo.core.types import JSON


class Box(NamedTuple):
    """A rectangle on a page, in points from the upper left corner."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def enclosing_box(boxes: Iterable[Box]) -> Box:
    """Return the smallest box that contains all of the given boxes."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))


class Word(NamedTuple):
    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page with its words and their boxes. The words can be in any order."""

    number: int
    width: float
    height: float
    words: tuple[Word, ...]


class Place(NamedTuple):
    """A position in the document: a page, a box on it, and the text in the box."""

    page: int
    box: Box
    quote: str


def sheets_from_json(pages: Sequence[JSON]) -> list[Sheet]:
    """Parse the JSON that the PDF reader returns. Words are lists: [text, left, top, right, bottom]."""
    return [_sheet(page) for page in pages if isinstance(page, dict)]


def _sheet(page: dict[str, JSON]) -> Sheet:
    rows = page["words"]
    if not isinstance(rows, list):
        raise TypeError("a page must have a list of words")
    return Sheet(int(_number(page["number"])), _number(page["width"]), _number(page["height"]), tuple(map(_word, rows)))


def _word(row: JSON) -> Word:
    if not isinstance(row, list) or not isinstance(row[0], str):
        raise TypeError("a word must be a text and four coordinates")
    left, top, right, bottom = (_number(side) for side in row[1:])
    return Word(row[0], Box(left, top, right, bottom))


def _number(value: JSON) -> float:
    if not isinstance(value, int | float):
        raise TypeError("a coordinate must be a number")
    return float(value)


class TypedMatch(NamedTuple):
    """A value in standard form, and the start and end of the text from which it was read."""

    value: str
    start: int
    end: int


class Notation(NamedTuple):
    """The way numbers and dates are written in a document.

    It decides how ambiguous ones, such as 1.234 and 3/4/2024, are read.
    """

    decimal: str | None = None
    month_first: bool = False
    date_formats: tuple[str, ...] = ()


# Letters with a stroke. In Unicode, these are not letters with an accent.
_STROKES = {"\u0142": "l", "\u0141": "l", "\u00f8": "o", "\u00d8": "o", "\u0111": "d", "\u0110": "d", "\u0131": "i"}


@lru_cache(maxsize=4096)
def _folded(letter: str) -> str:
    plain = _STROKES.get(letter) or unicodedata.normalize("NFKD", letter)[0]
    return (plain.lower() or letter)[0]


def fold(text: str) -> str:
    """Convert a text to lower case without accents. The length of the text does not change, so positions stay valid."""
    return "".join(map(_folded, text))
