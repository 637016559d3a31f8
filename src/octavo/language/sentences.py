"""Where sentences begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from octavo.language.load_once import load_once

if TYPE_CHECKING:
    from nupunkt import PunktSentenceTokenizer

# The library looks at runs of marks again and again, so that it never gets to see much at once.
_MOST_CHARACTERS = 2000
_MARK = re.compile(r"[.!?]")
# It knows no signs of scripts without spaces, and takes minutes for many empty lines.
_BREAK = re.compile(r"(?<=[\u3002\uff01\uff1f\uff61])[\u300d\u300f\u201d\u2019\uff09]*|\n\s*\n")


def split(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Places in `text` without white space around them."""
    for first, last in _pieces(text, start, len(text) if end is None else end):
        piece = text[first:last]
        if _MARK.search(piece):
            yield from ((first + left, first + right) for left, right in _splitter().iter_spans(piece))
        elif piece.strip():
            yield last - len(piece.lstrip()), first + len(piece.rstrip())


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in _BREAK.finditer(text, start, end):
        yield from _short_pieces(text, start, match.end())
        start = match.end()
    yield from _short_pieces(text, start, end)


def _short_pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > _MOST_CHARACTERS:
        space = max(text.rfind(" ", start, start + _MOST_CHARACTERS), text.rfind("\n", start, start + _MOST_CHARACTERS))
        cut = space if space > start else start + _MOST_CHARACTERS
        yield start, cut
        start = cut
    yield start, end


@load_once
def _splitter() -> PunktSentenceTokenizer:
    import nupunkt

    return nupunkt.load("default")
