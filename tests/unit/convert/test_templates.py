"""Templates of invoice2data are mappings: their patterns find the same values, and here with their places."""

from __future__ import annotations

import pytest

from octavo.convert.errors import BadMapping
from octavo.convert.mappings.shipped_mappings import mapping_from_text
from octavo.convert.rules.engine import convert
from octavo.convert.rules.patterns import fits
from octavo.convert.rules.result_xml import render, validate
from octavo.convert.values import Conversion
from octavo.facts.layout import text_in_columns
from tests.support.sheets import sheet

TEMPLATE = r"""
issuer: Nordlicht GmbH
keywords: [Nordlicht, Rechnung]
fields:
  amount: Summe\s+EUR\s+(\d+,\d\d)
  date: Rechnung \S+ vom (\d+\. \w+ \d{4})
  invoice_number: Rechnung (\S+) vom
  static_vat: DE123
  note: {parser: regex, regex: ['Kunde: (\d+)', 'Tour: (\w+)'], group: join}
  period_start: {parser: regex, regex: 'Zeitraum (\S+ \w+ \d+) bis', type: date}
lines:
  start: Pos\s+Text
  end: Summe
  first_line: ^\s*(?P<pos>\d+)\s+(?P<desc>\S.*?)\s{2,}(?P<price>\d+,\d\d)
  line: ^\s{4,}(?P<desc>\S.*)$
  skip_line: Lieferung
  types: {price: float}
tables:
  - {start: 'Vertrag\s+Tarif', end: Pos, body: '(?P<contract>V\d+)\s+(?P<tariff>\w+)'}
options:
  currency: EUR
  decimal_separator: ","
  replace:
    - ['Zeitraum (?P<day>\d+\.)(?P<rest> bis \d+\.)(?P<month> \w+ \d+)', 'Zeitraum \g<day>\g<month>\g<rest>\g<month>']
"""
TEXT = """
Nordlicht GmbH       Kunde: 77    Tour: Nord
Rechnung R-12 vom 7. Mai 2024
Zeitraum 1. bis 31. Mai 2024

Vertrag    Tarif
V815       Klein

Pos   Text                          Preis
1     Leuchte                       10,00
      mit Fuß
Lieferung frei
2     Schirm                         2,50

Summe EUR     12,50
"""
MAPPING = mapping_from_text(TEMPLATE, "de.nordlicht.yml")


def found() -> Conversion:
    return convert([sheet(TEXT)], MAPPING)


def test_a_template_is_for_documents_with_all_its_keywords() -> None:
    assert fits(MAPPING, text_in_columns([sheet(TEXT)]))
    assert not fits(MAPPING, text_in_columns([sheet("Rechnung von jemand anderem")]))


def test_every_field_of_a_template_is_found() -> None:
    values = {value.name: value.value for value in found().values if not value.table}
    assert values == {
        "issuer": "Nordlicht GmbH",
        "currency": "EUR",
        "desc": "Invoice from Nordlicht GmbH",
        "amount": "12.50",
        "date": "2024-05-07",
        "invoice_number": "R-12",
        "vat": "DE123",
        "note": "77 Nord",
        "period_start": "2024-05-01",
        "contract": "V815",
        "tariff": "Klein",
    }


def test_lines_of_a_template_are_rows() -> None:
    rows = [{name: cell.value for name, cell in row.items()} for row in found().table("lines")]
    assert rows == [
        {"pos": "1", "desc": "Leuchte\nmit Fuß", "price": "10.00"},
        {"pos": "2", "desc": "Schirm", "price": "2.50"},
    ]


def test_what_a_template_says_of_every_document_is_marked_unless_it_is_written_there() -> None:
    assert {value.name for value in found().values if value.place is None} == {"desc", "vat"}


def test_whitespace_can_be_left_out_and_places_stay() -> None:
    text = "keywords: [Shop]\nfields: {amount: 'GrandTotal(\\d+\\.\\d+)'}\noptions: {remove_whitespace: true}"
    value = convert([sheet("Shop\n  Grand Total    319.00")], mapping_from_text(text, "shop.yml")).single("amount")
    assert value
    assert value.place
    assert (value.value, value.place.quote) == ("319.00", "319.00")


def test_a_template_makes_valid_xml() -> None:
    validate(render(found(), MAPPING), MAPPING)


def test_a_template_with_a_broken_pattern_is_refused_with_its_field() -> None:
    with pytest.raises(BadMapping, match=r"x\.yml: amount: invalid pattern '\('"):
        mapping_from_text("keywords: [a]\nfields: {amount: '('}", "x.yml")
