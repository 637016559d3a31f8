"""Every type reads what people write, and has one form for it."""

from __future__ import annotations

import pytest

from octavo.convert.mappings.mapping import FIELD_TYPES
from octavo.facts.dates import writes_month_first
from octavo.facts.typed_values import usual_decimal
from octavo.facts.words import Notation

AMOUNTS: list[tuple[str, list[str]]] = [
    ("1,234.56 EUR", ["1234.56"]),
    ("1.234,56", ["1234.56"]),
    ("1 234,56 €", ["1234.56"]),
    ("1'234.50", ["1234.50"]),
    ("1,23,456.00", ["123456.00"]),  # as in India
    ("€ -9,32", ["-9.32"]),
    ("(12.00)", ["-12.00"]),
    ("$4.11", ["4.11"]),
    ("VAT 23%: 65.55", ["65.55"]),  # a share is no amount
    ("20-10-2015", []),  # nor is a day
    ("A4-80g", []),
    ("1.500", ["1500"]),  # three digits are a group, unless the document writes fractions so
]
DATES = [
    ("2024-08-15", "2024-08-15"),
    ("August 3 , 2014", "2014-08-03"),
    ("7. Mai 2014", "2014-05-07"),
    ("02 Juillet 2015", "2015-07-02"),
    ("3 de marzo de 2021", "2021-03-03"),
    ("1er février 2020", "2020-02-01"),
    ("15/08/24", "2024-08-15"),
    ("05.04.2023", "2023-04-05"),
    ("31.02.2023", None),
]
CURRENCIES = [("US$ 5", "USD"), ("5 €", "EUR"), ("CHF 5", "CHF"), ("Rs. 40", "INR"), ("100 zł", "PLN"), ("Rent", None)]
IDENTIFIERS = [("# BLR_20151000", "BLR_20151000"), ("RE 2024-001", "RE 2024-001"), ("of 12.03.2024", None), ("7", None)]


@pytest.mark.parametrize(("text", "values"), AMOUNTS)
def test_amounts(text: str, values: list[str]) -> None:
    assert [found.value for found in FIELD_TYPES["amount"].find(text, Notation())] == values


def first(kind: str, text: str, notation: Notation | None = None) -> str | None:
    found = FIELD_TYPES[kind].find(text, notation or Notation())
    return found[0].value if found else None


@pytest.mark.parametrize(("text", "value"), DATES)
def test_dates(text: str, value: str | None) -> None:
    assert first("date", text) == value


@pytest.mark.parametrize(("text", "value"), CURRENCIES)
def test_currencies(text: str, value: str | None) -> None:
    assert first("currency", text) == value


@pytest.mark.parametrize(("text", "value"), IDENTIFIERS)
def test_identifiers(text: str, value: str | None) -> None:
    assert first("identifier", text) == value


def test_what_could_mean_two_things_means_what_the_document_writes_elsewhere() -> None:
    assert first("date", "03/04/2024", Notation(month_first=True)) == "2024-03-04"
    assert first("amount", "1.500", Notation(".")) == "1.500"
    assert usual_decimal(["3,89", "5,39", "1.000"]) == ","
    assert writes_month_first(["01/02/2020", "01/31/2020"]) is True
    assert writes_month_first(["01/02/2020"]) is None


def test_a_value_has_the_one_form_of_its_type() -> None:
    accepted = {"amount": "-1.50", "date": "2024-02-29", "currency": "EUR", "text": "x", "identifier": "A 1"}
    refused = {"amount": "1,50", "date": "2023-02-29", "currency": "euro", "text": " ", "number": "NaN"}
    assert all(FIELD_TYPES[kind].accepts(value) for kind, value in accepted.items())
    assert not any(FIELD_TYPES[kind].accepts(value) for kind, value in refused.items())
