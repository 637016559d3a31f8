"""Defines words and their positions on pages: the input for finding facts.

This module also loads the labels that identify values, in all languages, from `data/labels.yaml`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Any, NamedTuple

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

    It determines how ambiguous numbers and dates, such as 1.234 and 3/4/2024, are read.
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


_yaml: Any = import_module("yaml")  # the library has no types
_STARTS = re.compile(r"(?<![^\W_])\S")
_SEPARATORS = re.compile(r"[\s.\-]+")
# The section and role of labels that a caller adds, by the name of a fact.
_ADDED = {
    "number": ("numbers", "number"),
    "date": ("dates", "date"),
    "due_date": ("dates", "due_date"),
    "order_id": ("numbers", "order_id"),
    "account_id": ("numbers", "account_id"),
    "amount": ("amounts", "total"),
    "net": ("amounts", "net"),
    "tax": ("amounts", "tax"),
    "sender": ("parties", "seller"),
    "recipient": ("parties", "buyer"),
}


class RoleHit(NamedTuple):
    """A known label found in a text, and the role that it gives to a value, such as total or due date."""

    role: str
    start: int
    end: int


@dataclass(frozen=True)
class Section:
    """One section of the vocabulary, such as `dates`: the known labels of values, grouped by role."""

    phrases: Mapping[str, tuple[str, ...]]

    @cached_property
    def _groups(self) -> dict[str, list[tuple[str, str]]]:
        """Labels and their roles, grouped by the first letter of the label. Longer labels come first."""
        pairs = {fold(phrase): role for role, phrases in reversed(list(self.phrases.items())) for phrase in phrases}
        groups: dict[str, list[tuple[str, str]]] = {}
        for phrase, role in sorted(pairs.items(), key=lambda one: -len(one[0])):
            groups.setdefault(phrase[0], []).append((phrase, role))
        return groups

    @cached_property
    def _compiled(self) -> dict[str, re.Pattern[str]]:
        return {}

    def _pattern(self, letter: str) -> re.Pattern[str]:
        """Return one regular expression for all labels with this first letter. It is compiled on first use."""
        if letter not in self._compiled:
            shapes = (f"({_shape(phrase)})" for phrase, _ in self._groups[letter])
            self._compiled[letter] = re.compile("|".join(shapes))
        return self._compiled[letter]

    def find(self, folded: str) -> list[RoleHit]:
        """Return all labels in a text, in the order in which they appear and without overlaps.

        The text must be folded: without accents and in lower case.
        """
        found: list[RoleHit] = []
        end = 0
        for start in _STARTS.finditer(folded):
            group = self._groups.get(start[0])
            if start.start() < end or group is None:
                continue
            match = self._pattern(start[0]).match(folded, start.start())
            if match:
                end = match.end()
                found.append(RoleHit(group[(match.lastindex or 1) - 1][1], *match.span()))
        return found


def _shape(phrase: str) -> str:
    """Make a regular expression for a label.

    It ignores full stops, hyphens and spaces between words. A * in the label matches letters.
    """
    parts = [re.escape(part).replace(r"\*", r"[^\W\d]*") for part in _SEPARATORS.split(phrase) if part]
    end = "" if phrase.endswith(("*", "#", "°", "º", "%", ")")) else r"(?![^\W\d_])"
    return r"[\s.\-]*".join(parts) + end


@dataclass(frozen=True)
class Vocabulary:
    sections: Mapping[str, Section]
    without_tax: re.Pattern[str] = field(repr=False)
    with_tax: re.Pattern[str] = field(repr=False)

    def __getitem__(self, section: str) -> Section:
        return self.sections[section]


Labels = tuple[tuple[str, tuple[str, ...]], ...]


@lru_cache(maxsize=16)
def load_vocabulary(added: Labels = ()) -> Vocabulary:
    """Load the built-in labels. `added` contains additional labels for facts, such as ("number", ("our ref",))."""
    if not added:
        return _shipped()
    shipped = _shipped()
    changed: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, labels in added:
        section, role = _ADDED.get(name, ("", ""))
        if section:
            roles = changed.setdefault(section, dict(shipped[section].phrases))
            roles[role] = (*labels, *roles[role])
    sections = {**shipped.sections, **{name: Section(roles) for name, roles in changed.items()}}
    return Vocabulary(sections, shipped.without_tax, shipped.with_tax)


@lru_cache(maxsize=1)
def _shipped() -> Vocabulary:
    sections = {
        name: {role: tuple(_phrases(one)) for role, one in roles.items()} for name, roles in read_data("labels").items()
    }
    modifiers = sections.pop("modifiers")
    words = {name: re.compile(_any_of(phrases)) for name, phrases in modifiers.items()}
    read = {name: Section(roles) for name, roles in sections.items()}
    return Vocabulary(read, words["without_tax"], words["with_tax"])


def read_data(name: str) -> dict[str, dict[str, Any]]:
    """Return the content of a YAML file in `data/`."""
    text = files("octavo.facts").joinpath(f"data/{name}.yaml").read_text(encoding="utf-8")
    return _yaml.load(text, Loader=getattr(_yaml, "CSafeLoader", _yaml.SafeLoader))


def _phrases(languages: dict[str, list[str]] | list[str]) -> Iterable[str]:
    groups = languages.values() if isinstance(languages, dict) else [languages]
    return (str(phrase) for group in groups for phrase in group)


def _any_of(phrases: Iterable[str]) -> str:
    return r"(?<![^\W\d_])(?:" + "|".join(_shape(fold(phrase)) for phrase in phrases) + ")"
