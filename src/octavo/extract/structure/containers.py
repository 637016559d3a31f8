"""Where quotes and lists end. What is nested in them matters only as far as it lets them go on.

A line without their mark still belongs to them if it continues a paragraph inside: a "lazy" line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from octavo.extract.structure import lines

_QUOTE_MARK = re.compile(r" {0,3}> ?")
_ITEM_MARK = re.compile(r"[ \t]*([-+*]|\d{1,9}[.)])")
_MOST_SPACES_AFTER_MARK = 4
_NEVER = 1 << 62


@dataclass(slots=True)
class Inside:
    """What the lines read so far leave open."""

    fence: str | None = None
    paragraph: bool = False

    def read(self, content: str) -> None:
        """One line, without the marks of the container."""
        if self.fence:
            closing = lines.CLOSING_FENCE.match(content)
            self.fence = None if closing and closing[1].startswith(self.fence) else self.fence
            return
        start, kind = 0, lines.begins(content)
        if kind in {"quote", "list"}:
            start = _skip_marks(content)
            kind = lines.begins(content, start)
        if kind == "fence":
            opening = lines.LINE.match(content, start)
            self.fence = opening["fence"] if opening else None
        self.paragraph = kind == "text" or (kind == "indented" and self.paragraph)

    def takes(self, line: str) -> bool:
        """Whether a line without the container's mark continues the paragraph that is open."""
        return self.paragraph and lines.begins(line) in {"text", "tag", "indented"}


def _skip_marks(content: str) -> int:
    """Where the text begins behind the marks of all quotes and lists that the line opens."""
    marks = lines.CONTAINERS.match(content)
    return marks.end() if marks else 0


def quote_end(text: str, position: int) -> int:
    inside = Inside()
    end = position
    while position <= len(text):
        line_end = lines.line_end(text, position)
        line = text[position:line_end]
        mark = _QUOTE_MARK.match(line)
        if mark:
            inside.read(line[mark.end() :])
        elif not inside.takes(line):
            break
        end = line_end
        position = line_end + 1
    return end


@dataclass(slots=True)
class Item:
    """The list item being read. Its further lines are indented by `width` at least."""

    mark: str
    width: int
    inside: Inside
    is_empty: bool

    def read_blank(self) -> None:
        self.inside.paragraph = False
        if self.is_empty:  # an item may begin with one empty line, not with two
            self.width = _NEVER

    def read(self, line: str) -> None:
        self.is_empty = False
        self.inside.read(line[self.width :] if line[: self.width].isspace() else line.lstrip())


def list_end(text: str, position: int) -> int:
    end = lines.line_end(text, position)
    item = _read_item(text[position:end])
    after_blank = False
    position = end + 1
    while position <= len(text):
        line_end = lines.line_end(text, position)
        line = text[position:line_end]
        position = line_end + 1
        if not line or line.isspace():
            item.read_blank()
            after_blank = True
            continue
        if lines.indent_of(line) >= item.width:
            item.read(line)
        elif _has_mark(line, item.mark):
            item = _read_item(line)
        elif after_blank or not item.inside.takes(line):
            break
        after_blank = False
        end = line_end
    return end


def _has_mark(line: str, mark: str) -> bool:
    """Items of one list have the same bullet, or the same sign behind their numbers."""
    found = _ITEM_MARK.match(line)
    return found is not None and found[1][-1] == mark and lines.begins(line) == "list"


def _read_item(line: str) -> Item:
    found = _ITEM_MARK.match(line)
    mark = found[1] if found else "-"
    rest = line[found.end() :] if found else line
    spaces = lines.indent_of(rest)
    is_empty = not rest.strip()
    width = lines.indent_of(line) + len(mark) + (1 if is_empty or spaces > _MOST_SPACES_AFTER_MARK else spaces)
    inside = Inside()
    inside.read(rest[1:] if spaces > _MOST_SPACES_AFTER_MARK else rest.lstrip())
    return Item(mark[-1], width, inside, is_empty)
