"""Measures extraction: `python -m benchmarks.extraction.measure FOLDER [--only NAME …] [--json OUT]`.

FOLDER holds public test files by kind, such as `pdf-malformed`, `tables-icdar2013`, `docling/docx`, `scans` and `epub`.
Every row shows the figure, its goal and the number of files. Details go to standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import traceback
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from benchmarks.extraction import formats, hostile, item_rows, long_pdf, made_pages, ocr, pdf, table_rows
from benchmarks.extraction.counting import Counting
from benchmarks.extraction.rows import Row, as_table, missing, open_sandbox, report

Measure = Callable[[Counting, Path], Awaitable[list[Row]]]


MEASURES: dict[str, Measure] = {
    "hostile": hostile.measure_hostile,
    "damaged": hostile.measure_damaged,
    "tables": table_rows.measure_tables,
    "items": item_rows.measure_items,
    "order": made_pages.measure_order,
    "headings": pdf.measure_headings,
    "letters": pdf.measure_letters,
    "forms": pdf.measure_forms,
    "ocr": ocr.measure_scans,
    "scripts": ocr.measure_scripts,
    "html": formats.measure_html,
    "web": formats.measure_web,
    "office": formats.measure_office,
    "others": formats.measure_others,
    "epub": formats.measure_books,
    "docling": pdf.measure_docling,
    "rotated": made_pages.measure_rotated,
    "chunks": pdf.measure_chunks,
    "speed": long_pdf.measure_speed,
    "cores": long_pdf.measure_cores,
    "memory": long_pdf.measure_memory,
}


async def measure(folder: Path, names: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    async with open_sandbox() as sandbox:
        for name in names:
            report(f"— {name}")
            try:
                rows += await MEASURES[name](sandbox, folder)
            except Exception as error:  # noqa: BLE001 - the other measurements go on
                report(traceback.format_exc())
                rows.append(missing(name, None, f"failed with {type(error).__name__}"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction.measure", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--json", type=Path, dest="out")
    options = parser.parse_args()
    rows = asyncio.run(measure(options.folder, options.only))
    print(as_table(rows))
    if options.out:
        options.out.write_text(json.dumps([row.as_json() for row in rows], indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
