"""Excel workbooks: each sheet becomes a heading and its tables, with values formatted for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from octavo.core.errors import BadInput, Encrypted, TooLarge
from octavo.extract.decode import clean
from octavo.extract.extracted import Extracted, Quality, SourceType
from octavo.extract.markdown.block_writer import MOST_REPEATED, DocumentBlock, Heading, Paragraph, write_blocks
from octavo.extract.markdown.table_grid import CellBudget, Grid
from octavo.extract.office.assemble import to_extracted
from octavo.extract.office.ooxml import Package
from octavo.extract.registry import Hints, Processor
from octavo.extract.zips import DAMAGED, MEBIBYTE, Archive

MOST_SHEETS = 200
MOST_PART = 256 * MEBIBYTE
# calamine allocates every cell between the first and the last one, including empty ones.
MOST_PLACES = 20_000_000
# Empty cells are self-closing tags and are not counted.
_CELL = re.compile(
    rb"""<(?:\w{1,10}:)?(?:c|row)\s(?:[^<>]{0,200}\s)?r\s{0,9}=\s{0,9}["']([A-Za-z]{0,3})([0-9]{1,7})["'][^<>/]{0,200}>"""
)
_SHEET = re.compile(r"xl/(?:worksheets|chartsheets|dialogsheets|macrosheets)/", re.IGNORECASE)
_PARTS = (".xml", ".rels", ".bin")
_OVERLAP = 512
Value = int | float | str | bool | time | date | datetime | timedelta
Range = tuple[tuple[int, int], tuple[int, int]]


def extract(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive:
        metadata = Package(archive).metadata()
        check(archive)
    converted = convert(path.read_bytes())
    quality = Quality.PARTIAL if converted.is_cut else Quality.FULL
    return to_extracted(SourceType.XLSX, converted.markdown, metadata, quality=quality, has_title=False)


class WorkbookText(NamedTuple):
    markdown: str
    is_cut: bool


def check(archive: Archive) -> None:
    """Check the unpacked size of all parts before calamine reads the file, because calamine unpacks without limits."""
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
        raise TooLarge("The cells of a sheet are too far apart.")


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - 64
    return number


def convert(data: bytes) -> WorkbookText:
    # Imported late: only the sandbox needs it.
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum

    try:
        workbook = CalamineWorkbook.from_filelike(BytesIO(data))
        about = [one for one in workbook.sheets_metadata if one.typ == SheetTypeEnum.WorkSheet]
        budget = CellBudget()
        blocks: list[DocumentBlock] = []
        is_cut = len(about) > MOST_SHEETS
        for one in about[:MOST_SHEETS]:
            sheet = workbook.get_sheet_by_name(one.name)
            grid = Grid(budget)
            merged = _merged(sheet.merged_cell_ranges or [], sheet.start or (0, 0))
            grid.add_rows(_fill_merged((_texts(row) for row in sheet.iter_rows()), merged))
            name = f"{one.name} (hidden)" if one.visible != SheetVisibleEnum.Visible else one.name
            content = list(grid.blocks())
            blocks += [Heading(1, clean(" ".join(name.split()))), *content] if content else []
            is_cut = is_cut or grid.is_cut
    except PasswordError:
        raise Encrypted from None
    except CalamineError as error:
        raise BadInput(f"{DAMAGED}the workbook cannot be read.") from error
    if len(about) > MOST_SHEETS:
        blocks.append(Paragraph(f"*Omitted: the sheets after the first {MOST_SHEETS}. The file contains all of them.*"))
    return WorkbookText(clean(write_blocks(blocks)), is_cut)


def _texts(row: Sequence[Value]) -> list[str]:
    return [_text(value) for value in row]


def _text(value: Value) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.12g}"  # noqa: PLR2004
        case datetime():
            return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "seconds")
        case date():
            return value.isoformat()
        case time():
            return value.isoformat("seconds")
        case _:
            return str(value)


def _merged(ranges: Iterable[Range], start: tuple[int, int]) -> dict[int, list[Range]]:
    """Map rows to the merged ranges that start there.

    Columns are shifted, because calamine drops empty columns on the left.
    """
    by_row: dict[int, list[Range]] = {}
    for (top, left), (bottom, right) in ranges:
        by_row.setdefault(top, []).append(((top, left - start[1]), (bottom, right - start[1])))
    return by_row


def _fill_merged(rows: Iterable[list[str]], merged: dict[int, list[Range]]) -> Iterator[list[str]]:
    """Repeat short texts of merged cells in every cell that they cover, so that each row can be understood alone."""
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
                    row[column] = row[column] or text
                    reach[column] = (bottom, text)
        yield row


PROCESSOR = Processor((SourceType.XLSX,), extract)
