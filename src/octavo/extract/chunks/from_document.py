"""Splits an extracted document into chunks, and validates the chunks.

The splitting runs in the sandbox, because it takes seconds for a long text.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, BinaryIO

from octavo.core.errors import Defect
from octavo.extract.chunks.chunking import Chunk, PageBox, chunk
from octavo.sandbox import Task, sandboxed

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from octavo.sandbox import Sandbox

# Imported by the preloaded parent of a sandbox, so that its children do not import it for every document.
PRELOAD = ("octavo.extract.chunks.from_document",)

Box = tuple[int, float, float, float, float]
Row = tuple[int, int, int | None, int | None, tuple[str, ...], int, float | None, tuple[Box, ...]]


async def chunk_in_sandbox(sandbox: Sandbox, document: bytes, markdown: str) -> list[Chunk]:
    """Split a document into chunks. `document` is the extracted document as JSON, and `markdown` is its text."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        await asyncio.to_thread(_fill, given, document)
        await sandbox.run(cut_document.call(), input_file=given, output_file=made)
        return await asyncio.to_thread(lambda: read_chunks(made.read(), markdown))


def _fill(file: BinaryIO, content: bytes) -> None:
    file.write(content)
    file.flush()


def read_chunks(made: bytes, markdown: str) -> list[Chunk]:
    """Parse and validate the chunks, because a hostile file may have taken over the child process that wrote them."""
    # Imported late: the preloaded parent imports this module too, and its forks are faster without pydantic.
    from pydantic import ValidationError

    try:
        rows = _row_type().validate_json(made)
    except ValidationError:
        rows = None
    if rows is None or not all(map(_has_valid_places, rows)):
        raise Defect("The sandbox returned an invalid list of chunks.")
    before = 0
    for start, end, *_ in rows:
        if not before <= start < end <= len(markdown):
            raise Defect("The sandbox returned chunks outside the text.")
        before = end
    return [
        Chunk(
            *(index, start, end, markdown[start:end], page_from, page_to, path, words, seconds),
            boxes=tuple(PageBox(*box) for box in boxes),
        )
        for index, (start, end, page_from, page_to, path, words, seconds, boxes) in enumerate(rows)
    ]


@cache
def _row_type() -> TypeAdapter[list[Row]]:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(list[Row], config=ConfigDict(allow_inf_nan=False))


def _has_valid_places(row: Row) -> bool:
    *_, seconds, boxes = row
    return (seconds is None or seconds >= 0) and all(page >= 1 for page, *_ in boxes)


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    start: int
    end: int
    text: str
    level: int | None
    page: int | None
    box: tuple[float, float, float, float] | None


@dataclass(frozen=True, slots=True)
class Page:
    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Moment:
    start: int
    seconds: float


@sandboxed
def cut_document(task: Task) -> None:
    """Split a document and write the positions of its chunks, but not their texts, which the caller already has."""
    task.output.write(cut(task.input.read()))


def cut(extracted: bytes) -> bytes:
    """Return the positions of the chunks of an extracted document. Both are JSON. Runs in the sandbox."""
    document = json.loads(extracted)
    blocks = [Block(*(block[name] for name in Block.__slots__)) for block in document["blocks"]]
    pages = [Page(*(page[name] for name in Page.__slots__)) for page in document["pages"]]
    # Documents extracted by an earlier version have no moments.
    moments = [Moment(*(moment[name] for name in Moment.__slots__)) for moment in document.get("moments", ())]
    rows = [
        [one.start, one.end, one.page_from, one.page_to, one.heading_path, one.word_count, one.seconds, one.boxes]
        for one in chunk(document["markdown"], blocks, pages, moments)
    ]
    return json.dumps(rows).encode()
