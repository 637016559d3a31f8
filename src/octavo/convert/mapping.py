"""A mapping as it is used: which values a kind of document has, how they are found, and what they are called in XML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from re import Pattern

from octavo.convert.checks import Check

TABLE = "table"


class Otherwise(StrEnum):
    """What is taken where no label and no pattern finds a value; always with little confidence."""

    FIRST = "first"
    LARGEST = "largest"
    TOP = "top"
    COMMON = "common"


class Prefer(StrEnum):
    """Which of several places counts that say it equally well."""

    FIRST = "first"
    LAST = "last"


class Group(StrEnum):
    """What becomes of several findings of one pattern."""

    FIRST = "first"
    LAST = "last"
    JOIN = "join"
    SUM = "sum"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    xml: str
    labels: tuple[str, ...] = ()
    embedded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LineRule:
    """A table by patterns for its lines, between a start and an end. Groups of the patterns are columns."""

    start: Pattern[str]
    end: Pattern[str]
    first: tuple[Pattern[str], ...] = ()
    line: tuple[Pattern[str], ...] = ()
    last: tuple[Pattern[str], ...] = ()
    skip: tuple[Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """`near` names a field beside whose value this one is looked for; `value` is the same for every document."""

    name: str
    type: str
    xml: str
    required: bool = False
    labels: tuple[str, ...] = ()
    weak_labels: tuple[str, ...] = ()
    patterns: tuple[Pattern[str], ...] = ()
    group: Group = Group.FIRST
    value: str | None = None
    near: str | None = None
    otherwise: Otherwise | None = None
    prefer: Prefer = Prefer.FIRST
    embedded: tuple[str, ...] = ()
    row_xml: str = ""
    columns: tuple[Column, ...] = ()
    rules: tuple[LineRule, ...] = ()

    @property
    def is_table(self) -> bool:
        return self.type == TABLE


@dataclass(frozen=True, slots=True)
class Options:
    """How documents of one sender are written, and how their text is changed before patterns look at it."""

    decimal: str | None = None
    date_formats: tuple[str, ...] = ()
    remove_whitespace: bool = False
    remove_accents: bool = False
    lowercase: bool = False
    replace: tuple[tuple[Pattern[str], str], ...] = ()


@dataclass(frozen=True, slots=True)
class Mapping:
    """`name` has the version at its end. `keywords` are all in a document that it is for; none fit every document."""

    name: str
    title: str
    root: str
    fields: tuple[Field, ...]
    checks: tuple[Check, ...] = ()
    other_labels: tuple[str, ...] = ()
    keywords: tuple[Pattern[str], ...] = ()
    exclude_keywords: tuple[Pattern[str], ...] = ()
    options: Options = field(default_factory=Options)

    @property
    def singles(self) -> Iterator[Field]:
        return (one for one in self.fields if not one.is_table)

    @property
    def tables(self) -> Iterator[Field]:
        return (one for one in self.fields if one.is_table)

    @property
    def namespace(self) -> str:
        return f"urn:octavo:mapping:{self.name}"

    def field(self, name: str) -> Field | None:
        return next((one for one in self.fields if one.name == name), None)
