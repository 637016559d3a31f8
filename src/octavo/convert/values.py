"""The output of a conversion: values with their positions, checks, and model calls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from octavo.core.types import JSON
from octavo.facts.words import Place


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

    `place` is its position in the document. A constant from the mapping has no position. `calibrated` is true if the
    confidence was measured on labelled documents, and false if the rules or a mapping set it. `by` is the name of the
    person who confirmed the value, and `at` is the time of the confirmation. `page` is the page number that this person
    entered instead of selecting a position.
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

    `holds` is whether it passed, or None if a value is missing. `accepted` is true if the check failed, but a person
    confirmed all values that it uses.
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
