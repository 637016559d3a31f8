"""Tables of ICDAR 2013: those of the table finder, and those that reach the text of the document."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.extraction.counting import Counting
from benchmarks.extraction.judging import plain
from benchmarks.extraction.rows import Row, missing, read_file, report

FOLDER = "tables-icdar2013"
_TABLE = re.compile(r"(?:^\|.*\|[ \t]*\n?)+", re.MULTILINE)
_RULE = re.compile(r"^[ \t|:-]+$")


async def measure_tables(sandbox: Counting, folder: Path) -> list[Row]:
    try:
        tables: Any = importlib.import_module("benchmarks.extraction.tables")
    except ImportError:
        return [missing("tables of ICDAR 2013: adjacency F1", 0.95, "benchmarks/extraction/tables.py is missing")]
    finder = await asyncio.to_thread(tables.measure, folder / FOLDER)
    if not finder.files:
        return [missing("tables of ICDAR 2013: adjacency F1", 0.95, f"no folder {FOLDER}")]
    found, wanted = (sum(getattr(one, name) for one in finder.files) for name in ("found", "tables"))
    return [
        Row("tables of ICDAR 2013, finder: adjacency F1", finder.macro_f1, 0.95, len(finder.files)),
        Row("tables of ICDAR 2013, finder: found", found / wanted, 1, len(finder.files), f"{found} of {wanted}"),
        *await _measure_documents(tables, sandbox, folder),
    ]


async def _measure_documents(tables: Any, sandbox: Counting, folder: Path) -> list[Row]:  # noqa: ANN401
    """Tables in the Markdown of a document. Markdown has no spanning cells, so these pairs are lost."""
    scores: list[float] = []
    found = wanted = 0
    for path in with_table_truth(tables, folder):
        extracted = await read_file(sandbox, path)
        expected = list(tables.expected_tables(tables.truth_path(path)))
        both = sum(expected, Counter())
        ours = sum(
            (tables.pairs(places) for places in tables_in(tables, extracted.markdown if extracted else "")), Counter()
        )
        scores.append(2 * (both & ours).total() / max(both.total() + ours.total(), 1))
        found += sum((one & ours).total() >= tables.FOUND_SHARE * one.total() for one in expected)
        wanted += len(expected)
        report(f"{path.name:20} {scores[-1]:.3f}")
    return [
        Row("tables of ICDAR 2013, Markdown: adjacency F1", sum(scores) / len(scores), 0.95, len(scores)),
        Row("tables of ICDAR 2013, Markdown: found", found / max(wanted, 1), 1, len(scores), f"{found} of {wanted}"),
    ]


def with_table_truth(tables: Any, folder: Path) -> list[Path]:  # noqa: ANN401
    return [path for path in sorted((folder / FOLDER).glob("*.pdf")) if tables.truth_path(path).exists()]


def tables_in(tables: Any, markdown: str) -> Iterator[list[Any]]:  # noqa: ANN401
    for table in _TABLE.findall(markdown):
        rows = [line.strip().strip("|") for line in table.splitlines() if not _RULE.match(line)]
        grid = [[plain(cell.replace("<br>", " ")).strip() for cell in re.split(r"(?<!\\)\|", row)] for row in rows]
        levels = [*header_levels(grid[0], 0)]
        deep = max(bottom for _, _, bottom, _, _ in levels)
        body = (
            (cell, top, top, left, left) for top, row in enumerate(grid[1:], deep + 1) for left, cell in enumerate(row)
        )
        yield [tables.Place(tables.squeeze(text), *place) for text, *place in chain(levels, body)]


def without_repeated_headings(markdown: str) -> str:
    """The text with each heading above several columns written only once, as on the page."""
    return _TABLE.sub(lambda table: _with_headings_once(table[0]), markdown)


def _with_headings_once(table: str) -> str:
    header, line_end, rows = table.partition("\n")
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", header.strip().strip("|"))]
    return " ".join(text for text, *_ in header_levels(cells, 0)) + line_end + rows


def header_levels(header: Sequence[str], top: int) -> Iterator[tuple[str, int, int, int, int]]:
    """The cells of a header as text, first and last row, first and last column.

    Octavo writes a heading above several columns before the heading of each of them: "Sales / 2023", "Sales / 2024".
    """
    columns = [cell.split(" / ", 1) for cell in header]
    left, parts = 0, list[list[int]]()
    while left < len(columns):
        right = left
        while (
            right + 1 < len(columns)
            and len(columns[left]) == len(columns[right + 1]) == 2
            and columns[left][0] == columns[right + 1][0]
        ):
            right += 1
        parts.append([left, right])
        left = right + 1
    deep = top + any(right > left for left, right in parts)
    for left, right in parts:
        if right > left:
            yield columns[left][0], top, top, left, right
            for text, first, last, one, other in header_levels(
                [columns[at][1] for at in range(left, right + 1)], top + 1
            ):
                yield text, first, last, one + left, other + left
        else:
            yield header[left], top, deep, left, left
