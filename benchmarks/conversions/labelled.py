"""Labelled invoices: the PDFs of a folder with what their pages say, split into two halves by renderer family.

The truth is the XML embedded in a PDF, or a JSON file of invoice2data beside it. Only values printed on a page
are counted: a number or name if its words are on one page, a date, amount or currency if it is on a page
in any notation.

The split was made by file name and producer before any rule was tuned: `HELD_OUT` families were not opened until the
rules were finished. A file named PACKAGE--NAME.pdf comes from a package of a registry. The package is its family, and
its half is `packages`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any

from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.shipped_mappings import load_shipped
from octavo.convert.rules.embedded_invoice import EmbeddedInvoice, as_day, open_embedded
from octavo.convert.rules.patterns import as_type
from octavo.extract.pdf.placed_words import pages_as_json, read_words
from octavo.facts.layout import Line, every_value, lines_of
from octavo.facts.typed_values import usual_decimal
from octavo.facts.words import Notation, Sheet, fold, sheets_from_json

# Renderer families, by file name. The first that matches counts.
FAMILIES = (
    ("ferd 2.0 stylesheet", r"zugferd_2p", "development"),
    ("ferd 2.2 stylesheet", r"EN16931_|XRECHNUNG_", "development"),
    ("mustang", r"Mustang|fail\d|factur-x-invalid", "development"),
    ("hetzner", r"RE-E-974", "development"),
    ("additional data", r"additional-data", "development"),
    ("flipkart", r"Flipkart", "development"),
    ("quality hosting", r"QualityHosting", "development"),
    ("free", r"free_", "development"),
    ("fnfe factur-x samples", r"Avoir_|Facture_", "held out"),
    ("ferd 1.0", r"ZUGFeRD_1p0", "held out"),
    ("symtrax", r"ZUGFeRD_2_fully", "held out"),
    ("python factur-x", r"python-factur-x", "held out"),
    ("fpdf", r"sample_inofficial", "held out"),
    ("amazon", r"Amazon", "held out"),
    ("wkhtmltopdf", r"SammyMaystone", "held out"),
    ("coolblue", r"coolblue", "held out"),
)
DEVELOPMENT, HELD_OUT, PACKAGES = "development", "held out", "packages"
_THEIRS = {
    "invoice_number": "invoice_number",
    "date": "invoice_date",
    "amount": "total",
    "currency": "currency",
    "issuer": "seller",
    "date_due": "due_date",
}
# Read from the page by a person: files without a truth, and parties, where the JSON names a brand or none.
_BY_HAND: dict[str, dict[str, str]] = {
    "FlipkartInvoice.pdf": {"seller": "WS Retail Services Pvt. Ltd.", "buyer": "Anushrut Singh"},
    "free_fiber.pdf": {"seller": "Free SAS", "buyer": "de Lattre Alexis"},
    "QualityHosting.pdf": {"buyer": "iViveLabs Ltd."},
    "RE-E-974-Hetzner_2016-01-19_R0005532486.pdf": {
        "invoice_number": "R0005532486",
        "invoice_date": "2016-01-19",
        "due_date": "2016-01-22",
        "total": "104.00",
        "net": "87.39",
        "tax": "16.61",
        "currency": "EUR",
        "seller": "Hetzner Online GmbH",
        "buyer": "Usegroup Inh. Jochen Stärk",
        "seller_vat_id": "DE812871812",
        "iban": "DE92760700120750007700",
    },
    "MustangGnuaccountingBeispielRE-20140522_501.pdf": {
        "invoice_number": "RE-20140522/501",
        "invoice_date": "2014-05-22",
        "due_date": "2014-06-12",
        "total": "571.04",
        "net": "496.00",
        "tax": "75.04",
        "currency": "EUR",
        "seller": "Bei Spiel GmbH",
        "buyer": "Theodor Est",
        "seller_vat_id": "DE136695976",
        "iban": "DE88200800000970375700",
    },
}
_TYPES = {"invoice_date": "date", "due_date": "date", "currency": "currency"}
_DOLLARS = {"CAD", "AUD", "NZD", "HKD", "SGD", "MXN"}
_AMOUNTS = {"net", "tax", "total", "line_total"}


@dataclass(frozen=True, slots=True)
class LineTruth:
    description: str
    quantity: str | None
    unit_price: str | None
    amount: str


@dataclass(frozen=True)
class Labelled:
    """A PDF with its words, without its attachment, and the true values of its invoice."""

    path: Path
    sheets: list[Sheet]
    values: dict[str, str]
    lines: list[LineTruth] = field(default_factory=list[LineTruth])

    @property
    def family(self) -> str:
        return family_of(self.path.name)[0]

    @property
    def half(self) -> str:
        return family_of(self.path.name)[1]

    @cached_property
    def page_texts(self) -> list[str]:
        """The letters and digits of each page, line by line from left to right, without spaces."""
        lines = lines_of(self.sheets)
        pages = [" ".join(w.text for line in lines if line.page == s.number for w in line.words) for s in self.sheets]
        return [" ".join(letters(text) for text in page.split()) for page in pages]

    @cached_property
    def printed_values(self) -> dict[str, set[str]]:
        lines = lines_of(self.sheets)
        found: dict[str, set[str]] = {}
        for kind in ("date", "amount", "currency"):
            for notation in (Notation("."), Notation(","), Notation(".", month_first=True)):
                found.setdefault(kind, set()).update(value for _, value in every_value(lines, kind, notation))
        return found

    def is_printed(self, name: str, value: str) -> bool:
        if name in _AMOUNTS:
            amount = abs(Decimal(value))
            return any(abs(Decimal(one)) == amount for one in self.printed_values["amount"])
        if name in _TYPES:
            printed = self.printed_values[_TYPES[name]]
            return value in printed or (value in _DOLLARS and "USD" in printed)  # "$" can be any of these
        if name == "invoice_number":
            return any(letters(value) in text.replace(" ", "") for text in self.page_texts)
        return any(
            all(word in text.split() for word in map(letters, value.split()) if word) for text in self.page_texts
        )

    def is_beside(self, item: LineTruth, value: str) -> bool:
        """Whether a row with the amount and the description of an item, or the line above or below, has this value."""
        wanted = [abs(Decimal(one)) for one in (item.amount, value)]
        name = letters(item.description.split()[0]) if item.description.split() else ""
        notation = Notation(usual_decimal(run.text for line in self._lines for run in line.runs))
        found = [{abs(Decimal(one)) for _, one in every_value([line], "amount", notation)} for line in self._lines]
        texts = [letters(" ".join(run.text for run in line.runs)) for line in self._lines]
        for row, numbers in enumerate(found):
            near = slice(max(row - 1, 0), row + 2)
            if wanted[0] in numbers and name in "".join(texts[near]) and any(wanted[1] in one for one in found[near]):
                return True
        return False

    @cached_property
    def _lines(self) -> list[Line]:
        return lines_of(self.sheets)

    @cached_property
    def printed(self) -> dict[str, str]:
        return {name: value for name, value in self.values.items() if self.is_printed(name, value)}

    @cached_property
    def lines_are_printed(self) -> bool:
        """Whether the page has an item table: the amount of every line is printed."""
        return bool(self.lines) and all(self.is_printed("total", line.amount) for line in self.lines)


def letters(text: str) -> str:
    return "".join(letter for letter in fold(text) if letter.isalnum())


def family_of(name: str) -> tuple[str, str]:
    package, mark, _ = name.partition("--")
    if mark:
        return package, PACKAGES
    found = next(((family, half) for family, pattern, half in FAMILIES if re.match(pattern, name)), None)
    if found is None:
        raise ValueError(f"{name} belongs to no family: add it to FAMILIES before looking at it")
    return found


def load(folders: list[Path], half: str) -> Iterator[Labelled]:
    """The labelled PDFs of one half. A PDF without a truth that can be read is named and left out."""
    mapping = load_shipped("invoice_v1")
    for path in sorted(path for folder in folders for path in folder.glob("*.pdf")):
        if half not in {family_of(path.name)[1], "both"}:
            continue
        read = read_words(path)
        sheets = sheets_from_json(pages_as_json(read))
        embedded = open_embedded(mapping, read.attachments)
        expected = path.with_suffix(".json")
        if embedded:
            yield Labelled(path, sheets, dict(_values(embedded, mapping)), list(_lines(embedded, mapping)))
        elif path.name in _BY_HAND and not expected.exists():
            yield Labelled(path, sheets, _BY_HAND[path.name])
        elif expected.exists():
            yield _from_json(path, sheets, json.loads(expected.read_text())[0])
        else:
            print(f"  {path.name}: no XML that can be read, left out")


def _values(embedded: EmbeddedInvoice, mapping: Mapping) -> Iterator[tuple[str, str]]:
    for one in mapping.singles:
        text = embedded.single(one.embedded)
        if text is None:
            continue
        if one.type == "date":
            yield one.name, as_day(text)
        elif one.type == "amount":
            yield one.name, str(Decimal(text))
        else:
            yield one.name, text


def _lines(embedded: EmbeddedInvoice, mapping: Mapping) -> Iterator[LineTruth]:
    table = next(mapping.tables)
    paths = {column.name: column.embedded for column in table.columns}
    for row in embedded.rows(table.embedded):
        cells = {name: embedded.cell(row, path) for name, path in paths.items()}
        if amount := cells["amount"]:
            quantity, price = (_plain(cells[name]) for name in ("quantity", "unit_price"))
            yield LineTruth(cells["description"] or "", quantity, price, str(Decimal(amount)))


def _plain(text: str | None) -> str | None:
    return as_type(text, "amount", Notation(".")) if text else None


def _from_json(path: Path, sheets: list[Sheet], expected: dict[str, Any]) -> Labelled:
    values = {ours: str(expected[theirs]) for theirs, ours in _THEIRS.items() if theirs in expected}
    values |= _BY_HAND.get(path.name, {})
    rows: list[dict[str, Any]] = expected.get("lines", [])
    lines = [
        LineTruth(
            str(row["desc"]).split("\n")[0],
            str(row.get("qty", "")) or None,
            str(row.get("unit_price", "")) or None,
            str(row["price"]),
        )
        for row in rows
        if "desc" in row and "price" in row
    ]
    return Labelled(path, sheets, values, lines)


def same_name(first: str | None, second: str | None) -> bool:
    """Whether two names are the same but for a title, a number or a legal form: one contains most of the other."""
    one, two = sorted((letters(first or ""), letters(second or "")), key=len)
    return bool(one) and one in two and len(one) >= 0.5 * len(two)


def same_number(first: str | None, second: str | None) -> bool:
    try:
        return abs(Decimal(first or "")) == abs(Decimal(second or ""))
    except InvalidOperation:
        return first == second
