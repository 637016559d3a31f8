"""How well and how fast text is recognised, as in a worker.

Scans are judged by the text that lies beside them. Pages of PDFs that have their text are drawn and read as if they had
none, a few for each script; so are pages of two columns that are drawn here.
"""

from __future__ import annotations

import re
import tempfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from difflib import SequenceMatcher
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from PIL import Image, ImageDraw

from benchmarks.extraction import truth
from benchmarks.extraction.counting import Counting
from benchmarks.extraction.made_pages import SENTENCES
from benchmarks.extraction.rows import Row, files_in, mean_row, missing, report
from octavo.core.errors import OctavoError
from octavo.extract.extracted import SourceType
from octavo.extract.ocr.recognition import PRELOAD, Recognition
from octavo.extract.pdf.letters import clean_letters
from octavo.extract.pdf.page_batches import batch_from_json

LEAST_WORDS, PAGES_OF_A_SCRIPT = 40, 3
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_ROTATED = re.compile(r"-rotated-\d+$")


class Turn(NamedTuple):
    """The words of one recognised page, and its processor seconds."""

    words: list[str]
    seconds: float


@asynccontextmanager
async def open_engine() -> AsyncGenerator[Counting]:
    async with Counting(PRELOAD) as engine:
        yield engine


async def recognise(engine: Counting, path: Path, source_type: SourceType, number: int = 1) -> Turn:
    engine.take_seconds()
    made = await Recognition(engine).page(source_type, path, number)
    pages = batch_from_json(made).pages if made else ()
    return Turn(words_of("\n".join(block.text for page in pages for block in page.blocks)), engine.take_seconds())


def words_of(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())


def share_in_order(wanted: Sequence[str], found: Sequence[str]) -> float:
    """The share of words that are in the same order in both texts."""
    matches = SequenceMatcher(None, wanted, found, autojunk=False).get_matching_blocks()
    return sum(one.size for one in matches) / max(len(wanted), 1)


def share_of_words(wanted: Sequence[str], found: Sequence[str]) -> float:
    return (Counter(wanted) & Counter(found)).total() / max(len(wanted), 1)


# Scans --------------------------------------------------------------------------------------------------------------


async def measure_scans(_sandbox: Counting, folder: Path) -> list[Row]:
    pairs = [(path, text) for path in files_in(folder, "scans/*") if (text := text_beside(path))]
    shares: list[float] = []
    orders: list[float] = []
    seconds: list[float] = []
    async with open_engine() as engine:
        for path, text in pairs:
            wanted = words_of(text)
            turn = await recognise(engine, path, SourceType.IMAGE)
            shares.append(share_of_words(wanted, turn.words))
            orders.append(share_in_order(wanted, turn.words))
            seconds.append(turn.seconds)
            report(f"{path.name:45} words {shares[-1]:.3f} order {orders[-1]:.3f} {turn.seconds:.1f} s")
        columns = await _order_of_columns(engine)
    if not pairs:
        return [missing("OCR of scans: words found", 0.95, "no picture has its text beside it")]
    return [
        mean_row("OCR of scans: words found", shares, 0.95),
        mean_row("OCR of scans: words in order", orders, 0.95),
        Row("OCR: processor seconds a page", mean(seconds), 4, len(seconds), least=False),
        mean_row("OCR of two drawn columns: words in order", columns, 0.95),
    ]


def text_beside(path: Path) -> str:
    """The text of a picture. A rotated copy has the text of its original."""
    if path.suffix == ".txt":
        return ""
    stem = _ROTATED.sub("", path.stem)
    texts = [path.with_name(f"{stem}{ending}") for ending in (".gold.txt", ".txt")]
    return next((one.read_text(errors="replace") for one in texts if one.exists()), "")


async def _order_of_columns(engine: Counting) -> list[float]:
    values: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(2):
            path = Path(folder) / f"{seed}.png"
            words = " ".join(SENTENCES[seed:] + SENTENCES[:seed]).split()
            wanted = draw_columns(words * 3, path)
            values.append(share_in_order(wanted, (await recognise(engine, path, SourceType.IMAGE)).words))
    return values


def draw_columns(words: Sequence[str], path: Path, size: int = 28) -> list[str]:
    """Draw a page of 200 dots an inch. Returns the words that fitted on it, in the order of the columns."""
    sheet = Image.new("RGB", (1654, 2339), "white")
    pen = ImageDraw.Draw(sheet)
    waiting, written = list(words), list[str]()
    for left in (140, 860):
        for top in range(200, 1000, round(1.4 * size)):
            line = ""
            while waiting and pen.textlength(f"{line} {waiting[0]}", font_size=size) < 640:
                written.append(waiting.pop(0))
                line = f"{line} {written[-1]}".strip()
            pen.text((left, top), line, fill="black", font_size=size)
    sheet.save(path)
    return words_of(" ".join(written))


# Scripts ------------------------------------------------------------------------------------------------------------


async def measure_scripts(sandbox: Counting, folder: Path) -> list[Row]:
    pages = await pages_by_script(sandbox, folder)
    rows: list[Row] = []
    async with open_engine() as engine:
        for script, found in sorted(pages.items()):
            shares: list[float] = []
            for path, number, wanted in found:
                turn = await recognise(engine, path, SourceType.PDF, number)
                shares.append(share_of_words(wanted, turn.words))
                report(f"{script} {path.name:45} page {number} words {shares[-1]:.3f} {turn.seconds:.1f} s")
            rows.append(mean_row(f"OCR of {script.title()} pages: words found", shares, 0.95))
    return rows or [missing("OCR by script: words found", 0.95, "no PDFs with enough words")]


async def pages_by_script(sandbox: Counting, folder: Path) -> dict[str, list[tuple[Path, int, list[str]]]]:
    """At most one page of a file, and a few for each script."""
    found: dict[str, list[tuple[Path, int, list[str]]]] = defaultdict(list)
    for path in files_in(folder, "*.pdf"):
        try:
            texts = await truth.ask(sandbox, truth.page_texts, path)
        except OctavoError:
            continue
        for number, text in enumerate(texts[:20], 1):
            words = words_of(clean_letters(text or ""))
            script = main_script("".join(words))
            if len(words) >= LEAST_WORDS and script and len(found[script]) < PAGES_OF_A_SCRIPT:
                found[script].append((path, number, words))
                break
    return {script: pages for script, pages in found.items() if pages}


def main_script(text: str) -> str:
    """The script of most letters; empty if less than 80 % of the letters are of one script."""
    scripts = Counter(unicodedata.name(one, "UNKNOWN").split()[0] for one in text if one.isalpha())
    script, count = scripts.most_common(1)[0] if scripts else ("", 0)
    return script if count >= 0.8 * scripts.total() and script != "UNKNOWN" else ""
