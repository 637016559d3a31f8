"""Reads Excel workbooks. Each sheet becomes a heading, followed by its tables with values in a readable form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from html import unescape
from io import BytesIO
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from octavo.core.errors import BadInput, Encrypted, NotSupported, TooLarge
from octavo.extract.decode import clean
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, Quality, SourceType
from octavo.extract.markdown.block_writer import (
    MOST_REPEATED,
    DocumentBlock,
    Heading,
    Paragraph,
    write_blocks,
    write_comment,
)
from octavo.extract.markdown.escape import escape_inside
from octavo.extract.markdown.table_grid import CellBudget, Grid, Repeated
from octavo.extract.office.assemble import Figures, to_extracted
from octavo.extract.office.ooxml import BUILT_IN_FORMATS, Package, format_number, read_chart
from octavo.extract.office.xml import Element, attribute, local_name, text_of
from octavo.extract.zips import DAMAGED, MEBIBYTE, Archive, read_picture, reject_deep_nesting

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, SheetMetadata

MOST_SHEETS = 200
MOST_PART = 256 * MEBIBYTE
# calamine allocates memory for all cells between the first and the last one, even for empty ones.
MOST_PLACES = 20_000_000
# Empty cells are self-closing tags, which this pattern does not match.
_CELL = re.compile(
    rb"""<(?:\w{1,10}:)?(?:c|row)\s(?:[^<>]{0,200}\s)?r\s{0,9}=\s{0,9}["']([A-Za-z]{0,3})([0-9]{1,7})["'][^<>/]{0,200}>"""
)
_SHEET = re.compile(r"xl/(?:worksheets|chartsheets|dialogsheets|macrosheets)/", re.IGNORECASE)
_PARTS = (".xml", ".rels", ".bin")
_OVERLAP = 1024
# Number formats and formulas of larger sheets are not read.
_MOST_SCANNED = 64 * MEBIBYTE
_CELL_ATTRIBUTES = re.compile(rb"<(?:\w{1,10}:)?c\s([^<>/]{1,200})>")
_NO_RESULT = re.compile(
    rb"<(?:\w{1,10}:)?c\s([^<>/]{1,200})>\s{0,9}<(?:\w{1,10}:)?f(?:\s[^<>/]{0,200})?>([^<>]{1,300})</(?:\w{1,10}:)?f>"
    rb"\s{0,9}(?:<(?:\w{1,10}:)?v\s{0,9}/>|<(?:\w{1,10}:)?v></(?:\w{1,10}:)?v>)?\s{0,9}</(?:\w{1,10}:)?c>"
)
_ERROR = re.compile(
    rb"""<(?:\w{1,10}:)?c\s([^<>/]{0,190}t=["']e["'][^<>/]{0,190})>(?:<(?:\w{1,10}:)?f[^<>]{0,300}>[^<>]{0,300}</[^<>]{1,12}>)?"""
    rb"<(?:\w{1,10}:)?v>(#[^<>]{1,20})</"
)
_STYLE = re.compile(rb"""\bs\s{0,9}=\s{0,9}["'](\d{1,6})["']""")
_PLACE = re.compile(rb"""\br\s{0,9}=\s{0,9}["']([A-Za-z]{1,3})(\d{1,7})["']""")
Value = int | float | str | bool | time | date | datetime | timedelta
Range = tuple[tuple[int, int], tuple[int, int]]


def extract(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive, reject_deep_nesting():
        package = Package(archive)
        metadata = package.metadata()
        check(archive)
        figures = Figures()
        additions = read_additions(package, figures)
        cells = read_cells(package)
    return sheets_to_document(path.read_bytes(), SourceType.XLSX, metadata, additions, figures, cells)


# The contents of a sheet besides its cells, with the row and column where each starts.
Additions = dict[str, list[tuple[tuple[int, int], list[DocumentBlock]]]]
_BELOW = (1 << 30, 0)


class SheetCells(NamedTuple):
    """Details of cells that the calamine library does not read.

    Rows and columns are numbered from 0. `formats` maps cells to number formats. `formulas` maps rows to formulas whose
    result is not in the file. `texts` maps cells to the texts that they display. XLSX files store such texts only for
    errors, for example `#N/A`.
    """

    formats: dict[tuple[int, int], str]
    formulas: dict[int, dict[int, str]]
    texts: dict[tuple[int, int], str]


_NOTHING_KNOWN = SheetCells({}, {}, {})


def sheets_to_document(
    data: bytes,
    source_type: SourceType,
    metadata: Metadata,
    additions: Additions | None = None,
    figures: Figures | None = None,
    cells: dict[str, SheetCells] | None = None,
) -> Extracted:
    """Read a workbook of any type that calamine opens (XLSX, XLSB, XLS, ODS).

    `additions` maps sheet names to charts, pictures and comments. calamine unpacks zip archives without size limits, so
    the caller must first check the unpacked sizes, for example with `check`.
    """
    converted = convert(data, additions or {}, cells or {})
    quality = Quality.PARTIAL if converted.is_cut else Quality.FULL
    return to_extracted(source_type, converted.markdown, metadata, quality=quality, has_title=False, figures=figures)


class WorkbookText(NamedTuple):
    markdown: str
    is_cut: bool


def read_additions(package: Package, figures: Figures) -> Additions:
    """Read the charts, pictures and comments of each sheet."""
    name, root = package.main("xl/workbook.xml")
    people = _people(package, name)
    found: Additions = {}
    for sheet in [one for one in root.iter() if local_name(one) == "sheet"][:MOST_SHEETS]:
        part = package.target(name, attribute(sheet, "r:id"))
        if part:
            blocks = [*_drawn(package, package.related(part, "drawing"), figures), *_comments(package, part, people)]
            found[sheet.get("name") or ""] = blocks
    return found


def read_cells(package: Package) -> dict[str, SheetCells]:
    """Read the number formats and error values of each sheet, and the formulas whose results are not in the file."""
    name, root = package.main("xl/workbook.xml")
    codes = _format_codes(package.part(package.related(name, "styles")))
    found: dict[str, SheetCells] = {}
    for sheet in [one for one in root.iter() if local_name(one) == "sheet"][:MOST_SHEETS]:
        part = package.target(name, attribute(sheet, "r:id"))
        if part and part in package.archive and package.archive.size(part) <= _MOST_SCANNED:
            found[sheet.get("name") or ""] = _scan(package.archive.steps(part, MOST_PART), codes)
    return found


def _format_codes(styles: Element | None) -> dict[bytes, str]:
    """Map the position of each cell style in the file to its number format. Styles without a format are left out."""
    if styles is None:
        return {}
    own = {one.get("numFmtId"): one.get("formatCode") or "" for one in styles.iter() if local_name(one) == "numFmt"}
    listed = next((one for one in styles if local_name(one) == "cellXfs"), ())
    codes = {
        str(place).encode(): own.get(number) or BUILT_IN_FORMATS.get(number, "")
        for place, one in enumerate(listed)
        if (number := one.get("numFmtId") or "")
    }
    return {place: code for place, code in codes.items() if code}


def _scan(parts: Iterable[bytes], codes: dict[bytes, str]) -> SheetCells:
    found = SheetCells({}, {}, {})
    rest = b""
    for part in parts:
        text = rest + part
        for attributes in _CELL_ATTRIBUTES.findall(text) if codes else ():
            style, place = _STYLE.search(attributes), _place(attributes)
            if style and place and style[1] in codes:
                found.formats[place] = codes[style[1]]
        for attributes, error in _ERROR.findall(text):
            place = _place(attributes)
            if place:
                found.texts[place] = error.decode(errors="replace")
        for attributes, formula in _NO_RESULT.findall(text):
            place = _place(attributes)
            if place:
                row = found.formulas.setdefault(place[0], {})
                row[place[1]] = f"={unescape(formula.decode(errors='replace'))}"
        rest = text[-_OVERLAP:]
    return found


def _place(attributes: bytes) -> tuple[int, int] | None:
    found = _PLACE.search(attributes)
    return (int(found[2]) - 1, _column(found[1]) - 1) if found else None


def _drawn(
    package: Package, part: str | None, figures: Figures
) -> Iterator[tuple[tuple[int, int], list[DocumentBlock]]]:
    root = package.part(part)
    for anchor in root if root is not None and part else ():
        named = {local_name(one): one for one in reversed(list(anchor.iter()))}
        place = tuple(_count(text_of(named.get(name))) for name in ("row", "col"))
        described = (named["cNvPr"].get("descr") or "") if "cNvPr" in named else ""
        blocks: list[DocumentBlock] = []
        if "chart" in named:
            blocks += read_chart(package.part(package.target(part or "", attribute(named["chart"], "r:id"))))
        elif "blip" in named:
            member = package.target(part or "", attribute(named["blip"], "r:embed"))
            blocks += [Paragraph(figures.add(member, described))] if member else []
        if blocks:
            yield (place[0], place[1]), blocks


def _people(package: Package, workbook: str) -> dict[str, str]:
    root = package.part(package.related(workbook, "person"))
    return {one.get("id") or "": one.get("displayName") or "" for one in (root if root is not None else ())}


def _comments(
    package: Package, part: str, people: dict[str, str]
) -> Iterator[tuple[tuple[int, int], list[DocumentBlock]]]:
    """Yield all comments of a sheet as one group of blocks, which is placed after the tables.

    A comment with replies is stored twice, in an older and a newer form. The older one is skipped.
    """
    threads = package.part(package.related(part, "threadedComment"))
    notes = package.part(package.related(part, "comments"))
    authors = [text_of(one) for one in (notes.iter() if notes is not None else ()) if local_name(one) == "author"]
    written = [one for one in (threads if threads is not None else ()) if local_name(one) == "threadedComment"]
    threaded = {one.get("ref") for one in written}
    blocks: list[DocumentBlock] = []
    for one in notes.iter() if notes is not None else ():
        if local_name(one) == "comment" and one.get("ref") not in threaded:
            number = _count(one.get("authorId") or "")
            blocks += write_comment(
                authors[number] if number < len(authors) else "", text_of(one), one.get("ref") or ""
            )
    for one in written:
        blocks += write_comment(people.get(one.get("personId") or "", ""), text_of(one), one.get("ref") or "")
    if blocks:
        yield _BELOW, blocks


def _count(written: str) -> int:
    return int(written) if written.isdecimal() and len(written) < 8 else 0  # noqa: PLR2004 - no sheet has more


def check(archive: Archive) -> None:
    """Check the unpacked size of all parts and the extent of each sheet before calamine reads the file.

    calamine unpacks files without size limits, and allocates memory even for empty cells between filled ones.
    """
    for name in archive:
        if name.lower().endswith(_PARTS):
            parts = archive.steps(name, MOST_PART)
            if _SHEET.match(name):
                _check_extent(parts)
            else:
                for _ in parts:
                    pass


def _check_extent(parts: Iterable[bytes]) -> None:
    rows: set[int] = set()
    columns: set[bytes] = set()
    rest = b""
    for part in parts:
        text = rest + part
        found: list[tuple[bytes, bytes]] = _CELL.findall(text)
        columns.update(column for column, _ in found)
        rows.update(int(row) for _, row in found)
        rest = text[-_OVERLAP:]
    if rows and (max(rows) - min(rows) + 1) * max(map(_column, columns)) > MOST_PLACES:
        raise TooLarge("A sheet is too large: its cells span too many rows and columns.")


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - 64
    return number


def convert(
    data: bytes, additions: Additions | None = None, cells: dict[str, SheetCells] | None = None
) -> WorkbookText:
    # Imported late: only the sandbox needs it.
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetTypeEnum

    try:
        workbook = CalamineWorkbook.from_filelike(BytesIO(data))
        about = [
            one for one in workbook.sheets_metadata if one.typ in (SheetTypeEnum.WorkSheet, SheetTypeEnum.ChartSheet)
        ]
        budget = CellBudget()
        blocks: list[DocumentBlock] = []
        is_cut = len(about) > MOST_SHEETS
        for one in about[:MOST_SHEETS]:
            grid = Grid(budget)
            known = (cells or {}).get(one.name, _NOTHING_KNOWN)
            if one.typ == SheetTypeEnum.WorkSheet:
                _read_cells(grid, workbook.get_sheet_by_name(one.name), known)
            blocks += [*_sheet(one, grid, (additions or {}).get(one.name, [])), *_formula_note(known)]
            is_cut = is_cut or grid.is_cut or bool(known.formulas)
    except PasswordError:
        raise Encrypted from None
    except CalamineError as error:
        raise BadInput(f"{DAMAGED}the workbook cannot be read.") from error
    except BaseException as error:
        # A panic in calamine is not an `Exception`, but it is caused by the file.
        if type(error).__name__ != "PanicException":
            raise
        raise NotSupported("This workbook cannot be read. Save it as XLSX.") from None
    if len(about) > MOST_SHEETS:
        blocks.append(Paragraph(f"*Omitted: the sheets after the first {MOST_SHEETS}. The file contains all of them.*"))
    return WorkbookText(clean(write_blocks(blocks)), is_cut)


def _read_cells(grid: Grid, sheet: CalamineSheet, known: SheetCells) -> None:
    first = (sheet.start or (0, 0))[1]
    merged = _merged(sheet.merged_cell_ranges or [])
    # The rows that calamine knows end before formulas without a result.
    below = max(known.formulas, default=-1) + 1 - ((sheet.end or (-1, 0))[0] + 1)
    rows = enumerate(chain(sheet.iter_rows(), repeat([], max(below, 0))))
    grid.add_rows(_fill_merged(([""] * first + _texts(row, number, first, known) for number, row in rows), merged))


def _formula_note(known: SheetCells) -> Iterator[DocumentBlock]:
    count = sum(map(len, known.formulas.values()))
    if count:
        yield Paragraph(f"*Omitted: the results of formulas ({count:,}). The file does not contain them.*")


def _sheet(
    about: SheetMetadata, grid: Grid, additions: list[tuple[tuple[int, int], list[DocumentBlock]]]
) -> list[DocumentBlock]:
    """Return the heading of a sheet and everything on the sheet, in row order."""
    placed = sorted([*grid.placed_blocks(), *additions], key=lambda one: one[0])
    content = [block for _, blocks in placed for block in blocks] + list(grid.note())
    is_hidden = not str(about.visible).endswith("Visible")
    name = f"{about.name} (hidden)" if is_hidden else about.name
    return [Heading(1, escape_inside(clean(" ".join(name.split())))), *content] if content else []


def _texts(row: Sequence[Value], number: int, first: int, known: SheetCells) -> list[str]:
    """Return the text of each cell in a row.

    `number` is the row number in the sheet, and `first` the column of the first cell. If the file does not contain the
    result of a formula, the formula itself is returned.
    """
    if not known.formats and not known.texts:
        texts = [_text(value) for value in row]
    else:
        places = [(number, column) for column in range(first, first + len(row))]
        texts = [
            known.texts.get(place) or _displayed(value, known.formats.get(place))
            for value, place in zip(row, places, strict=True)
        ]
    for column, formula in known.formulas.get(number, {}).items():
        texts += [""] * (column - first + 1 - len(texts))
        if column >= first:
            texts[column - first] = texts[column - first] or formula
    return texts


def _displayed(value: Value, code: str | None) -> str:
    if code and isinstance(value, int | float) and not isinstance(value, bool):
        return format_number(value, code) or _text(value)
    return _text(value)


def _text(value: Value) -> str:
    match value:
        case bool():
            return str(value).upper()
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.12g}"  # noqa: PLR2004
        case datetime():
            return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "seconds")
        case time():
            return value.isoformat("seconds")
        case timedelta():
            return _hours(round(value.total_seconds()))
        case _:
            return str(value)


def _hours(seconds: int) -> str:
    sign = "-" if seconds < 0 else ""
    minutes, seconds = divmod(abs(seconds), 60)
    return f"{sign}{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _merged(ranges: Iterable[Range]) -> dict[int, list[Range]]:
    """Map each row to the merged ranges that start in it."""
    by_row: dict[int, list[Range]] = {}
    for (top, left), (bottom, right) in ranges:
        by_row.setdefault(top, []).append(((top, left), (bottom, right)))
    return by_row


def _fill_merged(rows: Iterable[list[str]], merged: dict[int, list[Range]]) -> Iterator[list[str]]:
    """If a merged cell contains a short text, repeat the text in every cell that the merged cell covers.

    Each row can then be understood without the rows above it.
    """
    reach: dict[int, tuple[int, str]] = {}
    for place, row in enumerate(rows):
        for column, (last, text) in list(reach.items()):
            if place > last:
                del reach[column]
            elif column < len(row) and not row[column]:
                row[column] = text
        for (_, left), (bottom, right) in merged.get(place, ()):
            text = row[left] if 0 <= left < len(row) else ""
            if text and len(text) <= MOST_REPEATED:
                for column in range(left, min(right + 1, len(row))):
                    covered = text if column == left else Repeated(text)
                    row[column] = row[column] or covered
                    reach[column] = (bottom, covered)
        yield row


PROCESSOR = Processor((SourceType.XLSX,), extract, read_picture)
