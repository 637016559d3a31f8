"""Finds the facts of an extracted document, such as its date or total, in the sandbox, and validates them.

For a PDF, words and their positions are read from the file. For a scan, they come from OCR. For all other documents,
the text is searched. Only part of a very long document is searched.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from octavo.core.errors import Defect, OctavoError
from octavo.core.types import JSON
from octavo.extract.extracted import PAGED, Block, BlockKind, Extracted, Quality, SourceType
from octavo.extract.pdf.placed_words import (
    MOST_PAGES,
    WordPage,
    page_as_json,
    pages_as_json,
    read_words,
    words_of_blocks,
)
from octavo.sandbox import ENDED, Task, sandboxed

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from octavo.facts.finding import Fact
    from octavo.facts.sheet import FactSource, Heading
    from octavo.sandbox import Sandbox

# Imported by the preloaded parent of a sandbox, so that its children do not import these for every document.
PRELOAD = ("octavo.extract.document_facts", "octavo.facts.preload", "octavo.extract.pdf.document")
_HEAD, _TAIL = 30_000, 3000
_MOST_HEADINGS, _MOST_HEADING, _MOST_ENTRY = 30, 300, 500
_MOST_SCANNED = 20  # the most pages with recognised blocks that are read
_MOST_WORDS = 20_000


async def find_in_sandbox(
    sandbox: Sandbox, extracted: Extracted, path: Path | None, filename: str, language: str | None
) -> list[Fact]:
    """Find the facts of a document, such as its date or total.

    `path` is the document's file. It is used only if the file is a PDF but not a scan. If reading it fails or takes too
    long, only the extracted text is searched. `language` is the detected language.
    """
    about = json.dumps(_about(extracted, filename, language), ensure_ascii=False)
    if path and extracted.source_type == SourceType.PDF and extracted.quality is not Quality.OCR:
        try:
            return await _run(sandbox, about, path)
        except (*ENDED, OctavoError):
            return await _run(sandbox, about, None)
    return await _run(sandbox, about, None, _recognised_pages(extracted))


async def _run(sandbox: Sandbox, about: str, path: Path | None, pages: Sequence[JSON] = ()) -> list[Fact]:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        if path is None:
            given.write(json.dumps(list(pages), ensure_ascii=False).encode())
            given.flush()
        call = find_document_facts.call(about=about, is_pdf=path is not None)
        await sandbox.run(call, input_file=path or given, output_file=made)
        return read_facts(made.read())


def _about(extracted: Extracted, filename: str, language: str | None) -> dict[str, Any]:
    """Return the document's text, headings, metadata and file name as JSON values, as input for the search for facts.

    Long values are truncated, because a file can contain any amount of text.
    """
    markdown, about = extracted.markdown, extracted.metadata
    headings = [one for one in extracted.blocks if one.kind is BlockKind.HEADING and one.text][:_MOST_HEADINGS]
    extra = {name[:60]: text[:_MOST_ENTRY] for name, text in list(about.extra.items())[:20]}
    named = {
        name: (getattr(about, name) or "")[:_MOST_ENTRY] or None for name in ("title", "author", "date", "language")
    }
    return {
        "markdown": markdown[:_HEAD],
        "tail": markdown[-_TAIL:] if len(markdown) > _HEAD else "",
        "headings": [_heading(one) for one in headings],
        "filename": filename,
        "metadata": {**named, "extra": extra},
        "source_type": str(extracted.source_type),
        "language": language or "",
        "word_count": extracted.word_count,
    }


def _heading(block: Block) -> list[JSON]:
    text = " ".join(block.text.split())[:_MOST_HEADING]
    return [text, block.level or 1, block.start, block.page, list(block.box) if block.box else None]


def _recognised_pages(extracted: Extracted) -> list[JSON]:
    """Return the pages of a scan or picture with the words that OCR recognised, as JSON values.

    The positions of the words are estimates.
    """
    if extracted.source_type not in PAGED:
        return []
    sizes = {page.number: (page.width or 0.0, page.height or 0.0) for page in extracted.pages}
    placed = [block for block in extracted.blocks if block.page and block.box]
    found: list[JSON] = []
    left = _MOST_WORDS
    for number, blocks in groupby(placed, key=lambda block: block.page or 0):
        words = tuple(words_of_blocks(list(blocks)))[:left]
        left -= len(words)
        if len(found) < _MOST_SCANNED and words:
            found.append(page_as_json(WordPage(number, *sizes.get(number, (0.0, 0.0)), words)))
    return found


def read_facts(made: bytes) -> list[Fact]:
    """Parse and validate the facts that a child process of the sandbox wrote.

    Validation is needed because a hostile file may have taken over that process. Raises `Defect` if the facts are
    invalid.
    """
    from pydantic import ValidationError

    try:
        return _fact_type().validate_json(made)
    except ValidationError:
        raise Defect("The sandbox returned invalid facts.") from None


@cache
def _fact_type() -> TypeAdapter[list[Fact]]:
    from pydantic import ConfigDict, TypeAdapter

    from octavo.facts.finding import Fact

    return TypeAdapter(list[Fact], config=ConfigDict(allow_inf_nan=False))


@sandboxed
def find_document_facts(task: Task, *, about: str, is_pdf: bool) -> None:
    """Find the facts of a document. Runs in the sandbox.

    `about` is the result of `_about` as JSON. If `is_pdf` is true, the input file is the PDF. Otherwise it is a JSON
    list of pages with their words.
    """
    from octavo.facts.sheet import find_facts
    from octavo.facts.words import sheets_from_json

    pages = pages_as_json(read_words(Path(task.input_path))) if is_pdf else json.load(task.input)
    sheets = [one for one in sheets_from_json(pages[:MOST_PAGES]) if one.words]
    task.output.write(_as_json(find_facts(_source(json.loads(about), sheets))))


def find_in_text(extracted: Extracted, filename: str) -> bytes:
    """Find the facts of a text without pages, and return them as JSON. Runs in the sandbox.

    The language is not detected in the sandbox, so `add_language` adds it later.
    """
    from octavo.facts.sheet import find_facts

    return _as_json(find_facts(_source(_about(extracted, filename, None), ())))


def add_language(facts: Sequence[Fact], extracted: Extracted, detected: str | None) -> list[Fact]:
    """Add the language to the facts from `find_in_text`.

    The language is determined from the `detected` language and from the language that the document declares.
    """
    from octavo.facts.sheet import NAMES, FileMetadata, find_language

    others = [one for one in facts if one.name != "language"]
    declared = FileMetadata(language=(extracted.metadata.language or "")[:_MOST_ENTRY])
    found = find_language(declared, str(extracted.source_type), detected)
    return sorted([*others, *found], key=lambda one: NAMES.index(one.name))


def _as_json(facts: Iterable[Fact]) -> bytes:
    return json.dumps([asdict(one) for one in facts], ensure_ascii=False, allow_nan=False).encode()


def _source(about: dict[str, Any], sheets: Sequence[Any]) -> FactSource:
    from octavo.facts.sheet import FactSource, FileMetadata

    rest = {name: value for name, value in about.items() if name not in {"headings", "metadata"}}
    return FactSource(
        tuple(sheets),
        headings=tuple(_read_heading(one) for one in about["headings"]),
        metadata=FileMetadata(**about["metadata"]),
        **rest,
    )


def _read_heading(row: list[Any]) -> Heading:
    from octavo.facts.sheet import Heading
    from octavo.facts.words import Box, Place

    text, level, start, page, box = row
    place = Place(page, Box(*cast("list[float]", box)), text) if page and box else None
    return Heading(text, level, start, place)
