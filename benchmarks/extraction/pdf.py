"""How well and how fast PDFs are read: headings against the bookmarks that the files have, and speed against liteparse.

`python -m benchmarks.extraction.pdf FOLDER`: every PDF with bookmarks is read as it is and without them. Speeds are
pages for each second of processor time, the better of two rounds, so that neighbours on the machine matter less.

`python -m benchmarks.extraction.pdf --endings FOLDER`: every file is read in the sandbox, and the endings are counted.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import liteparse

from benchmarks.extraction.counting import Counting
from benchmarks.extraction.judging import Heading, bookmarks_of, is_same, plain, without_bookmarks
from octavo.core.errors import OctavoError
from octavo.extract.extracted import BlockKind, Extracted, Quality
from octavo.extract.file_reader import PRELOAD
from octavo.extract.pdf.facts import open_pdf
from octavo.extract.pdf.page_batches import batch_ranges
from octavo.extract.pdf.page_text import read_batch
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.sandbox import Outcome, Sandbox
from tests.support.pdf import assemble

ROUNDS = 2
GOAL_RECALL, GOAL_LEVELS = 0.88, 0.90
_liteparse: Any = liteparse


class Judgement(NamedTuple):
    """`levels`: share of pairs of headings that stand to each other as their bookmarks do."""

    recall: float
    precision: float
    levels: float


class Speed(NamedTuple):
    pages: int
    bare: float
    inside: float
    memory: int


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--endings"]:
        asyncio.run(count_endings(sorted(Path(arguments[1]).glob("*.pdf"))))
        return 0
    return measure(sorted(Path(arguments[0]).glob("*.pdf")))


def measure(paths: Sequence[Path]) -> int:
    kept: list[Judgement] = []
    stripped: list[Judgement] = []
    print(f"{'':24} pages  recall levels  recall levels    bare sandbox  MiB")
    for path in paths:
        bookmarks = bookmarks_of(path)
        if not bookmarks:
            continue
        with tempfile.TemporaryDirectory() as folder:
            bare = without_bookmarks(path, Path(folder))
            kept.append(judge(bookmarks, read(path)))
            stripped.append(judge(bookmarks, read(bare)))
        speed = speeds(path)
        bare_ones, kept_ones = (f"{one[-1].recall:7.3f} {one[-1].levels:6.3f}" for one in (stripped, kept))
        numbers = f"{speed.bare:7.0f} {speed.inside:7.0f} {speed.memory >> 20:4}"
        print(f"{path.stem[:24]:24} {speed.pages:5} {bare_ones} {kept_ones} {numbers}")
    recall, levels = mean(one.recall for one in stripped), mean(one.levels for one in kept)
    print(
        f"without bookmarks: recall {recall:.3f} (goal {GOAL_RECALL}); with: levels {levels:.3f} (goal {GOAL_LEVELS})"
    )
    return 0 if recall >= GOAL_RECALL and levels >= GOAL_LEVELS else 1


def read(path: Path) -> Extracted:
    facts = open_pdf(path)
    return assemble(facts, [read_batch(path, *pages) for pages in batch_ranges(facts.page_count)])


def judge(wanted: Sequence[Heading], extracted: Extracted) -> Judgement:
    found = [Heading(plain(one.text), one.page, one.level) for one in extracted.blocks if one.kind is BlockKind.HEADING]
    pairs = [(one, other) for one in wanted if (other := next((h for h in found if is_same(one, h)), None))]
    agreeing = [_order(a, c) == _order(b, d) for (a, b), (c, d) in combinations(pairs, 2)]
    right = sum(any(is_same(one, other) for one in wanted) for other in found)
    return Judgement(len(pairs) / len(wanted), right / max(len(found), 1), mean(agreeing) if agreeing else 0.0)


def _order(one: Heading, other: Heading) -> int:
    first, second = one.level or 0, other.level or 0
    return (first > second) - (first < second)


def speeds(path: Path) -> Speed:
    pages = open_pdf(path).page_count
    bare = max(pages / _processor_seconds(lambda: _parse_bare(path)) for _ in range(ROUNDS))
    outcomes = [asyncio.run(_read_in_sandbox(path)) for _ in range(ROUNDS)]
    inside = max(pages / sum(one.cpu_seconds for one in round_) for round_ in outcomes)
    return Speed(pages, bare, inside, max(one.peak_memory_bytes for round_ in outcomes for one in round_))


def _parse_bare(path: Path) -> None:
    options = {"ocr_enabled": False, "output_format": "markdown", "max_pages": 10**6, "quiet": True}
    _liteparse.LiteParse(**options, extract_blocks=True).parse(path)


def _processor_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


async def _read_in_sandbox(path: Path) -> list[Outcome]:
    async with Counting(PRELOAD) as sandbox:
        await PdfInSandbox(sandbox, path).extract()
        return sandbox.outcomes


async def count_endings(paths: Sequence[Path]) -> None:
    endings: Counter[str] = Counter()
    slowest = 0.0
    async with Sandbox(preload=PRELOAD) as sandbox:
        for path in paths:
            start = time.monotonic()
            endings[await _ending(sandbox, path)] += 1
            slowest = max(slowest, time.monotonic() - start)
    for ending, count in endings.most_common():
        print(f"{count:5} {ending}")
    print(f"slowest {slowest:.1f} s")


async def _ending(sandbox: Sandbox, path: Path) -> str:
    try:
        extracted = await PdfInSandbox(sandbox, path).extract()
    except OctavoError as error:
        return f"{error.code}: {error.line}"
    if extracted.quality is not Quality.EMPTY:
        return extracted.quality
    return "empty, for OCR" if "pages_for_ocr" in extracted.metadata.extra else "empty, blank"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
