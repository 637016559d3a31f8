"""The types of blocks in a document, and functions that write them as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, groupby

from octavo.extract.markdown.escape import escape_inside, fence
from octavo.extract.markdown.inline import PAGE_BREAK

DEEPEST_HEADING = 6
# The text of a merged cell is repeated in all cells it covers, up to this length, so that each row is clear.
MOST_REPEATED = 80

_PIPE = re.compile(r"(?<!\\)\|")
_NUMBER = re.compile(r"(\d{1,9})([.)])")


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """A list item. `label` is its number, such as "2." or "(b)". It is empty for a bullet."""

    depth: int
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table with cells in inline Markdown. The first row is the header."""

    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Code:
    """One line of code; adjacent lines form one code block."""

    line: str


@dataclass(frozen=True, slots=True)
class Quote:
    text: str


DocumentBlock = Heading | Paragraph | Item | Table | Code | Quote


def write_blocks(blocks: Iterable[DocumentBlock]) -> str:
    return "\n\n".join(filter(None, _blocks(blocks)))


def write_comment(author: str, text: str, place: str = "") -> list[DocumentBlock]:
    """Write a comment as a quote, with its author and the cell it belongs to, if they are known."""
    by = f" by {author}" if author else ""
    about = f" on {place}" if place else ""
    return [Quote(f"Comment{escape_inside(by)}{about}: {escape_inside(text)}")] if text else []


def one_line(blocks: Iterable[DocumentBlock]) -> str:
    """Write blocks on a single line, because a Markdown table cell cannot contain blocks."""
    return " ".join(filter(None, (_as_line(block) for block in blocks))).replace("  \n", " ").replace("\n", " ")


def _as_line(block: DocumentBlock) -> str:
    if isinstance(block, Table):
        return " ".join(cell for row in block.rows for cell in row if cell)
    if isinstance(block, Item):
        return f"{block.label or '-'} {block.text}"
    return block.line if isinstance(block, Code) else block.text


def _blocks(blocks: Iterable[DocumentBlock]) -> Iterator[str]:
    for kind, group in groupby(blocks, key=type):
        if kind is Item:
            yield _List().write(block for block in group if isinstance(block, Item))
        elif kind is Code:
            yield from _code([block.line for block in group if isinstance(block, Code)])
        else:
            yield from map(_block, group)


def _block(block: DocumentBlock) -> str:
    match block:
        case Heading():
            return write_heading(block.level, block.text)
        case Table():
            return write_table(block.rows)
        case Quote():
            return quoted(block.text)
        case Paragraph():
            return block.text
        case _:
            return ""


def _code(lines: list[str]) -> Iterator[str]:
    marks = "".join(lines).count(PAGE_BREAK)
    yield PAGE_BREAK * marks + fence([line for text in lines for line in text.replace(PAGE_BREAK, "").split("\n")])


def quoted(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def write_heading(level: int, text: str) -> str:
    text = text.replace("  \n", " ").replace("\n", " ")
    if not text.replace(PAGE_BREAK, "").strip():
        return text
    marks = text[: len(text) - len(text.lstrip(PAGE_BREAK))]
    text = text[len(marks) :]
    if text.endswith("#"):  # otherwise this character would close the heading
        text = text[:-1] + "\\#"
    return f"{marks}{'#' * min(max(level, 1), DEEPEST_HEADING)} {text}"


def write_table(rows: Sequence[Sequence[str]]) -> str:
    """Write a table. Short rows are padded with empty cells, and empty rows at the top are left out."""
    rows = list(dropwhile(lambda row: not any(row), rows)) or rows
    width = max(map(len, rows), default=0)
    if not width:
        return ""
    written = [_row([*row, *[""] * (width - len(row))]) for row in rows]
    return "\n".join([written[0], "|" + " --- |" * width, *written[1:]])


def _row(cells: Sequence[str]) -> str:
    written = (_PIPE.sub(r"\\|", " ".join(cell.split())) for cell in cells)
    return f"| {' | '.join(written)} |"


@dataclass(slots=True)
class _Level:
    """One level of a nested list that is being written.

    `indent` is the column of the markers, and `inner` the column of the text. `kind` and `number` describe the last
    marker.
    """

    depth: int
    indent: int
    inner: int
    kind: str
    number: int


@dataclass(slots=True)
class _List:
    """Writes lists.

    If the numbering restarts, the markers change from "1." to "1)" or back, so that Markdown starts a new list.
    """

    levels: list[_Level] = field(default_factory=list[_Level])

    def write(self, items: Iterable[Item]) -> str:
        return "\n".join(line for item in items if item.text.replace(PAGE_BREAK, "") for line in self._item(item))

    def _item(self, item: Item) -> Iterator[str]:
        ended: _Level | None = None
        while self.levels and self.levels[-1].depth > item.depth:
            self.levels.pop()
        if self.levels and self.levels[-1].depth == item.depth:
            ended = self.levels.pop()
        indent = self.levels[-1].inner if self.levels else 0
        number = _NUMBER.fullmatch(item.label)
        mark, kind, text = "-", "-", item.text
        if number:
            kind = _number_suffix(number[2], int(number[1]), ended)
            mark = number[1] + kind
        elif item.label:
            text = f"{item.label} {item.text}"
        is_new = ended is None or ended.kind != kind
        if is_new and (ended is not None or (number and number[1] != "1" and self.levels)):
            yield ""  # without an empty line, the item would continue the text of the previous one
        marks = text[: len(text) - len(text.lstrip(PAGE_BREAK))]
        self.levels.append(_Level(item.depth, indent, indent + len(mark) + 1, kind, int(number[1]) if number else 0))
        first, *others = text[len(marks) :].split("\n")
        yield f"{marks}{' ' * indent}{mark} {first}"
        yield from (" " * self.levels[-1].inner + line for line in others)


def _number_suffix(sign: str, number: int, last: _Level | None) -> str:
    if last is None or last.kind == "-":
        return sign
    return last.kind if last.number + 1 == number else ")" if last.kind == "." else "."
