"""What the page of a conversion says of the model that was asked: what it said, what was taken, and what it cost."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from octavo.convert.conversions import ModelCost
from octavo.convert.values import Conversion, ModelAnswer, ModelLookup, Value
from octavo.facts.words import Box, Place
from octavo.web.rooms.conversions.api import CorrectionRequest
from octavo.web.rooms.conversions.fields import Cell, ReviewFields, describe_model

MODEL = "gemini:gemini-2.5-flash"
ASKED = ModelLookup(
    "extract_fields", ("invoice_number", "supplier"), MODEL, (ModelAnswer("invoice_number", "X-8", "called X-8"),)
)
PAID, FREE = ModelCost(1, 812, 0.0004), ModelCost(0, 0, 0.0)


def laid(value: Value | None, *, by_person: bool = False) -> ReviewFields:
    return ReviewFields([Cell("invoice_number", "invoice number", "identifier", True, value, by_person)], [])


def number(text: str, *, on_page: bool = True) -> Value:
    place = Place(1, Box(0, 0, 9, 9), text) if on_page else None
    return Value("invoice_number", text, 0.7 if on_page else 0.3, place)


@pytest.mark.parametrize(
    ("value", "by_person", "word"),
    [
        (number("X-8"), False, "Found on the page"),
        (number("X-8", on_page=False), False, "Not on the page"),
        (number("X-8"), True, "Accepted"),
        (number("X-9"), True, "Corrected"),
        (None, False, "Not used"),
    ],
)
def test_what_became_of_an_answer(value: Value | None, by_person: bool, word: str) -> None:
    made = describe_model(ASKED, laid(value, by_person=by_person), PAID)
    assert made
    assert [(one.label, one.value, one.outcome[2]) for one in made.answers] == [("invoice number", "X-8", word)]
    assert (made.made_by, made.wanted, made.unanswered) == (MODEL, ["invoice number", "supplier"], ["supplier"])
    assert made.cost == "$0.0004, 812 tokens"


def test_an_answer_that_was_there_already_costs_nothing() -> None:
    made = describe_model(ASKED, laid(number("X-8")), FREE)
    assert made
    assert made.cost == "Cached answer, no cost"


def test_why_nobody_answered_is_said_with_its_code() -> None:
    nobody = ModelLookup("extract_fields", ("invoice_number",), error="OVER_BUDGET")
    made = describe_model(nobody, laid(None), FREE)
    assert made
    assert (made.why, made.answers, made.unanswered) == ("The budget is used up (OVER_BUDGET)", [], [])
    assert made.cost == "No cost"


def test_where_nothing_was_asked_nothing_is_said() -> None:
    assert describe_model(Conversion("invoice_v1", ()).model_lookup, laid(None), FREE) is None


@pytest.mark.parametrize(
    "body",
    [
        {"values": [{"name": "total", "value": "1", "page": 1, "box": [0, 0, 9, True]}]},
        {"values": [{"name": "total", "value": "1", "page": True}]},
        {"rows": [{"table": "items", "action": "move", "row": True, "to": 1}]},
        {"rows": [{"table": "items", "action": "move", "row": 1, "to": True}]},
    ],
)
def test_true_is_not_a_number_of_a_correction(body: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CorrectionRequest.model_validate_json(json.dumps(body))
    CorrectionRequest.model_validate_json(json.dumps(body).replace("true", "9"))
