"""Reads office formats by reusing other readers. ODS, XLS and XLSB are read like XLSX, and ODP is read like PPTX."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from octavo.core.errors import Encrypted, TooLarge
from octavo.extract.decode import clean
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, Quality, SourceType
from octavo.extract.formats import odt, xlsx
from octavo.extract.markdown.block_writer import DocumentBlock, Heading, Item, Paragraph, Quote, Table, write_blocks
from octavo.extract.markdown.escape import escape, escape_inside
from octavo.extract.office.assemble import Figures, join_pages, to_extracted
from octavo.extract.office.ooxml import Package, number, reject_encrypted
from octavo.extract.office.xml import Element, attribute, child, children, descendants, name_of, parse
from octavo.extract.zips import Archive, open_container, read_picture, reject_deep_nesting

_DEEPEST = 8
_DISPLAYED = frozenset({"percentage", "currency", "time", "float"})
_MOST_DISPLAYED, _MOST_COPIES = 32 << 20, 100
_CONTAINER = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Record types in old workbooks: a password, the beginning of a sheet, and its cells.
_PASSWORD, _BEGIN = 0x002F, 0x0809
_CELLS = frozenset({0x0006, 0x00BD, 0x00BE, 0x00D6, 0x00FD, 0x0201, 0x0203, 0x0204, 0x0205, 0x027E})
_SHAPES = frozenset({"draw:frame", "draw:custom-shape", "draw:rect", "draw:ellipse", "draw:g", "draw:text-box"})
_FIGURE = "figure"  # an attribute with the Markdown of a picture
_PARAGRAPHS = frozenset({"text:p", "text:h"})
# A title or a cell can have several paragraphs.
_SPACES = frozenset({"text:line-break", "text:tab", "text:s"}) | _PARAGRAPHS


def extract(path: Path, hints: Hints) -> Extracted:
    metadata = Metadata()
    cells: dict[str, xlsx.SheetCells] = {}
    if hints.source_type is SourceType.ODS:
        with Archive(path) as archive, reject_deep_nesting():
            metadata = _checked(archive)
            cells = _displayed_cells(archive)
    elif hints.source_type is SourceType.XLS:
        metadata = _checked_container(path)
    elif hints.source_type is SourceType.XLSB:
        with Archive(path) as archive:
            metadata = Package(archive).metadata()
            xlsx.check(archive)
    converted = xlsx.convert(path.read_bytes(), cells=cells)
    quality = Quality.PARTIAL if converted.is_cut else Quality.FULL
    return to_extracted(hints.source_type, converted.markdown, metadata, quality=quality, has_title=False)


def _checked_container(path: Path) -> Metadata:
    """Check an XLS workbook before it is read, and return its metadata.

    Raises `Encrypted` if the workbook has a password.
    """
    with path.open("rb") as file:
        if file.read(len(_CONTAINER)) != _CONTAINER:
            return Metadata()  # workbooks from before 1995 have no container
    with open_container(path) as container:
        stream = container.read("Workbook") or container.read("Book")
        metadata = container.metadata()
    _check_records(stream)
    return metadata


def _check_records(stream: bytes) -> None:
    """Reject a workbook if it has a password, or if its cells are very far apart.

    calamine allocates memory for all cells between the first and the last one, even for empty ones.
    """
    at, rows, columns = 0, 0, 0
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        if kind == _PASSWORD:
            raise Encrypted(
                "Octavo cannot open encrypted Excel files from before 2007. Save the file without a password."
            )
        if kind == _BEGIN:
            rows = columns = 0
        elif kind in _CELLS and at + 8 <= len(stream):
            row, column = struct.unpack_from("<HH", stream, at + 4)
            rows, columns = max(rows, row + 1), max(columns, column + 1)
            if rows * columns > xlsx.MOST_PLACES:
                raise TooLarge("A sheet is too large: its cells span too many rows and columns.")
        at += 4 + size


def _checked(archive: Archive) -> Metadata:
    """Check the unpacked size of all XML parts, because the calamine library unpacks without limits.

    Returns the metadata.
    """
    reject_encrypted(archive)
    for name in archive:
        if name.endswith(".xml"):
            for _ in archive.steps(name, xlsx.MOST_PART):
                pass
    return odt.read_metadata(archive)


def _displayed_cells(archive: Archive) -> dict[str, xlsx.SheetCells]:
    """Return the text that cells display, by sheet.

    calamine returns only raw numbers, such as 0.25 for a cell that shows 25 %.
    """
    data = archive.find("content.xml") if "content.xml" in archive else None
    if not data or len(data) > _MOST_DISPLAYED:
        return {}
    found: dict[str, xlsx.SheetCells] = {}
    for table in descendants(parse(data), "table:table"):
        texts: dict[tuple[int, int], str] = {}
        row = 0
        for line in descendants(table, "table:table-row"):
            texts |= {(row, column): text for column, text in _displayed_row(line)}
            row += number(attribute(line, "table:number-rows-repeated"), 1)
        found[attribute(table, "table:name") or ""] = xlsx.SheetCells({}, {}, texts)
    return found


def _displayed_row(row: Element) -> Iterator[tuple[int, str]]:
    column = 0
    for cell in row:
        if name_of(cell) in {"table:table-cell", "table:covered-table-cell"}:
            text = " ".join(_text(one) for one in children(cell, "text:p"))
            copies = number(attribute(cell, "table:number-columns-repeated"), 1)
            if text and attribute(cell, "office:value-type") in _DISPLAYED:
                yield from ((column + place, text) for place in range(min(copies, _MOST_COPIES)))
            column += copies


# Presentations ------------------------------------------------------------------------------------------------------


def extract_slides(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive, reject_deep_nesting():
        reject_encrypted(archive)
        root = parse(archive.read("content.xml"))
        metadata = odt.read_metadata(archive)
        figures = Figures()
        for frame in descendants(root, "draw:frame"):
            _resolve(frame, archive, figures)
        body = child(root, "office:body", "office:presentation")
        slides = [_slide(page, 2 if place else 1) for place, page in enumerate(children(body, "draw:page"))]
    markdown, pages = join_pages([clean(slide) for slide in slides])
    return to_extracted(SourceType.ODP, markdown, metadata, pages=pages, figures=figures)


def _resolve(frame: Any, archive: Archive, figures: Figures) -> None:  # noqa: ANN401 - the tree is changed
    """If the frame contains a spreadsheet or chart, insert its tables into the frame.

    Otherwise add the frame's picture to `figures`.
    """
    image = child(frame, "draw:image")
    folder = (attribute(child(frame, "draw:object"), "xlink:href") or "").removeprefix("./")
    data = archive.find(f"{folder}/content.xml") if folder else None
    member = (attribute(image, "xlink:href") or "").removeprefix("./")
    if data:
        for table in list(descendants(parse(data), "table:table")):
            frame.append(table)
    elif image is not None and member in archive:
        described = next((text for one in descendants(frame, "svg:desc", "svg:title") if (text := _text(one))), "")
        image.set(_FIGURE, figures.add(member, described))


def _slide(page: Element, title_level: int) -> str:
    blocks = [block for shape in page for block in _shape(shape, title_level)]
    # The title comes first in the text, even if it is the last shape in the file.
    blocks.sort(key=lambda block: not isinstance(block, Heading))
    for notes in children(page, "presentation:notes"):
        blocks += _notes(notes)
    return write_blocks(blocks)


def _text(element: Element) -> str:
    """Return the text of an element on one line.

    OpenDocument stores line breaks, tabs and repeated spaces as elements.
    """
    return " ".join("".join(_texts(element)).split())


def _texts(element: Element) -> Iterator[str]:
    yield f" {element.text or ''}" if name_of(element) in _SPACES else element.text or ""
    for one in element:
        yield from _texts(one)
        yield one.tail or ""


def _notes(notes: Element) -> Iterator[DocumentBlock]:
    texts = [text for one in descendants(notes, *_PARAGRAPHS) if (text := _text(one))]
    if texts:
        yield Quote("\n\n".join(["Notes: " + escape_inside(texts[0]), *map(escape, texts[1:])]))


def _shape(shape: Element, title_level: int) -> Iterator[DocumentBlock]:
    if name_of(shape) not in _SHAPES:
        return
    if attribute(shape, "presentation:class") == "title":
        title = _text(shape)
        yield from [Heading(title_level, escape_inside(title))] if title else []
        return
    yield from _contents(shape, title_level)


def _contents(element: Element, title_level: int) -> Iterator[DocumentBlock]:
    for one in element:
        name = name_of(one)
        if name in _PARAGRAPHS:
            text = _text(one)
            yield from [Paragraph(escape(text))] if text else []
        elif name == "text:list":
            yield from _items(one, 0)
        elif name == "table:table":
            rows = [[escape_inside(_text(cell)) for cell in row] for row in descendants(one, "table:table-row")]
            rows = [row for row in rows if any(row)]
            yield from [Table(rows)] if rows else []
        elif name == "draw:image" and (figure := attribute(one, _FIGURE)):
            yield Paragraph(figure)
        elif name in _SHAPES:
            yield from _shape(one, title_level)


def _items(element: Element, depth: int) -> Iterator[DocumentBlock]:
    for item in element:
        for one in item:
            if name_of(one) == "text:list":
                yield from _items(one, min(depth + 1, _DEEPEST))
            elif text := _text(one):
                yield Item(depth, "", escape(text))


PROCESSOR = Processor((SourceType.ODS, SourceType.XLS, SourceType.XLSB), extract)
SLIDES = Processor((SourceType.ODP,), extract_slides, read_picture)
