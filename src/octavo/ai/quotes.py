"""Quotes that a model gives are kept only where they stand in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_WORD = re.compile(r"\S+")
LEAST_CHARACTERS = 3


@dataclass(frozen=True, slots=True)
class Found:
    """`text` is `source[start:end]`, letter by letter, and not what the model wrote."""

    text: str
    start: int
    end: int


def find_quote(quote: str, source: str) -> Found | None:
    """The first place where it stands; only how lines are broken may differ."""
    words = _WORD.findall(quote)
    if sum(map(len, words)) < LEAST_CHARACTERS:
        return None
    place = re.search(r"\s+".join(map(re.escape, words)), source)
    return Found(place.group(), place.start(), place.end()) if place else None


def keep_verbatim(quotes: Iterable[str], source: str) -> list[Found]:
    """Those that stand in the source; the others are dropped."""
    return [found for quote in quotes if (found := find_quote(quote, source))]
