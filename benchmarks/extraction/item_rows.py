"""Tables of items of electronic invoices: the line items of the embedded XML must be rows of tables in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, ParseError, fromstring

import pypdfium2

from benchmarks.extraction.counting import Counting
from benchmarks.extraction.rows import Row, missing, read_file, report

FOLDER = "e-invoices"
_LINE = "IncludedSupplyChainTradeLineItem"
_LEAST_WORD = 4
_WORD = re.compile(r"\w+")


class Item(NamedTuple):
    """A line item: the first long word of its name and its amount, without a sign."""

    word: str
    amount: float


async def measure_items(sandbox: Counting, folder: Path) -> list[Row]:
    """Count the invoices all of whose line items are one row each: name and amount in the same row of a table."""
    scores: list[bool] = []
    for path in sorted((folder / FOLDER).glob("*.pdf")):
        items = list(printed_items(path))
        extracted = await read_file(sandbox, path) if items else None
        if extracted:
            rows = [line for line in extracted.markdown.splitlines() if line.startswith("|")]
            scores.append(all(any(is_in_row(item, row) for row in rows) for item in items))
            report(f"{path.name:60} {scores[-1]}")
    if not scores:
        return [missing("item tables", 0.9, f"no invoices with line items in {FOLDER}")]
    note = f"{sum(scores)} of {len(scores)}"
    return [Row("item tables", sum(scores) / len(scores), 0.9, len(scores), note)]


def is_in_row(item: Item, row: str) -> bool:
    amounts = {_amount(cell) for cell in row.split("|")}
    return item.word in row and item.amount in amounts


def _amount(cell: str) -> float | None:
    """The amount in a cell, with a comma or a point before the cents."""
    digits = re.sub(r"[^\d.,]", "", cell)
    whole, cents = digits[:-3], digits[-2:]
    if digits[-3:-2] not in {",", "."} or not cents.isdigit():
        return None
    return float(f"{re.sub(r'[.,]', '', whole) or 0}.{cents}")


def printed_items(path: Path) -> Iterator[Item]:
    """The line items of the XML that are also printed: some invoices print other names or gross amounts."""
    try:
        with pypdfium2.PdfDocument(path) as document:
            text = "\n".join(page.get_textpage().get_text_range() for page in document)
    except pypdfium2.PdfiumError:
        return
    amounts = {_amount(one) for one in text.split()}
    yield from (item for item in items_of(path) if item.amount and item.word in text and item.amount in amounts)


def items_of(path: Path) -> Iterator[Item]:
    """The line items that the embedded XML of an invoice lists with a name and an amount."""
    for root in _embedded(path):
        for line in root.iter():
            if line.tag.endswith(_LINE):
                word = next((one for one in _WORD.findall(_text(line, "Name")) if len(one) >= _LEAST_WORD), None)
                amount = _text(line, "LineTotalAmount")
                if word and amount:
                    yield Item(word, abs(round(float(amount), 2)))
        return


def _text(line: Element, tag: str) -> str:
    found = (one.text or "" for one in line.iter() if one.tag.rpartition("}")[2] == tag)
    return next(found, "").strip()


def _embedded(path: Path) -> Iterator[Element]:
    try:
        with pypdfium2.PdfDocument(path) as opened:
            document: Any = opened
            files = [bytes(document.get_attachment(at).get_data()) for at in range(document.count_attachments())]
    except pypdfium2.PdfiumError:
        return
    for data in files:
        try:
            root = fromstring(data)
        except ParseError:
            continue
        if any(one.tag.endswith(_LINE) for one in root.iter()):
            yield root
