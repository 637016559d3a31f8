"""Reads PowerPoint files from before 2007. Each slide is a page with its title, text, tables, pictures and notes.

The file is a list of records. When PowerPoint saves changes, it appends new copies of the changed records. A directory
in the file says which copies are valid.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from octavo.core.errors import BadInput, NotFound
from octavo.extract.decode import clean
from octavo.extract.detect import Hints, Processor
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
from octavo.extract.office.powerpoint_binary import (
    TAG,
    TAG_DATA,
    TAGS,
    LineStyle,
    PresentationFile,
    Record,
    SlideText,
    add_text,
    all_of,
    inside,
    list_slides,
    open_presentation,
    read_numbered,
    read_pictures,
    read_styles,
    records,
)
from octavo.extract.zips import DAMAGED, open_container, reject_deep_nesting

_SLIDE, _NOTES_PAGE, _SLIDE_ABOUT, _DRAWING = 0x03EE, 0x03F0, 0x03EF, 0x040C
_PLACEHOLDER, _OUTLINE_TEXT, _COMMENT, _STRING = 0x0BC3, 0x0F9E, 0x2EE0, 0x0FBA
_GROUP, _SHAPE, _OPTIONS, _MORE_OPTIONS, _TEXT_BOX = 0xF003, 0xF004, 0xF00B, 0xF122, 0xF00D
_CHILD_AREA, _AREA, _ABOUT_SHAPE = 0xF00F, 0xF010, 0xF011
_PICTURE_OPTION, _DESCRIPTION_OPTION, _TABLE_OPTION = 0x0104, 0x0381, 0x039F
_TITLES, _LISTS, _NOTES = frozenset({0, 6}), frozenset({1, 7, 8}), 2
_LEFT_OUT = frozenset({7, 8, 9, 10})  # placeholders for date, slide number, footer and header
_MOST_DEPTH = 20
_MOST_SHAPES = 20_000
_MOST_SIDE = 60


def extract(path: Path, _hints: Hints) -> Extracted:
    with open_container(path) as container, reject_deep_nesting():
        metadata = container.metadata()
        figures = Figures()
        try:
            file = open_presentation(container)
            slides = [clean(write_blocks(one)) for one in _slides(file, figures)]
            is_whole = all(file.record(one.number, _SLIDE) for one in list_slides(file, 0))
        except (struct.error, IndexError) as error:
            raise BadInput(f"{DAMAGED}its structure is broken.") from error
    markdown, pages = join_pages(slides)
    quality = Quality.FULL if is_whole else Quality.PARTIAL
    return to_extracted(SourceType.PPT, markdown, metadata, pages=pages, figures=figures, quality=quality)


def read_figure(path: Path, member: str) -> bytes:
    """Return the bytes of a picture. `member` identifies it: `picture:2` is the second picture in the file."""
    number = member.removeprefix("picture:")
    with open_container(path) as container:
        pictures = read_pictures(open_presentation(container))
    place = int(number) if number.isdecimal() and len(number) < 7 else 0  # noqa: PLR2004 - no file has more
    if not 0 < place <= len(pictures) or not pictures[place - 1]:
        raise NotFound("The file does not contain this picture.")
    return pictures[place - 1]


# Slides -------------------------------------------------------------------------------------------------------------


def _slides(file: PresentationFile, figures: Figures) -> Iterator[list[DocumentBlock]]:
    notes = {one.identifier: one.number for one in list_slides(file, 2)}
    shown = [bool(one) for one in read_pictures(file)]
    slides = [(place, file.record(place.number, _SLIDE)) for place in list_slides(file, 0)]
    if slides and not any(record for _, record in slides):
        raise BadInput(f"{DAMAGED}its slides cannot be found.")
    for number, (place, record) in enumerate(slides):
        if record is None:
            yield [Paragraph("*This slide cannot be read.*")]
            continue
        reader = _Slide(place.texts, 2 if number else 1, figures, shown)
        blocks = list(reader.blocks(inside(record.data, _DRAWING, 0xF002, _GROUP)))
        blocks.sort(key=lambda block: not isinstance(block, Heading))
        about = inside(record.data, _SLIDE_ABOUT)
        (own,) = struct.unpack_from("<I", about, 16) if len(about) >= 20 else (0,)  # noqa: PLR2004 - the fields before
        spoken = file.record(notes[own], _NOTES_PAGE) if own in notes else None
        yield [*blocks, *(reader.notes(spoken.data) if spoken else ()), *_comments(record.data)]


def _comments(slide: bytes) -> Iterator[DocumentBlock]:
    for tag in all_of(inside(slide, TAGS), TAG):
        for one in all_of(inside(tag.data, TAG_DATA), _COMMENT):
            strings = {part.instance: part.data.decode("utf-16-le", "replace") for part in all_of(one.data, _STRING)}
            yield from write_comment(strings.get(0, ""), " ".join(strings.get(1, "").split()))


@dataclass(slots=True)
class _Options:
    picture: int = 0
    description: str = ""
    is_table: bool = False


@dataclass(slots=True)
class _Slide:
    """Reads the shapes of one slide.

    `texts` contains the texts that are stored in the list of slides instead of in a shape. `shown` contains one value
    for each picture in the file: whether it can be displayed.
    """

    texts: list[SlideText]
    title_level: int
    figures: Figures
    shown: list[bool]
    shapes: int = 0

    def blocks(self, group: bytes, depth: int = 0) -> Iterator[DocumentBlock]:
        """Yield the blocks of a group of shapes.

        The first shape in the group describes the group itself and is skipped.
        """
        shapes = [one for one in records(group) if one.kind in {_GROUP, _SHAPE}][1:]
        self.shapes += len(shapes)
        if depth > _MOST_DEPTH or self.shapes > _MOST_SHAPES:
            return
        for place in in_order([_area(one) for one in shapes]):
            one = shapes[place]
            if one.kind == _SHAPE:
                yield from self._shape(one.data)
            elif _options(inside(one.data, _SHAPE)).is_table:
                yield from self._table(one.data)
            else:
                yield from self.blocks(one.data, depth + 1)

    def notes(self, notes: bytes) -> Iterator[DocumentBlock]:
        shapes = all_of(inside(notes, _DRAWING, 0xF002, _GROUP), _SHAPE)
        found = [text for shape in shapes if (text := self._text(shape.data)).kind == _NOTES]
        lines = [inline([TextRun(line)]) for text in found for line in text.text.split("\r")]
        if any(lines):
            yield Quote("Notes: " + "\n\n".join(filter(None, lines)))

    def _text(self, shape: bytes) -> SlideText:
        texts: list[SlideText] = []
        for one in records(inside(shape, _TEXT_BOX)):
            number = int.from_bytes(one.data[:4], "little")
            if one.kind == _OUTLINE_TEXT and number < len(self.texts):
                return self.texts[number]
            add_text(texts, one)
        return texts[0] if texts else SlideText()

    def _shape(self, shape: bytes) -> Iterator[DocumentBlock]:
        about = inside(shape, _ABOUT_SHAPE)
        placeholder = inside(about, _PLACEHOLDER)
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
        """Read a table, which is stored as a group of shapes.

        The edges of the shapes that contain text are the borders of the table's columns and rows.
        """
        shapes = [one for one in records(group) if one.kind == _SHAPE][1:]
        cells = [(area, self._text(one.data)) for one in shapes if (area := _area(one)) and inside(one.data, _TEXT_BOX)]
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
    """Return the edges of a shape. Returns None if the shape has no position.

    The coordinates of a shape in a group are relative to the group.
    """
    own = inside(shape.data, _SHAPE) if shape.kind == _GROUP else shape.data
    child = inside(own, _CHILD_AREA)
    if len(child) >= 16:  # noqa: PLR2004 - four numbers
        return struct.unpack_from("<4i", child)
    placed = inside(own, _AREA)
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


def _paragraphs(text: SlideText, about: bytes) -> Iterator[DocumentBlock]:
    lines = text.text.split("\r")
    styles, numbers = read_styles(text)
    numbered = read_numbered(about)
    counters: dict[int, int] = {}
    is_several = sum(map(bool, map(str.strip, lines))) > 1
    at = 0
    for line in lines:
        style = styles[at] if at < len(styles) else LineStyle()
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
        # A single line is not a list, even if the layout gives it a bullet.
        elif (text.kind in _LISTS and is_several) if style.has_bullet is None else style.has_bullet:
            yield Item(style.depth, "", written)
        else:
            counters.clear()
            yield Paragraph(written)


PROCESSOR = Processor((SourceType.PPT,), extract, read_figure)
