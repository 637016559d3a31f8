"""PowerPoint files from before 2007: each slide is a page, with title, text by level, tables, pictures and notes.

The file is a list of records, many of them repeated with every save; a directory says which ones are valid.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from octavo.core.errors import BadInput, Encrypted, NotFound, NotSupported
from octavo.extract.decode import clean
from octavo.extract.extracted import Extracted, Quality, SourceType
from octavo.extract.formats.pptx import Area, in_order
from octavo.extract.markdown.block_writer import (
    MOST_REPEATED,
    DocumentBlock,
    Heading,
    Item,
    Paragraph,
    Quote,
    Table,
    write_blocks,
    write_comment,
)
from octavo.extract.markdown.inline import TextRun, inline
from octavo.extract.office.assemble import Figures, join_pages, to_extracted
from octavo.extract.office.ole import Container, find_picture, open_container
from octavo.extract.registry import Hints, Processor
from octavo.extract.zips import DAMAGED, reject_deep_nesting

_DOCUMENT, _SLIDE_LIST, _SLIDE_PLACE, _SLIDE_ABOUT = 0x03E8, 0x0FF0, 0x03F3, 0x03EF
_EDIT, _DIRECTORY, _DRAWING, _DRAWING_GROUP = 0x0FF5, 0x1772, 0x040C, 0x040B
_TEXT_KIND, _WIDE_TEXT, _NARROW_TEXT, _TEXT_STYLE, _OUTLINE_TEXT = 0x0F9F, 0x0FA0, 0x0FA8, 0x0FA1, 0x0F9E
_PLACEHOLDER, _TAGS, _TAG, _TAG_DATA, _NUMBERED, _COMMENT, _STRING = (
    0x0BC3,
    0x1388,
    0x138A,
    0x138B,
    0x0FAC,
    0x2EE0,
    0x0FBA,
)
_GROUP, _SHAPE, _OPTIONS, _MORE_OPTIONS, _TEXT_BOX = 0xF003, 0xF004, 0xF00B, 0xF122, 0xF00D
_CHILD_AREA, _AREA, _ABOUT_SHAPE, _PICTURES, _PICTURE = 0xF00F, 0xF010, 0xF011, 0xF001, 0xF007
_PICTURE_OPTION, _DESCRIPTION_OPTION, _TABLE_OPTION = 0x0104, 0x0381, 0x039F
_TITLES, _LISTS, _NOTES = frozenset({0, 6}), frozenset({1, 7, 8}), 2
_LEFT_OUT = frozenset({7, 8, 9, 10})  # date, number, footer and header
_ENCRYPTED = 0xF3D1C4DF
_NEWER = "PP97_DUALSTORAGE"
_SLIDE, _NOTES_PAGE = 0x03EE, 0x03F0
_MOST_EDITS = 10_000
_MOST_DEPTH = 20
_MOST_SHAPES = 20_000
_MOST_SIDE = 60
_HEADER = struct.Struct("<HHI")
# Fields of a paragraph's style in the order of the file: the bits that announce them, and their bytes.
_PARAGRAPH_FIELDS = ((0x80, 2), (0x10, 2), (0x40, 2), (0x20, 4), (0x800, 2), (0x1000, 2), (0x2000, 2), (0x4000, 2),
                     (0x100, 2), (0x400, 2), (0x8000, 2))  # fmt: skip
_LAST_FIELDS = ((0x10000, 2), (0xE0000, 2), (0x200000, 2))
_CHARACTER_FIELDS = ((0x10000, 2), (0x200000, 2), (0x400000, 2), (0x800000, 2), (0x20000, 2), (0x40000, 4),
                     (0x80000, 2))  # fmt: skip


class Record(NamedTuple):
    kind: int
    instance: int
    data: bytes


def records(data: bytes) -> Iterator[Record]:
    at = 0
    while at + _HEADER.size <= len(data):
        about, kind, size = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        yield Record(kind, about >> 4, data[at : at + size])
        at += size


def _inside(data: bytes, *path: int) -> bytes:
    """The content of the first record at a path of kinds; empty if there is none."""
    for kind in path:
        data = next((one.data for one in records(data) if one.kind == kind), b"")
    return data


def _all(data: bytes, kind: int) -> list[Record]:
    return [one for one in records(data) if one.kind == kind]


def extract(path: Path, _hints: Hints) -> Extracted:
    with open_container(path) as container, reject_deep_nesting():
        metadata = container.metadata()
        figures = Figures()
        try:
            file = _open(container)
            slides = [clean(write_blocks(one)) for one in _slides(file, figures)]
            is_whole = all(file.record(one.number, _SLIDE) for one in _list(file, 0))
        except (struct.error, IndexError) as error:
            raise BadInput(f"{DAMAGED}its structure is broken.") from error
    markdown, pages = join_pages(slides)
    quality = Quality.FULL if is_whole else Quality.PARTIAL
    return to_extracted(SourceType.PPT, markdown, metadata, pages=pages, figures=figures, quality=quality)


def read_figure(path: Path, member: str) -> bytes:
    """The bytes of a picture; `picture:2` is the second of the file."""
    number = member.removeprefix("picture:")
    with open_container(path) as container:
        pictures = _pictures(_open(container))
    place = int(number) if number.isdecimal() and len(number) < 7 else 0  # noqa: PLR2004 - no file has more
    if not 0 < place <= len(pictures) or not pictures[place - 1]:
        raise NotFound("The file has no such picture.")
    return pictures[place - 1]


# Files --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _File:
    """`places` are the offsets of the valid records by their number; `pictures` is the stream of that name."""

    stream: bytes
    pictures: bytes
    places: dict[int, int] = field(default_factory=dict[int, int])
    document: bytes = b""

    def record(self, number: int, kind: int) -> Record | None:
        """The record with a number, if it is of the expected kind."""
        at = self.places.get(number)
        found = next(records(self.stream[at:]), None) if at is not None else None
        return found if found and found.kind == kind else None


def _open(container: Container) -> _File:
    # Files for two versions of PowerPoint contain both.
    storage = (_NEWER,) if container.read(_NEWER, "PowerPoint Document") else ()
    user = container.read(*storage, "Current User")
    stream = container.read(*storage, "PowerPoint Document")
    if not stream or (not storage and container.read("PersistentStorage Directory")):
        raise NotSupported("PowerPoint files from before 1997 cannot be read. Save it as PPTX or PDF.")
    _, size, token, at = struct.unpack_from("<8sIII", user)
    if token == _ENCRYPTED:
        raise Encrypted("Octavo cannot open encrypted PowerPoint files from before 2007. Save it without a password.")
    file = _File(stream, container.read(*storage, "Pictures"))
    document = None
    for _ in range(_MOST_EDITS if size else 0):
        edit = next(records(stream[at:]), None)
        if edit is None or edit.kind != _EDIT:
            break
        at, directory, main = struct.unpack_from("<8xIII", edit.data)
        document = main if document is None else document
        for number, place in _directory(stream[directory:]):
            file.places.setdefault(number, place)
        if not at:
            break
    found = file.record(document, _DOCUMENT) if document is not None else None
    if found is None:
        raise BadInput(f"{DAMAGED}its list of slides is missing.")
    file.document = found.data
    return file


def _directory(data: bytes) -> Iterator[tuple[int, int]]:
    found = next(records(data), None)
    if found is None or found.kind != _DIRECTORY:
        return
    numbers = iter(struct.unpack_from(f"<{len(found.data) // 4}I", found.data))
    for head in numbers:
        first, count = head & 0xFFFFF, head >> 20
        yield from zip(range(first, first + count), numbers, strict=False)


def _pictures(file: _File) -> list[bytes]:
    """All pictures of the file in the order of their numbers; empty ones cannot be shown."""
    entries = _all(_inside(file.document, _DRAWING_GROUP, 0xF000, _PICTURES), _PICTURE)
    return [_picture(file, entry.data) for entry in entries]


def _picture(file: _File, entry: bytes) -> bytes:
    (at,) = struct.unpack_from("<I", entry, 28) if len(entry) >= 32 else (0,)  # noqa: PLR2004 - the fields before
    found = next(records(file.pictures[at:]), None)
    return find_picture(found.data if found else entry)


# Slides -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Text:
    kind: int = 4
    text: str = ""
    style: bytes = b""


class _Place(NamedTuple):
    """A slide in the list of slides, with the texts that are stored in the list."""

    number: int
    identifier: int
    texts: list[_Text]


def _slides(file: _File, figures: Figures) -> Iterator[list[DocumentBlock]]:
    notes = {one.identifier: one.number for one in _list(file, 2)}
    shown = [bool(one) for one in _pictures(file)]
    slides = [(place, file.record(place.number, _SLIDE)) for place in _list(file, 0)]
    if slides and not any(record for _, record in slides):
        raise BadInput(f"{DAMAGED}its slides cannot be found.")
    for number, (place, record) in enumerate(slides):
        if record is None:
            yield [Paragraph("*This slide cannot be read.*")]
            continue
        reader = _Slide(place.texts, 2 if number else 1, figures, shown)
        blocks = list(reader.blocks(_inside(record.data, _DRAWING, 0xF002, _GROUP)))
        blocks.sort(key=lambda block: not isinstance(block, Heading))
        about = _inside(record.data, _SLIDE_ABOUT)
        (own,) = struct.unpack_from("<I", about, 16) if len(about) >= 20 else (0,)  # noqa: PLR2004 - the fields before
        spoken = file.record(notes[own], _NOTES_PAGE) if own in notes else None
        yield [*blocks, *(reader.notes(spoken.data) if spoken else ()), *_comments(record.data)]


def _list(file: _File, instance: int) -> Iterator[_Place]:
    found = next((one.data for one in _all(file.document, _SLIDE_LIST) if one.instance == instance), b"")
    place: _Place | None = None
    for one in records(found):
        if one.kind == _SLIDE_PLACE:
            if place:
                yield place
            number, identifier = struct.unpack_from("<I8xI", one.data)
            place = _Place(number, identifier, [])
        elif place:
            _add_text(place.texts, one)
    if place:
        yield place


def _add_text(texts: list[_Text], record: Record) -> None:
    if record.kind == _TEXT_KIND:
        texts.append(_Text(int.from_bytes(record.data[:4], "little")))
    elif not texts:
        return
    elif record.kind == _WIDE_TEXT:
        texts[-1].text = record.data.decode("utf-16-le", "replace")
    elif record.kind == _NARROW_TEXT:
        texts[-1].text = record.data.decode("latin-1")
    elif record.kind == _TEXT_STYLE:
        texts[-1].style = record.data


def _comments(slide: bytes) -> Iterator[DocumentBlock]:
    for tag in _all(_inside(slide, _TAGS), _TAG):
        for one in _all(_inside(tag.data, _TAG_DATA), _COMMENT):
            strings = {part.instance: part.data.decode("utf-16-le", "replace") for part in _all(one.data, _STRING)}
            yield from write_comment(strings.get(0, ""), " ".join(strings.get(1, "").split()))


@dataclass(slots=True)
class _Options:
    picture: int = 0
    description: str = ""
    is_table: bool = False


@dataclass(slots=True)
class _Slide:
    """Reads the shapes of one slide.

    `texts` are those that the list of slides stores; `shown`: whether each picture of the file can be shown.
    """

    texts: list[_Text]
    title_level: int
    figures: Figures
    shown: list[bool]
    shapes: int = 0

    def blocks(self, group: bytes, depth: int = 0) -> Iterator[DocumentBlock]:
        """The blocks of a group of shapes. The first shape is the group itself."""
        shapes = [one for one in records(group) if one.kind in {_GROUP, _SHAPE}][1:]
        self.shapes += len(shapes)
        if depth > _MOST_DEPTH or self.shapes > _MOST_SHAPES:
            return
        for place in in_order([_area(one) for one in shapes]):
            one = shapes[place]
            if one.kind == _SHAPE:
                yield from self._shape(one.data)
            elif _options(_inside(one.data, _SHAPE)).is_table:
                yield from self._table(one.data)
            else:
                yield from self.blocks(one.data, depth + 1)

    def notes(self, notes: bytes) -> Iterator[DocumentBlock]:
        shapes = _all(_inside(notes, _DRAWING, 0xF002, _GROUP), _SHAPE)
        found = [text for shape in shapes if (text := self._text(shape.data)).kind == _NOTES]
        lines = [inline([TextRun(line)]) for text in found for line in text.text.split("\r")]
        if any(lines):
            yield Quote("Notes: " + "\n\n".join(filter(None, lines)))

    def _text(self, shape: bytes) -> _Text:
        texts: list[_Text] = []
        for one in records(_inside(shape, _TEXT_BOX)):
            number = int.from_bytes(one.data[:4], "little")
            if one.kind == _OUTLINE_TEXT and number < len(self.texts):
                return self.texts[number]
            _add_text(texts, one)
        return texts[0] if texts else _Text()

    def _shape(self, shape: bytes) -> Iterator[DocumentBlock]:
        about = _inside(shape, _ABOUT_SHAPE)
        placeholder = _inside(about, _PLACEHOLDER)
        if len(placeholder) > 4 and placeholder[4] in _LEFT_OUT:  # noqa: PLR2004 - the kind is the fifth byte
            return
        text = self._text(shape)
        options = _options(shape)
        if options.picture:
            is_shown = options.picture <= len(self.shown) and self.shown[options.picture - 1]
            member = f"picture:{options.picture}" if is_shown else None
            yield Paragraph(self.figures.add(member, options.description))
        if text.kind in _TITLES:
            title = inline([TextRun(text.text.replace("\r", " ").replace("\x0b", " "))], one_line=True)
            yield from [Heading(self.title_level, title)] if title else []
            return
        yield from _paragraphs(text, about)

    def _table(self, group: bytes) -> Iterator[DocumentBlock]:
        """A table is a group of shapes; its columns and rows are the edges of those that have text."""
        shapes = [one for one in records(group) if one.kind == _SHAPE][1:]
        cells = [
            (area, self._text(one.data)) for one in shapes if (area := _area(one)) and _inside(one.data, _TEXT_BOX)
        ]
        columns = sorted({edge for area, _ in cells for edge in (area[0], area[2])})
        rows = sorted({edge for area, _ in cells for edge in (area[1], area[3])})
        if len(columns) - 1 > _MOST_SIDE or len(rows) > len(cells) + 1:
            columns = rows = []
        grid = [[""] * max(len(columns) - 1, 0) for _ in pairwise(rows)]
        for area, text in cells if grid else ():
            written = inline([TextRun(text.text.replace("\r", " ").replace("\x0b", " "))], one_line=True)
            places = [
                (row, column)
                for row in range(rows.index(area[1]), rows.index(area[3]))
                for column in range(columns.index(area[0]), columns.index(area[2]))
            ]
            for row, column in places if len(written) <= MOST_REPEATED else places[:1]:
                grid[row][column] = written
        if any(map(any, grid)):
            yield Table(grid)
        elif not grid:
            yield from (block for _, text in cells for block in _paragraphs(text, b""))


def _area(shape: Record) -> Area | None:
    """Where a shape is: on the slide, or in its group."""
    own = _inside(shape.data, _SHAPE) if shape.kind == _GROUP else shape.data
    child = _inside(own, _CHILD_AREA)
    if len(child) >= 16:  # noqa: PLR2004 - four numbers
        return struct.unpack_from("<4i", child)
    placed = _inside(own, _AREA)
    if len(placed) < 8:  # noqa: PLR2004 - four short numbers
        return None
    top, left, right, bottom = struct.unpack_from("<4i" if len(placed) >= 16 else "<4h", placed)  # noqa: PLR2004
    return left, top, right, bottom


def _options(shape: bytes) -> _Options:
    found = _Options()
    for one in records(shape):
        if one.kind not in {_OPTIONS, _MORE_OPTIONS}:
            continue
        at = 6 * one.instance
        for place in range(0, min(at, len(one.data) - 5), 6):
            name, value = struct.unpack_from("<HI", one.data, place)
            size = value if name & 0x8000 else 0
            if name & 0x3FFF == _PICTURE_OPTION and name & 0x4000:
                found.picture = value
            elif name & 0x3FFF == _TABLE_OPTION:
                found.is_table = bool(value & 1)
            elif name & 0x3FFF == _DESCRIPTION_OPTION:
                found.description = one.data[at : at + size].decode("utf-16-le", "replace").rstrip("\0")
            at += size
    return found


# Paragraphs ---------------------------------------------------------------------------------------------------------


class _Style(NamedTuple):
    depth: int = 0
    has_bullet: bool | None = None


def _paragraphs(text: _Text, about: bytes) -> Iterator[DocumentBlock]:
    lines = text.text.split("\r")
    styles, numbers = _styles(text)
    numbered = _numbered(about)
    counters: dict[int, int] = {}
    is_several = sum(map(bool, map(str.strip, lines))) > 1
    at = 0
    for line in lines:
        style = styles[at] if at < len(styles) else _Style()
        number = numbers[at] if at < len(numbers) else 0
        at += len(line) + 1
        written = inline([TextRun(line.replace("\x0b", "\n"))])
        if not written:
            continue
        for deeper in [level for level in counters if level > style.depth]:
            del counters[deeper]
        if number < len(numbered) and numbered[number] and style.has_bullet is not False:
            counters[style.depth] = counters.get(style.depth, numbered[number] - 1) + 1
            yield Item(style.depth, f"{counters[style.depth]}.", written)
        # A single line is not a list, even where the layout would give it a bullet.
        elif (text.kind in _LISTS and is_several) if style.has_bullet is None else style.has_bullet:
            yield Item(style.depth, "", written)
        else:
            counters.clear()
            yield Paragraph(written)


def _styles(text: _Text) -> tuple[list[_Style], list[int]]:
    """The style of the paragraph at each character, and the number of its further style."""
    length, data, at = len(text.text) + 1, text.style, 0
    styles: list[_Style] = []
    while len(styles) < length and at + 10 <= len(data):
        count, depth, mask = struct.unpack_from("<IHI", data, at)
        at += 10
        flags = int.from_bytes(data[at : at + 2], "little")
        at += 2 * bool(mask & 0xF) + _size(mask, _PARAGRAPH_FIELDS)
        if mask & 0x100000:
            at += 2 + 4 * int.from_bytes(data[at : at + 2], "little")
        at += _size(mask, _LAST_FIELDS)
        bullet = bool(flags & 1) if mask & 1 else None
        styles += [_Style(min(depth, 8), bullet)] * min(count, length - len(styles))
    numbers: list[int] = []
    while len(numbers) < length and at + 8 <= len(data):
        count, mask = struct.unpack_from("<II", data, at)
        at += 8
        flags = int.from_bytes(data[at : at + 2], "little") if mask & 0xFFFF else 0
        at += 2 * bool(mask & 0xFFFF) + _size(mask, _CHARACTER_FIELDS)
        numbers += [flags >> 10 & 0xF] * min(count, length - len(numbers))
    return styles, numbers


def _size(mask: int, fields: tuple[tuple[int, int], ...]) -> int:
    return sum(size for bits, size in fields if mask & bits)


def _numbered(about: bytes) -> list[int]:
    """The first number of each further style that numbers its paragraphs; 0 for the others."""
    data = _inside(about, _TAGS, _TAG, _TAG_DATA, _NUMBERED)
    found: list[int] = []
    at = 0
    while at + 4 <= len(data):
        (mask,) = struct.unpack_from("<I", data, at)
        at += 4 + 2 * bool(mask & 0x800000)
        is_numbered, start = False, 1
        if mask & 0x2000000:
            is_numbered = int.from_bytes(data[at : at + 2], "little") == 1
            at += 2
        if mask & 0x1000000:
            start = int.from_bytes(data[at + 2 : at + 4], "little")
            at += 4
        for _ in range(2):  # properties of characters and of languages
            further = int.from_bytes(data[at : at + 4], "little")
            at += 4 + _further_bytes(further, is_first=not _)
        found.append(max(start, 1) if is_numbered else 0)
    return found


def _further_bytes(mask: int, *, is_first: bool) -> int:
    if is_first:
        return 4 * bool(mask & 0x100000)
    return 2 * sum(bool(mask & bit) for bit in (0x1, 0x2, 0x4, 0x40)) + 4 * bool(mask & 0x20)


PROCESSOR = Processor((SourceType.PPT,), extract, read_figure)
