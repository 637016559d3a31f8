"""The blocks of a document before they are Markdown, and how they are written as such."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from octavo.extract.markdown.escape import fence
from octavo.extract.markdown.inline import MARK

DEEPEST_HEADING = 6
# A cell that is merged with others stands in each of their places, so that every row can be read alone.
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
    """An item of a list. `label` is what stands before it, "2." or "(b)"; nothing for a bullet."""

    depth: int
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, one line of Markdown each; the first row is its head."""

    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Code:
    """One line of code; neighbours become one block."""

    line: str


@dataclass(frozen=True, slots=True)
class Quote:
    text: str


Piece = Heading | Paragraph | Item | Table | Code | Quote


def write(pieces: Iterable[Piece]) -> str:
    return "\n\n".join(filter(None, _blocks(pieces)))


def one_line(pieces: Iterable[Piece]) -> str:
    """For the cell of a table, where there is no room for blocks."""
    return " ".join(filter(None, (_as_line(piece) for piece in pieces))).replace("  \n", " ").replace("\n", " ")


def _as_line(piece: Piece) -> str:
    if isinstance(piece, Table):
        return " ".join(cell for row in piece.rows for cell in row if cell)
    if isinstance(piece, Item):
        return f"{piece.label or '-'} {piece.text}"
    return piece.line if isinstance(piece, Code) else piece.text


def _blocks(pieces: Iterable[Piece]) -> Iterator[str]:
    for kind, group in groupby(pieces, key=type):
        if kind is Item:
            yield _List().write(piece for piece in group if isinstance(piece, Item))
        elif kind is Code:
            yield from _code([piece.line for piece in group if isinstance(piece, Code)])
        else:
            yield from map(_block, group)


def _block(piece: Piece) -> str:
    match piece:
        case Heading():
            return write_heading(piece.level, piece.text)
        case Table():
            return write_table(piece.rows)
        case Quote():
            return quoted(piece.text)
        case Paragraph():
            return piece.text
        case _:
            return ""


def _code(lines: list[str]) -> Iterator[str]:
    marks = "".join(lines).count(MARK)
    yield MARK * marks + fence([line for text in lines for line in text.replace(MARK, "").split("\n")])


def quoted(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def write_heading(level: int, text: str) -> str:
    text = text.replace("  \n", " ").replace("\n", " ")
    if not text.replace(MARK, "").strip():
        return text
    marks = text[: len(text) - len(text.lstrip(MARK))]
    text = text[len(marks) :]
    if text.endswith("#"):  # or it would close the heading
        text = text[:-1] + "\\#"
    return f"{marks}{'#' * min(max(level, 1), DEEPEST_HEADING)} {text}"


def write_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows are filled up with empty cells."""
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
    """A list that is open: how deep its items were, where their text begins, and what their marks are like."""

    depth: int
    indent: int
    inner: int
    kind: str
    number: int


@dataclass(slots=True)
class _List:
    """Lists as Markdown counts them: where numbers begin anew the sign behind them changes, which makes a new list."""

    levels: list[_Level] = field(default_factory=list[_Level])

    def write(self, items: Iterable[Item]) -> str:
        return "\n".join(line for item in items if item.text.replace(MARK, "") for line in self._item(item))

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
            kind = _sign(number[2], int(number[1]), ended)
            mark = number[1] + kind
        elif item.label:
            text = f"{item.label} {item.text}"
        is_new = ended is None or ended.kind != kind
        if is_new and (ended is not None or (number and number[1] != "1" and self.levels)):
            yield ""  # or it would be taken for text of the item before
        marks = text[: len(text) - len(text.lstrip(MARK))]
        self.levels.append(_Level(item.depth, indent, indent + len(mark) + 1, kind, int(number[1]) if number else 0))
        first, *others = text[len(marks) :].split("\n")
        yield f"{marks}{' ' * indent}{mark} {first}"
        yield from (" " * self.levels[-1].inner + line for line in others)


def _sign(sign: str, number: int, last: _Level | None) -> str:
    if last is None or last.kind == "-":
        return sign
    return last.kind if last.number + 1 == number else ")" if last.kind == "." else "."
