"""Cuts a snippet from a chunk: the part that matches the query, as plain text with positions of the matched words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

# The database puts these around matched words; texts never contain them.
BEGIN, END = "\x02", "\x03"
LENGTH = 280
# Most characters before the first matched word.
LEAD = 60
_FOUND = re.compile(f"{BEGIN}([^{END}]*){END}")
# Markdown syntax that is noise in one line of text; links and pictures become their text.
# Both parts are bounded: otherwise a chunk of nothing but opening brackets takes seconds.
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\s]{0,1000}\)")
_NOISE = re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+]|\|?[ \t:|-]{3,}\|?$)[ \t]*|[*`|]+|(?<!\w)_+|_+(?!\w)", re.MULTILINE)
# A heading gets a colon before its text, unless it ends with punctuation.
_HEADING = re.compile(rf"^[ \t]*#{{1,6}}[ \t]+(.*?[^\s.:!?#{END}]{END}?)[ \t]*#*[ \t]*$(?=\s*\S)", re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPACE = re.compile(r"\s+")
_OPENS = re.compile(r"(?<=[.!?…])\s+(?=\S)|(?<=[\u3002\uff01\uff1f])")


@dataclass(frozen=True, slots=True)
class Snippet:
    """The part of a chunk that matches a query.

    `marks` are the start and end of matched words. `at` is the position of the first one in the chunk. `sentence` is
    the sentence with the most distinct matched words, or the chosen one.
    """

    text: str
    marks: list[tuple[int, int]]
    at: int = 0
    sentence: str = ""


def cut_snippet(marked: str, length: int = LENGTH, chosen: int | None = None) -> Snippet:
    """Cut the part with the most distinct matched words, from the start of its sentence if that is near.

    `chosen` is the index of a sentence of `plain_sentences` to cut instead, for a text without matched words.
    """
    text, marks = read_marks(_tidy(marked))
    left, right = _spans(text)[chosen] if chosen is not None else _best_sentence(text, marks)
    sentence = text[left:right]
    if len(text) <= length:
        at = _first_found(marked, 0) if marks else _find_sentence(marked, sentence)
        return Snippet(text, marks, _place(marked, at), sentence)
    first = _densest(text, marks, length)
    start = left if _fits(marks, left, right, length) else _start(text, marks[first][0] if marks else 0)
    end = _end(text, start, length)
    before, after = "… " if start else "", " …" if end < len(text) else ""
    shift = len(before) - start
    inside = [(one + shift, other + shift) for one, other in marks if start <= one and other <= end]
    at = _first_found(marked, _first_inside(marks, start)) if marks else _find_sentence(marked, sentence)
    return Snippet(f"{before}{text[start:end].rstrip()}{after}", inside, _place(marked, at), sentence)


def plain_sentences(marked: str) -> list[str]:
    """The sentences of a chunk as plain text."""
    text, _ = read_marks(_tidy(marked))
    return [text[left:right] for left, right in _spans(text)]


def _spans(text: str) -> list[tuple[int, int]]:
    opens = [0, *(match.end() for match in _OPENS.finditer(text)), len(text)]
    return [(left, left + len(text[left:right].rstrip())) for left, right in pairwise(opens) if left < right] or [
        (0, 0)
    ]


def _best_sentence(text: str, marks: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The sentence with the most distinct matched words; the first one if tied."""

    def count(span: tuple[int, int]) -> int:
        return len({text[one:other].lower() for one, other in marks if span[0] <= one and other <= span[1]})

    return max(_spans(text), key=count)


def _fits(marks: Sequence[tuple[int, int]], left: int, right: int, length: int) -> bool:
    """Whether the matched words of a sentence are visible if the snippet starts with it."""
    inside = [end for start, end in marks if left <= start and end <= right]
    return not inside or inside[-1] - left <= length - LEAD


def _first_inside(marks: Sequence[tuple[int, int]], start: int) -> int:
    """The index of the first matched word at or after this position."""
    return next((place for place, mark in enumerate(marks) if mark[0] >= start), 0)


def _find_sentence(marked: str, sentence: str) -> int:
    """The approximate position in the marked text at which a sentence of the plain text begins."""
    words = sentence.split()
    for count in (4, 2, 1):
        if words and (place := marked.find(" ".join(words[:count]))) >= 0:
            return place
    return 0


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
