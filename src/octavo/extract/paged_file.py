"""Reads a file page by page.

Each step, such as reading a batch of pages, runs in a new child process. This limits memory and lets a killed job
resume. A batch is a group of pages, stored as one line of JSON. Any number of batches can be assembled into a document.

Also reads image files in the sandbox, step by step: metadata, a copy for display, OCR, and the document.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from octavo.core.errors import BadInput
from octavo.core.types import JSON
from octavo.extract.extracted import BlockKind, Extracted, SourceType, add_captions, from_json, json_pieces
from octavo.extract.ocr.recognition import Recognition
from octavo.extract.pdf.page_batches import (
    Batch,
    PageText,
    PdfFacts,
    batch_from_json,
    batch_to_json,
    facts_from_json,
    facts_to_json,
)
from octavo.extract.pictures.page_images import JPEG
from octavo.sandbox import ENDED, Call, Limits, Progress, Task, sandboxed

if TYPE_CHECKING:
    from octavo.sandbox import Sandbox


_SECONDS_A_PAGE = 1
_CANCEL_SECONDS = 1.0
# The number of batches of one file that are read in parallel. More would take CPU and memory from other files.
PARALLEL_BATCHES = min(2, os.cpu_count() or 1)
OnProgress = Callable[[Progress], None]


class StepResult(NamedTuple):
    """The result of a function that ran in the sandbox: the content of its output file, and its return value."""

    output: bytes
    value: JSON


class AssembledFile(NamedTuple):
    """An assembled document. `unread` lists the pages that have images but no text and still need OCR."""

    extracted: Extracted
    unread: list[int]


@dataclass(frozen=True, slots=True)
class PagesInSandbox:
    """A file that is read page by page in the sandbox. If `recognition` is None, OCR runs in the same sandbox."""

    source_type: ClassVar[SourceType]

    sandbox: Sandbox
    path: Path
    password: str | None = field(default=None, repr=False)
    limits: Limits = field(default_factory=Limits)
    recognition: Recognition | None = None

    async def recognise(self, number: int) -> bytes:
        """Run OCR on one page. Returns a batch that contains only this page.

        Returns empty bytes if OCR fails.
        """
        recognition = self.recognition or Recognition(self.sandbox)
        return await recognition.page(self.source_type, self.path, number, self.password)

    async def recognise_all(
        self, facts: PdfFacts, batches: Iterable[bytes], on_progress: OnProgress | None = None
    ) -> Extracted:
        """Run OCR on the pages that have images but no text, and return the assembled document."""
        read = list(batches)
        extracted, unread = await self.assemble(facts, read)
        if not unread:
            return extracted
        pages = iter(unread)
        recognised: list[bytes] = []

        async def recognise_next() -> None:
            for number in pages:
                recognised.append(await self.recognise(number))
                if on_progress:
                    on_progress(Progress(len(recognised), len(unread), "scanned pages"))

        await run_parallel([recognise_next() for _ in range(self.recognition.parallel if self.recognition else 1)])
        return (await self.assemble(facts, [*read, *recognised])).extracted

    async def assemble(self, facts: PdfFacts, batches: Iterable[bytes]) -> AssembledFile:
        with tempfile.TemporaryFile() as document:
            document.write(facts_to_json(facts) + b"\n")
            document.writelines(batches)
            document.flush()
            call = assemble_document.call(source_type=self.source_type)
            made = await self.run(call, facts.page_count, document.fileno())
        extracted = await asyncio.to_thread(from_json, made.output)
        reported = {one for one in made.value if isinstance(one, int)} if isinstance(made.value, list) else set[int]()
        return AssembledFile(extracted, [page.number for page in extracted.pages if page.number in reported])

    async def run(self, call: Call, pages: int, input_file: int | None = None) -> StepResult:
        """Run a sandboxed function on this file, or on `input_file` if given.

        The time limits grow with the number of `pages`.
        """
        seconds = pages * _SECONDS_A_PAGE
        limits = replace(
            self.limits,
            cpu_seconds=self.limits.cpu_seconds + seconds,
            wall_seconds=self.limits.wall_seconds + 2 * seconds,
        )
        with tempfile.TemporaryFile() as output:
            outcome = await self.sandbox.run(
                call,
                input_file=self.path if input_file is None else input_file,
                output_file=output,
                limits=limits,
            )
            return StepResult(output.read(), outcome.value)


async def read_batches(
    ranges: Sequence[tuple[int, int]],
    read: Callable[[int, int], Awaitable[bytes]],
    on_read: Callable[[int], Awaitable[None]],
) -> list[bytes]:
    """Read batches in parallel and return all of them in page order.

    `on_read` is called with the number of pages read so far.
    """
    waiting = iter(ranges)
    batches: dict[int, bytes] = {}
    pages = 0

    async def read_next() -> None:
        nonlocal pages
        for first, last in waiting:
            batches[first] = await read(first, last)
            pages += last - first + 1
            await on_read(pages)

    await run_parallel([read_next() for _ in range(min(PARALLEL_BATCHES, len(ranges)))])
    return [batches[first] for first, _ in ranges]


async def run_parallel(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines in parallel and wait for all of them. If one fails, the others are cancelled."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        if tasks:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
    finally:
        # Cancelled repeatedly: before Python 3.12, a cancellation is lost if a result arrives at the same time.
        while left := [task for task in tasks if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=_CANCEL_SECONDS)


@sandboxed
def assemble_document(task: Task, *, source_type: str) -> list[JSON]:
    """Assemble a document, and return the numbers of the pages that still need OCR.

    The first line of the input contains information about the file, such as its bookmarks. Each further line is a batch
    of pages.
    """
    extracted, unread = _assembled(task, SourceType(source_type))
    task.output.writelines(json_pieces(extracted))
    return list(unread)


def _assembled(task: Task, source_type: SourceType) -> AssembledFile:
    """Assemble the document. The page objects are freed when this function returns, before the document is written."""
    from octavo.extract.pdf.assemble import assemble_pages, merge_pages

    facts = facts_from_json(task.input.readline())
    pages = merge_pages(facts, map(batch_from_json, task.input))
    unread = [page.number for page in pages if page.is_unread]
    return AssembledFile(add_captions(assemble_pages(facts, pages, source_type)), unread)


_WORD = re.compile(r"\w+")


def bookmarks_by_page(extracted: Extracted) -> dict[int, list[tuple[int, str]]]:
    """Map page numbers to the outline entries that have no matching heading in the text.

    Each entry consists of its level and its title.
    """
    headings = {block.start: block.text for block in extracted.blocks if block.kind is BlockKind.HEADING}
    found: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for entry in extracted.outline:
        heading = headings.get(entry.start, "") if entry.start is not None else ""
        # An entry without a heading starts where its page starts. Another heading can have the same offset.
        if entry.page is not None and not _words(entry.title) & _words(heading):
            found[entry.page].append((entry.level, entry.title))
    return dict(found)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


# Imported by the preloaded parent of a sandbox, so that its children do not import these for every file.
PRELOAD = ("octavo.extract.paged_file", "octavo.extract.pictures.image_files")


@dataclass(frozen=True, slots=True)
class PictureInSandbox(PagesInSandbox):
    """An image file that is read in the sandbox."""

    source_type: ClassVar[SourceType] = SourceType.IMAGE

    async def open(self) -> PdfFacts:
        return facts_from_json((await self.run(open_file.call(), 1)).output)

    async def fit(self) -> bytes:
        """Convert the image to a JPEG for display. Raises `BadInput` if it cannot be decoded within the limits."""
        try:
            made = (await self.run(fit_file.call(), 1)).output
        except ENDED as error:
            raise BadInput(error.title) from error
        if not made.startswith(JPEG):
            raise BadInput("The picture could not be converted for display.")
        return made

    async def extract(self, on_progress: OnProgress | None = None) -> Extracted:
        """Read the metadata, run OCR on all sheets (pages), and return the document."""
        facts = await self.open()
        return await self.recognise_all(facts, [unread_sheets(facts)], on_progress)


def unread_sheets(facts: PdfFacts) -> bytes:
    """Make a batch with all sheets (pages) of an image file, before OCR.

    Each sheet becomes a page that has no text yet and needs OCR.
    """
    sheets = (PageText(number, str(number), None, None, pictures=True) for number in range(1, facts.page_count + 1))
    return batch_to_json(Batch(tuple(sheets))) + b"\n"


@sandboxed
def open_file(task: Task) -> None:
    from octavo.extract.pictures.image_files import open_sheets

    task.output.write(facts_to_json(open_sheets(Path(task.input_path))))


@sandboxed
def fit_file(task: Task) -> None:
    from octavo.extract.pictures.image_files import make_jpeg

    task.output.write(make_jpeg(Path(task.input_path)))
