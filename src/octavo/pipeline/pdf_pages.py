"""Reads a PDF. A long one is read in batches of pages, each of them once: a killed job goes on at its page."""

from __future__ import annotations

from pathlib import Path

from octavo.database import Connection
from octavo.extract.contract import Extracted
from octavo.extract.pdf.ranges import batch_ranges
from octavo.extract.pdf.steps import PdfInSandbox
from octavo.jobs.run import Run
from octavo.model.json import JSON
from octavo.pipeline.revision_files import RevisionFiles
from octavo.pipeline.tools import Tools
from octavo.storage import ObjectMissing

STAGE = "reading"
KIND = "pages"
BATCH_BYTES = 256 << 20
_TYPE = "application/json"


async def read_pdf(run: Run[Tools], files: RevisionFiles, path: Path) -> Extracted:
    sandbox = run.tools.sandbox
    pdf = PdfInSandbox(sandbox, path, limits=sandbox.limits)
    facts = await pdf.open()
    ranges = list(batch_ranges(facts.page_count))
    if len(ranges) == 1:
        return await pdf.extract()
    reader = _Batches(run, files, pdf)
    batches: list[bytes] = []
    for first, last in ranges:
        batches.append(await reader.read(first, last))
        await run.progress(last, facts.page_count, "pages")
    return await pdf.assemble(facts, batches)


class _Batches:
    """Batches as parts of a stage. Their files are dropped when the text is put together."""

    def __init__(self, run: Run[Tools], files: RevisionFiles, pdf: PdfInSandbox) -> None:
        self._run = run
        self._files = files
        self._pdf = pdf

    async def read(self, first: int, last: int) -> bytes:
        part = f"{first}-{last}"

        async def work() -> JSON:
            return {**await self._files.put(f"pages-{part}.json", await self._pdf.read(first, last))}

        async def save(connection: Connection, made: JSON) -> None:
            await self._files.keep(connection, f"{KIND}:{part}", made, _TYPE)

        made = await self._run.stage(STAGE, work, part=part, save=save)
        try:
            return await self._run.tools.bucket.read(_key(made), limit=BATCH_BYTES)
        except ObjectMissing:  # a later revision that goes on from here: this one's batches are gone
            return await self._pdf.read(first, last)


def _key(made: JSON) -> str:
    if not isinstance(made, dict):
        raise TypeError("this stage answers what it stored")
    return str(made["key"])
