"""Decides what each group of lines is, and writes it as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from octavo.extract.markdown.escape import escape, fence
from octavo.extract.plain_text import lists
from octavo.extract.plain_text.groups import Group, split_groups, split_pages, unwrap, wrap_width
from octavo.extract.plain_text.headings import Heading, heading_of, underlined

RULE = "* * *"

_RULE = re.compile(r"\s*(?:[-=_*~#+·•.]\s*+){3,}+")
# Columns separated by spaces or borders, and program statements.
_ALIGNED = re.compile(r"\S(?: {3,}|\t+)\S|^\s*[|+].*[|+]$|[\u2500-\u257f]|[{};]$")
_LEAST_ALIGNED = 0.5


class _Block(NamedTuple):
    """The Markdown of one block. `is_code`: whether the text is code that has no fence yet."""

    text: str
    page: int
    is_code: bool = False


class ConvertedText(NamedTuple):
    """Converted text. `pages` contains the start and end of each page's text; empty if the text has no form feeds."""

    markdown: str
    pages: list[tuple[int, int]]


def convert(text: str) -> ConvertedText:
    pages = split_pages(text)
    contents = [""] * len(pages)
    blocks = _fence_code(_Converter(list(split_groups(pages))).blocks())
    for page, on_page in groupby(blocks, key=lambda block: block.page):
        contents[page - 1] = "\n\n".join(block.text for block in on_page)
    return ConvertedText("\n\n".join(filter(None, contents)), list(_ranges(contents)) if len(contents) > 1 else [])


def _ranges(contents: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The start and end of each page in the joined text. Pages with text are separated by an empty line."""
    end = 0
    for content in contents:
        start = end + 2 if end and content else end
        end = start + len(content)
        yield start, end


def _fence_code(blocks: Iterator[_Block]) -> Iterator[_Block]:
    """Put code into fences. Adjacent blocks of code become one block, with empty lines between them."""
    for (page, is_code), same in groupby(blocks, key=lambda block: (block.page, block.is_code)):
        if not is_code:
            yield from same
            continue
        content = textwrap.dedent("\n\n".join(block.text for block in same))
        yield _Block(fence(content.split("\n")), page)


class _Converter:
    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        self._width = wrap_width(groups)
        self._last_item: lists.Item | None = None  # of the list that has just ended

    def blocks(self) -> Iterator[_Block]:
        for place, group in enumerate(self._groups):
            last_item, self._last_item = self._last_item, None
            start = 0
            while title := underlined(group.lines[start : start + 2]):
                yield _Block(_heading(title), group.page)
                start += title.lines
            title = heading_of(group, self._group(place + 1), is_first=not place) if not start else None
            if title:
                yield _Block(_heading(title), group.page)
                start += title.lines
            lines = group.lines[start:] if start else group.lines
            yield from (_Block(text, group.page, is_code) for text, is_code in self._render(lines, place, last_item))

    def _render(self, lines: Sequence[str], place: int, last_item: lists.Item | None) -> Iterator[tuple[str, bool]]:
        if not lines:
            return
        if len(lines) == 1 and _RULE.fullmatch(lines[0]):
            yield RULE, False
        elif _is_aligned(lines):
            yield "\n".join(lines), True
        else:
            is_whole = lines is self._groups[place].lines
            near = (self._group(place - 1), self._group(place + 1)) if is_whole else ()
            yield from ((text, False) for text in self._prose(lines, [group for group in near if group], last_item))

    def _group(self, place: int) -> Group | None:
        return self._groups[place] if 0 <= place < len(self._groups) else None

    def _prose(self, lines: Sequence[str], neighbours: Sequence[Group], last_item: lists.Item | None) -> Iterator[str]:
        """Write a paragraph, a list, or an introductory paragraph with a list."""
        start = lists.first_item(lines)
        items = lists.read_items(lines[start:]) if start is not None else []
        is_list = lists.is_list(items, neighbours if start == 0 else ())
        if is_list and start == 0 and last_item and lists.would_merge(last_item, items[0]):
            is_list = False
        if not is_list:
            yield self._paragraph(lines)
            return
        if start:
            yield self._paragraph(lines[:start])
        yield lists.render_list(items, self._width)
        self._last_item = next(item for item in reversed(items) if item.indent <= items[0].indent)

    def _paragraph(self, lines: Sequence[str]) -> str:
        return "  \n".join(map(escape, unwrap(lines, self._width)))


def _heading(heading: Heading) -> str:
    text = escape(heading.text)
    if text.endswith("#"):  # otherwise it would close the heading
        text = text[:-1] + "\\#"
    return f"{'#' * heading.level} {text}"


def _is_aligned(lines: Sequence[str]) -> bool:
    aligned = sum(_ALIGNED.search(line) is not None for line in lines)
    return len(lines) > 1 and aligned >= _LEAST_ALIGNED * len(lines)
