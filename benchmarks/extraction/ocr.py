"""How well and how fast text is recognised: pages that have their text are drawn, and read as if they had none.

`python -m benchmarks.extraction.ocr FOLDER [--pages N]`: of every PDF, N pages with enough words, far from each other.
Then a page of two columns, drawn here from words of these files. Everything runs in the sandbox, as in a worker.

`python -m benchmarks.extraction.ocr --files FOLDER`: every picture is fitted and read, and how that ends is listed.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from PIL import Image, ImageDraw

from octavo.core.errors import OctavoError
from octavo.extract.extracted import SourceType
from octavo.extract.ocr.recognition import PRELOAD, SECONDS, Recognition, recognise_page_of_file
from octavo.extract.pdf.document import open_document
from octavo.extract.pdf.letters import clean_letters
from octavo.extract.pdf.page_batches import PageText, batch_from_json
from octavo.extract.pictures.picture_file import PRELOAD as PICTURE_PRELOAD
from octavo.extract.pictures.picture_file import PictureInSandbox
from octavo.sandbox import Limits, Sandbox

GOAL_RECALL, GOAL_ORDER = 0.93, 0.93
LEAST_WORDS = 100
LIMITS = Limits(cpu_seconds=SECONDS, wall_seconds=4 * SECONDS)


class Turn(NamedTuple):
    """One page, and what it took."""

    page: PageText
    wall: float
    cpu: float
    memory: int


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction.ocr", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=4)
    parser.add_argument("--files", action="store_true")
    options = parser.parse_args()
    if options.files:
        asyncio.run(list_endings(sorted(path for path in options.folder.iterdir() if path.is_file())))
        return 0
    return asyncio.run(measure(sorted(options.folder.glob("*.pdf")), options.pages))


async def measure(files: Sequence[Path], pages: int) -> int:
    recalls: list[float] = []
    turns: list[Turn] = []
    drawn: list[str] = []
    async with Sandbox(preload=PRELOAD) as sandbox:
        print(f"{'':32} page  words recall  wall s   cpu s  MiB")
        for path in files:
            for number, truth in wordy_pages(path, pages):
                turn = await recognise(sandbox, path, SourceType.PDF, number)
                recalls.append((Counter(truth) & Counter(words_in(turn.page))).total() / len(truth))
                turns.append(turn)
                drawn += truth
                told = f"{turn.wall:7.1f} {turn.cpu:7.1f} {turn.memory >> 20:4}"
                print(f"{path.stem[:32]:32} {number:4} {len(truth):6} {recalls[-1]:6.3f} {told}")
        order = await in_order(sandbox, drawn)
    if not recalls:
        sys.exit("There is no page with enough words.")
    print(
        f"recall: mean {mean(recalls):.3f}, median {median(recalls):.3f}, least {min(recalls):.3f} (goal {GOAL_RECALL})"
    )
    print(f"two columns: {order:.3f} of the words in their order (goal {GOAL_ORDER})")
    memory = max(turn.memory for turn in turns) >> 20
    print(f"a page: {mean(t.cpu for t in turns):.1f} s of computing, {mean(t.wall for t in turns):.1f} s; {memory} MiB")
    return 0 if mean(recalls) >= GOAL_RECALL and order >= GOAL_ORDER else 1


def wordy_pages(path: Path, most: int) -> Iterable[tuple[int, list[str]]]:
    with open_document(path) as document:
        step = max(1, document.page_count // (most + 1))
        found = 0
        for number in range(min(step, document.page_count), document.page_count + 1, step):
            with document.page(number) as page:
                truth = words_of(clean_letters(page.text()))
            if len(truth) >= LEAST_WORDS and found < most:
                found += 1
                yield number, truth


async def recognise(sandbox: Sandbox, path: Path, source_type: SourceType, number: int) -> Turn:
    call = recognise_page_of_file.call(source_type=source_type, number=number, language="auto", password=None)
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        outcome = await sandbox.run(call, input_file=path, output_file=output, limits=LIMITS)
        wall = time.perf_counter() - started
        (page,) = batch_from_json(output.read()).pages
    return Turn(page, wall, outcome.cpu_seconds, outcome.peak_memory_bytes)


def words_in(page: PageText) -> list[str]:
    return words_of("\n".join(block.text for block in page.blocks))


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


async def in_order(sandbox: Sandbox, words: Sequence[str]) -> float:
    """The share of words that stand in one row with the same neighbours as before."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "columns.png"
        truth = draw_columns(words[:400], path)
        turn = await recognise(sandbox, path, SourceType.IMAGE, 1)
    found = words_in(turn.page)
    same = sum(block.size for block in SequenceMatcher(None, truth, found, autojunk=False).get_matching_blocks())
    return same / max(len(truth), 1)


def draw_columns(words: Sequence[str], path: Path, size: int = 28) -> list[str]:
    """A page of 200 dots an inch; answers the words that fitted on it, in the order of the columns."""
    sheet = Image.new("RGB", (1654, 2339), "white")
    pen = ImageDraw.Draw(sheet)
    waiting, written = list(words), list[str]()
    for left in (140, 860):
        for top in range(200, 2000, round(1.4 * size)):
            line = ""
            while waiting and pen.textlength(f"{line} {waiting[0]}", font_size=size) < 640:
                written.append(waiting.pop(0))
                line = f"{line} {written[-1]}".strip()
            pen.text((left, top), line, fill="black", font_size=size)
    sheet.save(path)
    return written


async def list_endings(files: Sequence[Path]) -> None:
    async with Sandbox(preload=PICTURE_PRELOAD) as sandbox, Sandbox(preload=PRELOAD) as engine:
        recognition = Recognition(engine)
        for path in files:
            started = time.perf_counter()
            try:
                picture = PictureInSandbox(sandbox, path, limits=sandbox.limits, recognition=recognition)
                copy, found = await picture.fit(), await picture.extract()
                told = f"{len(copy) >> 10} KB, {found.quality}, {found.word_count} words"
            except OctavoError as error:
                told = f"{error.code}: {error.detail or error.title}"
            print(f"{path.name[:32]:32} {time.perf_counter() - started:5.1f} s  {told}")


if __name__ == "__main__":
    sys.exit(main())
