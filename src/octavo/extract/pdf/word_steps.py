"""The words of a PDF with their places, read in the sandbox; on pages that only show text, what is recognised."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

from octavo.core.errors import Defect
from octavo.core.json import JSON
from octavo.extract.pdf.pages import batch_from_json
from octavo.extract.pdf.steps import PdfInSandbox
from octavo.extract.pdf.words import FEW_WORDS, MOST_PAGES, WordPage, page_as_json, words_of_blocks

_MOST_RECOGNISED = 10  # pages of one file; whoever scans more has no form


class Words(NamedTuple):
    """`document` is what conversion reads: pages with words, and attachments."""

    document: bytes
    page_count: int


async def read_words_in_sandbox(pdf: PdfInSandbox) -> Words:
    """Raises what `Sandbox.run` raises: `Encrypted`, `Empty`, `BadInput` among it."""
    made = await pdf.run("octavo.extract.pdf.word_run:run", {}, MOST_PAGES)
    return await recognise_words(pdf, await asyncio.to_thread(_parsed, made.output))


async def recognise_words(pdf: PdfInSandbox, read: JSON) -> Words:
    """What a child read, with the words of pages that only show them."""
    document = _checked(read)
    pages: list[JSON] = []
    seen = 0
    for page in document["pages"]:
        few = len(page["words"]) < FEW_WORDS and seen < _MOST_RECOGNISED
        seen += few
        pages.append(await _recognised(pdf, page) if few else page)
    whole: dict[str, JSON] = {"pages": pages, "attachments": document["attachments"]}
    return Words(json.dumps(whole, ensure_ascii=False).encode(), int(document["page_count"]))


def _parsed(output: bytes) -> JSON:
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        raise _unusable() from None


def _checked(document: Any) -> dict[str, Any]:  # noqa: ANN401
    """Only as far as it is used here; conversion reads the rest in its own sandbox."""
    try:
        if all(isinstance(page["words"], list) for page in document["pages"]):
            return {"page_count": int(document["page_count"]), **document}
    except (ValueError, TypeError, KeyError):
        pass
    raise _unusable()


def _unusable() -> Defect:
    return Defect("What was read of a PDF cannot be used.")


async def _recognised(pdf: PdfInSandbox, page: dict[str, Any]) -> JSON:
    """A blank page costs little: it is seen to be blank before anything is recognised."""
    batch = await pdf.recognise(int(page["number"]))
    if not batch:
        return page
    found = batch_from_json(batch).pages[0]
    width, height = found.width or page["width"], found.height or page["height"]
    words = tuple(words_of_blocks(found.blocks))
    return page_as_json(WordPage(found.number, width, height, words)) if words else page
