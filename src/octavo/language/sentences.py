"""Splits text into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from octavo.language.vocabulary import load_once

if TYPE_CHECKING:
    from nupunkt import PunktSentenceTokenizer

# The library scans sequences of punctuation repeatedly, so it is only given short texts.
_MAX_CHARACTERS = 2000
_MARK = re.compile(r"[.!?]")
# The library does not know the punctuation of scripts without spaces, and takes minutes for many empty lines.
_BREAK = re.compile(r"(?<=[\u3002\uff01\uff1f\uff61])[\u300d\u300f\u201d\u2019\uff09]*|\n\s*\n")


def split_sentences(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the sentences in `text`, without surrounding white space."""
    for first, last in _parts(text, start, len(text) if end is None else end):
        part = text[first:last]
        if _MARK.search(part):
            yield from ((first + left, first + right) for left, right in _splitter().iter_spans(part))
        elif part.strip():
            yield last - len(part.lstrip()), first + len(part.rstrip())


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in _BREAK.finditer(text, start, end):
        yield from _short_parts(text, start, match.end())
        start = match.end()
    yield from _short_parts(text, start, end)


def _short_parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > _MAX_CHARACTERS:
        space = max(text.rfind(" ", start, start + _MAX_CHARACTERS), text.rfind("\n", start, start + _MAX_CHARACTERS))
        cut = space if space > start else start + _MAX_CHARACTERS
        yield start, cut
        start = cut
    yield start, end


@load_once
def _splitter() -> PunktSentenceTokenizer:
    import nupunkt

    return nupunkt.load("default")
