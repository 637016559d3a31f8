"""The data of a conversion: words with their places as input, values with their places as output."""

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
    """The smallest box that contains all of the given boxes."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))


class Word(NamedTuple):
    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page with its words, which can be in any order."""

    number: int
    width: float
    height: float
    words: tuple[Word, ...]


class Place(NamedTuple):
    """A place in the document, and the text at that place."""

    page: int
    box: Box
    quote: str


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a field. `row` counts from 1 within a table.

    `value` is in the canonical form of its type: 2024-08-15, 350.55, EUR. `verified`: whether the document contains the
    value at its place. A constant from the mapping is not verified.
    """

    name: str
    value: str
    confidence: float
    place: Place | None = None
    verified: bool = False
    table: str | None = None
    row: int | None = None

    @property
    def path(self) -> str:
        return f"{self.table}[{self.row}].{self.name}" if self.table else self.name

    def as_json(self) -> dict[str, JSON]:
        place = self.place
        return {
            "name": self.path,
            "value": self.value,
            "page": place.page if place else None,
            "box": [round(side, 1) for side in place.box] if place else None,
            "quote": place.quote if place else None,
            "confidence": round(self.confidence, 2),
            "verified": self.verified,
        }


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A cross-check and whether it passed; `holds` is None if a value is missing."""

    check: str
    holds: bool | None


class ModelAnswer(NamedTuple):
    """A model's unchanged answer for a field. The value in the conversion shows whether it was used and verified."""

    name: str
    value: str
    quote: str


@dataclass(frozen=True, slots=True)
class ModelLookup:
    """A model call for fields that the rules missed: the fields, and the model with its answers or the error code."""

    task: str
    fields: tuple[str, ...]
    made_by: str | None = None
    answers: tuple[ModelAnswer, ...] = ()
    error: str | None = None

    def as_json(self) -> dict[str, JSON]:
        return {
            "task": self.task,
            "fields": list(self.fields),
            "made_by": self.made_by,
            "said": [{"name": one.name, "value": one.value, "quote": one.quote} for one in self.answers],
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Conversion:
    """The values of a document.

    `missing` are the required fields without a value; `source` is the origin of the values. `fits` is false if the
    document lacks a keyword of the mapping, or has an excluded one.
    """

    mapping: str
    values: tuple[Value, ...]
    checks: tuple[CheckResult, ...] = ()
    missing: tuple[str, ...] = ()
    source: str = "rules"
    model_lookup: ModelLookup | None = None
    fits: bool = True

    def single(self, name: str) -> Value | None:
        return next((one for one in self.values if one.name == name and one.table is None), None)

    def table(self, name: str) -> list[dict[str, Value]]:
        """The rows of a table in order. Each row maps column names to values."""
        rows: dict[int, dict[str, Value]] = {}
        for one in self.values:
            if one.table == name and one.row:
                rows.setdefault(one.row, {})[one.name] = one
        return [rows[number] for number in sorted(rows)]

    def as_json(self) -> dict[str, JSON]:
        return {
            "mapping": self.mapping,
            "source": self.source,
            "values": [one.as_json() for one in self.values],
            "checks": [{"check": one.check, "holds": one.holds} for one in self.checks],
            "missing": list(self.missing),
            "model": self.model_lookup.as_json() if self.model_lookup else None,
        }


def sheets_from_json(pages: Sequence[JSON]) -> list[Sheet]:
    """Parse the JSON of the PDF reader. Words are lists: [text, left, top, right, bottom]."""
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
    """A value in the canonical form of its type, and the range of characters from which it was read."""

    value: str
    start: int
    end: int


class Notation(NamedTuple):
    """How to read numbers and dates of a document that would otherwise be ambiguous, such as 1.234 and 3/4/2024."""

    decimal: str | None = None
    month_first: bool = False
    date_formats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A model's answer that is still to be verified.

    The document should contain `quote` verbatim, and `value` should be the canonical form of the value in it.
    """

    name: str
    value: str
    quote: str
    page: int | None = None


@lru_cache(maxsize=4096)
def _folded(letter: str) -> str:
    return (unicodedata.normalize("NFKD", letter)[0].lower() or letter)[0]


def fold(text: str) -> str:
    """Convert a text to lower case without accents. Its length stays the same, so that positions stay valid."""
    return "".join(map(_folded, text))
