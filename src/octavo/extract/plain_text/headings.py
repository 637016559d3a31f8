"""Recognises obvious headings in plain text. A line that only might be a heading stays text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from octavo.extract.plain_text.groups import Group

_MOST_CHARACTERS = 80
_MOST_WORDS = 12
_MOST_LINES = 3
_LEAST_LETTERS = 4
_BODY_CHARACTERS = 60
_DEEPEST = 6
_CENTRED_INDENT = 8

_UNDERLINES = {"=": 1, "-": 2, "~": 3, "^": 3, "*": 3, "#": 1}
_UNDERLINE = re.compile(r"([=\-~^*#])\1{2,}")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,4})[.)]?\s+(?=[^\W\d_])")
_CHAPTER = re.compile(
    r"(?:chapter|part|section|appendix|book|kapitel|teil|abschnitt|anhang|chapitre|partie|annexe|cap[ií]tulo|parte|"
    r"capitolo|hoofdstuk|глава|часть)\s+(?:\d{1,3}|[ivxlcdm]{1,7}|[a-z])\b",
    re.IGNORECASE,
)
_ENDS_SENTENCE = re.compile(r"[.,;:!?…]$")
_LETTER = re.compile(r"[^\W\d_]")
_SMALL_WORD = 3


class Heading(NamedTuple):
    """A heading. `lines` is the number of lines that it occupies, including the underline."""

    level: int
    text: str
    lines: int = 1


def underlined(lines: Sequence[str]) -> Heading | None:
    """The heading made of a line of text and an underline of about the same length, if any."""
    title, signs = (line.strip() for line in lines) if len(lines) > 1 else ("", "")
    if not _UNDERLINE.fullmatch(signs) or not _LETTER.search(title) or len(title) > _MOST_CHARACTERS:
        return None
    is_as_long = abs(len(signs) - len(title)) <= max(2, len(title) // 4)
    return Heading(_UNDERLINES[signs[0]], title, 2) if is_as_long else None


def heading_of(group: Group, following: Group | None, *, is_first: bool) -> Heading | None:
    """The heading at the start of a group, if the text of the next group belongs under it."""
    text, first = group.text, group.lines[0]
    if is_first and _is_centred(first) and len(group.lines) <= _MOST_LINES and _is_name(first.strip()):
        return Heading(1, first.strip())
    if following is None or len(group.lines) > _MOST_LINES or not _is_short(text):
        return None
    if is_first and _is_name(text):
        return Heading(1, text, len(group.lines))
    if _is_in_capitals(text):
        return Heading(2, text, len(group.lines))
    return _of_line(first, following) if len(group.lines) == 1 else None


def _of_line(line: str, following: Group) -> Heading | None:
    title = line.strip()
    if _CHAPTER.match(title):
        return Heading(2, title)
    is_alone = " " not in title and not _is_centred(line)
    if _is_title(title) and not is_alone and len(following.text) >= _BODY_CHARACTERS:
        return Heading(3, title)
    return _numbered(title, following)


def _numbered(text: str, following: Group) -> Heading | None:
    """A numbered heading such as "1.2 Something", unless the next item of a numbered list follows."""
    number = _NUMBERED.match(text)
    title = text[number.end() :].removesuffix(".") if number else ""
    if not number or _ENDS_SENTENCE.search(title) or not title[0].isupper():
        return None
    is_level = "." in number[1] and not text.endswith(".")
    if not (is_level or _is_title(title)) or _is_next_number(number[1], following):
        return None
    return Heading(min(2 + number[1].count("."), _DEEPEST), text)


def _is_next_number(number: str, following: Group) -> bool:
    after = _NUMBERED.match(following.text)
    return after is not None and "." not in number and "." not in after[1] and int(after[1]) == int(number) + 1


def _is_centred(line: str) -> bool:
    return line.startswith((" " * _CENTRED_INDENT, "\t\t"))


def _is_name(text: str) -> bool:
    return _is_short(text) and (_is_in_capitals(text) or _is_title(text))


def _is_short(text: str) -> bool:
    return len(text) <= _MOST_CHARACTERS and len(text.split()) <= _MOST_WORDS


def _is_in_capitals(text: str) -> bool:
    return text.isupper() and len(_LETTER.findall(text)) >= _LEAST_LETTERS and not text.endswith((",", ";"))


def _is_title(text: str) -> bool:
    """Whether every longer word starts with a capital, and there are no digits, commas or final punctuation."""
    if _ENDS_SENTENCE.search(text) or "," in text or any(character.isdigit() for character in text):
        return False
    words = [word for word in text.split() if _LETTER.match(word)]
    if not words or not words[0][0].isupper():
        return False
    return all(word[0].isupper() or len(word) <= _SMALL_WORD for word in words)
