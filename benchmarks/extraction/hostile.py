"""Hostile, odd and damaged files: each must end in a clear state, and no text that is not there is called complete."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from benchmarks.extraction import truth
from benchmarks.extraction.counting import Counting
from benchmarks.extraction.judging import foreign_words
from benchmarks.extraction.pdf import read_without_ocr, source_text
from benchmarks.extraction.rows import Row, files_in, missing, report
from octavo.core.errors import BadInput, OctavoError
from octavo.extract.extracted import Extracted, Quality
from octavo.extract.file_reader import extract_in_sandbox
from octavo.sandbox import ENDED
from tests.support.damage import damaged

HANG_SECONDS = 120
MOST_FOREIGN = 0.1
NOTE_WORDS = ("Note", "Highlighted", "Struck out")
DAMAGED, LARGEST_BYTES = 460, 300_000
KINDS = (
    "pdf",
    "docx",
    "pptx",
    "xlsx",
    "epub",
    "html",
    "eml",
    "vtt",
    "tex",
    "asciidoc",
    "nxml",
    "xml",
    "doc",
    "xls",
    "ppt",
)

Ending = Callable[[Counting, Path], Awaitable[str]]


async def measure_hostile(sandbox: Counting, folder: Path) -> list[Row]:
    """OCR is left out: it takes seconds for each page, and its pages have a quality of their own."""
    files = sorted((folder / "pdf-malformed").glob("*.pdf"))
    if not files:
        return [missing("hostile PDFs", 0, "no folder pdf-malformed")]
    return await _measure("hostile PDFs", sandbox, files, how_pdf_ends)


async def measure_damaged(sandbox: Counting, folder: Path) -> list[Row]:
    """Copies of small files of the folder, damaged by seed."""
    originals = [path for kind in KINDS for path in files_in(folder, f"*.{kind}") if 0 < _size(path) <= LARGEST_BYTES]
    if not originals:
        return [missing("damaged files", 0, "no small files")]
    with tempfile.TemporaryDirectory() as temporary:
        step = max(len(originals) / DAMAGED, 1 / 8)
        copies = (
            _damaged(originals[int(number * step) % len(originals)], number, Path(temporary))
            for number in range(DAMAGED)
        )
        return await _measure("damaged files", sandbox, copies, how_file_ends)


def _size(path: Path) -> int:
    return path.stat().st_size


def _damaged(path: Path, number: int, folder: Path) -> Path:
    copy = folder / f"{number}-{path.name}"
    copy.write_bytes(damaged(path.read_bytes(), f"{path.name} {number}"))
    return copy


async def _measure(name: str, sandbox: Counting, files: Iterable[Path], how_it_ends: Ending) -> list[Row]:
    endings: Counter[str] = Counter()
    slowest = 0.0
    for path in files:
        started = time.monotonic()
        ending = await how_it_ends(sandbox, path)
        endings[ending.partition(":")[0]] += 1
        slowest = max(slowest, time.monotonic() - started)
        if ending.startswith(("crash", "defect", "foreign")):
            report(f"{path.name}: {ending}")
    summary = ", ".join(f"{count} {ending}" for ending, count in endings.most_common())
    count = endings.total()
    return [
        Row(f"{name}: crashes and defects", endings["crash"] + endings["defect"], 0, count, summary, least=False),
        Row(f"{name}: slowest, seconds", slowest, HANG_SECONDS, count, least=False),
        Row(f"{name}: `full` with words that PDFium does not find", endings["foreign"], 0, count, least=False),
    ]


async def how_file_ends(sandbox: Counting, path: Path) -> str:
    if path.suffix == ".pdf":
        return await how_pdf_ends(sandbox, path)
    try:
        return (await extract_in_sandbox(sandbox, path, path.name)).quality
    except OctavoError as error:
        return _name(error)


async def how_pdf_ends(sandbox: Counting, path: Path) -> str:
    try:
        extracted = await read_without_ocr(sandbox, path)
        if extracted.quality is not Quality.FULL:
            return extracted.quality
        source = await words_beside_the_text(sandbox, path, extracted) + await source_text(sandbox, path)
    except OctavoError as error:
        return _name(error)
    foreign = foreign_words(extracted.markdown, source)
    if len(foreign) > max(2, MOST_FOREIGN * extracted.word_count):
        return f"foreign: {len(foreign)} of {extracted.word_count} words, such as {foreign[:4]}"
    return extracted.quality


def _name(error: OctavoError) -> str:
    """A refused file is in a clear state; a parser that crashed or raised an unknown error is a defect."""
    if isinstance(error, ENDED):
        return f"crash: {error.code}"
    return f"refused: {error.code}" if isinstance(error, BadInput) else f"defect: {error!r}"


async def words_beside_the_text(sandbox: Counting, path: Path, extracted: Extracted) -> str:
    """Texts of the file that are not printed on its pages: bookmarks, form values, names of fields, notes and authors.

    The words that name the kind of a note are ours.
    """
    values = await truth.ask(sandbox, truth.form_values, path)
    titles = [entry.title for entry in extracted.outline]
    return "\n".join([*titles, *values["fields"], *values["notes"], *values["names"], *NOTE_WORDS]) + "\n"
