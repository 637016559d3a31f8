"""What conversion is given and what it gives: words with their places in, values with their places out."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from octavo.core.types import JSON


class Box(NamedTuple):
    """A place on a page, in points from its upper left corner."""

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


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box that has all of them."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))


class Word(NamedTuple):
    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page, with its words in any order."""

    number: int
    width: float
    height: float
    words: tuple[Word, ...]


class Place(NamedTuple):
    """Where something is written, and how it is written there."""

    page: int
    box: Box
    quote: str


@dataclass(frozen=True, slots=True)
class Value:
    """`value` is in one form for each type: 2024-08-15, 350.55, EUR. `row` counts from 1 within a table.

    `verified`: it is written in the document at its place. What a mapping says of every document is not.
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
class Checked:
    """A cross-check and whether it holds; None where a value for it is missing."""

    check: str
    holds: bool | None


class Said(NamedTuple):
    """What a model said of a field, word for word; whether it was taken and verified is said by the value."""

    name: str
    value: str
    quote: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A model that was asked for what rules missed: what for, which one answered, and what, or why none did."""

    task: str
    fields: tuple[str, ...]
    made_by: str | None = None
    said: tuple[Said, ...] = ()
    error: str | None = None

    def as_json(self) -> dict[str, JSON]:
        return {
            "task": self.task,
            "fields": list(self.fields),
            "made_by": self.made_by,
            "said": [{"name": one.name, "value": one.value, "quote": one.quote} for one in self.said],
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Conversion:
    """`missing` are the required fields without a value; `source` says where the values came from."""

    mapping: str
    values: tuple[Value, ...]
    checks: tuple[Checked, ...] = ()
    missing: tuple[str, ...] = ()
    source: str = "rules"
    asked: Asked | None = None

    def single(self, name: str) -> Value | None:
        return next((one for one in self.values if one.name == name and one.table is None), None)

    def table(self, name: str) -> list[dict[str, Value]]:
        """Its rows in order, each value by its column."""
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
            "model": self.asked.as_json() if self.asked else None,
        }


def sheets_from_json(pages: Sequence[JSON]) -> list[Sheet]:
    """As the reader of PDFs writes them down: number, width, height, and words as [text, left, top, right, bottom]."""
    return [_sheet(page) for page in pages if isinstance(page, dict)]


def _sheet(page: dict[str, JSON]) -> Sheet:
    rows = page["words"]
    if not isinstance(rows, list):
        raise TypeError("a page has a list of words")
    return Sheet(int(_number(page["number"])), _number(page["width"]), _number(page["height"]), tuple(map(_word, rows)))


def _word(row: JSON) -> Word:
    if not isinstance(row, list) or not isinstance(row[0], str):
        raise TypeError("a word is a text and four sides")
    left, top, right, bottom = (_number(side) for side in row[1:])
    return Word(row[0], Box(left, top, right, bottom))


def _number(value: JSON) -> float:
    if not isinstance(value, int | float):
        raise TypeError("a measure is a number")
    return float(value)


class Found(NamedTuple):
    """A value in its one form, and the characters it was read from."""

    value: str
    start: int
    end: int


class Habits(NamedTuple):
    """How a document writes what could mean two things: 1.234 and 3/4/2024."""

    decimal: str | None = None
    month_first: bool = False
    date_formats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """`quote` is meant to be letter by letter in the document, and `value` to be what it says in one form."""

    name: str
    value: str
    quote: str
    page: int | None = None


@lru_cache(maxsize=4096)
def _folded(letter: str) -> str:
    return (unicodedata.normalize("NFKD", letter)[0].lower() or letter)[0]


def fold(text: str) -> str:
    """Small letters without accents; as many as there were, so that places stay."""
    return "".join(map(_folded, text))
