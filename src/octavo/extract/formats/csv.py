"""CSV files. The separator and whether the first row is a header are detected from the content."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from octavo.extract.decode import decode
from octavo.extract.extracted import Extracted, Metadata, Quality, SourceType
from octavo.extract.markdown.block_writer import write_blocks
from octavo.extract.markdown.table_grid import Grid
from octavo.extract.office.assemble import to_extracted
from octavo.extract.registry import Hints, Processor

_SEPARATORS = ",;\t|"
_SAMPLE_CHARACTERS = 64 * 1024
_SAMPLE_ROWS = 200
_MOST_FIELD = 1 << 20
_DECLARED = re.compile(r'"?sep=(.)"?\n', re.IGNORECASE)  # written by Excel, and overrides detection
_VALUE = re.compile(
    r"[-+(]?[\s$€£¥]*[\d.,'\s]*\d[\d.,'\s]*[)%€$£]?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*|\d{1,2}:\d{2}.*|true|false"
)


def extract(path: Path, _hints: Hints) -> Extracted:
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
    """Parse the rows.

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
    """The separator that splits most rows into the same number of cells, which must be at least two."""
    lines = [line for line in sample.split("\n") if line.strip()][:_SAMPLE_ROWS]
    scores = [
        (_agreement(lines, separator, strict=True), _agreement(lines, separator, strict=False), -place, separator)
        for place, separator in enumerate(_SEPARATORS)
    ]
    return max(scores)[-1]


def _agreement(lines: Sequence[str], separator: str, *, strict: bool) -> tuple[float, int]:
    """The share of rows that have the most common number of cells, and that number.

    `strict`: whether to stop counting at a misplaced quote.
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


PROCESSOR = Processor((SourceType.CSV,), extract)
