"""The words of a Markdown text with their offsets, and which of them start a block."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# Scripts without spaces are compared character by character.
_NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(f"[{_NO_SPACES}]|[^\\W_{_NO_SPACES}]+")
_LINE = re.compile(r"[^\n]*\n?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class WordIndex:
    """The words of a text. `starts` contains the offset of each word.

    `blocks` maps the index of each word that starts a block to the offset of its line.
    """

    words: Sequence[str]
    starts: Sequence[int]
    blocks: Mapping[int, int]


def index_words(markdown: str) -> WordIndex:
    found = [(_folded(match.group()), match.start()) for match in _WORD.finditer(markdown)]
    starts = [start for _, start in found]
    blocks: dict[int, int] = {}
    for line, end in _block_lines(markdown):
        number = bisect_left(starts, line)
        if number < len(starts) and starts[number] < end:
            blocks[number] = line
    return WordIndex([word for word, _ in found], starts, blocks)


def _folded(word: str) -> str:
    return word.lower() if word.isascii() else unicodedata.normalize("NFKC", word).casefold()


def _block_lines(markdown: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each heading and of each line after an empty line, except in fenced code."""
    fence, after_blank = "", True
    for match in _LINE.finditer(markdown):
        line = match.group()
        marks = _FENCE.match(line)
        if not fence and (after_blank or line.startswith("#")):
            yield match.span()
        if marks and not fence:
            fence = marks[1]
        elif marks and marks[1].startswith(fence):
            fence = ""
        after_blank = not line.strip()
