"""Adds a model's suggestions for fields without a value, and verifies them against the document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from octavo.convert.mappings.mapping import FIELD_TYPES, Field, Mapping
from octavo.convert.rules.engine import finish
from octavo.convert.values import Conversion, Suggestion, Value
from octavo.facts.layout import Line, lines_of, locate_text
from octavo.facts.words import Notation, Sheet

_VERIFIED, _UNVERIFIED = 0.7, 0.3


@dataclass(frozen=True, slots=True)
class MissingField:
    """A field without a value, in the format that is sent to a model."""

    name: str
    type: str
    labels: tuple[str, ...]


def missing_fields(conversion: Conversion, mapping: Mapping) -> list[MissingField]:
    """Return the fields without a value, except tables. Required fields come first."""
    missing = [field for field in mapping.singles if conversion.single(field.name) is None]
    missing.sort(key=lambda field: not field.required)
    return [MissingField(field.name, field.type, (*field.labels, *field.weak_labels)[:5]) for field in missing]


def with_suggestions(
    conversion: Conversion, mapping: Mapping, sheets: Sequence[Sheet], suggestions: Sequence[Suggestion]
) -> Conversion:
    """Add suggestions for fields that have no value. Values that were already found are not changed."""
    added = list(_added(conversion, mapping, lines_of(sheets), suggestions))
    if not added:
        return conversion
    order = {field.name: index for index, field in enumerate(mapping.fields)}
    values = sorted((*conversion.values, *added), key=lambda one: order[one.table or one.name])
    return finish(mapping, values, source=f"{conversion.source} and model")


def _added(
    conversion: Conversion, mapping: Mapping, lines: Sequence[Line], suggestions: Sequence[Suggestion]
) -> Iterator[Value]:
    taken = {one.name for one in conversion.values if not one.table}
    for one in suggestions:
        field = mapping.field(one.name)
        if field is None or field.is_table or one.name in taken or not FIELD_TYPES[field.type].accepts(one.value):
            continue
        taken.add(one.name)
        yield _value(field, one, lines)


def _value(field: Field, one: Suggestion, lines: Sequence[Line]) -> Value:
    """Make a value from a suggestion. Its confidence is low, so that a person reviews it.

    The value has a position only if the document contains the quote and the quote contains the value.
    """
    place = locate_text(lines, one.quote, one.page) or locate_text(lines, one.quote)
    is_there = place is not None and _contains_value(field, one, place.quote)
    return Value(field.name, one.value, _VERIFIED if is_there else _UNVERIFIED, place if is_there else None)


def _contains_value(field: Field, one: Suggestion, quote: str) -> bool:
    if field.type in {"text", "identifier"}:
        return one.value in quote
    notations = (Notation(), Notation(month_first=True), Notation(","), Notation("."))
    find = FIELD_TYPES[field.type].find
    return any(match.value == one.value for notation in notations for match in find(quote, notation))
