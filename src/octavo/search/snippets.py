"""Cuts a snippet from a chunk: the part that matches the query, as plain text with positions of the matched words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# The database puts these around matched words; texts never contain them.
BEGIN, END = "\x02", "\x03"
LENGTH = 280
# Most characters before the first matched word.
LEAD = 60
_FOUND = re.compile(f"{BEGIN}([^{END}]*){END}")
# Markdown syntax that is noise in one line of text; links and pictures become their text.
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)")
_NOISE = re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+]|\|?[ \t:|-]{3,}\|?$)[ \t]*|[*`|]+|(?<!\w)_+|_+(?!\w)", re.MULTILINE)
# A heading gets a colon before its text, unless it ends with punctuation.
_HEADING = re.compile(rf"^[ \t]*#{{1,6}}[ \t]+(.*?[^\s.:!?#{END}]{END}?)[ \t]*#*[ \t]*$(?=\s*\S)", re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPACE = re.compile(r"\s+")
_OPENS = re.compile(r"(?<=[.!?…])\s+(?=\S)|(?<=[\u3002\uff01\uff1f])")


@dataclass(frozen=True, slots=True)
class Snippet:
    """`marks` are the start and end of each matched word.

    `at` is the position of the first matched word in the chunk.
    """

    text: str
    marks: list[tuple[int, int]]
    at: int = 0


def cut_snippet(marked: str, length: int = LENGTH) -> Snippet:
    """Cut the part with the most distinct matched words. It starts with a sentence if one begins nearby."""
    text, marks = read_marks(_tidy(marked))
    if len(text) <= length:
        return Snippet(text, marks, _place(marked, 0 if not marks else _first_found(marked, 0)))
    first = _densest(text, marks, length)
    start = _start(text, marks[first][0] if marks else 0)
    end = _end(text, start, length)
    before, after = "… " if start else "", " …" if end < len(text) else ""
    shift = len(before) - start
    inside = [(one + shift, other + shift) for one, other in marks if start <= one and other <= end]
    at = _first_found(marked, first) if marks else 0
    return Snippet(f"{before}{text[start:end].rstrip()}{after}", inside, _place(marked, at))


def read_marks(marked: str) -> tuple[str, list[tuple[int, int]]]:
    """Remove the marks from a text. Returns the text and the positions of the marked words."""
    parts: list[str] = []
    marks: list[tuple[int, int]] = []
    length = end = 0
    for found in _FOUND.finditer(marked):
        before = _bare(marked[end : found.start()])
        parts += before, found[1]
        length += len(before)
        if found[1]:
            marks.append((length, length + len(found[1])))
        length += len(found[1])
        end = found.end()
    return "".join(parts) + _bare(marked[end:]), marks


def _tidy(marked: str) -> str:
    plain = _NOISE.sub(" ", _HEADING.sub(r"\1:", _LINK.sub(r"\1", marked)))
    return _SPACE.sub(" ", _ESCAPED.sub(r"\1", plain)).strip()


def _bare(text: str) -> str:
    return text.replace(BEGIN, "").replace(END, "")


def _densest(text: str, marks: Sequence[tuple[int, int]], length: int) -> int:
    """The index of the matched word that begins the best snippet.

    The `length` characters from there contain the most distinct matched words.
    """
    words = [text[start:end].lower() for start, end in marks]
    best, most, last = 0, -1.0, 0
    inside: dict[str, int] = {}
    for first, (start, _) in enumerate(marks):
        while last < len(marks) and marks[last][1] <= start + length - LEAD:
            inside[words[last]] = inside.get(words[last], 0) + 1
            last += 1
        value = len(inside) + (last - first) / (len(marks) + 1)
        if value > most:
            best, most = first, value
        if first < last:
            inside[words[first]] -= 1
            if not inside[words[first]]:
                del inside[words[first]]
        else:
            last = first + 1
    return best


def _start(text: str, found: int) -> int:
    """Where the snippet starts: at the start of the sentence if that is near enough, else at the start of a word."""
    if found <= LEAD:
        return 0
    opens = [match.end() for match in _OPENS.finditer(text, found - LEAD, found)]
    if opens:
        return opens[-1]
    space = text.find(" ", found - LEAD // 2, found)
    return space + 1 if space >= 0 else found


def _end(text: str, start: int, length: int) -> int:
    if start + length >= len(text):
        return len(text)
    space = text.rfind(" ", start + length // 2, start + length)
    return space if space > start else start + length


def _first_found(marked: str, number: int) -> int:
    """The position of a matched word, given by its number, in the text with marks."""
    for place, match in enumerate(found for found in _FOUND.finditer(marked) if found[1]):
        if place == number:
            return match.start()
    return 0


def _place(marked: str, at: int) -> int:
    """Convert a position in the text with marks to the same position in the text without marks."""
    return at - sum(marked.count(mark, 0, at) for mark in (BEGIN, END))
