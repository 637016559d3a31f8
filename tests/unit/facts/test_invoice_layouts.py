"""Layouts of real invoices that were once read wrongly, made again with other words."""

from __future__ import annotations

import pytest

from octavo.facts.confidence import REVIEW, confidence
from octavo.facts.finding import Reading, read_document
from tests.support.sheets import sheet


def read(text: str) -> Reading:
    return read_document([sheet(text)])


def value(text: str, name: str) -> str | None:
    found = read(text).values.get(name)
    return found.value if found else None


def rows(text: str) -> list[tuple[str | None, ...]]:
    names = ("description", "quantity", "unit_price", "amount")
    items = read(text).items.rows
    return [tuple(row.cells[name].value if name in row.cells else None for name in names) for row in items]


HEAD = "Description          Quantity    Unit price      Amount\n"


def test_the_sum_of_a_group_does_not_end_the_table() -> None:
    text = (
        HEAD
        + "Oak shelf                   2        120.00      240.00\n"
        + "                                  Subtotal      240.00\n\n"
        + "Brass handle               10          4.50       45.00\n"
        + "                                  Subtotal       45.00\n\n"
        + "Net amount                                      285.00\n"
    )
    assert [row[0] for row in rows(text)] == ["Oak shelf", "Brass handle"]


def test_the_header_of_sums_ends_the_table() -> None:
    text = (
        HEAD
        + "Oak shelf                   2        120.00      240.00\n\n"
        + "Net amount           Tax             Total\n"
        + "240.00               48.00           288.00\n"
    )
    assert rows(text) == [("Oak shelf", "2", "120.00", "240.00")]
    assert value(text, "amount") == "288.00"


def test_of_several_amounts_the_product_of_quantity_and_price_is_meant() -> None:
    text = (
        "Description      Quantity   Unit price   Net amount   Gross amount\n"
        "Oak shelf               2       120.00       240.00         288.00\n"
        "Brass handle           10         4.50        45.00          54.00\n\n"
        "Net total                                    285.00\n"
        "Total                                                       342.00\n"
    )
    assert [row[3] for row in rows(text)] == ["240.00", "45.00"]


def test_amounts_without_cents_are_items_if_their_sum_is_printed() -> None:
    text = (
        HEAD
        + "Oak shelf                   2           1.5           3\n"
        + "Brass handle                1           4.5         4.5\n\n"
        + "Subtotal                                           7.50\n"
    )
    assert [row[3] for row in rows(text)] == ["3", "4.5"]


def test_numbers_beside_their_headers_are_read_by_their_order() -> None:
    text = (
        "Description                                   Quantity       Unit price        Amount\n"
        "Shelf of oak    2  120.00  240.00\n"
        "Workshop 6 hours   3  15.00  45.00\n\n"
        "Net amount: 285.00 EUR\n"
    )
    assert rows(text) == [("Shelf of oak", "2", "120.00", "240.00"), ("Workshop 6 hours", "3", "15.00", "45.00")]


def test_a_table_without_rows_is_called_unread() -> None:
    assert read(HEAD + "see the attachment\n\nTotal: 12.00").items.is_unread
    assert not read("Total: 12.00").items.is_unread


def test_a_row_without_a_cell_of_its_header_has_evidence_of_its_own() -> None:
    items = read(HEAD + "Oak shelf                                        240.00\n\nNet amount  240.00\n").items
    assert "incomplete" in items.evidence(items.rows[0])


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("Celkem s DPH: 27 198,- Kč", "27198.00"),
        ("Total: Kč28,200.00", "28200.00"),
        ("Net: 43.00 EUR\nVAT:  8.60 EUR\nTotal:   51.6 EUR", "51.6"),
        ("Total: RM 15", "15"),
    ],
)
def test_amounts_are_read_in_many_notations(text: str, amount: str) -> None:
    assert value(f"Invoice no: 7-1\n{text}", "amount") == amount


def test_a_subtotal_without_tax_is_not_the_total() -> None:
    text = "Subtotal     640.20\nTotal tax      0.00\nTotal discount   20.00\nGrand total    620.20\n"
    assert value(text, "amount") == "620.20"


@pytest.mark.parametrize(
    ("text", "currency", "is_sure"),
    [
        ("Total: $12.00\nToronto, Canada", "CAD", False),
        ("Total: $12.00\nAustin, TX 78701, USA", "USD", False),
        ("Total: $12.00", "USD", False),
        ("Total: $12.00 USD", "USD", True),
        ("Total: $12.00\nAll amounts in AUD", "AUD", True),
    ],
)
def test_a_dollar_sign_alone_is_not_a_sure_currency(text: str, currency: str, *, is_sure: bool) -> None:
    found = read(text).values["currency"]
    assert found.value == currency
    assert (confidence("currency", found.evidence) >= REVIEW) == is_sure


def test_the_number_and_date_of_a_related_invoice_are_not_its_own() -> None:
    text = (
        "Facture N° : F-2026-23\nDate : 31/01/2026\n"
        "N° de facture associée : F-2026-03\nDate de facture associée : 01/01/2026\n"
    )
    assert (value(text, "number"), value(text, "date")) == ("F-2026-23", "2026-01-31")


def test_an_invoice_can_have_the_number_one() -> None:
    assert value("Rechnung Nr. 1\nDatum 29.03.2011", "number") == "1"
    assert value("Page 1 of 2\nRoom 3", "number") is None


def test_a_date_belongs_to_the_label_above_it_and_not_to_the_last_label_of_the_line() -> None:
    text = "Invoice date      Due date       Reference\n03/20/2023        04/19/2023     CUST-123\n"
    assert (value(text, "date"), value(text, "due_date")) == ("2023-03-20", "2023-04-19")


@pytest.mark.parametrize(("line", "day"), [("January, 31, 2018", "2018-01-31"), ("Date: Mar 15, 2024", "2024-03-15")])
def test_a_month_can_be_followed_by_a_comma(line: str, day: str) -> None:
    assert value(line, "date") == day


def test_a_short_header_names_the_values_that_are_aligned_right_below_it() -> None:
    text = "Net     Tax      Total\n   100.00   20.00    120.00\n"
    assert value(text, "amount") == "120.00"


# Names

SUMS = "\n\nNet amount    100.00\nVAT 20%        20.00\nTotal         120.00\n"


def test_labels_and_headers_are_not_the_sender() -> None:
    text = "Numéro SIREN   000 000 007\nTVA   FR00123456789\n\nPrice    VAT\n100.00   20%\n" + SUMS
    assert value(text, "sender") is None


def test_a_sentence_is_not_the_sender() -> None:
    assert value("Appel depuis un poste fixe local\nTel. 1064, 75001 Paris\n", "sender") is None


def test_a_name_in_lower_case_is_the_sender_above_the_address() -> None:
    text = "acme apitest - Mill Road 29 - 06112 Halle\nTest Customer\nHill 1\n12345 Town\n\nInvoice 5-1\n"
    assert value(text, "sender") == "acme apitest"


def test_the_street_of_an_address_is_not_the_sender() -> None:
    assert value("Fjord Consulting ApS\nNyhavn 17, 1051 Copenhagen, Denmark\n\nInvoice 5-1\n", "sender") == (
        "Fjord Consulting ApS"
    )


def test_an_address_beside_a_labelled_customer_is_the_senders() -> None:
    text = "\n" * 6 + "Jan Smith\n35 Mill Road\n75000 Paris\n\nBill to:\nOffice Ltd\n36 Hill Road\n75000 Paris\n"
    assert (value(text, "sender"), value(text, "recipient")) == ("Jan Smith", "Office Ltd")


def test_a_name_without_an_address_at_the_top_is_a_guess() -> None:
    found = read("\nJane Doe\n\n\nBill to:\nOffice Ltd\n\nInvoice no: 7-1\n" + SUMS).values["sender"]
    assert found.value == "Jane Doe"
    assert confidence("sender", found.evidence) < REVIEW
