"""Defines findings: values that rules found in a text, with the words that support them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from octavo.language.insights import ChunkText
from octavo.language.markdown_segments import SegmentKind, blank_markup, split_segments, split_sentences

MAX_QUOTE = 300
# The end of a full line of prose. After a short line, as in an address, a new statement starts.
_WRAPPED = re.compile(r"(?<=[^\n]{60})\n(?=[^\n\s|#>-])")
_UNFINISHED = re.compile(r"\b(?:Nr|Abs|Art|Ziff|Prof|Dr|Str|Mio|Mrd|ca|bzw|z\. ?B)\.$")
_DAY = re.compile(r"(?<![\d.,/-])\d{1,2}\.$")
_GERMAN_MONTH = re.compile(r"(?:Jan|Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)\w*\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, heading, table row or list item. In `text`, markup is replaced with spaces."""

    chunk: int
    start: int
    text: str
    kind: SegmentKind

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Finding:
    """A value that a rule found.

    `group` is the heading under which it is listed, such as "People". `start` and `end` are the offsets of the value in
    the statement.
    """

    group: str
    value: str
    statement: Statement
    start: int
    end: int

    @property
    def quote(self) -> str:
        """The words around the value, without markup and line breaks. Only whole words are included."""
        text = self.statement.text
        if len(text) > MAX_QUOTE:
            text = text[_space_before(text, self.start) : _space_after(text, self.end, self.start)]
        return " ".join(text.replace("|", " ").split())


def read_statements(chunks: Sequence[ChunkText]) -> Iterator[Statement]:
    """Yield the statements in all chunks, in text order."""
    for place, chunk in enumerate(chunks):
        text = _WRAPPED.sub(" ", blank_markup(chunk.content))
        for part in split_segments(chunk.content):
            whole = part.part in {SegmentKind.CELLS, SegmentKind.HEADING}
            spans = [(part.start, part.end)] if whole else _split(text, part.start, part.end)
            yield from (Statement(place, start, text[start:end], part.part) for start, end in spans)


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Split a text into sentences. The splitter breaks “14. April” and “Nr. 3” in German, so these are joined again."""
    held: tuple[int, int] | None = None
    for first, last in split_sentences(text, start, end):
        if held and _continues(text[held[0] : held[1]], text[first:last]):
            held = held[0], last
            continue
        if held:
            yield held
        held = first, last
    if held:
        yield held


def _continues(before: str, after: str) -> bool:
    return bool(_UNFINISHED.search(before) or (_DAY.search(before) and _GERMAN_MONTH.match(after)))


def merge_repeated(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Put findings with the same group and value into one list.

    The lists are sorted by the first occurrence of their value.
    """
    merged: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        merged.setdefault((one.group, " ".join(one.value.casefold().split())), []).append(one)
    return list(merged.values())


def _space_before(text: str, place: int) -> int:
    least = max(0, place - MAX_QUOTE // 3)
    return text.find(" ", least, place) + 1 if least and " " in text[least:place] else least


def _space_after(text: str, place: int, start: int) -> int:
    most = max(place, min(len(text), start + MAX_QUOTE * 2 // 3))
    space = text.rfind(" ", place, most)
    return space if most < len(text) and space > place else most
