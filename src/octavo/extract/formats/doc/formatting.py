"""Reads lists, formats, notes, comments and text boxes of Word files from before 2007."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from octavo.extract.formats.docx.styles import Level, Numbering
from octavo.extract.office import word_binary as word

_BODY_LEVEL = 9
_LIST_BYTES, _USE_BYTES, _LEVEL_BYTES, _LEVELS = 28, 16, 28, 9
_KINDS = {0: "decimal", 1: "upperRoman", 2: "lowerRoman", 3: "upperLetter", 4: "lowerLetter", 22: "decimalZero",
          23: "bullet", 255: "none"}  # fmt: skip
_COMMENT_BYTES, _SHAPE_BYTES, _BOX_BYTES = 30, 26, 22
_TOGGLES = {0x0835: "bold", 0x0836: "italic", 0x0837: "struck", 0x2A53: "struck", 0x083C: "hidden", 0x0800: "hidden",
            0x0855: "special", 0x0806: "is_data"}  # fmt: skip
_AS_STYLE, _NOT_AS_STYLE = 0x80, 0x81
_PICTURE_PLACE, _SYMBOL = 0x6A03, 0x6A09

# Lists --------------------------------------------------------------------------------------------------------------


def read_numbering(file: word.WordFile) -> Numbering:
    lists, uses = file.part(word.LISTS), file.part(word.LIST_USES)
    levels: dict[str, dict[int, Level]] = {}
    after, at = file.after(word.LISTS), 0
    count = struct.unpack_from("<H", lists)[0] if len(lists) > 1 else 0
    for start in range(2, min(2 + count * _LIST_BYTES, len(lists) - _LIST_BYTES + 1), _LIST_BYTES):
        (identifier,) = struct.unpack_from("<i", lists, start)
        of_list = levels.setdefault(str(identifier), {})
        for depth in range(1 if lists[start + 26] & 1 else _LEVELS):
            if at + _LEVEL_BYTES > len(after):
                break
            of_list[depth], at = _level(after, at)
    used: dict[str, str] = {}
    starts: dict[str, dict[int, int]] = {}
    for number, (kind, changes) in enumerate(_uses(uses), 1):
        used[str(number)] = kind
        if changes:
            starts[str(number)] = changes
    return Numbering.of_levels(levels, used, starts)


def _level(data: bytes, at: int) -> tuple[Level, int]:
    start, kind = struct.unpack_from("<iB", data, at)
    skipped = data[at + 24] + data[at + 25]
    at += _LEVEL_BYTES + skipped
    length = struct.unpack_from("<H", data, at)[0] if at + 2 <= len(data) else 0
    letters = data[at + 2 : at + 2 + 2 * length].decode("utf-16-le", "replace")[:100]
    text = "".join(f"%{ord(one) + 1}" if ord(one) < _LEVELS else one for one in letters)
    return Level(min(max(start, 0), 32767), _KINDS.get(kind, "decimal"), text), at + 2 + 2 * length


def _uses(data: bytes) -> Iterator[tuple[str, dict[int, int]]]:
    """Yield the id of each list in the document, and the numbers at which levels of the list restart."""
    count = struct.unpack_from("<I", data)[0] if len(data) > 3 else 0  # noqa: PLR2004 - the count itself
    count = min(count, max(len(data) - 4, 0) // _USE_BYTES)
    at = 4 + count * _USE_BYTES
    for number in range(count):
        place = 4 + number * _USE_BYTES
        (identifier,) = struct.unpack_from("<i", data, place)
        changes: dict[int, int] = {}
        at += 4
        for _ in range(data[place + 12]):
            if at + 8 > len(data):
                break
            start, flags = struct.unpack_from("<iI", data, at)
            at += 8
            if flags & 0x20 and at + _LEVEL_BYTES <= len(data):
                level, at = _level(data, at)
                start = level.start
            if flags & 0x30:
                changes[flags & 0xF] = min(max(start, 0), 32767)
        yield str(identifier), changes


# Paragraphs and characters ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ParagraphFormat:
    level: int | None = None
    contents: int | None = None
    in_table: bool = False
    ends_row: bool = False
    nesting: int = 0
    use: int = 0
    depth: int = 0
    columns: bytes = b""

    def change(self, what: int, value: bytes) -> None:
        number = int.from_bytes(value, "little")
        match what:
            case 0x2416:
                self.in_table = number > 0
            case 0x2417:
                self.ends_row = number > 0
            case 0x6649:
                self.nesting = number
            case 0x260A:
                self.depth = min(number, _LEVELS - 1)
            case 0x460B:
                self.use = number
            case 0x2640:
                self.level = number + 1 if number < _BODY_LEVEL else None
            case 0xD608:
                self.columns = value
            case _:
                pass


@dataclass(slots=True)
class CharacterFormat:
    bold: bool = False
    italic: bool = False
    struck: bool = False
    hidden: bool = False
    special: bool = False
    is_data: bool = False
    picture: int | None = None
    symbol: int = 0

    def change(self, what: int, value: bytes, styled: CharacterFormat) -> None:
        number = int.from_bytes(value, "little")
        if what in _TOGGLES:
            name = _TOGGLES[what]
            as_style = bool(getattr(styled, name))
            setattr(self, name, {_AS_STYLE: as_style, _NOT_AS_STYLE: not as_style}.get(number, number == 1))
        elif what == _PICTURE_PLACE:
            self.picture = number
        elif what == _SYMBOL:
            self.symbol = number >> 16


@dataclass(slots=True)
class Anchored:
    """The positions of footnotes, comments and text boxes in a document.

    `notes`, `comments` and `boxes` map a position in the text to the range that contains the text of the note, comment
    or box. Comments also have an author. `shapes` contains the positions of all drawings. `others` contains the ranges
    of text boxes whose position is unknown.
    """

    notes: dict[int, tuple[int, int]]
    comments: dict[int, tuple[int, int, str]]
    boxes: dict[int, tuple[int, int]]
    shapes: set[int]
    others: list[tuple[int, int]]


# Notes, comments and text boxes -------------------------------------------------------------------------------------


def find_anchored(file: word.WordFile) -> Anchored:
    counts = file.counts
    notes = {
        **_ranges(file, word.FOOTNOTE_MARKS, word.FOOTNOTES, counts.start_of("footnotes")),
        **_ranges(file, word.ENDNOTE_MARKS, word.ENDNOTES, counts.start_of("endnotes")),
    }
    marks, entries = word.positions(file.part(word.COMMENT_MARKS), _COMMENT_BYTES)
    texts, _ = word.positions(file.part(word.COMMENTS), 0)
    authors = list(_strings(file.part(word.AUTHORS)))
    base = counts.start_of("comments")
    comments = {
        mark: (base + start, base + end, _author(authors, entry))
        for mark, entry, (start, end) in zip(marks, entries, pairwise(texts), strict=False)
    }
    marks, shapes = word.positions(file.part(word.SHAPES), _SHAPE_BYTES)
    identifiers = {mark: shape[:4] for mark, shape in zip(marks, shapes, strict=False)}
    texts, entries = word.positions(file.part(word.TEXT_BOXES), _BOX_BYTES)
    base = counts.start_of("boxes")
    ranges = {
        entry[14:18]: (base + start, base + end) for entry, (start, end) in zip(entries, pairwise(texts), strict=False)
    }
    boxes = {mark: ranges[one] for mark, one in identifiers.items() if one in ranges}
    others = [place for one, place in ranges.items() if one not in identifiers.values() and any(one)]
    return Anchored(notes, comments, boxes, set(identifiers), others)


def _ranges(file: word.WordFile, marks: int, texts: int, base: int) -> dict[int, tuple[int, int]]:
    places, _ = word.positions(file.part(marks), 2)
    starts, _ = word.positions(file.part(texts), 0)
    return {mark: (base + start, base + end) for mark, (start, end) in zip(places[:-1], pairwise(starts), strict=False)}


def _strings(data: bytes) -> Iterator[str]:
    at = 0
    while at + 2 <= len(data):
        (length,) = struct.unpack_from("<H", data, at)
        yield data[at + 2 : at + 2 + 2 * length].decode("utf-16-le", "replace")
        at += 2 + 2 * length


def _author(authors: list[str], entry: bytes) -> str:
    number = int.from_bytes(entry[20:22], "little")
    return authors[number] if number < len(authors) else ""
