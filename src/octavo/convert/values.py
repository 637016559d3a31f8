"""The output of a conversion: values with their positions, checks, and model calls.

This module also converts the output to and from JSON. The sandbox returns this JSON, and the database stores it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Any, NamedTuple

from octavo.convert.mappings.mapping import FIELD_TYPES, Mapping
from octavo.core.errors import Defect
from octavo.core.types import JSON
from octavo.facts.words import Box, Place


class Status(StrEnum):
    """The reliability of a value.

    `found`: the value is in the document, or is a constant from the mapping. `checked`: a cross-check passed as well.
    `confirmed`: a person entered or accepted the value. `needs_review`: the confidence is below the threshold, or a
    cross-check failed.
    """

    FOUND = "found"
    CHECKED = "checked"
    CONFIRMED = "confirmed"
    NEEDS_REVIEW = "needs_review"


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a field. `row` counts from 1 within a table. `value` is in the standard form of its type: 2024-08-15,
    350.55, EUR.

    `place` is the value's position in the document. A constant from the mapping has no position. `calibrated` is true
    if the confidence was measured on labelled documents, and false if the rules or a mapping set it. `by` is the name
    of the person who confirmed the value, and `at` is the time of the confirmation. `page` is the page number that this
    person entered instead of selecting a position.
    """

    name: str
    value: str
    confidence: float
    place: Place | None = None
    status: str = Status.FOUND
    table: str | None = None
    row: int | None = None
    calibrated: bool = False
    page: int | None = None
    by: str | None = None
    at: str | None = None

    @property
    def path(self) -> str:
        return f"{self.table}[{self.row}].{self.name}" if self.table else self.name

    @property
    def verified(self) -> bool:
        """Whether a cross-check passed for the value or a person confirmed it."""
        return self.status in {Status.CHECKED, Status.CONFIRMED}

    @property
    def needs_review(self) -> bool:
        return self.status == Status.NEEDS_REVIEW

    @property
    def is_confirmed(self) -> bool:
        return self.status == Status.CONFIRMED

    @property
    def on_page(self) -> int | None:
        """The page on which the value was found, or the page that a person entered for it."""
        return self.place.page if self.place else self.page

    def as_json(self) -> dict[str, JSON]:
        place = self.place
        return {
            "name": self.path,
            "value": self.value,
            "page": self.on_page,
            "box": [round(side, 1) for side in place.box] if place else None,
            "quote": (place.quote or None) if place else None,
            "confidence": round(self.confidence, 2),
            "verified": self.verified,
            "status": self.status,
            "calibrated": self.calibrated,
            "confirmed_by": self.by,
            "confirmed_at": self.at,
        }


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a cross-check such as `net + tax = total`.

    `holds` is true if the check passed, and None if a value is missing. `accepted` is true if the check failed, but a
    person confirmed all values that it uses.
    """

    check: str
    holds: bool | None
    accepted: bool = False

    @property
    def needs_review(self) -> bool:
        return self.holds is False and not self.accepted


class ModelAnswer(NamedTuple):
    """A model's answer for a field, exactly as the model returned it.

    The value in the conversion shows whether the answer was used and verified.
    """

    name: str
    value: str
    quote: str


@dataclass(frozen=True, slots=True)
class ModelLookup:
    """A model call to find values that the rules missed: the fields, the model, and its answers or the error code."""

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

    `missing` lists the required fields without a value. `source` says where the values come from, such as `rules` or
    `embedded`. `fits` is false if the mapping is not meant for this document, because a keyword is missing, an excluded
    keyword is present, or there is too little evidence.
    """

    mapping: str
    values: tuple[Value, ...]
    checks: tuple[CheckResult, ...] = ()
    missing: tuple[str, ...] = ()
    source: str = "rules"
    model_lookup: ModelLookup | None = None
    fits: bool = True

    @property
    def needs_review(self) -> bool:
        """Whether a person should review the conversion, because a value is doubtful or missing or a check failed."""
        failed = any(one.needs_review for one in self.checks)
        return bool(self.missing) or failed or any(one.needs_review for one in self.values)

    def single(self, name: str) -> Value | None:
        return next((one for one in self.values if one.name == name and one.table is None), None)

    def table(self, name: str) -> list[dict[str, Value]]:
        """Return the rows of a table in order. Each row maps column names to values."""
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
            "checks": [{"check": one.check, "holds": one.holds, "accepted": one.accepted} for one in self.checks],
            "missing": list(self.missing),
            "model": self.model_lookup.as_json() if self.model_lookup else None,
        }


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A model's answer that has not been verified yet.

    The document should contain `quote` verbatim. `value` should be the value in the quote, in standard form.
    """

    name: str
    value: str
    quote: str
    page: int | None = None


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
    """Build a conversion from parsed JSON, with the same validation as `conversion_from_json`."""
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
    """Return the type of a field or table column. Returns None if the mapping does not contain it."""
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
