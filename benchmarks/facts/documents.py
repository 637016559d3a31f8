"""Reads files as the product does and makes the input of `find_facts` from them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from octavo.core.errors import OctavoError
from octavo.extract.extracted import BlockKind, Extracted, SourceType, from_json, to_json
from octavo.extract.file_reader import FileReader, open_reader
from octavo.extract.pdf.page_batches import PageBlock
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.extract.pdf.placed_words import read_words_in_sandbox, words_of_blocks
from octavo.facts.sheet import FactSource, FileMetadata, Heading
from octavo.facts.words import Box, Place, Sheet, Word, sheets_from_json

HEAD, TAIL = 60_000, 2_000
FIRST_PAGES = 5


async def read_sources(paths: Sequence[Path], cache: Path | None) -> AsyncGenerator[tuple[Path, FactSource]]:
    """The input of `find_facts` for each file that can be read. `cache` keeps what was read for the next run."""
    async with open_reader(files=[(path, path.name) for path in paths]) as reader:
        for path in paths:
            kept = cache / f"{sha256(path.read_bytes()).hexdigest()}.json" if cache else None
            if kept and kept.exists():
                yield path, source_of(path.name, *_load(kept.read_bytes()))
                continue
            try:
                extracted, words = await _read(reader, path)
            except OctavoError as error:
                print(f"  {path.name}: {error}")
                continue
            if kept:
                kept.write_bytes(json.dumps([to_json(extracted).decode(), words]).encode())
            yield path, source_of(path.name, extracted, words)


def _load(data: bytes) -> tuple[Extracted, list[object]]:
    extracted, words = json.loads(data)
    return from_json(extracted.encode()), words


async def _read(reader: FileReader, path: Path) -> tuple[Extracted, list[object]]:
    extracted = await reader.read(path)
    if extracted.source_type is not SourceType.PDF:
        return extracted, []
    pdf = PdfInSandbox(reader.sandbox, path, None, reader.sandbox.limits, reader.recognition)
    return extracted, json.loads((await read_words_in_sandbox(pdf)).document)["pages"]


def source_of(name: str, extracted: Extracted, words: list[object]) -> FactSource:
    metadata = extracted.metadata
    sheets = sheets_from_json(words) if words else list(_sheets_of_blocks(extracted))  # pyright: ignore[reportArgumentType]
    return FactSource(
        sheets=tuple(sheets[:50]),
        markdown=extracted.markdown[:HEAD],
        tail=extracted.markdown[HEAD:][-TAIL:],
        headings=tuple(_headings(extracted)),
        filename=name,
        metadata=FileMetadata(metadata.title, metadata.author, metadata.date, metadata.language, metadata.extra),
        source_type=str(extracted.source_type),
        language=metadata.language,
        word_count=extracted.word_count,
    )


def _headings(extracted: Extracted) -> Iterator[Heading]:
    for block in extracted.blocks:
        if block.kind is BlockKind.HEADING and block.start < HEAD:
            place = Place(block.page, Box(*block.box), block.text) if block.page and block.box else None
            yield Heading(block.text, block.level or 1, block.start, place)


def _sheets_of_blocks(extracted: Extracted) -> Iterator[Sheet]:
    """Pages of a picture, whose words are placed by the boxes of their blocks."""
    for page in extracted.pages[:FIRST_PAGES]:
        if not page.width or not page.height:
            continue
        blocks = [block for block in extracted.blocks if block.page == page.number and block.box]
        words = [
            Word(word.text, Box(*word.box))
            for block in blocks
            for word in words_of_blocks([PageBlock(block.kind, block.text, block.box)])
        ]
        yield Sheet(page.number, page.width, page.height, tuple(words))
