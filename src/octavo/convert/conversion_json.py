"""A conversion as it is written down between steps, and how it crosses the border of the sandbox."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from octavo.convert.mappings.field_types import FIELD_TYPES
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.values import Asked, Box, Checked, Conversion, Place, Said, Value
from octavo.core.errors import Defect
from octavo.core.types import JSON

_MOST_TEXT = 10_000
_MOST_VALUES = 20_000


def conversion_to_json(conversion: Conversion) -> bytes:
    """The same conversion is the same bytes."""
    return json.dumps(
        conversion_to_record(conversion), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode()


def conversion_to_record(conversion: Conversion) -> dict[str, JSON]:
    record: dict[str, JSON] = {
        "mapping": conversion.mapping,
        "source": conversion.source,
        "values": [_value_to_json(one) for one in conversion.values],
        "checks": [[one.check, one.holds] for one in conversion.checks],
        "missing": list(conversion.missing),
    }
    if conversion.asked:
        record["model"] = conversion.asked.as_json()
    return record


def _value_to_json(one: Value) -> JSON:
    place: JSON = [one.place.page, *(round(side, 2) for side in one.place.box), one.place.quote] if one.place else None
    return [one.name, one.value, one.confidence, place, one.verified, one.table, one.row]


def conversion_from_json(document: bytes, mapping: Mapping) -> Conversion:
    """Checks everything: a child that a hostile file has taken over can write what it likes."""
    try:
        return conversion_from_record(json.loads(document), mapping)
    except (ValueError, RecursionError):
        raise _unusable() from None


def conversion_from_record(read: Any, mapping: Mapping) -> Conversion:  # noqa: ANN401
    """The same from JSON that is read already."""
    try:
        values = tuple(_value(row, mapping) for row in read["values"][:_MOST_VALUES])
        checks = tuple(
            Checked(_is(str, check), None if holds is None else _is(bool, holds)) for check, holds in read["checks"]
        )
        missing = tuple(_is(str, name) for name in read["missing"])
        return Conversion(mapping.name, values, checks, missing, _is(str, read["source"]), _asked(read.get("model")))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _unusable() from None


def _asked(read: Any) -> Asked | None:  # noqa: ANN401
    if read is None:
        return None
    said = tuple(Said(_is(str, one["name"]), _is(str, one["value"]), _is(str, one["quote"])) for one in read["said"])
    fields = tuple(_is(str, name) for name in read["fields"])
    return Asked(_is(str, read["task"]), fields, _text(read["made_by"]), said, _text(read["error"]))


def _text(value: Any) -> str | None:  # noqa: ANN401
    return None if value is None else _is(str, value)


def _unusable() -> Defect:
    return Defect("What was made of a document cannot be used.")


def _value(row: Any, mapping: Mapping) -> Value:  # noqa: ANN401
    name, value, confidence, place, verified, table, number = row
    kind = kind_of(mapping, name, table)
    if kind is None or not FIELD_TYPES[kind].accepts(_is(str, value)[:_MOST_TEXT]):
        raise ValueError("no such field, or no such value")
    if not 0 <= confidence <= 1 or (table is not None and _is(int, number) < 1):
        raise ValueError("a measure is wrong")
    return Value(name, value[:_MOST_TEXT], float(confidence), _place(place), _is(bool, verified), table, number)


def kind_of(mapping: Mapping, name: object, table: object) -> str | None:
    """The type of a field or of a column of a table; None if the mapping has no such thing."""
    if table is None:
        return next((one.type for one in mapping.singles if one.name == name), None)
    columns = (column for one in mapping.tables if one.name == table for column in one.columns)
    return next((column.type for column in columns if column.name == name), None)


def _place(row: Any) -> Place | None:  # noqa: ANN401
    if row is None:
        return None
    page, left, top, right, bottom, quote = row
    sides = [float(side) for side in (left, top, right, bottom)]
    if not all(map(isfinite, sides)):
        raise ValueError("a measure is not a number")
    return Place(_is(int, page), Box(*sides), _is(str, quote)[:_MOST_TEXT])


def _is(kind: type, value: Any) -> Any:  # noqa: ANN401
    if type(value) is not kind:
        raise TypeError
    return value
