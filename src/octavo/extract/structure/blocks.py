"""Divides Markdown into its outermost blocks, with exact offsets, in one pass from top to bottom.

Why not markdown-it-py: it makes objects for every cell and item (a table of 2 MB took 15 s and 900 MB), and what is
needed is only where blocks begin and end. The tests hold this against markdown-it-py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from octavo.extract.contract import Block, BlockKind
from octavo.extract.structure import lines
from octavo.extract.structure.containers import list_end, quote_end
from octavo.extract.structure.headings import plain_title

# A file of nothing but short lines must not fill the memory of whoever reads the result.
MOST_BLOCKS = 250_000

_NOT_SPACE = re.compile(r"\S")
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n|\Z)")
_ENDS_PARAGRAPH = frozenset({"blank", "heading", "fence", "quote", "rule", "html"})
_ENDS_TABLE = _ENDS_PARAGRAPH | {"list", "indented"}


class Span(NamedTuple):
    kind: BlockKind
    start: int
    end: int
    level: int | None = None


def read_blocks(text: str, start: int = 0) -> Iterator[Block]:
    """The blocks from `start` on. Beyond `MOST_BLOCKS` the rest of the text is one paragraph."""
    for number, span in enumerate(_read_spans(text, start), 1):
        if number == MOST_BLOCKS:
            span = Span(BlockKind.PARAGRAPH, span.start, len(text.rstrip()))  # noqa: PLW2901 - the last one
        yield _block(text, span)
        if number == MOST_BLOCKS:
            return


def _block(text: str, span: Span) -> Block:
    content = text[span.start : span.end]
    if span.kind is BlockKind.HEADING:
        content = plain_title(content)
    return Block(span.kind, span.start, span.end, content, span.level)


def _read_spans(text: str, position: int) -> Iterator[Span]:
    while found := _NOT_SPACE.search(text, position):
        # The line's indent belongs to the block; empty lines before it do not.
        start = text.rfind("\n", position, found.start()) + 1 or position
        span = _READERS[lines.begins(text, start)](text, start)
        yield span
        position = span.end


def _read_heading(text: str, start: int) -> Span:
    end = lines.line_end(text, start)
    marks = text[start:end].lstrip(" ")
    return Span(BlockKind.HEADING, start, end, len(marks) - len(marks.lstrip("#")))


def _read_fence(text: str, start: int) -> Span:
    opening = lines.LINE.match(text, start)
    mark = opening["fence"] if opening else ""
    for closing in lines.CLOSING_FENCE.finditer(text, lines.line_end(text, start)):
        if closing[1].startswith(mark):
            return Span(BlockKind.CODE, start, closing.end())
    return Span(BlockKind.CODE, start, len(text.rstrip()))


def _read_indented(text: str, start: int) -> Span:
    position = end = lines.line_end(text, start)
    while position < len(text):
        kind = lines.begins(text, position + 1)
        if kind not in {"indented", "blank"}:
            break
        position = lines.line_end(text, position + 1)
        end = position if kind == "indented" else end
    return Span(BlockKind.CODE, start, end)


def _read_quote(text: str, start: int) -> Span:
    return Span(BlockKind.QUOTE, start, quote_end(text, start))


def _read_list(text: str, start: int) -> Span:
    return Span(BlockKind.LIST, start, list_end(text, start))


def _read_rule(text: str, start: int) -> Span:
    return Span(BlockKind.RULE, start, lines.line_end(text, start))


def _read_markup(text: str, start: int) -> Span:
    markup = lines.markup_at(text, start)
    closes = markup.end if markup else None
    closing = (closes or _BLANK_LINE).search(text, start)
    if not closing:
        return Span(BlockKind.HTML, start, len(text.rstrip()))
    return Span(BlockKind.HTML, start, lines.line_end(text, closing.end()) if closes else closing.start())


def _read_paragraph(text: str, start: int) -> Span:
    if _is_table(text, start):
        return _read_table(text, start)
    end = lines.line_end(text, start)
    while end < len(text):
        underline = lines.UNDERLINE.match(text, end + 1)
        if underline:
            return Span(BlockKind.HEADING, start, underline.end(), 1 if underline[1][0] == "=" else 2)
        if _ends_paragraph(text, end + 1):
            break
        end = lines.line_end(text, end + 1)
    is_image = text.startswith("![", start) and lines.IMAGE.fullmatch(text, start, end)
    return Span(BlockKind.IMAGE if is_image else BlockKind.PARAGRAPH, start, end)


def _ends_paragraph(text: str, start: int) -> bool:
    kind = lines.begins(text, start)
    if kind == "list":
        return lines.INTERRUPTING_ITEM.match(text, start) is not None
    return kind in _ENDS_PARAGRAPH or (kind == "text" and _is_table(text, start))


def _is_table(text: str, start: int) -> bool:
    """A row and below it a row of dashes with as many cells."""
    end = lines.line_end(text, start)
    delimiter = lines.DELIMITER_ROW.match(text, end + 1) if "|" in text[start:end] else None
    return delimiter is not None and _cells(text[start:end]) == _cells(delimiter.group()) > 0


def _cells(row: str) -> int:
    cells = lines.CELL_BORDER.split(row.strip())
    return len(cells) - (not cells[0]) - (not cells[-1])


def _read_table(text: str, start: int) -> Span:
    end = lines.line_end(text, lines.line_end(text, start) + 1)
    while end < len(text):
        if lines.begins(text, end + 1) in _ENDS_TABLE:
            break
        end = lines.line_end(text, end + 1)
    return Span(BlockKind.TABLE, start, end)


_READERS: dict[str, Callable[[str, int], Span]] = {
    "heading": _read_heading,
    "fence": _read_fence,
    "indented": _read_indented,
    "quote": _read_quote,
    "list": _read_list,
    "rule": _read_rule,
    "html": _read_markup,
    "tag": _read_markup,
    "text": _read_paragraph,
}
