"""Speed beside PDFium, both cores, and memory, for long PDFs made by repeating pages of those in the folder."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdfium2

from benchmarks.extraction.counting import Counting
from benchmarks.extraction.rows import Row, missing, open_sandbox, report
from octavo.extract.pdf.pdf_file import PdfInSandbox

_pdfium: Any = pypdfium2
ROUNDS = 2
LONG, LONGEST = 1000, 5000


async def measure_speed(sandbox: Counting, folder: Path) -> list[Row]:
    """Processor time of all children of the sandbox against PDFium's own text, the better of two rounds each."""
    files = sorted((folder / "pdf-headings").glob("*.pdf"))
    if not files:
        return [missing("speed: times the processor time of PDFium", 4, "no folder pdf-headings")]
    ratios: list[float] = []
    pages = seconds = 0.0
    for path in files:
        bare = min(_processor_seconds(lambda path=path: _read_with_pdfium(path)) for _ in range(ROUNDS))
        ours = min([await _seconds_of(sandbox, path) for _ in range(ROUNDS)])
        ratios.append(ours / bare)
        count = len(_pdfium.PdfDocument(path))
        pages, seconds = pages + count, seconds + ours
        report(f"{path.stem[:45]:45} {count} pages, {ours:.2f} s, PDFium {bare:.2f} s: {ratios[-1]:.1f} times")
    return [
        Row("speed: times the processor time of PDFium", sum(ratios) / len(ratios), 4, len(files), least=False),
        Row("speed: pages a processor second", pages / seconds, None, len(files)),
    ]


async def _seconds_of(sandbox: Counting, path: Path) -> float:
    sandbox.take_seconds()
    await PdfInSandbox(sandbox, path).extract()
    return sandbox.take_seconds()


def _read_with_pdfium(path: Path) -> None:
    document = _pdfium.PdfDocument(path)
    for page in document:
        page.get_textpage().get_text_bounded()


def _processor_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def repeat_pages(folder: Path, pages: int, target: Path) -> Path | None:
    """A PDF with this many pages, from those of the longest PDF."""
    files = sorted((folder / "pdf-headings").glob("*.pdf"), key=lambda path: len(_pdfium.PdfDocument(path)))
    if not files:
        return None
    source, made = _pdfium.PdfDocument(files[-1]), _pdfium.PdfDocument.new()
    while len(made) < pages:
        made.import_pages(source, list(range(min(len(source), pages - len(made)))))
    made.save(target)
    return target


async def measure_cores(_sandbox: Counting, folder: Path) -> list[Row]:
    """Both cores: children that run in parallel for a 1,000-page PDF, at most and on average."""
    with tempfile.TemporaryDirectory() as temporary:
        path = repeat_pages(folder, LONG, Path(temporary) / "long.pdf")
        if path is None:
            return [missing("1,000 pages: cores in use", 1.5, "no folder pdf-headings")]
        async with open_sandbox() as sandbox:
            started = time.monotonic()
            await PdfInSandbox(sandbox, path).extract()
            seconds = time.monotonic() - started
            running, used = sandbox.most_running, sandbox.task_seconds / seconds
    note = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; opening and assembling take one child"
    return [
        Row("1,000 pages: reading processes in parallel", running, min(2, os.cpu_count() or 1), 1),
        Row("1,000 pages: reading processes running on average", used, 1.5, 1, note),
    ]


async def measure_memory(_sandbox: Counting, folder: Path) -> list[Row]:
    """The largest child that reads pages, and the child that assembles the whole text."""
    peaks: dict[int, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for pages in (LONG, LONGEST):
            path = repeat_pages(folder, pages, Path(temporary) / f"{pages}.pdf")
            if path is None:
                return [missing("5,000 pages: memory", 1.2, "no folder pdf-headings")]
            async with open_sandbox() as sandbox:
                await PdfInSandbox(sandbox, path).extract()
                *reading, assembling = (one.peak_memory_bytes for one in sandbox.outcomes)
            peaks[pages] = max(reading), assembling
            report(f"{pages} pages: reading {max(reading) >> 20} MiB, assembling {assembling >> 20} MiB")
    short, long = peaks[LONG], peaks[LONGEST]
    note = f"{short[0] >> 20} MiB and {long[0] >> 20} MiB"
    whole = f"{short[1] >> 20} MiB and {long[1] >> 20} MiB; it holds the whole text"
    return [
        Row(
            "5,000 pages: memory of a reading process, times that of 1,000",
            long[0] / short[0],
            1.2,
            1,
            note,
            least=False,
        ),
        Row("5,000 pages: memory of the assembling process, MiB", long[1] >> 20, 1024, 1, whole, least=False),
    ]
