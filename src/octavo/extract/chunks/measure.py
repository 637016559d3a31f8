"""Counts the words of a text and finds where they begin, in one pass."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left

from octavo.core.languages import FEW_CHARACTERS, ONE_CHARACTER, count_words

__all__ = ["IDEOGRAPH", "Measure", "count_words"]

_SIGNS = "\u3001-\u303f\uff01-\uff65"  # of scripts without spaces; a chunk can end after each
# Chunk sizes are counted in these units. Punctuation counts too, and text without spaces counts by its length.
_UNIT = re.compile(
    f"[{ONE_CHARACTER}{_SIGNS}]|[{FEW_CHARACTERS}]{{1,5}}|[^\\s{ONE_CHARACTER}{FEW_CHARACTERS}{_SIGNS}]{{1,30}}"
)

IDEOGRAPH = re.compile(f"[{ONE_CHARACTER}{FEW_CHARACTERS}]")


class Measure:
    """A text with its units. A unit is a word, or a part of a run of characters that is too long to be a word."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = array("Q", (unit.start() for unit in _UNIT.finditer(text)))

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, unit: int) -> int:
        """The offset at which a unit starts. For an index after the last unit, the end of the text."""
        return self._starts[unit] if unit < len(self._starts) else len(self.text)

    def unit_at(self, position: int) -> int:
        """The first unit that begins at or after `position`."""
        return bisect_left(self._starts, position)

    def begins_word(self, unit: int) -> bool:
        start = self.start(unit)
        return start == 0 or self.text[start - 1].isspace()
