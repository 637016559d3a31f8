"""Reads the structures of Word files from before 2007: pieces of text, and the properties of paragraphs, characters and
styles.

Properties are stored by offset in the file, and text by position in the document. The piece table maps positions to
offsets. All counts are limited by the size of the file, because every character needs at least one byte.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from octavo.core.errors import BadInput, Encrypted, NotSupported
from octavo.extract.zips import DAMAGED

_MAGIC, _FIRST_FIB = 0xA5EC, 0xC1
_FLAGS_AT, _ENCRYPTED, _SECOND_TABLE = 0x0A, 0x0100, 0x0200
_COUNTS_AT, _OFFSETS_AT = 0x4C, 0x9A
_PAGE, _PAGE_NUMBER = 512, 0x3FFFFF
_NARROW, _FC = 0x4000_0000, 0x3FFF_FFFF
_PIECE_BYTES = 8
_PARAGRAPH_ENTRY = 13
_MOST_ANCESTORS = 30
_VARIABLE, _LONG_OPERANDS, _TABS = 6, frozenset({0xD606, 0xD608}), 0xC615
_OPERAND_BYTES = {0: 1, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2, 7: 3}
# Indexes into the list of offsets and sizes.
STYLES, FOOTNOTE_MARKS, FOOTNOTES, COMMENT_MARKS, COMMENTS, CHARACTERS, PARAGRAPHS = 1, 2, 3, 4, 5, 12, 13
PIECES, AUTHORS, SHAPES, ENDNOTE_MARKS, ENDNOTES, TEXT_BOXES, LISTS, LIST_USES = 33, 36, 40, 46, 47, 56, 73, 74

Modifier = tuple[int, bytes]


class Counts(NamedTuple):
    """The lengths of the sections of the text, such as main text, footnotes and headers, in the order in which they are
    stored.
    """

    text: int
    footnotes: int
    headers: int
    macros: int
    comments: int
    endnotes: int
    boxes: int
    header_boxes: int

    def start_of(self, name: str) -> int:
        return sum(self[: self._fields.index(name)])


class Run(NamedTuple):
    """A range of text with the same properties. `style` is set only for paragraphs."""

    start: int
    end: int
    style: int
    modifiers: bytes


@dataclass(frozen=True, slots=True)
class Style:
    """A style. `builtin` is the number of a built-in style, which is the same in all languages."""

    builtin: int = 0xFFF
    name: str = ""
    based_on: int = 0xFFF
    paragraph: bytes = b""
    characters: bytes = b""


class Piece(NamedTuple):
    start: int
    end: int
    offset: int
    width: int


@dataclass(slots=True)
class WordFile:
    """A Word file. `main` is its main stream, and `table` the stream with the tables that describe its structure."""

    main: bytes
    table: bytes
    counts: Counts
    text: str = ""
    paragraphs: list[Run] = field(default_factory=list[Run])
    characters: list[Run] = field(default_factory=list[Run])
    styles: list[Style] = field(default_factory=list[Style])

    def part(self, index: int) -> bytes:
        """Return the bytes of one structure in the table stream.

        `index` is its position in the list of structures in the file header.
        """
        start, size = self._place(index)
        return self.table[start : start + size]

    def after(self, index: int) -> bytes:
        """Return the bytes that follow a structure in the table stream. For example, list levels follow the lists."""
        return self.table[sum(self._place(index)) :]

    def _place(self, index: int) -> tuple[int, int]:
        at = _OFFSETS_AT + 8 * index
        known = struct.unpack_from("<H", self.main, _OFFSETS_AT - 2)[0] if len(self.main) >= _OFFSETS_AT else 0
        if index >= known or at + 8 > len(self.main):
            return 0, 0
        return struct.unpack_from("<II", self.main, at)

    def paragraph_at(self, position: int) -> Run | None:
        return _at(self.paragraphs, position)

    def runs_between(self, start: int, end: int) -> Iterator[tuple[int, int, bytes]]:
        """Split the range from `start` to `end` into ranges with the same properties.

        Yields the start, end and properties of each.
        """
        place = max(bisect_right(self.characters, start, key=lambda run: run.start) - 1, 0)
        while start < end:
            while place < len(self.characters) and self.characters[place].end <= start:
                place += 1
            run = self.characters[place] if place < len(self.characters) else None
            inside = run is not None and run.start <= start
            stop = end if run is None else min(end, run.end if inside else run.start)
            yield start, stop, run.modifiers if run is not None and inside else b""
            start = stop

    def ancestry(self, style: int) -> Iterator[Style]:
        for _ in range(_MOST_ANCESTORS):
            if style >= len(self.styles):
                return
            yield self.styles[style]
            style = self.styles[style].based_on


def _at(runs: list[Run], position: int) -> Run | None:
    place = bisect_right(runs, position, key=lambda run: run.start) - 1
    return runs[place] if place >= 0 and position < runs[place].end else None


def open_word(main: bytes, tables: tuple[bytes, bytes]) -> WordFile:
    """Read the text, styles and properties of a Word file.

    Encrypted files and files older than Word 97 are rejected.
    """
    if len(main) < _OFFSETS_AT:
        raise BadInput(f"{DAMAGED}its header is incomplete.")
    magic, version = struct.unpack_from("<HH", main)
    (flags,) = struct.unpack_from("<H", main, _FLAGS_AT)
    if magic != _MAGIC or version < _FIRST_FIB:
        raise NotSupported("Word files from before 1997 cannot be read. Save the file as DOCX or PDF.")
    if flags & _ENCRYPTED:
        raise Encrypted("Octavo cannot open encrypted Word files from before 2007. Save the file without a password.")
    counts = Counts(*(max(one, 0) for one in struct.unpack_from("<8i", main, _COUNTS_AT)))
    file = WordFile(main, tables[bool(flags & _SECOND_TABLE)], counts)
    pieces = list(_pieces(file))
    file.text = "".join(_decode(main, piece) for piece in pieces)
    file.paragraphs = _placed(pieces, list(_pages(file, PARAGRAPHS)))
    file.characters = _placed(pieces, list(_pages(file, CHARACTERS)))
    file.styles = list(_styles(file.part(STYLES)))
    return file


def positions(data: bytes, entry_bytes: int) -> tuple[list[int], list[bytes]]:
    """Parse a binary table that consists of n + 1 positions, followed by n entries of `entry_bytes` bytes each."""
    count = max(len(data) - 4, 0) // (4 + entry_bytes)
    if not count:
        return [], []
    entries = 4 * (count + 1)
    places = list(struct.unpack_from(f"<{count + 1}I", data))
    return places, [data[entries + entry_bytes * n : entries + entry_bytes * (n + 1)] for n in range(count)]


# Text ---------------------------------------------------------------------------------------------------------------


def _pieces(file: WordFile) -> Iterator[Piece]:
    places, entries = positions(_piece_table(file.part(PIECES)), _PIECE_BYTES)
    expected = 0
    for (start, end), entry in zip(pairwise(places), entries, strict=True):
        (written,) = struct.unpack_from("<I", entry, 2)
        width = 1 if written & _NARROW else 2
        offset = (written & _FC) // (1 if width > 1 else 2)
        # Every character is stored once, so a text longer than the file is an error or an attack.
        if start != expected or end < start or end > len(file.main) or offset + (end - start) * width > len(file.main):
            raise BadInput(f"{DAMAGED}its text is incomplete.")
        expected = end
        yield Piece(start, end, offset, width)


def _piece_table(data: bytes) -> bytes:
    """Return the piece table, which says where in the file each piece of the text is stored.

    Skips the property lists before it.
    """
    at = 0
    while at + 3 <= len(data) and data[at] == 1:
        at += 3 + struct.unpack_from("<H", data, at + 1)[0]
    if at + 5 > len(data) or data[at] != 2:  # noqa: PLR2004 - the mark of the table
        raise BadInput(f"{DAMAGED}its table of text pieces is missing.")
    (size,) = struct.unpack_from("<I", data, at + 1)
    return data[at + 5 : at + 5 + size]


def _decode(main: bytes, piece: Piece) -> str:
    data = main[piece.offset : piece.offset + (piece.end - piece.start) * piece.width]
    if piece.width == 1:
        return data.decode("cp1252", "replace")
    # Half of a surrogate pair stays one character, so that positions remain valid.
    units = struct.unpack(f"<{len(data) // 2}H", data)
    return "".join(map(chr, units))


# Properties ---------------------------------------------------------------------------------------------------------


def _pages(file: WordFile, index: int) -> Iterator[Run]:
    """Yield the formatting properties of each byte range of the file, in ascending order.

    The file stores them in pages of 512 bytes.
    """
    _, entries = positions(file.part(index), 4)
    last = 0
    for entry in entries:
        at = (struct.unpack("<I", entry)[0] & _PAGE_NUMBER) * _PAGE
        page = file.main[at : at + _PAGE]
        runs = _paragraph_page(page) if index == PARAGRAPHS else _character_page(page)
        for run in runs if len(page) == _PAGE else ():
            if run.start >= last and run.end > run.start:
                last = run.end
                yield run


def _bounds(page: bytes, entry_bytes: int) -> tuple[int, tuple[int, ...]]:
    count = min(page[-1], (_PAGE - 5) // (4 + entry_bytes))
    return count, struct.unpack_from(f"<{count + 1}I", page)


def _paragraph_page(page: bytes) -> Iterator[Run]:
    count, places = _bounds(page, _PARAGRAPH_ENTRY)
    for number in range(count):
        at = 2 * page[4 * (count + 1) + _PARAGRAPH_ENTRY * number]
        size = 2 * page[at] - 1 if page[at] else 2 * page[at + 1] if at + 1 < _PAGE else 0
        start = at + (1 if page[at] else 2)
        found = page[start : start + max(size, 0)] if at else b""
        style = struct.unpack_from("<H", found)[0] if len(found) > 1 else 0
        yield Run(places[number], places[number + 1], style, found[2:])


def _character_page(page: bytes) -> Iterator[Run]:
    count, places = _bounds(page, 1)
    for number in range(count):
        at = 2 * page[4 * (count + 1) + number]
        yield Run(places[number], places[number + 1], 0, page[at + 1 : at + 1 + page[at]] if at else b"")


def _placed(pieces: list[Piece], runs: list[Run]) -> list[Run]:
    """Convert ranges of bytes in the file to ranges of characters in the text.

    `pieces` says where each piece of text is stored.
    """
    placed: list[Run] = []
    starts = [run.start for run in runs]
    for piece in pieces:
        end = piece.offset + (piece.end - piece.start) * piece.width
        for run in runs[max(bisect_right(starts, piece.offset) - 1, 0) : bisect_left(starts, end)]:
            first = max(run.start - piece.offset, 0) // piece.width
            last = (min(run.end, end) - piece.offset) // piece.width
            if last > first:
                placed.append(run._replace(start=piece.start + first, end=piece.start + last))
    return placed


def modifiers(data: bytes) -> Iterator[Modifier]:
    """Parse a list of property changes. Yields the code of each property and the bytes of its new value."""
    at = 0
    while at + 2 < len(data):
        (what,) = struct.unpack_from("<H", data, at)
        at += 2
        size = _OPERAND_BYTES.get(what >> 13, 0)
        if what in _LONG_OPERANDS:
            size = 1 + struct.unpack_from("<H", data, at)[0] if at + 2 <= len(data) else 0
        elif what >> 13 == _VARIABLE:
            size = 1 + data[at]
            if what == _TABS and size > 0xFF:  # noqa: PLR2004 - then the size is not written
                return
        yield what, data[at : at + size]
        at += size


# Styles -------------------------------------------------------------------------------------------------------------


def _styles(data: bytes) -> Iterator[Style]:
    if len(data) < 6:  # noqa: PLR2004 - two sizes and a count
        return
    header, _, base_bytes = struct.unpack_from("<HHH", data)
    at = 2 + header
    while at + 2 <= len(data):
        (size,) = struct.unpack_from("<H", data, at)
        yield _style(data[at + 2 : at + 2 + size], base_bytes)
        at += 2 + size


def _style(data: bytes, base_bytes: int) -> Style:
    if len(data) < base_bytes + 2 or base_bytes < 8:  # noqa: PLR2004 - a style that is not used
        return Style()
    first, second, third = struct.unpack_from("<HHH", data)
    (length,) = struct.unpack_from("<H", data, base_bytes)
    at = base_bytes + 2 + 2 * length + 2
    name = data[base_bytes + 2 : at - 2].decode("utf-16-le", "replace")
    lists: list[bytes] = []
    for _ in range(third & 0xF):
        size = struct.unpack_from("<H", data, at)[0] if at + 2 <= len(data) else 0
        lists.append(data[at + 2 : at + 2 + size])
        at += 2 + size + size % 2
    is_paragraph = second & 0xF == 1
    paragraph = lists[0][2:] if is_paragraph and lists else b""
    characters = lists[is_paragraph] if len(lists) > is_paragraph else b""
    return Style(first & 0xFFF, name, second >> 4, paragraph, characters)
