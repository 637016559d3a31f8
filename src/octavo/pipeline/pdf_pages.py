"""Reads a PDF. A long one is read in batches of pages, each of them once: a killed job goes on at its page."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from octavo.extract.extracted import Extracted
from octavo.extract.pdf.page_batches import PdfFacts, batch_ranges
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.jobs.job_run import Run
from octavo.pipeline.page_parts import PageParts
from octavo.pipeline.recognising import recognise_pages
from octavo.pipeline.revision_files import RevisionFiles
from octavo.pipeline.tools import Tools

STAGE = "reading"


async def read_pdf(run: Run[Tools], files: RevisionFiles, path: Path) -> Extracted:
    sandbox = run.tools.sandbox
    pdf = PdfInSandbox(sandbox, path, limits=sandbox.limits, recognition=run.tools.recognition)
    facts = await pdf.open()
    parts = PageParts(run, files)
    return await recognise_pages(run, parts, pdf, facts, await _read_batches(run, parts, pdf, facts))


async def _read_batches(run: Run[Tools], parts: PageParts, pdf: PdfInSandbox, facts: PdfFacts) -> list[bytes]:
    """One batch alone is no more work to read again than to keep."""
    ranges = list(batch_ranges(facts.page_count))
    if len(ranges) == 1:
        return [await pdf.read(*ranges[0])]
    batches: list[bytes] = []
    for first, last in ranges:
        batches.append(await parts.make(STAGE, f"{first}-{last}", partial(pdf.read, first, last)))
        await run.progress(last, facts.page_count, "pages")
    return batches
