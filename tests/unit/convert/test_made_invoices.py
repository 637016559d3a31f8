"""Invoices of many layouts are read right, each value with its box. The benchmark does it with a hundred."""

from __future__ import annotations

from pathlib import Path

from octavo.convert.mappings.shipped_mappings import load_shipped
from octavo.convert.rules.engine import convert
from octavo.extract.pdf.placed_words import pages_as_json, read_words
from octavo.facts.words import sheets_from_json
from tests.support.invoices import make_invoice

GOAL = 0.85
LAYOUTS = range(101, 133)  # none of which the benchmark has


def test_number_date_total_and_currency_are_right_in_most_layouts(tmp_path: Path) -> None:
    right = dict.fromkeys(("invoice_number", "invoice_date", "total", "currency"), 0)
    for number in LAYOUTS:
        made = make_invoice(number)
        path = tmp_path / "invoice.pdf"
        path.write_bytes(made.pdf)
        found = convert(sheets_from_json(pages_as_json(read_words(path))), load_shipped("invoice_v1"))
        for name, wanted in zip(right, (made.number, made.day, made.total, made.currency), strict=True):
            value = found.single(name)
            right[name] += value is not None and value.value == wanted and value.place is not None
    assert min(right.values()) >= GOAL * len(LAYOUTS), right


def test_a_number_always_makes_the_same_invoice() -> None:
    assert make_invoice(7) == make_invoice(7)
    assert make_invoice(7) != make_invoice(8)
