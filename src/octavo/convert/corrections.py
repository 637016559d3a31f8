"""What a person puts right: values by their names, in the one form of their type; places and checks follow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from octavo.convert.contract import Conversion, Value
from octavo.convert.engine import finish
from octavo.convert.mapping import Mapping
from octavo.convert.records import kind_of
from octavo.convert.types import FIELD_TYPES
from octavo.core.errors import BadInput

_CELL = re.compile(r"(?P<table>\w+)\[(?P<row>\d{1,5})\]\.(?P<name>\w+)")
_CERTAIN = 1.0


@dataclass(frozen=True, slots=True)
class Correction:
    """`name` is a field, or a cell such as `lines[2].amount`. Without a value what was found is taken away."""

    name: str
    value: str | None


def correct(conversion: Conversion, mapping: Mapping, corrections: Sequence[Correction]) -> Conversion:
    """Where a value stands stays as it is; a new one has no place. Raises `BadInput`."""
    values = {one.path: one for one in conversion.values}
    for one in corrections:
        made = _value(one, mapping, values.get(one.name))
        if made is None:
            values.pop(one.name, None)
        else:
            values[one.name] = made
    order = {field.name: index for index, field in enumerate(mapping.fields)}
    ordered = sorted(values.values(), key=lambda one: (order[one.table or one.name], one.row or 0))
    return replace(finish(mapping, ordered, source="person"), asked=conversion.asked)


def _value(one: Correction, mapping: Mapping, before: Value | None) -> Value | None:
    cell = _CELL.fullmatch(one.name)
    table, name = (cell["table"], cell["name"]) if cell else (None, one.name)
    kind = kind_of(mapping, name, table)
    if kind is None:
        raise BadInput(f"{mapping.name} has no field {one.name[:80]!r}.")
    if one.value is None:
        return None
    if not FIELD_TYPES[kind].accepts(one.value):
        raise BadInput(f"{one.name}: {one.value[:80]!r} is no {kind}. {FORMS.get(kind, '')}".rstrip())
    row = max(int(cell["row"]), 1) if cell else None
    if before:
        return replace(before, value=one.value, confidence=_CERTAIN)
    return Value(name, one.value, _CERTAIN, table=table, row=row)


FORMS = {"date": "Write 2024-08-15.", "amount": "Write 1234.50.", "number": "Write 12.5.", "currency": "Write EUR."}
