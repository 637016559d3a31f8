"""Data structures for mappings: the fields of a type of document, how to find them, their names in XML, and
cross-checks. Examples of checks: `net + tax = total`, `sum(lines.amount) = net or total`, `date <= due_date`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import lru_cache

from octavo.facts.typed_values import FINDERS, Find

_TERM = re.compile(r"\s*(?P<sign>[+-])?\s*(?:sum\(\s*(?P<table>\w+)\.(?P<column>\w+)\s*\)|(?P<name>[a-z]\w*))\s*")
_SIDES = re.compile(r"<=|=")
_TOLERANCE = Decimal("0.02")
TABLE = "table"
_GROUP_NAME = re.compile(r"(?<!\\)(?:\\\\)*\(\?P<(\w+)>")
_COMPILED_PATTERNS = 2000

Lookup = Callable[[str], "str | None"]


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a check such as `net + tax = total`. `name` is a field, or `table.column` for the sum of a column."""

    name: str
    minus: bool = False

    @property
    def is_sum(self) -> bool:
        return "." in self.name


@dataclass(frozen=True, slots=True)
class Check:
    """A check such as `net + tax = total`.

    It passes if the left side equals one of the alternatives on the right. If `at_most` is true, it also passes if the
    left side is smaller.
    """

    text: str
    left: tuple[Term, ...]
    right: tuple[tuple[Term, ...], ...]
    at_most: bool = False

    @property
    def names(self) -> Iterator[str]:
        return (term.name for side in (self.left, *self.right) for term in side)

    def holds(self, lookup: Lookup) -> bool | None:
        """Whether the check passes. Returns None if a value is missing.

        `lookup` takes the name of a field or of a table column. It returns the field's value or the column's sum.
        """
        if self.at_most:
            return _in_order(lookup(self.left[0].name), lookup(self.right[0][0].name))
        left = _add(self.left, lookup)
        sides = [side for side in (_add(terms, lookup) for terms in self.right) if side is not None]
        if left is None or not sides:
            return None
        return any(abs(left - side) <= _TOLERANCE for side in sides)


def read_check(text: str) -> Check:
    """Parse a check. If the check is invalid, raises `ValueError` with the reason."""
    sides = _SIDES.split(text)
    if len(sides) != 2:  # noqa: PLR2004 - left and right
        raise ValueError("a check must have two sides with = or <= between them")
    right = tuple(_terms(side) for side in re.split(r"\bor\b", sides[1]))
    check = Check(" ".join(text.split()), _terms(sides[0]), right, "<=" in text)
    if check.at_most and (len(check.left) > 1 or [len(side) for side in right] != [1]):
        raise ValueError("<= must be between two fields")
    return check


def _terms(side: str) -> tuple[Term, ...]:
    terms: list[Term] = []
    position = 0
    while position < len(side.rstrip()) or not terms:
        match = _TERM.match(side, position)
        if not match or (terms and not match["sign"]):
            raise ValueError(f"{side.strip()!r} is not a sum of fields")
        name = match["name"] or f"{match['table']}.{match['column']}"
        terms.append(Term(name, match["sign"] == "-"))
        position = match.end()
    return tuple(terms)


def _add(terms: tuple[Term, ...], lookup: Lookup) -> Decimal | None:
    total = Decimal(0)
    for term in terms:
        try:
            value = Decimal(lookup(term.name) or "")
        except InvalidOperation:
            return None
        total += -value if term.minus else value
    return total


def _in_order(first: str | None, second: str | None) -> bool | None:
    """Whether the first value is less than or equal to the second.

    Numbers are compared as numbers, and dates as strings.
    """
    if not first or not second:
        return None
    try:
        return Decimal(first) <= Decimal(second)
    except InvalidOperation:
        return first <= second


@dataclass(frozen=True, slots=True)
class UserPattern:
    """A regular expression from a mapping file.

    It is compiled on first use, which happens only in the sandbox, because compiling a hostile pattern can take
    minutes.
    """

    text: str

    @property
    def compiled(self) -> re.Pattern[str]:
        return _compile(self.text)

    @property
    def group_names(self) -> list[str]:
        return _GROUP_NAME.findall(self.text)


@lru_cache(maxsize=_COMPILED_PATTERNS)
def _compile(text: str) -> re.Pattern[str]:
    return re.compile(text)


class Otherwise(StrEnum):
    """Ways to guess a value that was not found by a label or pattern. Guesses always have low confidence."""

    FIRST = "first"
    LARGEST = "largest"
    TOP = "top"
    COMMON = "common"


class Prefer(StrEnum):
    """Which candidate to use if several are equally likely: the first or the last in the document."""

    FIRST = "first"
    LAST = "last"


class Group(StrEnum):
    """Which value to use if a pattern matches several times: the first or last match, all matches joined, their sum,
    the smallest or the largest.
    """

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
    """Uses patterns for text lines to find the rows of a table.

    The table is between the matches of `start` and `end`. Each named group in a pattern is a column.
    """

    start: UserPattern
    end: UserPattern
    first: tuple[UserPattern, ...] = ()
    line: tuple[UserPattern, ...] = ()
    last: tuple[UserPattern, ...] = ()
    skip: tuple[UserPattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a mapping.

    If `fact` is set, the value is the fact with this name that `octavo.facts` finds in the document. If `near` is set,
    the value is expected next to the value of the field with this name. `value` is a constant that is used for all
    documents.
    """

    name: str
    type: str
    xml: str
    required: bool = False
    labels: tuple[str, ...] = ()
    weak_labels: tuple[str, ...] = ()
    patterns: tuple[UserPattern, ...] = ()
    group: Group = Group.FIRST
    value: str | None = None
    near: str | None = None
    fact: str | None = None
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
    """The number and date formats in one sender's documents, and replacements to make in the text before patterns are
    applied.
    """

    decimal: str | None = None
    date_formats: tuple[str, ...] = ()
    remove_whitespace: bool = False
    remove_accents: bool = False
    lowercase: bool = False
    replace: tuple[tuple[UserPattern, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Mapping:
    """The rules for converting one type of document. `name` ends with the version, as in invoice_v2.

    A document must contain all `keywords` and none of the `exclude_keywords`. If `evidence` is set, `octavo.facts` must
    recognise the document as this type. If there are neither keywords nor `evidence`, at least two required values must
    be found, unless the mapping has fewer required fields.
    """

    name: str
    title: str
    root: str
    fields: tuple[Field, ...]
    checks: tuple[Check, ...] = ()
    other_labels: tuple[str, ...] = ()
    keywords: tuple[UserPattern, ...] = ()
    exclude_keywords: tuple[UserPattern, ...] = ()
    evidence: str | None = None
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

    @property
    def patterns(self) -> Iterator[tuple[str, UserPattern]]:
        """All patterns of the mapping, each with its key in the mapping file."""
        yield from (("keywords", one) for one in self.keywords)
        yield from (("exclude_keywords", one) for one in self.exclude_keywords)
        yield from (("options.replace", one) for one, _ in self.options.replace)
        for wanted in self.fields:
            yield from ((wanted.name, one) for one in wanted.patterns)
            for rule in wanted.rules:
                for one in (rule.start, rule.end, *rule.first, *rule.line, *rule.last, *rule.skip):
                    yield f"{wanted.name}.rules", one

    @property
    def labels(self) -> Iterator[str]:
        yield from self.other_labels
        for wanted in self.fields:
            yield from (*wanted.labels, *wanted.weak_labels)
            yield from (label for column in wanted.columns for label in column.labels)

    @property
    def fact_labels(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The labels that this mapping adds to the built-in labels, grouped by the name of the fact."""
        own = [(one.fact, (*one.labels, *one.weak_labels)) for one in self.singles if one.fact]
        return tuple((fact, labels) for fact, labels in own if fact and labels)

    def field(self, name: str) -> Field | None:
        return next((one for one in self.fields if one.name == name), None)


# Field types. To add one, add its finder to `FINDERS` and a line to `_TYPES` --------------------------------------


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type of field, such as date.

    `find` returns all values of this type in a text. `schema` is the XML Schema type. `pattern` is a regular expression
    that matches values in standard form, such as 2024-08-15.
    """

    name: str
    find: Find
    schema: str
    pattern: str | None = None

    def accepts(self, value: str) -> bool:
        """Whether a value is in the standard form of this type. Other values would make the XML invalid."""
        if not value.strip() or (self.pattern and not re.fullmatch(self.pattern, value)):
            return False
        return self.name != "date" or _is_day(value)


def _is_day(value: str) -> bool:
    """Whether the date exists, unlike 2024-02-30. A pattern cannot check this."""
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


_DECIMAL = r"-?[0-9]+(\.[0-9]+)?"
_TYPES = (
    FieldType("amount", FINDERS["amount"], "xs:decimal", _DECIMAL),
    FieldType("number", FINDERS["number"], "xs:decimal", _DECIMAL),
    FieldType("date", FINDERS["date"], "xs:date", r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"),
    FieldType("currency", FINDERS["currency"], "xs:string", "[A-Z]{3}"),
    FieldType("identifier", FINDERS["identifier"], "xs:token"),
    FieldType("text", FINDERS["text"], "xs:string"),
)
FIELD_TYPES = {one.name: one for one in _TYPES}
