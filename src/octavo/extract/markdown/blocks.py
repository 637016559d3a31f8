"""Splits Markdown into its top-level blocks with exact offsets, in one pass. Also reads headings and front matter.

Only the boundaries of blocks are needed. markdown-it-py is not used, because it creates an object for every cell and
list item: for a table of 2 MB, it took 15 s and 900 MB. The tests compare the results with those of markdown-it-py.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from octavo.extract.extracted import Block, BlockKind, Metadata, OutlineEntry
from octavo.extract.markdown import escape

# Limits the memory used for a file that consists of very short lines.
MOST_BLOCKS = 250_000

_NOT_SPACE = re.compile(r"\S")
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n|\Z)")
_ENDS_PARAGRAPH = frozenset({"blank", "heading", "fence", "quote", "rule", "html"})
_ENDS_TABLE = _ENDS_PARAGRAPH | {"list", "indented"}
_QUOTE_MARK = re.compile(r" {0,3}> ?")
_ITEM_MARK = re.compile(r"[ \t]*([-+*]|\d{1,9}[.)])")
_MOST_SPACES_AFTER_MARK = 4
_NEVER = 1 << 62


class Span(NamedTuple):
    kind: BlockKind
    start: int
    end: int
    level: int | None = None


def read_blocks(text: str, start: int = 0) -> Iterator[Block]:
    """Read the blocks, starting at offset `start`.

    Block number `MOST_BLOCKS` becomes a paragraph with the rest of the text.
    """
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
        # The indent of the first line belongs to the block; empty lines before it do not.
        start = text.rfind("\n", position, found.start()) + 1 or position
        span = _READERS[escape.begins(text, start)](text, start)
        yield span
        position = span.end


def _read_heading(text: str, start: int) -> Span:
    end = escape.line_end(text, start)
    marks = text[start:end].lstrip(" ")
    return Span(BlockKind.HEADING, start, end, len(marks) - len(marks.lstrip("#")))


def _read_fence(text: str, start: int) -> Span:
    opening = escape.LINE.match(text, start)
    mark = opening["fence"] if opening else ""
    for closing in escape.CLOSING_FENCE.finditer(text, escape.line_end(text, start)):
        if closing[1].startswith(mark):
            return Span(BlockKind.CODE, start, closing.end())
    return Span(BlockKind.CODE, start, len(text.rstrip()))


def _read_indented(text: str, start: int) -> Span:
    position = end = escape.line_end(text, start)
    while position < len(text):
        kind = escape.begins(text, position + 1)
        if kind not in {"indented", "blank"}:
            break
        position = escape.line_end(text, position + 1)
        end = position if kind == "indented" else end
    return Span(BlockKind.CODE, start, end)


def _read_quote(text: str, start: int) -> Span:
    return Span(BlockKind.QUOTE, start, _quote_end(text, start))


def _read_list(text: str, start: int) -> Span:
    return Span(BlockKind.LIST, start, _list_end(text, start))


def _read_rule(text: str, start: int) -> Span:
    return Span(BlockKind.RULE, start, escape.line_end(text, start))


def _read_markup(text: str, start: int) -> Span:
    markup = escape.markup_at(text, start)
    closes = markup.end if markup else None
    closing = (closes or _BLANK_LINE).search(text, start)
    if not closing:
        return Span(BlockKind.HTML, start, len(text.rstrip()))
    return Span(BlockKind.HTML, start, escape.line_end(text, closing.end()) if closes else closing.start())


def _read_paragraph(text: str, start: int) -> Span:
    if _is_table(text, start):
        return _read_table(text, start)
    end = escape.line_end(text, start)
    while end < len(text):
        underline = escape.UNDERLINE.match(text, end + 1)
        if underline:
            return Span(BlockKind.HEADING, start, underline.end(), 1 if underline[1][0] == "=" else 2)
        if _ends_paragraph(text, end + 1):
            break
        end = escape.line_end(text, end + 1)
    is_image = text.startswith("![", start) and escape.IMAGE.fullmatch(text, start, end)
    return Span(BlockKind.IMAGE if is_image else BlockKind.PARAGRAPH, start, end)


def _ends_paragraph(text: str, start: int) -> bool:
    kind = escape.begins(text, start)
    if kind == "list":
        return escape.INTERRUPTING_ITEM.match(text, start) is not None
    return kind in _ENDS_PARAGRAPH or (kind == "text" and _is_table(text, start))


def _is_table(text: str, start: int) -> bool:
    """Whether a table starts at `start`: a row followed by a delimiter row with the same number of cells."""
    end = escape.line_end(text, start)
    delimiter = escape.DELIMITER_ROW.match(text, end + 1) if "|" in text[start:end] else None
    return delimiter is not None and _cells(text[start:end]) == _cells(delimiter.group()) > 0


def _cells(row: str) -> int:
    cells = escape.CELL_BORDER.split(row.strip())
    return len(cells) - (not cells[0]) - (not cells[-1])


def _read_table(text: str, start: int) -> Span:
    end = escape.line_end(text, escape.line_end(text, start) + 1)
    while end < len(text):
        if escape.begins(text, end + 1) in _ENDS_TABLE:
            break
        end = escape.line_end(text, end + 1)
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


@dataclass(slots=True)
class OpenContent:
    """The code block or paragraph that is still open inside a quote or list item, while its lines are read."""

    fence: str | None = None
    paragraph: bool = False

    def read(self, content: str) -> None:
        """Process one line inside a quote or list item. The markers of the quote or item are already removed."""
        if self.fence:
            closing = escape.CLOSING_FENCE.match(content)
            self.fence = None if closing and closing[1].startswith(self.fence) else self.fence
            return
        start, kind = 0, escape.begins(content)
        if kind in {"quote", "list"}:
            start = _skip_marks(content)
            kind = escape.begins(content, start)
        if kind == "fence":
            opening = escape.LINE.match(content, start)
            self.fence = opening["fence"] if opening else None
        self.paragraph = kind == "text" or (kind == "indented" and self.paragraph)

    def continues(self, line: str) -> bool:
        """Whether a line without the marker of the quote or list item still belongs to the open paragraph.

        Markdown calls this a lazy continuation line.
        """
        return self.paragraph and escape.begins(line) in {"text", "tag", "indented"}


def _skip_marks(content: str) -> int:
    """Return the offset after all quote and list markers at the start of a line."""
    marks = escape.CONTAINERS.match(content)
    return marks.end() if marks else 0


def _quote_end(text: str, position: int) -> int:
    content = OpenContent()
    end = position
    while position <= len(text):
        line_end = escape.line_end(text, position)
        line = text[position:line_end]
        mark = _QUOTE_MARK.match(line)
        if mark:
            content.read(line[mark.end() :])
        elif not content.continues(line):
            break
        end = line_end
        position = line_end + 1
    return end


@dataclass(slots=True)
class ListItem:
    """The current list item. Its continuation lines are indented by at least `width`."""

    mark: str
    width: int
    content: OpenContent
    is_empty: bool

    def read_blank(self) -> None:
        self.content.paragraph = False
        if self.is_empty:  # an item may start with one empty line, but not with two
            self.width = _NEVER

    def read(self, line: str) -> None:
        self.is_empty = False
        self.content.read(line[self.width :] if line[: self.width].isspace() else line.lstrip())


def _list_end(text: str, position: int) -> int:
    end = escape.line_end(text, position)
    item = _read_item(text[position:end])
    after_blank = False
    position = end + 1
    while position <= len(text):
        line_end = escape.line_end(text, position)
        line = text[position:line_end]
        position = line_end + 1
        if not line or line.isspace():
            item.read_blank()
            after_blank = True
            continue
        if escape.indent_of(line) >= item.width:
            item.read(line)
        elif _has_mark(line, item.mark):
            item = _read_item(line)
        elif after_blank or not item.content.continues(line):
            break
        after_blank = False
        end = line_end
    return end


def _has_mark(line: str, mark: str) -> bool:
    """Whether the line starts another item of the same list.

    `mark` is the list's bullet, or the character after its numbers, such as "." or ")".
    """
    found = _ITEM_MARK.match(line)
    return found is not None and found[1][-1] == mark and escape.begins(line) == "list"


def _read_item(line: str) -> ListItem:
    found = _ITEM_MARK.match(line)
    mark = found[1] if found else "-"
    rest = line[found.end() :] if found else line
    spaces = escape.indent_of(rest)
    is_empty = not rest.strip()
    width = escape.indent_of(line) + len(mark) + (1 if is_empty or spaces > _MOST_SPACES_AFTER_MARK else spaces)
    content = OpenContent()
    content.read(rest[1:] if spaces > _MOST_SPACES_AFTER_MARK else rest.lstrip())
    return ListItem(mark[-1], width, content, is_empty)


# Headings, the outline, and front matter: the fields between `---` lines at the top of a file

# A heading is repeated in the outline and in every chunk below it, so very long headings are cut.
MOST_CHARACTERS = 200
_MOST_MARKUP = 1000

_MARKS = re.compile(r"\A {0,3}#{1,6}(?:[ \t]+|$)|(?:^|[ \t])#+[ \t]*\Z|\n {0,3}(?:=+|-+)[ \t]*\Z")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_ATTRIBUTES = re.compile(r"[ \t]*\{[#.][^{}]*\}\Z")
_TAG = re.compile(r"</?[a-z][^<>]*>|<!--.*?-->", re.IGNORECASE)
# Code is kept. Backslash escapes, and emphasis markers at word boundaries, are removed.
_INLINE = re.compile(
    r"(?P<ticks>`+)(?P<code>[^`]+)(?P=ticks)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|\*+(?=\S)|(?<=\S)\*+|~~|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)"
)
_SPACE = re.compile(r"\s+")


def plain_title(heading: str) -> str:
    """Return the text of a Markdown heading without its markers, links, emphasis and escapes."""
    title = _MARKS.sub("", heading[:_MOST_MARKUP].strip())
    title = _ATTRIBUTES.sub("", _TAG.sub("", _LINK.sub(r"\1", title)))
    return shorten(html.unescape(_INLINE.sub(_inline_text, title)))


def _inline_text(found: re.Match[str]) -> str:
    return found["code"] or found["escaped"] or ""


def shorten(title: str) -> str:
    """Put a title on one line and limit its length."""
    title = _SPACE.sub(" ", title).strip()
    return title if len(title) <= MOST_CHARACTERS else title[: MOST_CHARACTERS - 1].rstrip() + "…"


def outline_of(blocks: Iterable[Block]) -> tuple[OutlineEntry, ...]:
    """Make the outline from all headings that have text."""
    return tuple(
        OutlineEntry(block.level or 1, block.text, block.page, block.start)
        for block in blocks
        if block.kind is BlockKind.HEADING and block.text
    )


_MOST_CHARACTERS = 16 * 1024
_MOST_EXTRA = 50

_FENCES = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# Only single-line values are read: lists and nested values would need a YAML parser and are never shown.
_FIELD = re.compile(r"^([A-Za-z][\w .-]{0,60}?)[ \t]*:[ \t]+(\S[^\n]*)$", re.MULTILINE)
_COMMENT = re.compile(r"[ \t]+#.*\Z")
_DATE = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?(?=\Z|[T ])")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")


class FrontMatter(NamedTuple):
    """The metadata in the front matter. `end` is the offset at which the text of the document starts."""

    metadata: Metadata
    end: int


def read_front_matter(text: str) -> FrontMatter | None:
    """Read the front matter. Returns None if there is none, or if the text starts with a horizontal rule instead."""
    fences = _FENCES.match(text[:_MOST_CHARACTERS])
    fields = {name.lower(): _value(value) for name, value in _FIELD.findall(fences[1])} if fences else {}
    return FrontMatter(_metadata(fields), fences.end()) if fences and fields else None


def _value(written: str) -> str:
    quote = written[0]
    if quote in "\"'" and written.rstrip().endswith(quote):
        return shorten(written.strip()[1:-1])
    return shorten(_COMMENT.sub("", written))


def _metadata(fields: dict[str, str]) -> Metadata:
    date = _DATE.match(fields.get("date", ""))
    language = fields.pop("language", None) or fields.pop("lang", None)
    if date:
        del fields["date"]
    return Metadata(
        title=fields.pop("title", None),
        author=fields.pop("author", None),
        date=date.group() if date else None,
        language=language if language and _LANGUAGE.fullmatch(language) else None,
        extra=dict(list(fields.items())[:_MOST_EXTRA]),
    )
