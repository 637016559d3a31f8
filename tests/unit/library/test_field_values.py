"""Values of custom fields have one form for each type, and titles are filled in from patterns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from uuid import uuid4

import pytest

from octavo.core.errors import BadInput
from octavo.library.fields import read_value, suggest_values
from octavo.library.rules import fill_title, plan_change
from octavo.records.automation import FieldType, FieldView, RuleThen
from octavo.records.documents import FactView


def fact(name: str, value: str, normalized: str | None = None, confidence: float = 0.95) -> FactView:
    return FactView(name, value, normalized or value, 1, None, value, confidence, "rule", "found")


DOCUMENT = {
    "id": 1, "filename": "scan.pdf", "title": "Scan", "collection": "Mail", "kind": "invoice", "sender": "Harbour Ltd",
    "author": None, "document_date": date(2026, 11, 15), "amount": "717.97", "currency": "EUR", "tags": ["Ferry"],
    "fields": {"project": "Inland"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "given", "stored"),
    [
        ("text", "  two \n words ", "two words"),
        ("number", "42.50", "42.5"),
        ("number", "1e3", "1000"),
        ("number", "-0.10", "-0.1"),
        ("date", "2026-02-28", "2026-02-28"),
        ("money", "12.5 eur", "12.50 EUR"),
        ("money", "USD 3", "3.00 USD"),
        ("money", "7", "7.00"),
        ("choice", "coast", "Coast"),
        ("link", "https://example.org/a?b=c", "https://example.org/a?b=c"),
        ("person", "Ada Lovelace", "Ada Lovelace"),
    ],
)
def test_a_value_is_stored_in_one_form(type_: FieldType, given: str, stored: str) -> None:
    assert read_value("Name", type_, given, ["Coast", "Inland"]) == stored


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        *(("number", "many"), ("number", "nan"), ("number", "1e999"), ("date", "15.11.2026"), ("date", "2026-02-30")),
        *(("money", "EUR 1 EUR"), ("money", "a lot"), ("choice", "Sea"), ("link", "javascript:alert(1)")),
        *(("link", "https://"), ("text", "x" * 501), ("text", " ")),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_of_the_field(type_: FieldType, given: str) -> None:
    with pytest.raises(BadInput, match="Cost centre: must"):
        read_value("Cost centre", type_, given, ["Coast"])


def test_a_title_is_filled_in_and_missing_parts_are_left_out() -> None:
    assert fill_title("{sender} - {date} {amount} {currency}", DOCUMENT) == "Harbour Ltd - 2026-11-15 717.97 EUR"
    assert fill_title("{author} - {kind}", DOCUMENT) == "invoice"


def test_only_values_that_differ_are_changed() -> None:
    then = RuleThen(tags=["ferry", "paid"], collection="Mail", fields={"Project": "Coast"})
    planned = plan_change(DOCUMENT, then)
    assert [(one.name, one.before, one.after) for one in planned.changes] == [
        ("tags", "Ferry", "Ferry, paid"),
        ("Project", "Inland", "Coast"),
    ]
    assert planned.edit.added_tags == ["paid"]
    assert planned.edit.fields == ["tags"]


def test_a_value_that_another_rule_has_set_is_not_changed() -> None:
    then = RuleThen(collection="Ports", fields={"Project": "Coast"})
    planned = plan_change(DOCUMENT, then, {"collection", "field:Project"})
    assert (planned.changes, planned.blocked) == ((), {"collection", "field:Project"})


FACTS = [
    fact("sender", "Harbour Ltd"),
    fact("number", "R-17"),
    fact("date", "15 November 2026", "2026-11-15"),
    fact("due_date", "1 Dec 2026", "2026-12-01"),
    fact("amount", "717,97 €", "717.97"),
    fact("currency", "EUR"),
    fact("vat_id", "DE123456789"),
    fact("author", "A. Guess", confidence=0.4),
]


@pytest.mark.parametrize(
    ("name", "type_", "suggested"),
    [
        ("Total", "money", "717.97 EUR"),
        ("Rechnungsbetrag (Summe)", "number", "717.97"),
        ("Budget", "money", "717.97 EUR"),  # by its type
        ("Due date", "date", "2026-12-01"),
        ("Fällig am", "date", "2026-12-01"),
        ("Invoice date", "date", "2026-11-15"),
        ("Invoice no", "text", "R-17"),
        ("Fournisseur", "person", "Harbour Ltd"),
        ("Where from", "choice", "Harbour Ltd"),  # the value is one of the choices
        ("VAT amount", "money", None),  # not the total
        ("Supplier number", "text", None),
        ("Due date", "text", "2026-12-01"),
        ("Received", "date", None),
        ("Project", "text", None),
        ("Author", "person", None),  # not sure enough
        ("Link", "link", None),
    ],
)
def test_facts_suggest_the_values_of_fields(name: str, type_: FieldType, suggested: str | None) -> None:
    choices = ["Harbour Ltd", "Others"] if type_ == "choice" else []
    field = FieldView(uuid4(), name, type_, choices, 0, datetime(2026, 11, 15, tzinfo=UTC))
    found = [value for one in suggest_values([field], FACTS) for value in one.suggests.values()]
    assert found == ([suggested] if suggested else [])
