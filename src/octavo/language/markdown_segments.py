"""Finds the natural-language text in Markdown, and its sentences.

Markup is replaced by spaces, so that all offsets stay valid. Because chunks can start anywhere, the parser does not
depend on earlier text. It reads the lines in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from octavo.language.vocabulary import load_once

if TYPE_CHECKING:
    from nupunkt import PunktSentenceTokenizer


class SegmentKind(Enum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    ITEM = "item"
    CELLS = "cells"


class Segment(NamedTuple):
    """A heading, paragraph, list item or table row in Markdown: `text[start:end]`, without the markup around it."""

    part: SegmentKind
    start: int
    end: int


# Inline markup that is not text: link targets, URLs, email addresses, tags, image marks, formulas.
_HIDDEN = re.compile(
    r"\]\([^()\s]*(?:\s\"[^\"\n]*\")?\)"  # ](address "title")
    r"|\]\[[^\[\]\n]*\]"  # ][reference]
    r"|(?:https?://|www\.)[^\s<>()]+"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+"
    r"|<[^<>\n]{1,300}>"
    r"|!\[|\[\^[^\]\s]{1,40}\]"
    r"|\$(?![\s\d])[^$\n]{1,300}\$|\$(?=[^$\n]*[\\^_={}])[^$\n]{1,300}\$"  # not two prices on one line
    r"|&[a-z]{2,8};"
)
_MARKS = str.maketrans(dict.fromkeys("*`~[]\\", " "))
# Inside a word, an underscore is part of a name, such as my_file_name.
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+")
_ITEM = re.compile(r"\s*(?:[-+*•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTE = re.compile(r"\s{0,3}(?:>\s?)+")
_RULE = re.compile(r"[-=*_|:+\s]*")


def blank_markup(markdown: str) -> str:
    """Replace Markdown markup with spaces. The length of the text does not change, so offsets stay valid."""
    shown = _HIDDEN.sub(lambda match: " " * len(match.group()), markdown).translate(_MARKS)
    return _UNDERSCORE.sub(" ", shown)


def split_segments(markdown: str) -> Iterator[Segment]:
    """Find headings, paragraphs, list items and table rows, in order. Code blocks are left out."""
    fenced, begin, end, part = False, -1, -1, SegmentKind.PARAGRAPH
    for start, line in _lines(markdown):
        if _FENCE.match(line):
            fenced = not fenced
        opening = None if fenced or _FENCE.match(line) else _read_line(line)
        if opening is None or opening[0] is not None:
            if begin >= 0:
                yield Segment(part, begin, end)
            begin = -1
        if opening is None:
            continue
        kind, skipped = opening
        if begin < 0:
            begin, part = start + skipped, kind or SegmentKind.PARAGRAPH
        end = start + len(line.rstrip())
        if kind in {SegmentKind.HEADING, SegmentKind.CELLS}:
            yield Segment(part, begin, end)
            begin = -1
    if begin >= 0:
        yield Segment(part, begin, end)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


def _read_line(line: str) -> tuple[SegmentKind | None, int] | None:
    """Return the kind of segment that starts on this line, and the length of the markup before its text.

    The kind is None if the line continues the previous segment. If the line has no text, None is returned instead of a
    tuple.
    """
    if _RULE.fullmatch(line):
        return None
    if heading := _HEADING.match(line):
        return (SegmentKind.HEADING, heading.end()) if line[heading.end() :].strip() else None
    if line.lstrip().startswith("|"):
        return SegmentKind.CELLS, len(line) - len(line.lstrip())
    if quote := _QUOTE.match(line):
        return (None, quote.end()) if line[quote.end() :].strip() else None
    if item := _ITEM.match(line):
        return (SegmentKind.ITEM, item.end()) if line[item.end() :].strip() else None
    return None, len(line) - len(line.lstrip())


# Sentences ------------------------------------------------------------------------------------------------------------


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
