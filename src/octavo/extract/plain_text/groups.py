"""Plain text as groups of lines with empty lines between them, and whether their breaks were made by a program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

MOST_PAGES = 50_000

# Lines that are narrower were broken by their author, as in verse and addresses.
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
    """Lines without an empty one between them; indents are kept, spaces at their ends are not."""

    lines: list[str]
    page: int

    @property
    def text(self) -> str:
        return " ".join(line.strip() for line in self.lines)


def split_pages(text: str) -> list[str]:
    """Form feeds end pages. Where there are too many to be pages, the last page holds the rest."""
    pages = text.split("\f", MOST_PAGES - 1)
    return [*pages[:-1], pages[-1].replace("\f", "\n\n")]


def split_groups(pages: Iterable[str]) -> Iterator[Group]:
    """The first page is 1."""
    for number, page in enumerate(pages, 1):
        lines: list[str] = []
        for line in page.split("\n"):
            line = line.rstrip()  # noqa: PLW2901 - nothing at the end of a line can be seen
            if line:
                lines.append(line)
            elif lines:
                yield Group(lines, number)
                lines = []
        if lines:
            yield Group(lines, number)


def wrap_width(groups: Sequence[Group]) -> int:
    """How long lines are that have a next one; few may be longer."""
    lengths = sorted(len(line) for group in groups for line in group.lines[:-1])
    return lengths[int(len(lengths) * _WIDTH_SHARE)] if lengths else 0


def unwrap(lines: Sequence[str], width: int) -> list[str]:
    """The lines as the author meant them: where a program broke them because they were full, they are joined."""
    width = min(width, max(map(len, lines)))
    if len(lines) == 1 or width < _LEAST_WIDTH or _is_verse(lines):
        return [line.strip() for line in lines]
    is_full = [_is_full(line, following, _RAGGED * width) for line, following in pairwise(lines)]
    if is_full.count(False) <= _MOST_UNWRAPPED * len(is_full) and len(is_full) > 1:
        return [join(lines)]
    meant: list[list[str]] = [[lines[0]]]
    for line, follows_full in zip(lines[1:], is_full, strict=True):
        if follows_full and _goes_on(meant[-1][-1], line):
            meant[-1].append(line)
        else:
            meant.append([line])
    return [join(part) for part in meant]


def _is_verse(lines: Sequence[str]) -> bool:
    """Whether nearly every line begins with a capital, as it also does in lists of names and in logs."""
    capitals = sum(line.lstrip()[0].isupper() for line in lines)
    return capitals >= max(_LEAST_VERSES, _VERSE_SHARE * len(lines)) and not all(map(str.isupper, lines))


def _is_full(line: str, following: str, width: float) -> bool:
    """Whether the next word would not have fitted."""
    word = _FIRST_WORD.match(following)
    return len(line) + 1 + (len(word[1]) if word else 0) >= width


def _goes_on(line: str, following: str) -> bool:
    """Whether a sentence runs over the break, which even a line that happens to be long does not show."""
    return following.lstrip()[0].islower() and not _ENDS_SENTENCE.search(line)


def join(lines: Sequence[str]) -> str:
    """The lines as one. No space comes behind a hyphen, which may belong to the word, or between ideographs."""
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
