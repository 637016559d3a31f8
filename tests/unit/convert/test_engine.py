"""Values are found by labels, nearness, tables and what adds up, each with its place."""

from __future__ import annotations

import pytest

from octavo.convert.mappings.mapping import read_check
from octavo.convert.mappings.shipped_mappings import load_shipped
from octavo.convert.rules.engine import convert
from octavo.convert.values import Conversion
from tests.support.sheets import INVOICE, LETTER, LINE, sheet

MAPPING = load_shipped("invoice_v1")


def read(text: str) -> Conversion:
    return convert([sheet(text)], MAPPING)


def value(conversion: Conversion, name: str) -> str | None:
    found = conversion.single(name)
    return found.value if found else None


def test_an_invoice_is_read_with_its_lines() -> None:
    found = read(INVOICE)
    names = ("invoice_number", "invoice_date", "due_date", "net", "tax", "total", "currency")
    wanted = ("NW-2024-0815", "2024-08-15", "2024-09-14", "285.00", "65.55", "350.55", "EUR")
    assert tuple(value(found, name) for name in names) == wanted
    rows = [{name: cell.value for name, cell in row.items()} for row in found.table("lines")]
    assert rows == [
        {"description": "Oak shelf with two brackets", "quantity": "2", "unit_price": "120.00", "amount": "240.00"},
        {"description": "Brass handle", "quantity": "10", "unit_price": "4.50", "amount": "45.00"},
    ]
    assert [check.holds for check in found.checks] == [True, True, True]
    assert not found.missing


def test_every_value_has_the_place_where_it_is_written() -> None:
    found = read(INVOICE).single("total")
    assert found
    assert found.place
    row = INVOICE.split("\n").index("                                     Total:      350.55 EUR") + 1
    assert found.place.page == 1
    assert found.place.quote == "350.55"
    assert found.place.box[:2] == (LETTER * 49, LINE * row)
    assert found.verified


def test_a_label_may_stand_above_its_value() -> None:
    found = read("Invoice no      Date            Due date\n4711-A          01.02.2024      02.03.2024")
    assert (value(found, "invoice_number"), value(found, "invoice_date")) == ("4711-A", "2024-02-01")
    assert value(found, "due_date") == "2024-03-02"


def test_what_is_labelled_as_something_else_is_not_taken() -> None:
    found = read("Order date: 2024-01-01    Customer no: 99\nInvoice 815-7 of today\nDate: 2024-02-02")
    assert value(found, "invoice_date") == "2024-02-02"
    assert value(found, "invoice_number") == "815-7"


def test_amounts_that_add_up_are_preferred() -> None:
    found = read("Total items: 99.00\nNet: 100.00\nVAT: 20.00\nTotal: 120.00\nTotal with tip: 150.00")
    assert value(found, "total") == "120.00"
    assert found.checks[0].holds


def test_certainty_grows_with_checks_that_hold_and_shrinks_with_those_that_do_not() -> None:
    good, bad = (read(f"Net: 100.00\nVAT: 20.00\nGrand total: {total}") for total in ("120.00", "130.00"))
    one, other = good.single("total"), bad.single("total")
    assert one
    assert other
    assert one.confidence > 0.95
    assert other.confidence < 0.75


def test_what_is_required_and_not_there_is_named_and_not_made_up() -> None:
    assert read("Dear Sir, thank you for your letter.").missing == (
        "invoice_number",
        "invoice_date",
        "currency",
        "total",
    )


def test_a_plain_dollar_is_the_one_that_the_document_names() -> None:
    assert value(read("Invoice no: A-1\nTotal: $12.00\nPrices in CAD"), "currency") == "CAD"
    assert value(read("Invoice no: A-1\nTotal: $12.00"), "currency") == "USD"


@pytest.mark.parametrize("text", ["", "a =", "a b = c", "= c", "a + = c", "a <= b + c"])
def test_a_check_that_is_no_check_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"side|sum|<="):
        read_check(text)


def test_a_check_without_its_values_says_nothing() -> None:
    check = read_check("net + tax - discount = total or gross")
    values = {"net": "100", "tax": "20", "discount": "5", "gross": "115.01"}
    assert check.holds(values.get)
    assert check.holds({**values, "gross": "116"}.get) is False
    assert check.holds({"net": "100"}.get) is None
