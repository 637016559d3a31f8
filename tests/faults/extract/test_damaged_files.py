"""Damaged files of every format end in a clear state, and no text is called complete that the file does not contain."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import pytest
import pytest_asyncio

from octavo.core.errors import BadInput, Crashed, OctavoError, TimedOut
from octavo.extract.extracted import Extracted, Quality, SourceType
from octavo.extract.file_reader import PRELOAD, PRELOAD_BY_TYPE, FileReader
from octavo.extract.ocr.recognition import Recognition
from octavo.extract.pdf.page_batches import batch_from_json
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.sandbox import Limits, Sandbox
from tests.support.damage import damaged
from tests.support.office import samples
from tests.support.pdf import Bookmark, Line, Pdf, Picture, Words, paragraph

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHORT, LONG = 60, 1000
# A damaged file may be slow, but it ends.
LIMITS = Limits(cpu_seconds=20, wall_seconds=120)
MOST_FOREIGN = 0.1


class NoRecognition(Recognition):
    """OCR takes seconds for each page and has tests of its own."""

    async def page(self, source_type: SourceType, path: Path, number: int, password: str | None = None) -> bytes:
        return b""


@cache
def originals() -> list[tuple[str, bytes]]:
    text = ["The library keeps every page where a reader can find it again.", "Nobody has to believe it."]
    title = Words("1 Chapter", top=90, size=18, font="bold")
    table = [Words(f"{row} by {left}", left, 300 + 20 * row) for row in range(4) for left in (80, 200, 320)]
    rules = [Line(72, 285 + 20 * row, 420, 285 + 20 * row) for row in range(5)]
    pdf = Pdf(
        [[title, *paragraph(text, 120), *table, *rules], [*paragraph(text, 120), Picture()]],
        [Bookmark(1, "Chapter", 1)],
    )
    wide = Pdf([[Words("Привет 你好 שלום", top=100), *paragraph(text, 140)]])
    files = {f"sample.{kind}": content for kind, content in samples().items()}
    page = "<!doctype html><html><body><h1>Lighthouse</h1><table><tr><td>Height<td>28.5</table></body></html>"
    files |= {
        "page.html": page.encode(),
        "notes.md": b"# Lighthouse\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    }
    files |= {"plain.pdf": pdf.write(), "wide.pdf": wide.write(), "locked.pdf": pdf.write("")}
    return sorted(files.items())


def make(number: int) -> tuple[str, bytes]:
    """Every second file is a PDF: most files are, and their format is the most fragile."""
    pdfs = [one for one in originals() if one[0].endswith("pdf")]
    name, content = (pdfs if number % 2 else originals())[number // 2 % len(pdfs if number % 2 else originals())]
    return name, damaged(content, f"{name} {number}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    modules = [module for each in PRELOAD_BY_TYPE.values() for module in each]
    async with Sandbox(preload=[*PRELOAD, *modules], limits=LIMITS) as started:
        yield started


async def read(sandbox: Sandbox, path: Path) -> Extracted | OctavoError:
    try:
        return await FileReader(sandbox, NoRecognition(sandbox)).read(path)
    except OctavoError as error:
        return error


async def pdfium_text(sandbox: Sandbox, path: Path) -> str:
    pdf = PdfInSandbox(sandbox, path, limits=LIMITS)
    facts = await pdf.open()
    batch = batch_from_json(await pdf.read_once(1, facts.page_count, layout=False))
    # Bookmarks and page labels are in the text, but not on the pages.
    beside = [one.title for one in facts.bookmarks] + [page.label for page in batch.pages]
    return "\n".join([*beside, *(block.text for page in batch.pages for block in page.blocks)])


def foreign_words(text: str, source: str) -> list[str]:
    whole = re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", source).lower())
    words = re.findall(r"[^\W_]{2,}", unicodedata.normalize("NFKC", text).lower())
    return [word for word in words if word not in whole]


async def check(sandbox: Sandbox, folder: Path, number: int) -> str:
    """Read one damaged file. Returns how it ended; fails if that is not a clear state."""
    name, content = make(number)
    path = folder / f"{number}-{name}"
    path.write_bytes(content)
    ending = await read(sandbox, path)
    if isinstance(ending, OctavoError):
        # Any other error, such as an exception of a parser, is a defect of ours.
        assert isinstance(ending, (BadInput, Crashed, TimedOut)), f"{path.name}: {ending!r}"
        return ending.code
    assert json.dumps(ending.markdown)
    if ending.quality is Quality.FULL and ending.source_type is SourceType.PDF:
        foreign = foreign_words(ending.markdown, await pdfium_text(sandbox, path))
        assert len(foreign) <= max(2, MOST_FOREIGN * ending.word_count), f"{path.name}: {foreign[:5]}"
    path.unlink()
    return ending.quality


async def check_all(sandbox: Sandbox, folder: Path, count: int) -> Counter[str]:
    endings = Counter([await check(sandbox, folder, number) for number in range(count)])
    assert endings["full"] > 0.1 * count, endings  # otherwise the damage is too large to test anything
    assert len(endings) >= 4, endings
    return endings


async def test_sixty_damaged_files_end_in_a_clear_state(sandbox: Sandbox, tmp_path: Path) -> None:
    await check_all(sandbox, tmp_path, SHORT)


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_a_thousand_damaged_files_end_in_a_clear_state(sandbox: Sandbox, tmp_path: Path) -> None:
    await check_all(sandbox, tmp_path, LONG)
