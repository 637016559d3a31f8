"""Splits plain text into groups of lines, and joins lines that a program has wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

MOST_PAGES = 50_000

# Narrower lines were broken by the author, as in verse and addresses.
_LEAST_WIDTH = 50
_WIDTH_SHARE = 0.95
_MOST_UNWRAPPED = 0.2
_RAGGED = 0.85
_LEAST_VERSES = 4
_VERSE_SHARE = 0.8

_ENDS_SENTENCE = re.compile(r"[.!?:;]$")
_FIRST_WORD = re.compile(r"\s*(\S{1,100})")
_HYPHENATED = re.compile(r"[^\W\d_]-$")
_WITHOUT_SPACES = "\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef"
_ENDS_WITHOUT_SPACE = re.compile(f"[{_WITHOUT_SPACES}]$")
_BEGINS_WITHOUT_SPACE = re.compile(f"[{_WITHOUT_SPACES}]")


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring lines without an empty line between them. Indents are kept, and trailing spaces are removed."""

    lines: list[str]
    page: int

    @property
    def text(self) -> str:
        return " ".join(line.strip() for line in self.lines)


def split_pages(text: str) -> list[str]:
    """Split a text at form feeds. If there are too many pages, the last page contains the rest."""
    pages = text.split("\f", MOST_PAGES - 1)
    return [*pages[:-1], pages[-1].replace("\f", "\n\n")]


def split_groups(pages: Iterable[str]) -> Iterator[Group]:
    """Split pages into groups of lines. Pages are numbered from 1."""
    for number, page in enumerate(pages, 1):
        lines: list[str] = []
        for line in page.split("\n"):
            line = line.rstrip()  # noqa: PLW2901 - trailing white space is invisible
            if line:
                lines.append(line)
            elif lines:
                yield Group(lines, number)
                lines = []
        if lines:
            yield Group(lines, number)


def wrap_width(groups: Sequence[Group]) -> int:
    """Return the width at which the text is wrapped.

    It is the 95th percentile of line lengths, ignoring the last line of each group.
    """
    lengths = sorted(len(line) for group in groups for line in group.lines[:-1])
    return lengths[int(len(lengths) * _WIDTH_SHARE)] if lengths else 0


def unwrap(lines: Sequence[str], width: int) -> list[str]:
    """Join lines that a program wrapped at `width`, so that the author's original lines are restored."""
    width = min(width, max(map(len, lines)))
    if len(lines) == 1 or width < _LEAST_WIDTH or _is_verse(lines):
        return [line.strip() for line in lines]
    is_full = [_is_full(line, following, _RAGGED * width) for line, following in pairwise(lines)]
    if is_full.count(False) <= _MOST_UNWRAPPED * len(is_full) and len(is_full) > 1:
        return [join(lines)]
    joined: list[list[str]] = [[lines[0]]]
    for line, follows_full in zip(lines[1:], is_full, strict=True):
        if follows_full and _continues(joined[-1][-1], line):
            joined[-1].append(line)
        else:
            joined.append([line])
    return [join(part) for part in joined]


def _is_verse(lines: Sequence[str]) -> bool:
    """Whether nearly every line starts with a capital, as in verse, lists of names and logs."""
    capitals = sum(line.lstrip()[0].isupper() for line in lines)
    return capitals >= max(_LEAST_VERSES, _VERSE_SHARE * len(lines)) and not all(map(str.isupper, lines))


def _is_full(line: str, following: str, width: float) -> bool:
    """Whether the line is full: the first word of the next line would not have fitted on it."""
    word = _FIRST_WORD.match(following)
    return len(line) + 1 + (len(word[1]) if word else 0) >= width


def _continues(line: str, following: str) -> bool:
    """Whether the sentence continues on the next line: it has not ended, and the next line starts in lower case."""
    return following.lstrip()[0].islower() and not _ENDS_SENTENCE.search(line)


def join(lines: Sequence[str]) -> str:
    """Join lines with spaces. There is no space between ideographs, nor after a hyphen, which may be part of a word."""
    parts: list[str] = []
    for line in map(str.strip, lines):
        if parts and _needs_space(parts[-1], line):
            parts.append(" ")
        parts.append(line)
    return "".join(parts)


def _needs_space(before: str, after: str) -> bool:
    if _HYPHENATED.search(before):
        return False
    return not (_ENDS_WITHOUT_SPACE.search(before) and _BEGINS_WITHOUT_SPACE.match(after))
