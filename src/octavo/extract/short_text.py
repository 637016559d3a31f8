"""Reads a short text completely in one child process: its text, its chunks and its facts.

A child process takes longer to start than a note takes to read. So a note gets one child process instead of three.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from octavo.core.errors import Defect
from octavo.extract.chunks.from_document import cut, read_chunks
from octavo.extract.document_facts import find_in_text, read_facts
from octavo.extract.extracted import Extracted, SourceType, from_json, to_json
from octavo.extract.file_reader import read_document
from octavo.sandbox import Task, sandboxed

if TYPE_CHECKING:
    from octavo.extract.chunks.chunking import Chunk
    from octavo.facts.finding import Fact
    from octavo.sandbox import Sandbox

# Imported by the preloaded parent of a sandbox, so that its children do not import it for every document.
PRELOAD = ("octavo.extract.short_text",)
TYPES = frozenset({SourceType.TEXT, SourceType.MARKDOWN, SourceType.PASTE})
MOST_BYTES = 64 << 10
_PARTS = 3


@dataclass(frozen=True, slots=True)
class ShortText:
    """A text with its chunks and facts. The language is not detected in the sandbox, so it is not among the facts."""

    extracted: Extracted
    chunks: list[Chunk]
    facts: list[Fact]


async def read_in_sandbox(
    sandbox: Sandbox,
    content: bytes,
    filename: str,
    content_type: str = "",
    *,
    source_type: SourceType | None = None,
    url: str = "",
) -> ShortText:
    """Read a short text in one child process. Raises the errors of `extract_in_sandbox`."""
    call = read_short_text.call(filename=filename, content_type=content_type, source_type=source_type, url=url)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        given.write(content)
        given.flush()
        await sandbox.run(call, input_file=given, output_file=made)
        parts = made.read().split(b"\n")
    if len(parts) != _PARTS:
        raise Defect("The sandbox returned an invalid text.")
    document, chunks, facts = parts
    extracted = from_json(document)
    return ShortText(extracted, read_chunks(chunks, extracted.markdown), read_facts(facts))


@sandboxed
def read_short_text(task: Task, *, filename: str, content_type: str, source_type: str | None, url: str) -> None:
    """Read a text, and write it, its chunks and its facts as three lines of JSON."""
    extracted = read_document(task, filename, content_type, source_type, url)
    document = to_json(extracted)
    task.output.write(b"\n".join((document, cut(document), find_in_text(extracted, filename))))
