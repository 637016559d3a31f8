"""The values of a conversion as its page shows them: fields, tables, boxes, changes, and the model's answers.

Pure functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo.convert.conversions import ModelCost
from octavo.convert.mappings.mapping import Column, Field, Mapping
from octavo.convert.values import Conversion, ModelAnswer, ModelLookup, Value
from octavo.core.formatting import count_of, format_dollars
from octavo.facts.words import Box

CERTAIN = 1.0


@dataclass(frozen=True, slots=True)
class Cell:
    """A field, with or without a value. `path` is its name in corrections."""

    path: str
    label: str
    kind: str
    required: bool
    value: Value | None
    by_person: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether nobody needs to look at the value.

        A missing value is settled unless it is required.
        """
        if self.value is None:
            return not self.required
        return not self.value.needs_review

    @property
    def page(self) -> int | None:
        return self.value.place.page if self.value and self.value.place else None


@dataclass(frozen=True, slots=True)
class Table:
    label: str
    columns: list[str]
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
        """The next field after this one that is not settled, wrapping around to the first field."""
        every = self.every
        at = next((index for index, one in enumerate(every) if one.path == path), -1)
        return next(
            (one for one in [*every[at + 1 :], *every[: at + 1]] if not one.is_settled and one.path != path), None
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """The box of a value on a page."""

    path: str
    box: Box
    current: bool


@dataclass(frozen=True, slots=True)
class Change:
    label: str
    before: str | None
    after: str | None


def arrange_fields(conversion: Conversion, mapping: Mapping, first: Conversion | None = None) -> ReviewFields:
    """All fields in the order of the mapping. Values that differ from the first revision were corrected by a person."""
    found = {one.path: one for one in (first or conversion).values}
    cells = [
        _cell(one.name, one.name, one, conversion.single(one.name), found.get(one.name)) for one in mapping.singles
    ]
    return ReviewFields(cells, [made for one in mapping.tables if (made := _table(conversion, one, found))])


def _table(conversion: Conversion, field: Field, found: dict[str, Value]) -> Table | None:
    rows = conversion.table(field.name)
    if not rows:
        return None
    numbers = sorted({one.row for one in conversion.values if one.table == field.name and one.row})
    cells: list[list[Cell]] = []
    for number, row in zip(numbers, rows, strict=True):
        paths = [f"{field.name}[{number}].{column.name}" for column in field.columns]
        cells.append(
            [
                _cell(path, f"{column.name}, row {number}", column, row.get(column.name), found.get(path))
                for path, column in zip(paths, field.columns, strict=True)
            ]
        )
    return Table(_words(field.name), [_words(column.name) for column in field.columns], cells)


def _cell(path: str, label: str, kind: Field | Column, value: Value | None, first: Value | None) -> Cell:
    required = isinstance(kind, Field) and kind.required
    changed = value is not None and (_text(first) != value.value or _became_certain(first, value))
    return Cell(path, _words(label), kind.type, required, value, changed)


def marks_on(laid: ReviewFields, page: int, current: str | None) -> list[Mark]:
    """The boxes of values on a page. The selected box is last, so that it is drawn on top."""
    marks = [
        Mark(one.path, one.value.place.box, one.path == current)
        for one in laid.every
        if one.value and one.value.place and one.value.place.page == page
    ]
    return sorted(marks, key=lambda one: one.current)


def changes_between(before: Conversion | None, after: Conversion) -> list[Change]:
    """The changes of a revision; none for the first.

    A value that a person only confirmed has the same text before and after.
    """
    if before is None:
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
MODEL_ERRORS = {
    "AI_ANSWER_UNUSABLE": "The answer did not have the requested format",
    "AI_BAD_KEY": "The provider rejected the API key in the settings",
    "AI_CONTENT_BLOCKED": "The provider blocked this content",
    "AI_REFUSED": "The provider rejected the request",
    "AI_TOKEN_LIMIT": "The text is too long for the model",
    "OVER_BUDGET": "The budget is used up",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's answer for one field.

    `outcome` is the tone, icon and label of the chip that shows what became of the answer.
    """

    path: str
    label: str
    value: str
    quote: str
    outcome: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """The answers of the model for a conversion.

    `made_by` is None if no model answered, and `why` is the reason. `unanswered` are fields without an answer.
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
    """The answers of the model; None if no model was called."""
    if asked is None:
        return None
    said = {one.name for one in asked.answers}
    why = f"{MODEL_ERRORS.get(asked.error, 'No model answered')} ({asked.error})" if asked.error else None
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
        return ("ok", "person", "Accepted") if same else ("", "person", "Corrected")
    if value is None or not same:
        return ("", "close", "Not used")
    return ("ok", "check", "Found on the page") if value.place else ("warn", "warning", "Not on the page")


def _cost(asked: ModelLookup, cost: ModelCost) -> str:
    if cost.calls:
        return f"{format_dollars(cost.cost_usd)}, {count_of(cost.tokens, 'token')}"
    return "Cached answer, no cost" if asked.made_by else "No cost"


def _label(laid: ReviewFields, name: str) -> str:
    cell = laid.find(name)
    return cell.label if cell else name.replace("_", " ")
