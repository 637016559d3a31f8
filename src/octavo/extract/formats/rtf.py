"""RTF: text and tables. Headings are recognised as in plain text, because RTF files rarely use styles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from octavo.core.errors import BadInput
from octavo.extract.decode import clean
from octavo.extract.extracted import Extracted, Metadata, SourceType
from octavo.extract.markdown.block_writer import write_table
from octavo.extract.markdown.escape import escape_inline
from octavo.extract.office.assemble import clean_date, clean_line, clean_title, non_empty, to_extracted
from octavo.extract.plain_text import convert
from octavo.extract.registry import Hints, Processor
from octavo.extract.zips import DAMAGED

# A picture as hexadecimal digits, which can be most of a file.
_PICTURE = re.compile(r"(?<=[\s}\d])[0-9a-fA-F]{200,}(?:\s+[0-9a-fA-F]+)*")
_INFO = re.compile(r"\{\\(title|author|subject|keywords)\s([^{}]{1,2000})\}")
_CREATED = re.compile(r"\{\\creatim\s*\\yr(\d{4})\\mo(\d{1,2})\\dy(\d{1,2})")
_INFO_CHARACTERS = 1 << 20
_ITEM = re.compile(r"\s*(?:[-*•·▪◦]|\d{1,3}[.)])\s")


def extract(path: Path, _hints: Hints) -> Extracted:
    source = path.read_bytes().decode("cp1252", "replace")
    markdown = "\n\n".join(filter(None, _parts(_to_text(source))))
    return to_extracted(SourceType.RTF, clean(markdown), _metadata(source[:_INFO_CHARACTERS]))


def _to_text(source: str) -> str:
    # Imported late: only the sandbox needs it.
    striprtf: Any = import_module("striprtf.striprtf")
    try:
        text = str(striprtf.rtf_to_text(_PICTURE.sub("", source), errors="replace"))
    except (ValueError, LookupError, OverflowError, TypeError) as error:
        raise BadInput(f"{DAMAGED}its text cannot be read.") from error
    # Characters outside the basic plane are written as surrogate pairs.
    return clean(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def _parts(text: str) -> Iterator[str]:
    """Convert each part of the text to Markdown. A line that ends with a bar is a table row; others are paragraphs."""
    for is_table, group in groupby(text.split("\n"), key=lambda line: line.rstrip().endswith("|")):
        lines = list(group)
        if is_table:
            yield write_table([_cells(line) for line in lines])
        else:
            yield convert(_spread(lines)).markdown


def _cells(line: str) -> list[str]:
    return [escape_inline(cell.strip(), r"\\") for cell in line.rstrip().removesuffix("|").split("|")]


def _spread(lines: list[str]) -> str:
    """Insert an empty line between paragraphs; list items stay together."""
    parts: list[str] = []
    for before, line in zip(["", *lines], lines, strict=False):
        together = _ITEM.match(before) and _ITEM.match(line)
        parts.append(("\n" if together else "\n\n") + line.replace("\t", " ") if parts else line)
    return "".join(parts)


def _metadata(source: str) -> Metadata:
    fields = {name: _plain(text) for name, text in reversed(_INFO.findall(source))}
    created = _CREATED.search(source)
    date = f"{created[1]}-{int(created[2]):02}-{int(created[3]):02}" if created else None
    return Metadata(
        title=clean_title(fields.get("title")),
        author=clean_line(fields.get("author")),
        date=clean_date(date),
        extra=non_empty(subject=fields.get("subject"), keywords=fields.get("keywords")),
    )


def _plain(text: str) -> str:
    try:
        return _to_text("{\\rtf1 " + text + "}")
    except BadInput:
        return ""


PROCESSOR = Processor((SourceType.RTF,), extract)
