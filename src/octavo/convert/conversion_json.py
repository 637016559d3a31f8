"""The JSON format of a conversion. The sandbox returns this format, and the database stores it."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from octavo.convert.mappings.mapping import FIELD_TYPES, Mapping
from octavo.convert.values import CheckResult, Conversion, ModelAnswer, ModelLookup, Status, Value
from octavo.core.errors import Defect
from octavo.core.types import JSON
from octavo.facts.words import Box, Place

_MOST_TEXT = 10_000
_MOST_VALUES = 20_000


def conversion_to_json(conversion: Conversion) -> bytes:
    """Serialise a conversion as JSON. Identical conversions give identical bytes."""
    return json.dumps(
        conversion_to_record(conversion), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode()


def conversion_to_record(conversion: Conversion) -> dict[str, JSON]:
    record: dict[str, JSON] = {
        "mapping": conversion.mapping,
        "source": conversion.source,
        "values": [_value_to_json(one) for one in conversion.values],
        "checks": [[one.check, one.holds, *([True] if one.accepted else [])] for one in conversion.checks],
        "missing": list(conversion.missing),
    }
    if conversion.model_lookup:
        record["model"] = conversion.model_lookup.as_json()
    if not conversion.fits:
        record["fits"] = False
    return record


def _value_to_json(one: Value) -> JSON:
    place: JSON = [one.place.page, *(round(side, 2) for side in one.place.box), one.place.quote] if one.place else None
    row: list[JSON] = [one.name, one.value, one.confidence, place, not one.needs_review, one.table, one.row, one.status]
    by_person: list[JSON] = [one.page, one.by, one.at]
    return [*row, one.calibrated, *(by_person if any(by_person) else [])]


def conversion_from_json(document: bytes, mapping: Mapping) -> Conversion:
    """Parse a conversion and validate all of it, because a hostile file may control the sandboxed process."""
    try:
        return conversion_from_record(json.loads(document), mapping)
    except (ValueError, RecursionError):
        raise _unusable() from None


def conversion_from_record(read: Any, mapping: Mapping) -> Conversion:  # noqa: ANN401
    """Parse a conversion like `conversion_from_json`, but from JSON that is already parsed."""
    try:
        values = tuple(value_from_row(row, mapping) for row in read["values"][:_MOST_VALUES])
        checks = tuple(_check(*row) for row in read["checks"])
        missing = tuple(_is(str, name) for name in read["missing"])
        lookup, source = _lookup_from_json(read.get("model")), _is(str, read["source"])
        return Conversion(mapping.name, values, checks, missing, source, lookup, fits=read.get("fits") is not False)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _unusable() from None


def _check(check: Any, holds: Any, *more: Any) -> CheckResult:  # noqa: ANN401
    return CheckResult(_is(str, check), None if holds is None else _is(bool, holds), accepted=more == (True,))


def _lookup_from_json(read: Any) -> ModelLookup | None:  # noqa: ANN401
    if read is None:
        return None
    answers = tuple(
        ModelAnswer(_is(str, one["name"]), _is(str, one["value"]), _is(str, one["quote"])) for one in read["said"]
    )
    fields = tuple(_is(str, name) for name in read["fields"])
    return ModelLookup(_is(str, read["task"]), fields, _text(read["made_by"]), answers, _text(read["error"]))


def _text(value: Any) -> str | None:  # noqa: ANN401
    return None if value is None else _is(str, value)


def _unusable() -> Defect:
    return Defect("The output of the conversion is invalid.")


def value_from_row(row: Any, mapping: Mapping) -> Value:  # noqa: ANN401
    """Parse one value.

    Raises `ValueError` or `TypeError` if the value is invalid or its field is not in the mapping.
    """
    name, value, confidence, place, settled, table, number, *more = row
    # Records of earlier versions do not contain a status, or whether the confidence is calibrated.
    status = Status(more[0]) if more else Status.FOUND if _is(bool, settled) else Status.NEEDS_REVIEW
    calibrated = _is(bool, more[1]) if len(more) > 1 else False
    page, by, at = more[2:5] if len(more) > 2 else (None, None, None)  # noqa: PLR2004
    kind = type_of(mapping, name, table)
    if kind is None or not FIELD_TYPES[kind].accepts(_is(str, value)[:_MOST_TEXT]):
        raise ValueError("unknown field or invalid value")
    if not 0 <= confidence <= 1 or (table is not None and _is(int, number) < 1):
        raise ValueError("a number is out of range")
    where = None if page is None else _is(int, page)
    value = value[:_MOST_TEXT]
    return Value(
        name, value, float(confidence), _place(place), status, table, number, calibrated, where, _text(by), _text(at)
    )


def type_of(mapping: Mapping, name: object, table: object) -> str | None:
    """Return the type of a field or table column, or None if the mapping does not contain it."""
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
        raise ValueError("a coordinate is not finite")
    return Place(_is(int, page), Box(*sides), _is(str, quote)[:_MOST_TEXT])


def _is(kind: type, value: Any) -> Any:  # noqa: ANN401
    if type(value) is not kind:
        raise TypeError
    return value
