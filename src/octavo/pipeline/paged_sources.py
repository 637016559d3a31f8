"""Extracts PDFs and pictures page by page.

The text of each batch of pages is stored, so a killed job resumes after the last finished batch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from octavo.core.errors import BadInput
from octavo.core.types import JSON
from octavo.database import Connection
from octavo.extract.extracted import Extracted, Metadata, Quality, SourceType
from octavo.extract.paged_file import PagesInSandbox, read_batches, run_parallel
from octavo.extract.pdf.page_batches import PdfFacts, batch_ranges
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.extract.pictures.picture_file import PictureInSandbox, unread_sheets
from octavo.jobs.job_run import Run
from octavo.pipeline.revision_files import RevisionFiles
from octavo.pipeline.tools import Tools
from octavo.storage import ObjectMissing

# The artifact kind of batches. All artifacts of this kind are deleted when the text is assembled.
BATCH_KIND, BATCH_TYPE, BATCH_BYTES = "pages", "application/json", 256 << 20
READING, RECOGNISING = "reading", "recognising"
UNREADABLE, UNREADABLE_CODE = "unreadable", "unreadable_code"


class PageParts:
    """Stores batches of pages in the storage bucket until the document is complete."""

    def __init__(self, run: Run[Tools], files: RevisionFiles) -> None:
        self._run = run
        self._files = files

    async def make(self, stage: str, part: str, read: Callable[[], Awaitable[bytes]]) -> bytes:
        async def work() -> JSON:
            return {**await self._files.put(f"{stage}-{part}.json", await read())}

        async def save(connection: Connection, made: JSON) -> None:
            await self._files.keep(connection, f"{BATCH_KIND}:{stage}:{part}", made, BATCH_TYPE)

        made = await self._run.stage(stage, work, part=part, save=save)
        if not isinstance(made, dict):
            raise TypeError("this stage returns what it stored")
        try:
            return await self._run.tools.bucket.read(str(made["key"]), limit=BATCH_BYTES)
        except ObjectMissing:  # a later revision inherited the stage, but the batches of the earlier one are deleted
            return await read()


# PDFs ---------------------------------------------------------------------------------------------------------------


async def read_pdf(run: Run[Tools], files: RevisionFiles, path: Path) -> Extracted:
    sandbox = run.tools.sandbox
    pdf = PdfInSandbox(sandbox, path, limits=sandbox.limits, recognition=run.tools.recognition)
    facts = await pdf.open()
    parts = PageParts(run, files)
    return await _recognise_pages(run, parts, pdf, facts, await _read_batches(run, parts, pdf, facts))


async def _read_batches(run: Run[Tools], parts: PageParts, pdf: PdfInSandbox, facts: PdfFacts) -> list[bytes]:
    """Read the pages in batches, some of them in parallel.

    If there is only one batch, it is not stored, because reading it again is as fast as storing it.
    """
    ranges = list(batch_ranges(facts.page_count))
    if len(ranges) == 1:
        return [await pdf.read(*ranges[0])]

    async def read(first: int, last: int) -> bytes:
        return await parts.make(READING, f"{first}-{last}", partial(pdf.read, first, last))

    async def report(pages: int) -> None:
        await run.progress(pages, facts.page_count, "pages")

    return await read_batches(ranges, read, report)


# Pictures -----------------------------------------------------------------------------------------------------------


async def fit_picture(run: Run[Tools], files: RevisionFiles, path: Path) -> dict[str, JSON]:
    """Store a copy of the picture that is small enough for a screen.

    Returns the storage key, or the reason why the picture cannot be decoded.
    """
    try:
        body = await _picture(run, path).fit()
    except BadInput as error:
        return {UNREADABLE: error.detail or error.title, UNREADABLE_CODE: error.code}
    return await files.put("picture.jpg", body)


async def read_picture(run: Run[Tools], files: RevisionFiles, path: Path) -> Extracted:
    picture = _picture(run, path)
    try:
        facts = await picture.open()
    except BadInput as error:
        return unreadable_picture(error.detail or error.title, error.code)
    return await _recognise_pages(run, PageParts(run, files), picture, facts, [unread_sheets(facts)])


def unreadable_picture(reason: str, code: str) -> Extracted:
    """Return an empty document for a picture that cannot be decoded.

    The reason and its error code are in the metadata.
    """
    about = Metadata(extra={UNREADABLE: reason, UNREADABLE_CODE: code})
    return Extracted(SourceType.IMAGE, "", 0, Quality.EMPTY, metadata=about)


def _picture(run: Run[Tools], path: Path) -> PictureInSandbox:
    sandbox = run.tools.sandbox
    return PictureInSandbox(sandbox, path, limits=sandbox.limits, recognition=run.tools.recognition)


# Text recognition ---------------------------------------------------------------------------------------------------


async def _recognise_pages(
    run: Run[Tools], parts: PageParts, source: PagesInSandbox, facts: PdfFacts, batches: Sequence[bytes]
) -> Extracted:
    """Assemble the batches into a document. Pages without text are read with OCR, each page only once.

    During OCR, the job does not count towards the worker's limit of parallel jobs, so that long scans do not delay
    other documents.
    """
    extracted, unread = await source.assemble(facts, batches)
    if not unread:
        return extracted
    recognised: list[bytes] = []
    await run.progress(0, len(unread), "pages", RECOGNISING)

    async def recognise_next(numbers: Iterator[int]) -> None:
        for number in numbers:
            recognised.append(await parts.make(RECOGNISING, str(number), partial(source.recognise, number)))
            await run.progress(len(recognised), len(unread), "pages", RECOGNISING)

    numbers, recognition = iter(unread), run.tools.recognition
    with run.aside():
        await run_parallel([recognise_next(numbers) for _ in range(recognition.parallel)])
    return (await source.assemble(facts, [*batches, *recognised])).extracted
