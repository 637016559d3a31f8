"""From the bytes of a document to text that can be read and cited: each stage is done once.

- `extracted`: the text with its pages, blocks and outline, from the file, in the sandbox
- `markdown_saved`: the text as Markdown; a first revision can be read from here on
- `chunked`: the text in pieces; a later revision takes the place of the one before, all at once
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import TupleRow, class_row
from psycopg.types.json import Jsonb
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from octavo.database import Connection, load_queries
from octavo.enrich.chunking import Chunk
from octavo.enrich.steps import chunk_in_sandbox
from octavo.extract.contract import Extracted, Metadata, from_json, to_json
from octavo.extract.formats import known_processors
from octavo.extract.steps import extract_in_sandbox
from octavo.intake.errors import NotCanonical
from octavo.jobs.kinds import JobKind
from octavo.jobs.run import Run
from octavo.library.changes import KIND as NAME
from octavo.library.changes import SourceGone
from octavo.model.errors import BadInput, Cancelled
from octavo.model.ids import new_id
from octavo.model.json import JSON
from octavo.pipeline.tools import Tools
from octavo.storage import Stored

QUERIES = load_queries("processing")
EXTRACTED_BYTES = 1 << 30
READABLE = frozenset[str](known_processors().source_types)
JSON_TYPE, MARKDOWN_TYPE = "application/json", "text/markdown; charset=utf-8"


class ProcessInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    revision: int = Field(ge=1)


@dataclass(frozen=True, slots=True)
class Source:
    """What a document is processed from."""

    id: UUID
    filename: str
    content_type: str
    source_type: str
    deleted: bool
    source_key: str | None
    canonical: bool


async def process_document(run: Run[Tools]) -> JSON:
    source = await load_source(run)
    work = Processing(run, source, read_input(run.input).revision)
    extracted = await run.stage("extracted", work.extract, save=work.save_extracted)
    if extracted is None:
        return {"quality": "stored_only"}
    await run.stage("markdown_saved", work.write_markdown, save=work.save_markdown)
    chunks = await run.stage("chunked", work.chunk, save=work.save_chunks)
    await work.remove_unused()
    return {"chunks": chunks}


def read_input(given: dict[str, JSON]) -> ProcessInput:
    try:
        return ProcessInput.model_validate(given)
    except ValidationError:
        raise BadInput("A revision is missing.") from None


async def load_source(run: Run[Tools]) -> Source:
    """The document, if it is still one that should be processed."""
    async with (
        run.tools.database.connection() as connection,
        connection.cursor(row_factory=class_row(Source)) as cursor,
    ):
        await cursor.execute(QUERIES.document, {"document": run.job.document_id})
        source = await cursor.fetchone()
    if source is None or source.deleted:
        raise Cancelled
    if not source.canonical:
        raise NotCanonical
    if source.source_key is None:
        raise SourceGone
    return source


class Processing:
    """The stages of one revision. What is large goes to the bucket; a stage's own answer is small."""

    def __init__(self, run: Run[Tools], source: Source, revision: int) -> None:
        self._run = run
        self._tools = run.tools
        self._source = source
        self._revision = revision
        self._extracted: Extracted | None = None
        self._chunks: list[Chunk] = []
        self._unused: list[str] = []

    async def remove_unused(self) -> None:
        """Files that the last stage took the place of; after a kill the daily sweep finds them."""
        unused, self._unused = self._unused, []
        await self._tools.bucket.delete(unused)

    # extracted

    async def extract(self) -> JSON:
        """None for a type that is only kept."""
        if self._source.source_type not in READABLE:
            return None
        async with self._local_copy() as path:
            extracted = await extract_in_sandbox(
                self._tools.sandbox, path, self._source.filename, self._source.content_type
            )
        self._extracted = extracted
        stored = await self._put("extracted.json", await asyncio.to_thread(to_json, extracted))
        return {"key": stored.key, "bytes": stored.bytes, "sha256": stored.sha256, "quality": extracted.quality}

    async def save_extracted(self, connection: Connection, made: JSON) -> None:
        values: dict[str, Any] = {"document": self._source.id, "source_type": self._source.source_type}
        if not isinstance(made, dict):
            await connection.execute(QUERIES.set_extracted, values | {"quality": "stored_only"})
            return
        await self._keep(connection, "extracted", made, JSON_TYPE)
        await connection.execute(QUERIES.set_extracted, values | {"quality": made["quality"]})

    # markdown_saved

    async def write_markdown(self) -> JSON:
        extracted = await self._read_extracted()
        stored = await self._put("document.md", extracted.markdown.encode())
        return {"key": stored.key, "bytes": stored.bytes, "sha256": stored.sha256}

    async def save_markdown(self, connection: Connection, made: JSON) -> None:
        if not isinstance(made, dict):
            raise TypeError("this stage answers what it stored")
        await self._keep(connection, "markdown", made, MARKDOWN_TYPE)
        values = {"document": self._source.id, "revision": self._revision}
        await connection.execute(QUERIES.make_readable, values)
        await connection.execute(QUERIES.set_found, self._found(await self._read_extracted()))

    def _found(self, extracted: Extracted) -> dict[str, Any]:
        about: Metadata = extracted.metadata
        return {
            "document": self._source.id,
            "title": about.title,
            "author": about.author,
            "language": about.language,
            "date": whole_date(about.date),
            "word_count": extracted.word_count,
            "page_count": len(extracted.pages) or None,
            "quality": extracted.quality,
        }

    # chunked

    async def chunk(self) -> JSON:
        extracted = await self._read_extracted()
        document = await asyncio.to_thread(to_json, extracted)
        self._chunks = await chunk_in_sandbox(self._tools.sandbox, document, extracted.markdown)
        return len(self._chunks)

    async def save_chunks(self, connection: Connection, made: JSON) -> None:
        del made
        place: dict[str, Any] = {"document": self._source.id, "revision": self._revision}
        pages = (await self._read_extracted()).pages
        values = {
            "numbers": [page.number for page in pages],
            "labels": [page.label for page in pages],
            "starts": [page.start for page in pages],
            "ends": [page.end for page in pages],
        }
        await connection.execute(QUERIES.delete_chunks, place)
        await connection.execute(QUERIES.insert_pages, place | values)
        rows = [{"id": str(new_id()), **{name: getattr(one, name) for name in one.__slots__}} for one in self._chunks]
        await connection.execute(QUERIES.insert_chunks, place | {"chunks": Jsonb(rows)})
        await self._forget(connection, await connection.execute(QUERIES.switch_revision, place))

    # Files

    @asynccontextmanager
    async def _local_copy(self) -> AsyncGenerator[Path]:
        """The source as a file on this machine, for as long as a parser needs it."""
        with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
            path = Path(folder) / "source"
            stream = await self._tools.bucket.stream(self._source.source_key or "")
            with path.open("wb") as file:
                async for chunk in stream:
                    await asyncio.to_thread(file.write, chunk)
            yield path

    async def _put(self, name: str, body: bytes) -> Stored:
        """Under a key of this attempt, so that one that lost its lease never writes where another does."""
        job = self._run.job
        return await self._tools.bucket.put(f"derived/{job.id}/{job.lease_token}/{name}", body)

    async def _keep(self, connection: Connection, kind: str, made: dict[str, JSON], content_type: str) -> None:
        stored = {name: made[name] for name in ("key", "bytes", "sha256")}
        place = {"document": self._source.id, "revision": self._revision, "kind": kind}
        await self._forget(connection, await connection.execute(QUERIES.delete_artifact, place))
        await connection.execute(QUERIES.insert_object, stored)
        values = {"id": new_id(), "job": self._run.job.id, "key": made["key"], "content_type": content_type}
        await connection.execute(QUERIES.insert_artifact, place | values)

    async def _forget(self, connection: Connection, cursor: AsyncCursor[TupleRow]) -> None:
        """Drop the rows of objects that nobody refers to any more."""
        values = {"keys": [row[0] for row in await cursor.fetchall()]}
        unused = await (await connection.execute(QUERIES.delete_unused_objects, values)).fetchall()
        self._unused = [row[0] for row in unused]

    async def _read_extracted(self) -> Extracted:
        """From memory, or as an earlier attempt left it."""
        if self._extracted is None:
            async with self._tools.database.connection() as connection:
                values = {"document": self._source.id, "revision": self._revision, "kind": "extracted"}
                row = await (await connection.execute(QUERIES.artifact_key, values)).fetchone()
            if row is None:
                raise SourceGone
            body = await self._tools.bucket.read(row[0], limit=EXTRACTED_BYTES)
            self._extracted = await asyncio.to_thread(from_json, body)
        return self._extracted


def whole_date(given: str | None) -> str | None:
    """A day as the database keeps it; a year or a month alone is not one."""
    return given if given and re.fullmatch(r"\d{4}-\d{2}-\d{2}", given) else None


KIND = JobKind(NAME, process_document, time_limit_seconds=600, limit_renewed_by_stage=True, check_input=read_input)
