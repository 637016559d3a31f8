"""What a model was asked for a conversion, what it said, what of it was taken, and what that cost. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.convert.contract import Asked, Said
from octavo.convert.conversions import ModelCost
from octavo.web.pages.conversion_fields import Cell, Laid
from octavo.web.pages.wording import count_of, format_dollars

# The codes of what a conversion goes on without; said as it is now, since nothing is tried again by itself.
SILENT = {
    "AI_ANSWER_UNUSABLE": "It did not answer in the form that it was asked for",
    "AI_BAD_KEY": "The provider does not accept the key in the settings",
    "AI_CONTENT_BLOCKED": "It refused this content because of its own rules",
    "AI_REFUSED": "The provider did not take the request",
    "AI_TOKEN_LIMIT": "The text is too long for it",
    "OVER_BUDGET": "The budget is used up",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said of one field and what became of it: tone, glyph and word, as of a chip."""

    path: str
    label: str
    value: str
    quote: str
    fate: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ModelPart:
    """`made_by` is none where nobody answered; `silent` are the fields nothing was said of, `why` is why."""

    made_by: str | None
    wanted: list[str]
    cost: str
    answers: list[Answer]
    silent: list[str]
    why: str | None

    def said_of(self, cell: Cell) -> Answer | None:
        return next((one for one in self.answers if one.path == cell.path), None)


def describe_model(asked: Asked | None, laid: Laid, cost: ModelCost) -> ModelPart | None:
    """None: there was nothing to ask, or nobody."""
    if asked is None:
        return None
    said = {one.name for one in asked.said}
    why = f"{SILENT.get(asked.error, 'No model could answer')} ({asked.error})" if asked.error else None
    return ModelPart(
        made_by=asked.made_by,
        wanted=[_label(laid, name) for name in asked.fields],
        cost=_cost(asked, cost),
        answers=[_answer(one, laid.find(one.name), _label(laid, one.name)) for one in asked.said],
        silent=[] if why else [_label(laid, name) for name in asked.fields if name not in said],
        why=why,
    )


def _answer(said: Said, cell: Cell | None, label: str) -> Answer:
    return Answer(said.name, label, said.value, said.quote, _fate(said, cell))


def _fate(said: Said, cell: Cell | None) -> tuple[str, str, str]:
    value = cell.value if cell else None
    same = value is not None and value.value == said.value
    if cell is not None and cell.by_person:
        return ("ok", "person", "Accepted") if same else ("", "person", "Corrected")
    if value is None or not same:
        return ("", "close", "Not taken")
    return ("ok", "check", "Written there") if value.verified else ("warn", "warning", "Unverified")


def _cost(asked: Asked, cost: ModelCost) -> str:
    if cost.calls:
        return f"{format_dollars(cost.cost_usd)}, {count_of(cost.tokens, 'token')}"
    return "An earlier answer was used again, for nothing" if asked.made_by else "Nothing was paid"


def _label(laid: Laid, name: str) -> str:
    cell = laid.find(name)
    return cell.label if cell else name.replace("_", " ")
