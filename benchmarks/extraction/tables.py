"""Measures tables against the ICDAR 2013 competition: `python -m benchmarks.extraction.tables FOLDER [--half odd]`.

As in the competition, a table is the set of pairs of neighbouring cells, to the right and below; empty cells are
skipped. A table counts as found if at least half of its pairs are there. The finder was tuned on the files with even
numbers in the sorted folder (the 2nd, 4th, …), so only the odd ones measure it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import NamedTuple
from xml.etree import ElementTree as ET

from octavo.extract.pdf.content import read_contents
from octavo.extract.pdf.table_rows import Table
from octavo.extract.pdf.tables import find_tables

FOUND_SHARE = 0.5


class Place(NamedTuple):
    """A cell: its text without white space, and the rows and columns that it covers, the last ones included."""

    text: str
    top: int
    bottom: int
    left: int
    right: int


Pairs = Counter[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class FileScore:
    """How well the tables of one file were read."""

    name: str
    expected: int
    returned: int
    correct: int
    tables: int
    found: int
    claimed: int
    seconds: float
    pages: int

    @property
    def f1(self) -> float:
        both = self.expected + self.returned
        return 2 * self.correct / both if both else 1.0


@dataclass(frozen=True, slots=True)
class Measurement:
    files: tuple[FileScore, ...]

    @property
    def macro_f1(self) -> float:
        """The mean over the files."""
        return sum(one.f1 for one in self.files) / max(1, len(self.files))

    @property
    def micro_f1(self) -> float:
        """Over all pairs of all files together."""
        both = sum(one.expected + one.returned for one in self.files)
        return 2 * sum(one.correct for one in self.files) / max(1, both)


def measure(folder: Path, half: str = "all") -> Measurement:
    """Measure the PDFs of a folder that have a ground truth beside them. `half`: `even`, `odd` or `all`."""
    files = [path for path in sorted(folder.glob("*.pdf")) if truth_path(path).exists()]
    start, step = {"odd": (0, 2), "even": (1, 2), "all": (0, 1)}[half]
    return Measurement(tuple(map(score_file, files[start::step])))


def truth_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}-str.xml")


def score_file(path: Path) -> FileScore:
    pages = list(read_contents(path.read_bytes()))
    began = process_time()
    tables = [table for page in pages for table in find_tables(page)]
    seconds = process_time() - began
    wanted = list(expected_tables(truth_path(path)))
    returned = total(pairs(places(table)) for table in tables)
    expected = total(wanted)
    return FileScore(
        path.stem,
        expected.total(),
        returned.total(),
        (expected & returned).total(),
        len(wanted),
        sum((one & returned).total() >= FOUND_SHARE * one.total() for one in wanted),
        len(tables),
        seconds,
        len(pages),
    )


def expected_tables(truth: Path) -> Iterator[Pairs]:
    for table in ET.parse(truth).iter("table"):
        yield total(pairs(map(_truth_place, region.iter("cell"))) for region in table.iter("region"))


def total(parts: Iterable[Pairs]) -> Pairs:
    result: Pairs = Counter()
    for part in parts:
        result.update(part)
    return result


def _truth_place(cell: ET.Element) -> Place:
    top, left = int(cell.attrib["start-row"]), int(cell.attrib["start-col"])
    bottom, right = int(cell.attrib.get("end-row", top)), int(cell.attrib.get("end-col", left))
    return Place(squeeze(cell.findtext("content") or ""), top, bottom, left, right)


def places(table: Table) -> Sequence[Place]:
    """The cells of a table that we found, with their place in the grid."""
    taken: set[tuple[int, int]] = set()
    result: list[Place] = []
    for top, row in enumerate(table.rows):
        left = 0
        for cell in row:
            while (top, left) in taken:
                left += 1
            result.append(Place(squeeze(cell.text), top, top + cell.rows - 1, left, left + cell.columns - 1))
            taken.update((top + down, left + across) for down in range(cell.rows) for across in range(cell.columns))
    return result


def squeeze(text: str) -> str:
    """Compare letters and digits only, as the competition does."""
    return "".join(letter for letter in text if letter.isalnum()).casefold() or "".join(text.split())


def pairs(cells: Iterable[Place]) -> Pairs:
    """Each cell with its nearest neighbours to the right and below that have text."""
    grid = {(row, column): cell for cell in cells if cell.text
            for row in range(cell.top, cell.bottom + 1) for column in range(cell.left, cell.right + 1)}  # fmt: skip
    last_row = max((row for row, _ in grid), default=0)
    last_column = max((column for _, column in grid), default=0)
    found: set[tuple[Place, Place, str]] = set()
    for cell in set(grid.values()):
        for row in range(cell.top, cell.bottom + 1):
            across = (grid.get((row, column)) for column in range(cell.right + 1, last_column + 1))
            found.update((cell, other, "right") for other in _first(across))
        for column in range(cell.left, cell.right + 1):
            down = (grid.get((row, column)) for row in range(cell.bottom + 1, last_row + 1))
            found.update((cell, other, "down") for other in _first(down))
    return Counter((one.text, other.text, way) for one, other, way in found)


def _first(cells: Iterator[Place | None]) -> Iterator[Place]:
    cell = next((one for one in cells if one), None)
    if cell:
        yield cell


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction.tables", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("even", "odd", "all"), default="odd")
    options = parser.parse_args()
    measurement = measure(options.folder, options.half)
    if not measurement.files:
        sys.exit(f"There is no PDF with a ground truth in {options.folder}.")
    for one in measurement.files:
        print(f"{one.name:10} F1 {one.f1:.3f}  pairs {one.correct} of {one.expected}, {one.returned} returned  "
              f"tables {one.found} of {one.tables}, {one.claimed} returned")  # fmt: skip
    pages = sum(one.pages for one in measurement.files)
    print(f"macro F1 {measurement.macro_f1:.3f}, micro F1 {measurement.micro_f1:.3f}, "
          f"found {sum(one.found for one in measurement.files)} of {sum(one.tables for one in measurement.files)}, "
          f"{1000 * sum(one.seconds for one in measurement.files) / pages:.2f} ms a page")  # fmt: skip


if __name__ == "__main__":
    main()
