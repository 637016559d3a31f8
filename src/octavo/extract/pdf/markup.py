"""Converts the text, lists and tables of a page to Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from octavo.extract.markdown.escape import escape_inside, escape_start, fence

# liteparse writes emphasis with asterisks, and escapes asterisks, underscores and backslashes in the text.
_ESCAPED_OR_STARS = re.compile(r"\\([\\*_])|(\*{1,3})")
# Placeholders for asterisks while the rest is escaped. They are noncharacters, so no text contains them.
_STARS = {"*": "\ufdd1", "**": "\ufdd2", "***": "\ufdd3"}
_STAND_IN = re.compile("[\ufdd1-\ufdd3]")
_BACK = {stand_in: stars for stars, stand_in in _STARS.items()}
_MAY_MEAN = re.compile(r"[\\`*_\]<&~]")
_NUMBER = re.compile(r"\(?(\d{1,9})[.)]")
_BULLETS = re.compile(r"[^\w\s]{0,2}")
_MOST_DEPTH = 5


class Item(NamedTuple):
    """A list item. `mark` is the bullet or number on the page, and `text` is the text after it."""

    mark: str
    text: str
    depth: int

    @property
    def is_numbered(self) -> bool:
        return _NUMBER.fullmatch(self.mark) is not None

    @property
    def words(self) -> str:
        """The text of the item, including its bullet or number if Markdown has no equivalent."""
        text = inline(self.text)
        is_mark = self.is_numbered or _BULLETS.fullmatch(self.mark)
        return escape_start(text) if is_mark else escape_start(f"{plain(self.mark)} {text}")


def inline(text: str) -> str:
    """Convert one line of liteparse's Markdown to the Markdown that Octavo uses."""
    if "\\" not in text and "*" not in text:
        return plain(text)
    text = _ESCAPED_OR_STARS.sub(lambda found: found[1] or _STARS[found[2]], text)
    return _STAND_IN.sub(lambda found: _BACK[found.group()], escape_inside(text))


def plain(text: str) -> str:
    """Convert one line of text to Markdown. A quick check skips the many lines that need no escaping."""
    return escape_inside(text) if _MAY_MEAN.search(text) else text


def list_ends(items: Sequence[Item]) -> Iterator[int]:
    """Yield the index after the last item of each list.

    A new list starts where the top-level markers change from bullets to numbers, or from numbers to bullets.
    """
    numbered = items[0].is_numbered
    for index, item in enumerate(items):
        if item.depth == 0 and item.is_numbered != numbered and index:
            yield index
        numbered = item.is_numbered if item.depth == 0 else numbered
    yield len(items)


def item_lines(items: Sequence[Item]) -> str:
    lines: list[str] = []
    depth = -1
    for item in items:
        # An item can be at most one level deeper than the previous item. The first item has the top level.
        depth = min(item.depth, depth + 1, _MOST_DEPTH)
        number = _NUMBER.fullmatch(item.mark)
        mark = f"{number[1]}." if number else "-"
        lines.append(f"{'    ' * depth}{mark} {item.words}".rstrip())
    return "\n".join(lines)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Write rows as a Markdown table. The first row becomes the header, because a Markdown table must have one."""
    width = max(map(len, rows), default=0)
    if not any(any(row) for row in rows):
        return ""
    lines = [_row([*row, *[""] * (width - len(row))]) for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(plain(cell).replace("|", "\\|") for cell in cells) + " |"


def code(lines: Sequence[str], language: str) -> str:
    kept = list(lines)
    while kept and not kept[-1].strip():
        kept.pop()
    while kept and not kept[0].strip():
        kept.pop(0)
    return fence(kept, language if language.isalnum() else "") if kept else ""
