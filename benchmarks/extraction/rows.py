"""A measured figure with its goal, and the reader that all measurements share."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.extraction.counting import Counting
from octavo.core.errors import OctavoError
from octavo.extract.extracted import Extracted
from octavo.extract.file_reader import PRELOAD, FileReader
from octavo.extract.pdf.pdf_file import PRELOAD as PDF_PRELOAD

PROJECT = Path(__file__).resolve().parents[2]
FEW_FILES = 10
NOTHING = "\u2013"


@dataclass(frozen=True, slots=True)
class Row:
    """`figure` is None if it could not be measured; `note` then gives the reason. `least`: the goal is a minimum."""

    name: str
    figure: float | None
    goal: float | None
    files: int
    note: str = ""
    least: bool = True

    @property
    def reached(self) -> bool | None:
        if self.figure is None or self.goal is None:
            return None
        return self.figure >= self.goal if self.least else self.figure <= self.goal

    @property
    def warning(self) -> str:
        few = f"only {self.files} files" if 0 < self.files < FEW_FILES else ""
        return "; ".join(filter(None, (self.note, few)))

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "reached": self.reached, "warning": self.warning}


def mean_row(name: str, values: Sequence[float], goal: float, note: str = "") -> Row:
    if not values:
        return missing(name, goal, note or "no files of this kind in the folder")
    return Row(name, sum(values) / len(values), goal, len(values), note)


def missing(name: str, goal: float | None, reason: str) -> Row:
    return Row(name, None, goal, 0, f"not measured: {reason}")


def as_table(rows: Sequence[Row]) -> str:
    lines = ["| Measure | Figure | Goal | Reached | Files | Remarks |", "|---|---:|---:|---|---:|---|"]
    for row in rows:
        figure = NOTHING if row.figure is None else f"{row.figure:.3f}".removesuffix(".000")
        goal = NOTHING if row.goal is None else f"{'≥' if row.least else '≤'} {row.goal:g}"
        reached = {True: "yes", False: "no", None: NOTHING}[row.reached]
        lines.append(f"| {row.name} | {figure} | {goal} | {reached} | {row.files or NOTHING} | {row.warning} |")
    return "\n".join(lines)


@asynccontextmanager
async def open_sandbox() -> AsyncGenerator[Counting]:
    """A sandbox as workers have it, which also runs the functions that find the truth about a file."""
    preload = (*PRELOAD, *PDF_PRELOAD, "benchmarks.extraction.truth")
    async with Counting(preload, readable=(PROJECT,)) as sandbox:
        yield sandbox


async def read_file(sandbox: Counting, path: Path) -> Extracted | None:
    try:
        return await FileReader(sandbox).read(path)
    except OctavoError as error:
        report(f"{path.name}: {error.code}: {error.line}")
        return None


def files_in(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.rglob(pattern))


def report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
