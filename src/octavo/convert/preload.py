"""Fills caches for conversions, by parsing the shipped mappings and running them once.

The parent process of a sandbox imports this module, and its child processes inherit the compiled patterns and filled
caches, which saves time and memory.
"""

from __future__ import annotations

from octavo.convert.mappings.shipped_mappings import mapping_from_text, shipped_names, shipped_text
from octavo.convert.rules.engine import convert
from octavo.convert.values import conversion_to_json
from octavo.facts.words import Box, Sheet, Word

_LINES = (
    "Invoice no: A-17",
    "Date: 15 August 2024",
    "Description Quantity Price Amount",
    "Tea 2 5.00 10.00",
    "Net: 10.00",
    "VAT: 2.50",
    "Total: 12.50 EUR",
)
_LETTER, _SPACE, _GAP = 6, 4, 20


def _sheet() -> Sheet:
    words: list[Word] = []
    for row, line in enumerate(_LINES, 5):
        left = 72
        for text in line.split():
            right = left + _LETTER * len(text)
            words.append(Word(text, Box(left, row * _GAP, right, row * _GAP + 10)))
            left = right + _SPACE
    return Sheet(1, 595, 842, tuple(words))


def _load() -> None:
    for name in shipped_names():
        conversion_to_json(convert([_sheet()], mapping_from_text(shipped_text(name), f"{name}.yaml")))


_load()
