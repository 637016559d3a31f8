"""Facts are chosen by what adds up; labels in several languages break ties; what is not there is not claimed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.facts.confidence import MODEL, REVIEW, confidence
from octavo.facts.finding import Fact, Reading, find_facts, read_document, sheets_of_text
from tests.support.sheets import INVOICE, sheet

GERMAN = """
Lieferant Hansen GmbH
Lieferantenstraße 20 · 80333 München · USt-IdNr. DE123456789


Kunden Mitte AG
Kundenstraße 15
69876 Frankfurt

Rechnung Nr. 471102 vom 05.03.2018
Ihre Bestellung Nr. 99812 vom 01.03.2018

Pos.  Bezeichnung          Menge      Einzelpreis    Betrag EUR
1     Trennblätter A4      20 St             9,90        198,00
2     Joghurt Banane       50 St             5,50        275,00

                     Gesamtbetrag der Positionen         473,00
                     Gesamtbetrag der Zuschläge            0,00
                     Rechnungssumme ohne USt.            473,00
                     Steuerbetrag                         56,87
                     Zahlbetrag                      529,87 EUR

Zahlbar netto bis 04.04.2018.
IBAN DE02 1203 0000 0000 2020 51
"""
PAPER = """
On the settling of fine clay in brackish water
I. Lindqvist and R. Osei

Abstract
We measured how fast suspended clay settles at salinities from 2 to 30 grams per litre.
A 64-bit data logger recorded 25.47 million samples in 2019. The total was 12.50.
"""


def read(text: str) -> Reading:
    return read_document([sheet(text)])


def value(reading: Reading, name: str) -> str | None:
    found = reading.values.get(name)
    return found.value if found else None


def test_a_german_invoice_says_who_when_and_how_much() -> None:
    found = read(GERMAN)
    names = ("number", "date", "due_date", "order_id", "net", "tax", "amount", "currency", "sender", "vat_id")
    assert [value(found, name) for name in names] == [
        *("471102", "2018-03-05", "2018-04-04", "99812", "473.00", "56.87", "529.87", "EUR"),
        *("Lieferant Hansen GmbH", "DE123456789"),
    ]
    assert found.is_invoice


def test_amounts_that_add_up_beat_the_label_of_a_total() -> None:
    text = "Invoice no: 7\nGrand total of surcharges: 999.00\nSum 473.00\nVAT 19%: 89.87\nPayable: 562.87"
    assert value(read(text), "amount") == "562.87"


def test_shipping_is_part_of_the_sum() -> None:
    found = read("Net: 100.00\nVAT: 20.00\nShipping: 7.90\nTotal: 127.90")
    assert (value(found, "amount"), value(found, "charges")) == ("127.90", "7.90")


def test_the_sum_of_several_rates_is_the_total() -> None:
    rows = ("321.40        61.07    382.47", "127.59         8.93    136.52", "448.99        70.00    518.99")
    assert value(read("\n  ".join(("Net amount   Tax amount   Gross", *rows))), "amount") == "518.99"


@pytest.mark.parametrize(
    ("line", "number", "day"),
    [
        ("Rechnung Nr. 471102 vom 05.03.2018", "471102", "2018-03-05"),
        ("Handelsrechnung (380) Nr. R-12 vom 7. Mai 2014", "R-12", "2014-05-07"),
        ("Facture n°562044387 du 02 Juillet 2015", "562044387", "2015-07-02"),
        ("Factuurnummer: 993548900 Factuurdatum: 19 april 2014", "993548900", "2014-04-19"),
        ("Factura nº 2021/77 Fecha: 3 de mayo de 2021", "2021/77", "2021-05-03"),
        ("Fattura n. 12/B del 9 gennaio 2020", "12/B", "2020-01-09"),
        ("Invoice # RE-20201121/508 issued at 2020-11-21", "RE-20201121/508", "2020-11-21"),
    ],
)
def test_number_and_date_are_read_in_several_languages(line: str, number: str, day: str) -> None:
    found = read(line)
    assert (value(found, "number"), value(found, "date")) == (number, day)


def test_the_number_and_date_of_an_order_are_not_those_of_the_invoice() -> None:
    found = read("Rechnung gemäß Bestellung Nr. 2018-471331 vom 01.03.2018\nRechnung Nr. 815-7 vom 05.03.2018")
    assert (value(found, "number"), value(found, "date")) == ("815-7", "2018-03-05")


def test_items_end_where_their_sum_is_printed() -> None:
    found = read(INVOICE).items
    assert [row.cells["amount"].value for row in found.rows] == ["240.00", "45.00"]
    assert found.is_sum_printed
    assert all(row.has_product for row in found.rows)


def test_charges_below_the_table_are_not_items() -> None:
    text = INVOICE.replace("Subtotal:      285.00 EUR", "Shipping:       15.00 EUR").replace(" 65.55", " 69.00")
    assert len(read(text.replace("350.55", "369.00")).items.rows) == 2


@pytest.mark.parametrize("text", [PAPER, "Total: 12.50 EUR", "", "Dear Sir, thank you for your letter of 3 May 2020."])
def test_a_document_without_the_signs_of_an_invoice_is_none(text: str) -> None:
    assert not read(text).is_invoice


def test_a_month_without_a_day_is_kept_as_it_is() -> None:
    dates = [one for one in find_facts([sheet("Annual report\nMay 2017\n" + "\n" * 40)]) if one.name == "date"]
    assert [(one.value, one.quote) for one in dates] == [("2017-05", "May 2017")]


def test_facts_have_a_place_a_quote_and_a_measured_confidence() -> None:
    facts = {one.name: one for one in find_facts([sheet(GERMAN)])}
    total = facts["amount"]
    assert total.place
    assert (total.value, total.quote, total.place.page, total.status) == ("529.87", "529,87", 1, "checked")
    assert total.confidence >= REVIEW
    assert facts["iban"].status == "checked"


def test_a_text_without_pages_has_facts_without_places() -> None:
    facts = find_facts(sheets_of_text(GERMAN))
    assert {one.value for one in facts if one.name == "number"} == {"471102"}
    assert all(one.place is None for one in facts)


def test_evidence_that_was_never_measured_is_not_sure() -> None:
    assert confidence("number", frozenset({"unheard of"})) < REVIEW
    assert confidence("amount", frozenset({"contradiction", "label"})) < REVIEW


@given(st.text(alphabet=st.sampled_from("Invoice no:. 0123456789,\n€%-/#Total VAT"), max_size=300))
def test_any_text_can_be_read_and_every_quote_is_in_it(text: str) -> None:
    facts: list[Fact] = find_facts([sheet(text)])
    words = " ".join(text.split())
    assert all(one.quote in words for one in facts)


@pytest.mark.parametrize("field", ["kind", "title", "author", "date", "language", "sender"])
def test_a_value_from_a_model_never_has_the_confidence_of_a_measured_rule(field: str) -> None:
    assert confidence(field, frozenset({MODEL})) == 0.5
