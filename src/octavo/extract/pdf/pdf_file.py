"""Reads a PDF in the sandbox, step by step: metadata, batches of pages, OCR, and the assembled document."""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from octavo.core.errors import PageNotDrawn
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.paged_file import OnProgress, PagesInSandbox, read_batches
from octavo.extract.pdf.page_batches import (
    PdfFacts,
    batch_ranges,
    batch_to_json,
    facts_from_json,
    facts_to_json,
    unreadable,
)
from octavo.sandbox import ENDED, Limits, OutOfTime, Progress, Task, sandboxed

if TYPE_CHECKING:
    from octavo.sandbox import Sandbox

# Imported by the preloaded parent of a sandbox, so that its children do not import these for every file.
PRELOAD = (
    "octavo.extract.pdf.pdf_file",
    "octavo.extract.pdf.page_text",
    "octavo.extract.pdf.assemble",
)
UNLOCK_PRELOAD = ("octavo.extract.pdf.pdf_file", "octavo.extract.pdf.document")
_MOST_COST = 16  # enough to find two bad pages in a hundred
_COST_OF_TIME = 4  # cost of a page that exceeds the time limit
# Without layout, only PDFium reads the page, in a tenth of the time. So a page gets a third of the usual time limit.
_PLAIN_SHARE = 3
_OBJECTS_A_COLLECTION = 100_000


@dataclass(frozen=True, slots=True)
class PdfInSandbox(PagesInSandbox):
    """A PDF that is read in the sandbox."""

    source_type: ClassVar[SourceType] = SourceType.PDF

    async def open(self) -> PdfFacts:
        return facts_from_json((await self.run(open_file.call(password=self.password), 1)).output)

    async def read(self, first: int, last: int) -> bytes:
        """Read the pages from `first` to `last`. A page that crashes the child process is returned without text."""
        return await _BadPageSearch(self).read(first, last)

    async def read_once(self, first: int, last: int, *, layout: bool) -> bytes:
        """Read the pages from `first` to `last` in one child process.

        Raises an error if any page crashes the process.
        """
        call = read_pages.call(first=first, last=last, layout=layout, password=self.password)
        reader = self if layout else replace(self, limits=_shorter(self.limits))
        return (await reader.run(call, last - first + 1)).output

    async def copy(self, first: int, last: int) -> bytes:
        """Make a PDF of the pages from `first` to `last`."""
        call = copy_pages.call(first=first, last=last, password=self.password)
        return (await self.run(call, last - first + 1)).output

    async def extract(self, on_progress: OnProgress | None = None) -> Extracted:
        """Read the metadata and all pages, run OCR where it is needed, and return the document."""
        facts = await self.open()

        async def report(pages: int) -> None:
            if on_progress:
                on_progress(Progress(pages, facts.page_count, "pages"))

        batches = await read_batches(list(batch_ranges(facts.page_count)), self.read, report)
        return await self.recognise_all(facts, batches, on_progress)


def _shorter(limits: Limits) -> Limits:
    cpu_seconds, wall_seconds = ceil(limits.cpu_seconds / _PLAIN_SHARE), limits.wall_seconds / _PLAIN_SHARE
    return replace(limits, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds)


class _BadPageSearch:
    """Reads a batch of pages and finds the unreadable ones by bisection.

    If many reads fail, the remaining pages are read without layout. If very many fail, a range that fails is no longer
    divided, and all its pages count as unreadable.
    """

    def __init__(self, pdf: PdfInSandbox) -> None:
        self._pdf = pdf
        self._cost = 0

    async def read(self, first: int, last: int, *, layout: bool = True) -> bytes:
        layout = layout and self._cost <= _MOST_COST
        try:
            return await self._pdf.read_once(first, last, layout=layout)
        except ENDED as error:
            self._cost += _COST_OF_TIME if isinstance(error, OutOfTime) else 1
            reason = error.title
        if first == last and layout:
            return await self.read(first, last, layout=False)
        if first == last or self._cost > 2 * _MOST_COST:
            return batch_to_json(unreadable(first, last, reason)) + b"\n"
        middle = (first + last) // 2
        return await self.read(first, middle, layout=layout) + await self.read(middle + 1, last, layout=layout)


async def unlock_in_sandbox(sandbox: Sandbox, path: Path, password: str, made: Path) -> bool:
    """Write a copy of the PDF without its password to the path `made`, so that the password is needed only once.

    Returns False and leaves `made` empty if the PDF is not encrypted. Raises `Encrypted` if the password is wrong.
    """
    with made.open("wb") as output:
        outcome = await sandbox.run(unlock_file.call(password=password), input_file=path, output_file=output)
    return outcome.value is True


@sandboxed
def open_file(task: Task, *, password: str | None) -> None:
    from octavo.extract.pdf.page_text import open_pdf

    task.output.write(facts_to_json(open_pdf(Path(task.input_path), password)))


@sandboxed
def read_pages(task: Task, *, first: int, last: int, layout: bool, password: str | None) -> None:
    from octavo.extract.pdf.page_text import read_batch

    # Pages consist of many small objects without cycles. Searching for cycles takes up to a tenth of the time.
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    batch = read_batch(Path(task.input_path), first, last, password, layout=layout)
    task.output.write(batch_to_json(batch) + b"\n")


@sandboxed
def copy_pages(task: Task, *, first: int, last: int, password: str | None) -> None:
    from octavo.extract.pdf.document import PageError, open_document

    with open_document(Path(task.input_path), password) as document:
        try:
            task.output.write(document.copy(first, last))
        except PageError:
            raise PageNotDrawn from None


@sandboxed
def unlock_file(task: Task, *, password: str) -> bool:
    from octavo.extract.pdf.document import open_document

    with open_document(Path(task.input_path), password) as document:
        if not document.is_encrypted:
            return False
        document.save_unlocked(task.output)
        return True
