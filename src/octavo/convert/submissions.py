"""Submits files and documents for conversion. A repeated submission returns the existing conversion."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from dataclasses import dataclass
from uuid import UUID

import structlog
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from octavo.choreography import Cause, job_after
from octavo.convert.mappings.stored_mappings import StoredMapping, find_mapping
from octavo.core.errors import Empty, NotFound, NotPdf, OctavoError, TooLarge
from octavo.core.ids import new_id
from octavo.database import Database, load_queries
from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.extracted import SourceType
from octavo.intake.upload_rows import check_quota, clean_filename, lock_usage
from octavo.library.errors import SourceGone
from octavo.storage import Bucket, Stored

log = structlog.get_logger()
QUERIES = load_queries("conversions")
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Submission:
    """The result of a submission.

    `created` is false if the same conversion already existed, whether finished or in progress.
    """

    id: UUID
    created: bool


@dataclass(frozen=True, slots=True)
class ConversionIntake:
    """Queues conversions. A rejected submission is recorded as a failed job with the reason; its bytes are deleted."""

    database: Database
    bucket: Bucket
    upload_bytes: int
    source_days: int
    stored_bytes: int | None = None

    async def submit_file(
        self, owner: UUID, filename: str, mapping: Callable[[], str], body: AsyncIterable[bytes]
    ) -> Submission:
        """Submit a file, which must be a PDF.

        `mapping` is called after the body has been read, because a form may send the mapping's name after the file.
        """
        job, label = new_id(), clean_filename(filename)
        stored: Stored | None = None
        try:
            stored = await self._store(job, label, body)
            submission = await self._begin(job, owner, label, await self._mapping(owner, mapping()), stored)
        except OctavoError as error:
            await self._remove(stored)
            await self._reject(job, owner, label, mapping(), error)
            raise
        if not submission.created:
            await self._remove(stored)
        return submission

    async def submit_document(self, owner: UUID, document: UUID, mapping: str) -> Submission:
        """Submit the source of a document. The conversion uses the same stored object, not a copy."""
        async with (
            self.database.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(QUERIES.document_source, {"owner": owner, "document": document})
            source = await cursor.fetchone()
        if source is None:
            raise NotFound
        job = new_id()
        try:
            stored_mapping = await self._mapping(owner, mapping)
            if source["source_type"] != SourceType.PDF:
                raise NotPdf
            if source["key"] is None:
                raise SourceGone
            stored = Stored(source["key"], source["bytes"], source["sha256"])
            return await self._begin(job, owner, source["filename"], stored_mapping, stored, document)
        except OctavoError as error:
            await self._reject(job, owner, source["filename"], mapping, error)
            raise

    async def _mapping(self, owner: UUID, name: str) -> StoredMapping:
        async with self.database.connection() as connection:
            return await find_mapping(connection, owner, name)

    async def _store(self, job: UUID, label: str, body: AsyncIterable[bytes]) -> Stored:
        """Store the body.

        The type is detected from the first bytes, so that files other than PDFs are rejected early.
        """
        try:
            stored = await self.bucket.put(f"conversions/{job}/source", _only_pdf(body, label), limit=self.upload_bytes)
        except TooLarge:
            raise TooLarge(f"At most {self.upload_bytes:,} bytes can be converted.") from None
        if stored.bytes == 0:
            await self._remove(stored)
            raise Empty
        return stored

    async def _begin(
        self,
        job: UUID,
        owner: UUID,
        filename: str,
        mapping: StoredMapping,
        stored: Stored,
        document: UUID | None = None,
    ) -> Submission:
        new = job_after(Cause.CONVERSION_REQUESTED, owner, {"mapping": mapping.name}, document=document, job=job)
        values = {
            "job": Jsonb(new.as_json()),
            "owner": owner,
            "document": document,
            "filename": filename,
            "mapping": mapping.name,
            "mapping_sha256": mapping.sha256,
            "sha256": stored.sha256,
            "bytes": stored.bytes,
            "key": stored.key,
            "shared": document is not None,
            "source_days": self.source_days,
        }
        counts = document is None and self.stored_bytes is not None  # a document's file counts already
        async with self.database.transaction() as connection:
            if counts:
                await lock_usage(connection, owner)
            row = await (await connection.execute(QUERIES.begin, values)).fetchone()
            if row is None:
                raise AssertionError("begin_conversion returns one row")
            submission = Submission(*row)
            if counts and submission.created:
                await check_quota(connection, owner, self.stored_bytes)
        return submission

    async def _reject(self, job: UUID, owner: UUID, filename: str, mapping: str, error: OctavoError) -> None:
        values = {
            "id": job,
            "owner": owner,
            "filename": filename,
            "mapping": "".join(filter(str.isprintable, mapping))[:_LONGEST_NAME],
            "code": error.code,
            "message": error.line,
        }
        async with self.database.transaction() as connection:
            await connection.execute(QUERIES.refuse, values)

    async def _remove(self, stored: Stored | None) -> None:
        """Delete the stored object, if there is one. If this fails, the daily sweep deletes it."""
        try:
            if stored:
                await self.bucket.delete([stored.key])
        except OctavoError as error:
            log.warning("unused objects stay until the sweep", keys=[stored and stored.key], reason=error.line)


async def _only_pdf(body: AsyncIterable[bytes], label: str) -> AsyncGenerator[bytes]:
    """Pass the body on unchanged. Raises `NotPdf` for any other type, once enough bytes have arrived to detect it."""
    head, checked = b"", False
    async for part in body:
        if checked:
            yield part
            continue
        head += part
        if len(head) >= HEAD_BYTES:
            _check(head, label)
            checked = True
            yield head
    if not checked and head:
        _check(head, label)
        yield head


def _check(head: bytes, label: str) -> None:
    if detect(head[:HEAD_BYTES], label) is not SourceType.PDF:
        raise NotPdf
