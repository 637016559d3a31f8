"""Reads an image file in the sandbox, step by step: metadata, a copy for display, OCR, and the document."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from octavo.core.errors import BadInput
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.paged_file import OnProgress, PagesInSandbox
from octavo.extract.pdf.page_batches import Batch, PageText, PdfFacts, batch_to_json, facts_from_json, facts_to_json
from octavo.extract.pictures.page_images import JPEG
from octavo.sandbox import ENDED, Task, sandboxed

# Imported by the preloaded parent of a sandbox, so that its children do not import these for every file.
PRELOAD = (
    "octavo.extract.pictures.picture_file",
    "octavo.extract.pictures.image_files",
    "octavo.extract.pictures.image_files",
)


@dataclass(frozen=True, slots=True)
class PictureInSandbox(PagesInSandbox):
    """An image file that is read in the sandbox."""

    source_type: ClassVar[SourceType] = SourceType.IMAGE

    async def open(self) -> PdfFacts:
        return facts_from_json((await self.run(open_file.call(), 1)).output)

    async def fit(self) -> bytes:
        """Make a JPEG for display. Raises `BadInput` if the image cannot be decoded within the limits."""
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

    Each of them is a page without text that still needs OCR.
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
