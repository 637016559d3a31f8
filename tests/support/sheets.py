"""Pages of words from plain text, each letter as wide as the next: what stands below what can be seen in the test."""

from __future__ import annotations

import re

from octavo.facts.words import Box, Sheet, Word

LETTER, LINE, SIZE = 6.0, 14.0, 10.0


def sheet(text: str, number: int = 1) -> Sheet:
    words = [
        Word(match[0], Box(LETTER * match.start(), LINE * row, LETTER * match.end(), LINE * row + SIZE))
        for row, line in enumerate(text.split("\n"), 1)
        for match in re.finditer(r"\S+", line)
    ]
    return Sheet(number, 600.0, 800.0, tuple(words))


INVOICE = """
Northwind Traders Ltd
12 Quay Street, Cork

INVOICE

Invoice number: NW-2024-0815
Invoice date: 2024-08-15
Due date: 2024-09-14

Description          Quantity    Unit price      Amount
Oak shelf                   2        120.00      240.00
 with two brackets
Brass handle               10          4.50       45.00

                                  Subtotal:      285.00 EUR
                                   VAT 23%:       65.55 EUR
                                     Total:      350.55 EUR
"""
