"""What a model says of the fields that rules missed: taken only as far as the document says the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from octavo.convert.mappings.field_types import FIELD_TYPES
from octavo.convert.mappings.mapping import Field, Mapping
from octavo.convert.rules.engine import finish
from octavo.convert.rules.layout import Line, lines_of, locate_text
from octavo.convert.values import Conversion, Habits, Sheet, Suggestion, Value

_FOUND, _UNFOUND = 0.7, 0.3


@dataclass(frozen=True, slots=True)
class Wanted:
    """A field to look for, as a model is told of it."""

    name: str
    type: str
    labels: tuple[str, ...]


def wanted_fields(conversion: Conversion, mapping: Mapping) -> list[Wanted]:
    """Single fields without a value, those that are required first."""
    missing = [field for field in mapping.singles if conversion.single(field.name) is None]
    missing.sort(key=lambda field: not field.required)
    return [Wanted(field.name, field.type, (*field.labels, *field.weak_labels)[:5]) for field in missing]


def with_suggestions(
    conversion: Conversion, mapping: Mapping, sheets: Sequence[Sheet], suggestions: Sequence[Suggestion]
) -> Conversion:
    """The conversion with what was suggested for fields that have no value. Nothing that was found is changed."""
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
    """Verified if the quote stands in the document and says that value."""
    place = locate_text(lines, one.quote, one.page) or locate_text(lines, one.quote)
    says = place is not None and _says(field, one, place.quote)
    confidence = _FOUND if says else _UNFOUND
    return Value(field.name, one.value, confidence, place if says else None, verified=says)


def _says(field: Field, one: Suggestion, quote: str) -> bool:
    if field.type in {"text", "identifier"}:
        return one.value in quote
    habits = (Habits(), Habits(month_first=True), Habits(","), Habits("."))
    return any(found.value == one.value for habit in habits for found in FIELD_TYPES[field.type].find(quote, habit))
