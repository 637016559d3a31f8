"""Prepares the values of a conversion for the review page: fields, tables, boxes, changes, and the model's answers."""

from __future__ import annotations

import re
from collections.abc import Mapping as Mapping_
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from octavo.convert.conversions import ModelCost
from octavo.convert.mappings.mapping import FIELD_TYPES, Column, Field, Mapping
from octavo.convert.values import Conversion, ModelAnswer, ModelLookup, Value, type_of
from octavo.core.formatting import count_of, format_dollars
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.facts.words import Box, Notation

CERTAIN = 1.0


@dataclass(frozen=True, slots=True)
class Cell:
    """A field on the review page, with or without a value. `path` identifies the field in a correction."""

    path: str
    label: str
    kind: str
    required: bool
    value: Value | None
    by_person: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether the value needs no review. A missing value needs a review only if it is required."""
        if self.value is None:
            return not self.required
        return not self.value.needs_review

    @property
    def page(self) -> int | None:
        return self.value.on_page if self.value else None

    @property
    def certainty(self) -> str:
        """The confidence as text: a percentage if it is calibrated, otherwise a word.

        Empty for missing values and values confirmed by a person.
        """
        if self.value is None or self.value.is_confirmed:
            return ""
        if self.value.calibrated:
            return f"{self.value.confidence:.0%}".replace("%", " %")
        return _("check this") if self.value.needs_review else _("sure")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of values. `columns` are the names and labels of its columns."""

    name: str
    label: str
    columns: list[tuple[str, str]]
    rows: list[list[Cell]]


@dataclass(frozen=True, slots=True)
class ReviewFields:
    cells: list[Cell]
    tables: list[Table]

    @property
    def every(self) -> list[Cell]:
        return [*self.cells, *(cell for table in self.tables for row in table.rows for cell in row)]

    def find(self, path: str | None) -> Cell | None:
        return next((one for one in self.every if one.path == path), None)

    def next_unsettled(self, path: str | None) -> Cell | None:
        """Return the next field after this one that needs review.

        After the last field, the search continues at the first one.
        """
        every = self.every
        at = next((index for index, one in enumerate(every) if one.path == path), -1)
        return next(
            (one for one in [*every[at + 1 :], *every[: at + 1]] if not one.is_settled and one.path != path), None
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """The box around a value on a page. `current` is true if this value is selected."""

    path: str
    box: Box
    current: bool


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one value. If `before` and `after` are both None, `label` describes the whole change."""

    label: str
    before: str | None = None
    after: str | None = None


def arrange_fields(conversion: Conversion, mapping: Mapping) -> ReviewFields:
    """Return all fields and tables in the order of the mapping."""
    cells = [_cell(one.name, one.name, one, conversion.single(one.name)) for one in mapping.singles]
    return ReviewFields(cells, [_table(conversion, one) for one in mapping.tables])


def _table(conversion: Conversion, field: Field) -> Table:
    rows = conversion.table(field.name)
    numbers = sorted({one.row for one in conversion.values if one.table == field.name and one.row})
    cells: list[list[Cell]] = []
    for number, row in zip(numbers, rows, strict=True):
        paths = [f"{field.name}[{number}].{column.name}" for column in field.columns]
        cells.append(
            [
                _cell(
                    path, _("%(name)s, row %(number)s", name=column.name, number=number), column, row.get(column.name)
                )
                for path, column in zip(paths, field.columns, strict=True)
            ]
        )
    columns = [(column.name, _words(column.name)) for column in field.columns]
    return Table(field.name, _words(field.name), columns, cells)


def _cell(path: str, label: str, kind: Field | Column, value: Value | None) -> Cell:
    required = isinstance(kind, Field) and kind.required
    return Cell(path, _words(label), kind.type, required, value, value is not None and value.is_confirmed)


def marks_on(laid: ReviewFields, page: int, current: str | None) -> list[Mark]:
    """Return the boxes of the values on a page. The selected box is last, so that it is drawn on top."""
    marks = [
        Mark(one.path, one.value.place.box, one.path == current)
        for one in laid.every
        if one.value and one.value.place and one.value.place.page == page
    ]
    return sorted(marks, key=lambda one: one.current)


def describe_changes(changes: Sequence[Mapping_[str, Any]]) -> list[Change]:
    """Describe the changes that a person made in one revision."""
    return [_describe(one) for one in changes]


_OTHER_CHANGES = Texts(
    {
        "undo": "Undid revision {}",
        "facts": "Confirmed document facts",
        "carried": "Corrections from an earlier conversion of this file",
    }
)


def _describe(one: Mapping_[str, Any]) -> Change:
    if "name" in one:
        return Change(_words(str(one["name"])), one.get("before"), one.get("after"))
    if "check" in one:
        return Change(_("Accepted although the check failed: %(one)s", one=one["check"]))
    for key, words in _OTHER_CHANGES.items():
        if key in one:
            return Change(words.format(one[key]))
    table, row = _words(str(one.get("table", ""))), one.get("row")
    if one.get("action") == "move":
        return Change(_("%(table)s: row %(row)s moved to %(to)s", table=table, row=row, to=one.get("to")))
    given: Mapping_[str, Any] = one.get("before") or one.get("after") or {}
    cells = ", ".join(map(str, given.values()))
    return Change(
        _(
            "%(table)s: row %(row)s %(what)s: %(cells)s",
            table=table,
            row=row,
            what="removed" if one.get("action") == "remove" else "added",
            cells=cells,
        )
    )


@dataclass(frozen=True, slots=True)
class EarlierCorrection:
    """A correction that was copied from an earlier conversion of the same file."""

    person: str
    at: datetime
    changes: list[Change]


def describe_earlier(entry: Mapping_[str, Any]) -> EarlierCorrection | None:
    try:
        at = datetime.fromisoformat(str(entry["at"])).astimezone(UTC)
        return EarlierCorrection(
            str(entry.get("person") or "A person"), at, describe_changes(entry.get("changes") or [])
        )
    except (KeyError, ValueError):
        return None


def normal_form(mapping: Mapping, path: str, text: str) -> str:
    """Convert text from a page to the format of its field, such as 1.234,50 to 1234.50.

    Ambiguous text is returned unchanged.
    """
    cell = re.fullmatch(r"(\w+)\[\d+\]\.(\w+)", path)
    kind = type_of(mapping, cell[2], cell[1]) if cell else type_of(mapping, path, None)
    if kind is None or FIELD_TYPES[kind].accepts(text):
        return text
    notations = (Notation(), Notation(month_first=True), Notation(","), Notation("."))
    found = {match.value for notation in notations for match in FIELD_TYPES[kind].find(text, notation)}
    return found.pop() if len(found) == 1 else text


def changes_between(before: Conversion | None, after: Conversion | None) -> list[Change]:
    """Return the values that differ between two revisions. The list is empty if one of the revisions is missing.

    A value that a person confirmed without changing it is included, with the same text before and after.
    """
    if before is None or after is None:
        return []
    old, new = ({one.path: one for one in made.values} for made in (before, after))
    return [
        Change(_words(path), _text(old.get(path)), _text(new.get(path)))
        for path in dict.fromkeys([*old, *new])
        if _text(old.get(path)) != _text(new.get(path)) or _became_certain(old.get(path), new.get(path))
    ]


def _became_certain(before: Value | None, after: Value | None) -> bool:
    return bool(before and after and before.confidence < CERTAIN <= after.confidence)


def _text(value: Value | None) -> str | None:
    return value.value if value else None


def _words(name: str) -> str:
    return name.replace("_", " ")


# Errors of a model call that do not fail the conversion. The call is not retried automatically.
MODEL_ERRORS = Texts(
    {
        "AI_ANSWER_UNUSABLE": "The answer did not have the requested format",
        "AI_BAD_KEY": "The provider rejected the API key in the settings",
        "AI_CONTENT_BLOCKED": "The provider blocked this content",
        "AI_REFUSED": "The provider rejected the request",
        "AI_TOKEN_LIMIT": "The text is too long for the model",
        "OVER_BUDGET": "The budget is used up",
    }
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's answer for one field.

    `outcome` contains the colour, icon and label that show whether the answer was used.
    """

    path: str
    label: str
    value: str
    quote: str
    outcome: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """The model's answers for a conversion.

    If no model answered, `made_by` is None and `why` is the reason. `unanswered` are fields without an answer.
    """

    made_by: str | None
    wanted: list[str]
    cost: str
    answers: list[Answer]
    unanswered: list[str]
    why: str | None

    def answer_for(self, cell: Cell) -> Answer | None:
        return next((one for one in self.answers if one.path == cell.path), None)


def describe_model(asked: ModelLookup | None, laid: ReviewFields, cost: ModelCost) -> ModelAnswers | None:
    """Return the model's answers for the review page. Returns None if no model was called."""
    if asked is None:
        return None
    said = {one.name for one in asked.answers}
    why = f"{MODEL_ERRORS.get(asked.error, _('No model answered'))} ({asked.error})" if asked.error else None
    return ModelAnswers(
        made_by=asked.made_by,
        wanted=[_label(laid, name) for name in asked.fields],
        cost=_cost(asked, cost),
        answers=[_answer(one, laid.find(one.name), _label(laid, one.name)) for one in asked.answers],
        unanswered=[] if why else [_label(laid, name) for name in asked.fields if name not in said],
        why=why,
    )


def _answer(said: ModelAnswer, cell: Cell | None, label: str) -> Answer:
    return Answer(said.name, label, said.value, said.quote, _outcome(said, cell))


def _outcome(said: ModelAnswer, cell: Cell | None) -> tuple[str, str, str]:
    value = cell.value if cell else None
    same = value is not None and value.value == said.value
    if cell is not None and cell.by_person:
        return ("ok", "person", _("Accepted")) if same else ("", "person", _("Corrected"))
    if value is None or not same:
        return ("", "close", _("Not used"))
    return ("ok", "check", _("Found on the page")) if value.place else ("warn", "warning", _("Not on the page"))


def _cost(asked: ModelLookup, cost: ModelCost) -> str:
    if cost.calls:
        return f"{format_dollars(cost.cost_usd)}, {count_of(cost.tokens, 'token')}"
    return _("Cached answer, no cost") if asked.made_by else _("No cost")


def _label(laid: ReviewFields, name: str) -> str:
    cell = laid.find(name)
    return cell.label if cell else name.replace("_", " ")
