"""Produces the text, chunks, facts, title, summary, tags and vectors of one file in a bulk run, without a database.

It calls the same functions as the pipeline, but only with the `local` provider. If a file cannot be read, its row
contains the error, and the other files of the shard are still read. If the storage is not available, the whole shard
stops and is read again later, so that no file is lost.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from mimetypes import guess_type
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog

from octavo.ai.calls import LOCAL, Caller, Picture
from octavo.ai.gateway import Gateway
from octavo.ai.gateway_setup import open_local_gateway
from octavo.ai.tasks import CLASSIFY_DOCUMENT, CLASSIFY_IMAGE, ENRICH_CHUNKS, ImageToClassify
from octavo.bulk.manifest import PlannedFile, SourceFiles, extra_module, source_key
from octavo.core.errors import RETRY_RULES, AlreadyStored, BadInput, Empty, OctavoError, TooLarge
from octavo.core.formatting import format_bytes
from octavo.core.settings import Settings
from octavo.describe.embedding import StoredChunk
from octavo.describe.stages import CHUNKS_PER_DESCRIPTION, CHUNKS_PER_EMBEDDING, PICTURE_TYPE, sample
from octavo.extract.chunks.chunking import Chunk, chunk_in_sandbox
from octavo.extract.detect import HEAD_BYTES, READABLE, detect
from octavo.extract.document_facts import find_in_sandbox
from octavo.extract.extracted import Extracted, SourceType, to_json
from octavo.extract.file_reader import FileReader
from octavo.extract.paged_file import PictureInSandbox
from octavo.intake.upload_rows import clean_filename
from octavo.language.insights import DocumentInsight, DocumentSource, DocumentType
from octavo.language.languages import detect_document_language
from octavo.library.collections import clean_label
from octavo.library.facts import fact_rows
from octavo.ops.instance import LATER, PRELOAD, open_recognition, sandbox_of
from octavo.pipeline.document_parts import WITH_PARTS
from octavo.pipeline.process_document import (
    LANGUAGE_SAMPLE,
    chunk_rows,
    figure_rows,
    file_details,
    page_rows,
    without_rewrite_metadata,
)
from octavo.pipeline.revision_files import unreadable_picture
from octavo.sandbox import ENDED
from octavo.storage import Bucket

log = structlog.get_logger()
# `ready`: all results are in the row. `queued`: the file needs the job queue, such as an archive, whose files become
# documents. `failed`: the file could not be read, for the reason in the row.
READY, QUEUED, FAILED = "ready", "queued", "failed"
UNEXPECTED = "UNEXPECTED"
NO_ID = UUID(int=0)
NOBODY = Caller(NO_ID)

FileRow = dict[str, Any]


@cache
def row_schema() -> Any:  # noqa: ANN401 - a schema of Arrow
    """Return the schema of a shard's Parquet file. Nested values are stored as JSON."""
    pa = extra_module("pyarrow")
    vectors = pa.list_(pa.list_(pa.float32()))
    texts = ("key", "filename", "content_type", "source_type", "sha256", "outcome", "error_code", "error_message")
    described = ("quality", "metadata", "pages", "figures", "chunks", "facts", "summary", "made_by", "vector_model")
    return pa.schema([
        *((name, pa.string()) for name in texts),
        ("bytes", pa.int64()),
        *((name, pa.string()) for name in described),
        ("word_count", pa.int64()),
        ("page_count", pa.int64()),
        ("markdown", pa.large_string()),
        ("extracted", pa.large_binary()),
        ("picture", pa.large_binary()),
        ("vectors", vectors),
        ("tags", pa.list_(pa.string())),
        ("tag_vectors", vectors),
    ])  # fmt: skip


@dataclass(frozen=True, slots=True)
class BulkTools:
    """The resources for reading files, opened once for each shard."""

    settings: Settings
    source: SourceFiles
    out: Bucket
    reader: FileReader
    gateway: Gateway = field(default_factory=open_local_gateway)


@asynccontextmanager
async def open_tools(settings: Settings, source: SourceFiles, out: Bucket) -> AsyncGenerator[BulkTools]:
    async with (
        aclosing(sandbox_of(settings, PRELOAD, later=LATER, niceness=0)) as sandbox,
        open_recognition(settings) as recognition,
    ):
        yield BulkTools(settings, source, out, FileReader(sandbox, recognition))


async def read_files(tools: BulkTools, files: Sequence[PlannedFile]) -> list[FileRow]:
    """Read the files of a shard, several in parallel. Returns one row for each file, in the same order.

    Raises an error if a file cannot be copied at the moment. The shard then stays unfinished and is read again.
    """
    slots = asyncio.Semaphore(2 * (os.cpu_count() or 1))

    async def read(file: PlannedFile) -> FileRow:
        async with slots:
            return await read_file(tools, file)

    try:
        async with asyncio.TaskGroup() as reading:
            tasks = [reading.create_task(read(file)) for file in files]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def read_file(tools: BulkTools, file: PlannedFile) -> FileRow:
    filename = clean_filename(file.name)
    row: FileRow = {
        "key": file.key,
        "filename": filename,
        "content_type": guess_type(filename)[0] or "application/octet-stream",
        "bytes": file.bytes,
        "outcome": FAILED,
        "sha256": None,
        "source_type": None,
    }
    with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
        path = Path(folder) / "source"
        try:
            await _keep_source(tools, file, path, row)
            return _storable(row | await _results(tools, path, row))
        except OctavoError as error:
            _stop_if_not_copied(error, row)
            return row | {"error_code": error.code, "error_message": error.line}
        except Exception as error:  # one file must not stop its shard
            _stop_if_not_copied(error, row)
            log.exception("file could not be read", key=file.key)
            return row | {"error_code": UNEXPECTED, "error_message": f"{type(error).__name__}: {error}"}


def _stop_if_not_copied(error: Exception, row: FileRow) -> None:
    """Re-raise the error if it is temporary and the file has not been copied yet.

    The shard is then read again, so that no file is lost.
    """
    is_outage = (
        RETRY_RULES[error.error_class] is not None if isinstance(error, OctavoError) else isinstance(error, OSError)
    )
    if is_outage and row["sha256"] is None:
        log.warning("file could not be copied", key=row["key"], reason=str(error))
        raise error


def _storable(row: FileRow) -> FileRow:
    """Return the row unchanged. Raises an error if it contains characters that Parquet or PostgreSQL cannot store."""
    for text in row.values():
        if isinstance(text, str) and ("\0" in text or "\\u0000" in text):
            raise BadInput("The text contains null characters.")
        if isinstance(text, str):
            text.encode()
    return row


async def _keep_source(tools: BulkTools, file: PlannedFile, path: Path, row: FileRow) -> None:
    """Copy the file to this machine and to the results, under a key that depends only on its content."""
    most = tools.settings.upload_bytes
    if file.bytes > most:
        raise TooLarge(f"The limit is {format_bytes(most)}.")
    copied = await asyncio.to_thread(tools.source.copy, file.key, path)
    row["bytes"] = copied.bytes
    if copied.bytes == 0:
        raise Empty
    with suppress(AlreadyStored):
        await tools.out.put(source_key(copied.sha256), path)
    row["sha256"] = copied.sha256
    head = await asyncio.to_thread(_head, path)
    row["source_type"] = str(detect(head, row["filename"], row["content_type"]))


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


async def _results(tools: BulkTools, path: Path, row: FileRow) -> FileRow:
    kind = row["source_type"]
    if kind in WITH_PARTS or kind not in READABLE:
        return {"outcome": QUEUED}
    picture = await _picture(tools, path) if kind == SourceType.IMAGE else None
    extracted = without_rewrite_metadata(await _extract(tools, path, row, picture))
    document = await asyncio.to_thread(to_json, extracted)
    chunks = await chunk_in_sandbox(tools.reader.sandbox, document, extracted.markdown)
    facts = await _facts(tools, path, row, extracted, chunks)
    stored = [StoredChunk(NO_ID, one.content, list(one.heading_path)) for one in chunks]
    return {
        "outcome": READY,
        "quality": str(extracted.quality),
        "word_count": extracted.word_count,
        "page_count": len(extracted.pages) or None,
        "markdown": extracted.markdown,
        "extracted": document,
        "picture": picture if isinstance(picture, bytes) else None,
        "pages": json.dumps(page_rows(extracted)),
        "figures": json.dumps(figure_rows(extracted)),
        "facts": json.dumps(facts),
        "chunks": json.dumps(await _chunks(tools, chunks, stored)),
        **await _vectors(tools, stored),
        **await _describe(tools, row, facts, stored, extracted, picture),
    }


# Text ---------------------------------------------------------------------------------------------------------------


async def _picture(tools: BulkTools, path: Path) -> bytes | BadInput:
    """Return a copy of a picture for display in browsers. If the picture cannot be decoded, return the error."""
    sandbox, recognition = tools.reader.sandbox, tools.reader.recognition
    try:
        return await PictureInSandbox(sandbox, path, limits=sandbox.limits, recognition=recognition).fit()
    except BadInput as error:
        return error


async def _extract(tools: BulkTools, path: Path, row: FileRow, picture: bytes | BadInput | None) -> Extracted:
    try:
        if isinstance(picture, BadInput):
            raise picture
        return await tools.reader.read(path, filename=row["filename"])
    except BadInput as error:
        if picture is None:
            raise
        return unreadable_picture(error.detail or error.title, error.code)


async def _facts(
    tools: BulkTools, path: Path, row: FileRow, extracted: Extracted, chunks: Sequence[Chunk]
) -> list[dict[str, Any]]:
    texts = [one.content for one in chunks] or [extracted.markdown[:LANGUAGE_SAMPLE]]
    language = await asyncio.to_thread(detect_document_language, texts, extracted.metadata.language)
    source = path if row["source_type"] == SourceType.PDF else None
    try:
        return fact_rows(await find_in_sandbox(tools.reader.sandbox, extracted, source, row["filename"], language))
    except ENDED:  # a document without facts can still be read and found
        return []


# Description --------------------------------------------------------------------------------------------------------


async def _chunks(tools: BulkTools, chunks: Sequence[Chunk], stored: Sequence[StoredChunk]) -> list[dict[str, Any]]:
    rows = chunk_rows(chunks)
    for start in range(0, len(rows), CHUNKS_PER_DESCRIPTION):
        part = [one.as_text() for one in stored[start : start + CHUNKS_PER_DESCRIPTION]]
        insights = (await tools.gateway.ask(ENRICH_CHUNKS, part, NOBODY)).output.chunks
        for row, insight in zip(rows[start:], insights, strict=False):
            row.update(insight.model_dump(mode="json"), made_by=LOCAL)
    return [{name: value for name, value in row.items() if name != "id"} for row in rows]


async def _vectors(tools: BulkTools, stored: Sequence[StoredChunk]) -> FileRow:
    vectors: list[list[float]] = []
    model = None
    for start in range(0, len(stored), CHUNKS_PER_EMBEDDING):
        part = [one.content for one in stored[start : start + CHUNKS_PER_EMBEDDING]]
        made = (await tools.gateway.embed(part, NOBODY)).output
        model = made.model
        vectors += made.vectors
    return {"vectors": vectors, "vector_model": model}


async def _describe(
    tools: BulkTools,
    row: FileRow,
    facts: Sequence[dict[str, Any]],
    stored: Sequence[StoredChunk],
    extracted: Extracted,
    picture: bytes | BadInput | None,
) -> FileRow:
    """Generate the summary and tags. The owner's other tags are unknown here, so tags are chosen without them."""
    metadata = file_details(extracted)
    if not stored and not isinstance(picture, bytes):
        return {"metadata": json.dumps(metadata)}
    insight = await _insight(tools, row, facts, stored, picture)
    tags = list(dict.fromkeys(clean_label(name, "tag") for name in insight.tags))
    vectors = (await tools.gateway.embed(tags, NOBODY)).output.vectors if tags else []
    metadata["document_type"] = insight.type
    return {
        "metadata": json.dumps(metadata),
        "summary": insight.summary or None,
        "made_by": LOCAL,
        "tags": tags,
        "tag_vectors": vectors,
    }


async def _insight(
    tools: BulkTools,
    row: FileRow,
    facts: Sequence[dict[str, Any]],
    stored: Sequence[StoredChunk],
    picture: bytes | BadInput | None,
) -> DocumentInsight:
    if isinstance(picture, bytes):
        text = "\n\n".join(chunk.content for chunk in sample(stored))
        image = ImageToClassify(Picture(picture, PICTURE_TYPE), row["filename"], text)
        return (await tools.gateway.ask(CLASSIFY_IMAGE, image, NOBODY)).output
    kind = _best(facts, "kind", "value")
    source = DocumentSource(
        [chunk.as_text() for chunk in sample(stored)],
        kind=row["source_type"],
        filename=row["filename"],
        title=_best(facts, "title", "value"),
        author=_best(facts, "author", "value"),
        date=_best(facts, "date", "normalized"),
        language=_best(facts, "language", "normalized"),
        type=DocumentType(kind) if kind in set(DocumentType) else None,
    )
    return (await tools.gateway.ask(CLASSIFY_DOCUMENT, source, NOBODY)).output


def _best(facts: Sequence[dict[str, Any]], name: str, field_name: str) -> str | None:
    """Return one field of the best fact with this name. Returns None if there is no such fact.

    Facts are ranked in the same way as in the `fact_rank` database function.
    """
    named = [one for one in facts if one["name"] == name]
    best = min(named, key=lambda one: (_rank(one), -one["confidence"], one["number"]), default=None)
    return best[field_name] if best else None


def _rank(fact: dict[str, Any]) -> int:
    if fact["source"] == "metadata":
        return 5
    return 1 if fact["status"] != "found" else 4
