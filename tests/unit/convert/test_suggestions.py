"""What a model says is taken for fields that rules missed, and only what the document says too counts as verified."""

from __future__ import annotations

from octavo.convert.mappings.shipped_mappings import load_shipped
from octavo.convert.rules.engine import convert, missing_fields, with_suggestions
from octavo.convert.values import Suggestion
from tests.support.sheets import sheet

MAPPING = load_shipped("invoice_v1")
PAGE = sheet("Total: 12.50 EUR\n\nThe paper you hold is our eighth of the year, 8/2024-X,\nwritten on March 3, 2024")
FOUND = convert([PAGE], MAPPING)


def test_a_model_is_asked_for_what_is_missing_the_required_first() -> None:
    assert missing_fields(FOUND, MAPPING)[0].name == "invoice_number"
    assert "total" not in {one.name for one in missing_fields(FOUND, MAPPING)}


def test_a_quote_that_is_there_and_says_it_is_a_place() -> None:
    made = with_suggestions(FOUND, MAPPING, [PAGE], [Suggestion("invoice_number", "8/2024-X", "the year, 8/2024-X", 1)])
    value = made.single("invoice_number")
    assert value
    assert value.place
    assert (value.value, value.status, value.place.quote) == ("8/2024-X", "needs_review", "the year, 8/2024-X")
    assert made.source == "rules and model"
    assert "invoice_number" not in made.missing


def test_a_quote_that_is_not_there_or_says_something_else_is_marked() -> None:
    for quote in ("invented", "written on"):
        made = with_suggestions(FOUND, MAPPING, [PAGE], [Suggestion("invoice_number", "8/2024-X", quote)])
        value = made.single("invoice_number")
        assert value
        assert value.needs_review
        assert value.place is None
        assert value.confidence < 0.5


def test_nothing_that_was_found_is_changed_and_nothing_unasked_is_added() -> None:
    said = [Suggestion("total", "99.00", "Total"), Suggestion("mood", "good", "x"), Suggestion("due_date", "soon", "x")]
    assert with_suggestions(FOUND, MAPPING, [PAGE], said) == FOUND
