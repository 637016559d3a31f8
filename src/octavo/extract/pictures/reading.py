"""A picture step by step: what it says of itself, a copy that fits on screens, the text of its sheets, the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from octavo.core.errors import BadInput
from octavo.extract.contract import Extracted, SourceType
from octavo.extract.paged import OnProgress, PagesInSandbox
from octavo.extract.pdf.pages import Batch, PageText, PdfFacts, batch_to_json, facts_from_json
from octavo.extract.pictures.steps import JPEG
from octavo.sandbox import ENDED


@dataclass(frozen=True, slots=True)
class PictureInSandbox(PagesInSandbox):
    """One picture and what it takes to read it."""

    source_type: ClassVar[SourceType] = SourceType.IMAGE

    async def open(self) -> PdfFacts:
        return facts_from_json((await self.run("octavo.extract.pictures.run:run_open", {}, 1)).output)

    async def fit(self) -> bytes:
        """A JPEG that fits on screens. Raises `BadInput` for a picture that cannot be decoded within the limits."""
        try:
            made = (await self.run("octavo.extract.pictures.run:run_fit", {}, 1)).output
        except ENDED as error:
            raise BadInput(error.title) from error
        if not made.startswith(JPEG):
            raise BadInput("What was made of it is no picture.")
        return made

    async def extract(self, on_progress: OnProgress | None = None) -> Extracted:
        """All steps that lead to the text, one after the other."""
        facts = await self.open()
        return await self.recognise_all(facts, [unread_sheets(facts)], on_progress)


def unread_sheets(facts: PdfFacts) -> bytes:
    """A picture before anybody looked at it: all its sheets show something."""
    sheets = (PageText(number, str(number), None, None, pictures=True) for number in range(1, facts.page_count + 1))
    return batch_to_json(Batch(tuple(sheets))) + b"\n"
