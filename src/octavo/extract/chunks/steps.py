"""Chunking as the pipeline calls it: in the sandbox, because a long text keeps a processor busy for seconds."""

from __future__ import annotations

import asyncio
import tempfile
from typing import Annotated, BinaryIO

from pydantic import Field, TypeAdapter, ValidationError

from octavo.core.errors import Defect
from octavo.extract.chunks.boxes import PageBox
from octavo.extract.chunks.chunking import Chunk
from octavo.sandbox import Sandbox

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Side = Annotated[float, Field(allow_inf_nan=False)]
Box = tuple[Annotated[int, Field(ge=1)], Side, Side, Side, Side]
Row = tuple[int, int, int | None, int | None, tuple[str, ...], int, Seconds | None, tuple[Box, ...]]
_ROWS = TypeAdapter(list[Row])


async def chunk_in_sandbox(sandbox: Sandbox, document: bytes, markdown: str) -> list[Chunk]:
    """`document` is an extracted document as JSON, and `markdown` its text."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        await asyncio.to_thread(_fill, given, document)
        await sandbox.run("octavo.extract.chunks.run:run", input_file=given, output_file=made)
        return await asyncio.to_thread(lambda: read_chunks(made.read(), markdown))


def _fill(file: BinaryIO, content: bytes) -> None:
    file.write(content)
    file.flush()


def read_chunks(made: bytes, markdown: str) -> list[Chunk]:
    """Checks what came out: a child that a hostile file has taken over can write what it likes."""
    try:
        rows = _ROWS.validate_json(made)
    except ValidationError:
        raise Defect("What came out of the sandbox is no list of chunks.") from None
    before = 0
    for start, end, *_ in rows:
        if not before <= start < end <= len(markdown):
            raise Defect("What came out of the sandbox does not lie within the text.")
        before = end
    return [
        Chunk(
            *(index, start, end, markdown[start:end], page_from, page_to, path, words, seconds),
            boxes=tuple(PageBox(*box) for box in boxes),
        )
        for index, (start, end, page_from, page_to, path, words, seconds, boxes) in enumerate(rows)
    ]
