"""Reads CSV, JSON and notebooks.

Rows and lists of flat records become tables, and notebooks become text with code. Other JSON is shown as code.
"""

from __future__ import annotations

import csv
import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from octavo.core.errors import BadInput, Empty, NotFound
from octavo.extract.decode import clean, decode
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, Quality, SourceType
from octavo.extract.markdown.block_writer import write_blocks, write_heading
from octavo.extract.markdown.escape import escape_inside, fence
from octavo.extract.markdown.table_grid import Grid
from octavo.extract.office.assemble import Figures, clean_line, to_extracted
from octavo.extract.zips import DAMAGED, reject_deep_nesting

_SEPARATORS = ",;\t|"
_SAMPLE_CHARACTERS = 64 * 1024
_SAMPLE_ROWS = 200
_MOST_FIELD = 1 << 20
_DECLARED = re.compile(r'"?sep=(.)"?\n', re.IGNORECASE)  # Excel writes this line. It overrides the detected separator.
_VALUE = re.compile(
    r"[-+(]?[\s$€£¥]*[\d.,'\s]*\d[\d.,'\s]*[)%€$£]?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*|\d{1,2}:\d{2}.*|true|false"
)
_LONG_LINE = 200
_LEAST_SHARE = 0.5
_MOST_FIELDS = 60
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_DEEPEST = 20
# The formats of pictures in notebooks; the short names are from before 2014.
_PICTURES = ("image/png", "image/jpeg", "image/gif", "png", "jpeg")
_ATTACHED = re.compile(r"!\[([^\[\]]{0,500})\]\(attachment:([^()\s]{1,200})\)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)


class _Number(str):
    """A JSON number as text, spelled exactly as in the file."""

    __slots__ = ()


class _Repeated(ValueError):
    """Raised if a JSON object contains the same key twice, because a table would lose one of the values."""


def extract(path: Path, _hints: Hints) -> Extracted:
    text = decode(path.read_bytes())
    if not text.strip():
        raise Empty("The file contains no text.")
    table = _table(_records(text))
    if table is not None:
        quality = Quality.PARTIAL if table.is_cut else Quality.FULL
        return to_extracted(SourceType.JSON, write_blocks(table.blocks()), Metadata(), quality=quality)
    shown = _indented(text) if _is_dense(text) else text
    return to_extracted(SourceType.JSON, fence(shown.strip("\n").split("\n"), "json"), Metadata(), has_title=False)


# Tables -------------------------------------------------------------------------------------------------------------


def _records(text: str) -> list[dict[str, str]] | None:
    """Read JSON as a list of flat records, or as one record per line.

    Returns None if the file contains anything else.
    """
    try:
        found = _parse(text)
    except (ValueError, RecursionError):
        found = _lines(text)
    if not isinstance(found, list) or not found:
        return None
    records = [_flat(one) for one in cast("list[object]", found)]
    flat = [one for one in records if one is not None]
    return flat if len(flat) == len(records) else None


def _parse(text: str) -> object:
    return json.loads(text, object_pairs_hook=_pairs, parse_int=_Number, parse_float=_Number)


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Repeated
    return found


def _lines(text: str) -> list[object] | None:
    try:
        return [_parse(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError):
        return None


def _flat(record: object) -> dict[str, str] | None:
    if not isinstance(record, dict) or not record:
        return None
    fields = cast("dict[str, object]", record)
    if any(isinstance(value, (dict, list)) for value in fields.values()):
        return None
    return {clean(name): _cell(value) for name, value in fields.items()}


def _cell(value: object) -> str:
    return "" if value is None else clean(value) if isinstance(value, str) else str(value).lower()


def _table(records: list[dict[str, str]] | None) -> Grid | None:
    """Convert the records to a table. Returns None if it would have too many columns or too many empty cells."""
    if not records:
        return None
    names = list(dict.fromkeys(name for record in records for name in record))
    filled = sum(map(len, records))
    if len(names) > _MOST_FIELDS or filled < len(names) * len(records) * _LEAST_SHARE:
        return None
    grid = Grid()
    grid.add_rows([names, *([record.get(name, "") for name in names] for record in records)])
    return grid


# Code ---------------------------------------------------------------------------------------------------------------


def _is_dense(text: str) -> bool:
    """Whether the file is minified, with everything on a few long lines."""
    return len(text) > _LONG_LINE * (text.count("\n") + 1)


def _indented(text: str) -> str:
    """Add line breaks and indentation to JSON. The text is not parsed, so that no value changes."""
    parts: list[str] = []
    depth = 0
    before = ""
    for part in _TOKEN.findall(text):
        if part in "]}":
            depth -= 1
            parts.append("" if before in "[{" and before else _newline(depth))
        elif before in {"[", "{", ","}:
            parts.append(_newline(depth))
        elif before and before != ":" and part not in ",:":
            parts.append("\n")  # the next value in a file with one value per line
        parts.append(f"{part} " if part == ":" else part)
        depth += part in "[{"
        before = part
    return "".join(parts)


def _newline(depth: int) -> str:
    return "\n" + "  " * min(max(depth, 0), _DEEPEST)


# Notebooks ----------------------------------------------------------------------------------------------------------


def extract_notebook(path: Path, _hints: Hints) -> Extracted:
    notebook = _notebook(path)
    about = _dict(notebook.get("metadata"))
    language = _language(about)
    figures = Figures()
    parts = [
        part
        for number, cell in enumerate(_cells(notebook))
        for part in _cell_parts(_dict(cell), language, _CellPictures(figures, number))
    ]
    metadata = Metadata(title=clean_line(_text(about.get("title"))), author=clean_line(_author(about)))
    return to_extracted(SourceType.IPYNB, clean("\n\n".join(filter(None, parts))), metadata, figures=figures)


def _notebook(path: Path) -> dict[str, Any]:
    try:
        with reject_deep_nesting():
            return _dict(json.loads(decode(path.read_bytes())))
    except ValueError as error:
        raise BadInput(f"{DAMAGED}its JSON cannot be read.") from error


@dataclass(frozen=True, slots=True)
class _CellPictures:
    """Adds the pictures of a notebook cell as figures.

    The name of a picture consists of the cell number and the output number or attachment name.
    """

    figures: Figures
    cell: int

    def output(self, number: int, data: dict[str, Any]) -> str | None:
        """Return the Markdown for a picture in a cell's output. Returns None if the output is not a picture."""
        if any(name in data for name in _PICTURES):
            return self.figures.add(f"{self.cell}:output:{number}")
        return "*[Picture]*" if any(name.startswith("image/") or name == "svg" for name in data) else None

    def attached(self, markdown: str, attachments: dict[str, Any]) -> str:
        """Replace references to attached pictures in the text of a notebook cell with figures."""
        return _ATTACHED.sub(
            lambda found: (
                self.figures.add(f"{self.cell}:attachment:{found[2]}", found[1])
                if found[2] in attachments
                else found[0]
            ),
            markdown,
        )


def read_figure(path: Path, member: str) -> bytes:
    """Return the bytes of a picture in a notebook.

    `member` names the picture: for example, `3:output:0` is the first output of the fourth cell.
    """
    cell, kind, name = [*member.split(":", 2), "", ""][:3]
    cells = list(_cells(_notebook(path)))
    place = int(cell) if cell.isdecimal() and len(cell) < 7 else len(cells)  # noqa: PLR2004 - no notebook has more
    found = _dict(cells[place]) if place < len(cells) else {}
    if kind == "output":
        outputs = [_dict(one) for one in _list(found.get("outputs"))]
        output = outputs[int(name)] if name.isdecimal() and len(name) < 7 and int(name) < len(outputs) else {}  # noqa: PLR2004
        data = _dict(output.get("data")) or output
    else:
        data = _dict(_dict(found.get("attachments")).get(name))
    written = next((_text(data[one]) for one in _PICTURES if one in data), None)
    if written is None:
        raise NotFound("The notebook does not contain this picture.")
    with suppress(ValueError):
        return b64decode("".join(written.split()))
    return b""


def _language(about: dict[str, Any]) -> str:
    named = _dict(about.get("language_info")).get("name") or _dict(about.get("kernelspec")).get("language") or ""
    return re.sub(r"[^\w+#-]", "", str(named))[:30].lower()


def _author(about: dict[str, Any]) -> str:
    return ", ".join(filter(None, (_text(_dict(one).get("name")) for one in _list(about.get("authors")))))


def _cells(notebook: dict[str, Any]) -> Iterator[object]:
    yield from _list(notebook.get("cells"))
    for sheet in _list(notebook.get("worksheets")):  # the format of notebooks from before 2014
        yield from _list(_dict(sheet).get("cells"))


def _cell_parts(cell: dict[str, Any], language: str, pictures: _CellPictures) -> Iterator[str]:
    source = _text(cell.get("source", cell.get("input"))).strip("\n")
    match cell.get("cell_type"):
        case "markdown":
            yield _closed(pictures.attached(source, _dict(cell.get("attachments"))))
        case "heading":
            level = cell.get("level")
            yield write_heading(level if isinstance(level, int) else 1, escape_inside(" ".join(source.split())))
        case "code":
            yield _code(source, language)
            for number, output in enumerate(_list(cell.get("outputs"))):
                yield _output(_dict(output), number, pictures)
        case _:
            yield _code(source)


def _closed(markdown: str) -> str:
    """Close a code block that a notebook cell leaves open.

    Otherwise the following cells would become part of the code block.
    """
    opened = ""
    for found in _FENCE.finditer(markdown):
        mark = found[1]
        if not opened:
            opened = mark
        elif mark[0] == opened[0] and len(mark) >= len(opened):
            opened = ""
    return f"{markdown}\n{opened}" if opened else markdown


def _output(output: dict[str, Any], number: int, pictures: _CellPictures) -> str:
    if output.get("output_type") in {"error", "pyerr"}:
        return _code(f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}", "text")
    data = _dict(output.get("data")) or output
    picture = pictures.output(number, data)
    return _code(_text(data.get("text/plain", data.get("text"))), "text") if picture is None else picture


def _code(text: str, language: str = "") -> str:
    lines = clean(text).rstrip().strip("\n")
    return fence(lines.split("\n"), language) if lines.strip() else ""


def _text(value: object) -> str:
    """Return the text of a field, which notebooks store as a string or as a list of lines."""
    if isinstance(value, list):
        return "".join(_strings(cast("list[object]", value)))
    return value if isinstance(value, str) else ""


def _strings(values: Iterable[object]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str))


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


# CSV ----------------------------------------------------------------------------------------------------------------


def extract_csv(path: Path, _hints: Hints) -> Extracted:
    return from_text(decode(path.read_bytes()))


def from_text(text: str) -> Extracted:
    declared = _DECLARED.match(text)
    text = text[declared.end() :] if declared else text
    separator = declared[1] if declared and declared[1] in _SEPARATORS else find_separator(text[:_SAMPLE_CHARACTERS])
    sample = [row for _, row in zip(range(_SAMPLE_ROWS), read_rows(text[:_SAMPLE_CHARACTERS], separator), strict=False)]
    grid = Grid()
    # Unlike in a spreadsheet, empty lines do not separate tables.
    grid.add_rows(row for row in read_rows(text, separator) if any(map(str.strip, row)))
    markdown = write_blocks(grid.blocks(has_header=has_header(sample)))
    quality = Quality.PARTIAL if grid.is_cut else Quality.FULL
    return to_extracted(SourceType.CSV, markdown, Metadata(), quality=quality)


def read_rows(text: str, separator: str) -> Iterator[list[str]]:
    """Parse the rows of a CSV file.

    If a quote is never closed, the remaining lines are read without quoting, so that no rows are lost.
    """
    csv.field_size_limit(_MOST_FIELD)
    lines = text.split("\n")
    count = 0
    try:
        for row in csv.reader((f"{line}\n" for line in lines), delimiter=separator):
            count += 1
            yield row
    except csv.Error:
        plain = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
        yield from (row for place, row in enumerate(plain) if place >= count)


def find_separator(sample: str) -> str:
    """Find the separator that splits most rows into the same number of cells, which must be at least two."""
    lines = [line for line in sample.split("\n") if line.strip()][:_SAMPLE_ROWS]
    scores = [
        (_agreement(lines, separator, strict=True), _agreement(lines, separator, strict=False), -place, separator)
        for place, separator in enumerate(_SEPARATORS)
    ]
    return max(scores)[-1]


def _agreement(lines: Sequence[str], separator: str, *, strict: bool) -> tuple[float, int]:
    """Return the share of rows that have the most common number of cells, and that number of cells.

    If `strict` is true, counting stops at a misplaced quote.
    """
    counts: Counter[int] = Counter()
    with suppress(csv.Error):
        counts.update(
            len(row) for row in csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=strict)
        )
    width, rows = counts.most_common(1)[0] if counts else (1, 0)
    return (rows / len(lines), width) if width > 1 else (0.0, 0)


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row is a header: none of its cells looks like a number, date or other value."""
    head = next((row for row in rows if any(map(str.strip, row))), ())
    return not any(_VALUE.fullmatch(cell.strip().lower()) for cell in head)


PROCESSOR = Processor((SourceType.JSON,), extract)
NOTEBOOK = Processor((SourceType.IPYNB,), extract_notebook, read_figure)
CSV = Processor((SourceType.CSV,), extract_csv)
