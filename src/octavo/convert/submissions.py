"""Submits files and documents for conversion. A repeated submission returns the existing conversion."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from pydantic import TypeAdapter

from octavo.choreography import Cause, job_after
from octavo.convert.conversions import find_result, show_conversion
from octavo.convert.errors import BadMapping, UnknownMapping
from octavo.convert.mappings.stored_mappings import StoredMapping, find_mapping
from octavo.core.errors import Empty, NotFound, NotPdf, OctavoError, TooLarge
from octavo.core.types import JSON, new_id
from octavo.database import Connection, Database, load_queries
from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.extracted import SourceType
from octavo.intake.upload_rows import check_quota, clean_filename, lock_usage
from octavo.jobs.job_run import Run
from octavo.jobs.queue import enqueue
from octavo.library.documents import Filters, list_documents
from octavo.library.errors import SourceGone
from octavo.storage import Bucket, Stored

log = structlog.get_logger()
QUERIES = load_queries("conversions")
BATCH_DOCUMENTS = 200
FILTERS = TypeAdapter(Filters)
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Submission:
    """The result of submitting a file or document for conversion.

    `created` is false if the same conversion already existed, whether finished or in progress.
    """

    id: UUID
    created: bool


# Called in the transaction that queues a conversion.
OnSubmitted = Callable[[Connection, Submission], Awaitable[object]]


async def ignore_submission(connection: Connection, submission: Submission) -> None:
    del connection, submission


class _Begun(NamedTuple):
    """A conversion that was queued or already exists.

    `key` is the storage key of its file. It is None if the conversion already existed.
    """

    id: UUID
    created: bool
    key: str | None


@dataclass(frozen=True, slots=True)
class ConversionIntake:
    """Queues conversions.

    A rejected submission is recorded as a failed job with the reason, and its uploaded file is deleted.
    """

    database: Database
    bucket: Bucket
    upload_bytes: int
    source_days: int
    stored_bytes: int | None = None
    on_submitted: OnSubmitted = ignore_submission

    async def submit_file(
        self, owner: UUID, filename: str, mapping: Callable[[], str], body: AsyncIterable[bytes]
    ) -> Submission:
        """Submit a PDF file for conversion.

        `mapping` is a function that returns the name of the mapping. It is called after the body has been read, because
        a form may send the name after the file.
        """
        job, label = new_id(), clean_filename(filename)
        stored: Stored | None = None
        try:
            stored = await self._store(job, label, body)
            begun = await self._begin(job, owner, label, await self.find_mapping(owner, mapping()), stored)
        except (UnknownMapping, BadMapping):
            await self._remove(stored)
            raise
        except OctavoError as error:
            await self._remove(stored)
            await self._reject(job, owner, label, mapping(), error)
            raise
        if begun.key != stored.key:  # the same conversion already exists, or a document already has this file
            await self._remove(stored)
        return Submission(begun.id, begun.created)

    async def submit_document(self, owner: UUID, document: UUID, mapping: str) -> Submission:
        """Submit the source file of a document for conversion.

        The conversion uses the stored file itself, not a copy.
        """
        async with (
            self.database.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(QUERIES.document_source, {"owner": owner, "document": document})
            source = await cursor.fetchone()
        if source is None:
            raise NotFound
        job = new_id()
        stored_mapping = await self.find_mapping(owner, mapping)
        try:
            if source["source_type"] != SourceType.PDF:
                raise NotPdf
            if source["key"] is None:
                raise SourceGone
            stored = Stored(source["key"], source["bytes"], source["sha256"])
            begun = await self._begin(job, owner, source["filename"], stored_mapping, stored, document)
            return Submission(begun.id, begun.created)
        except OctavoError as error:
            await self._reject(job, owner, source["filename"], mapping, error)
            raise

    async def convert_again(self, owner: UUID, conversion: UUID, mapping: str | None = None) -> Submission:
        """Convert the stored file of a conversion again, with the same mapping or another one.

        The earlier conversion is kept. If a conversion with this mapping is in progress, it is returned instead.
        """
        async with self.database.connection() as connection:
            found = await show_conversion(connection, owner, conversion)
            await find_result(connection, owner, conversion, "source")
            used = await find_mapping(connection, owner, mapping or found.mapping)
        new = job_after(Cause.CONVERSION_REQUESTED, owner, {"mapping": used.name}, document=found.document_id)
        key = {"owner": owner, "id": conversion, "mapping": used.name, "mapping_sha256": used.sha256}
        async with self.database.transaction() as connection:
            await connection.execute(QUERIES.lock_content, key)
            await connection.execute(QUERIES.retire, key)
            same = await (await connection.execute(QUERIES.same_content, key)).fetchone()
            if same:
                submission = Submission(same[0], created=False)
            else:
                (job,) = await enqueue(connection, [new])
                text = {"job": job.id, "file": used.file, "text": used.text, "source_days": self.source_days}
                await connection.execute(QUERIES.begin_again, key | text)
                submission = Submission(job.id, created=True)
            await self.on_submitted(connection, submission)
        return submission

    async def find_mapping(self, owner: UUID, name: str) -> StoredMapping:
        """Find a mapping by name. Call this before creating a job. Raises `UnknownMapping`."""
        async with self.database.connection() as connection:
            return await find_mapping(connection, owner, name)

    async def _store(self, job: UUID, label: str, body: AsyncIterable[bytes]) -> Stored:
        """Store an uploaded file.

        Its type is detected from the first bytes, so that files other than PDFs are rejected early.
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
    ) -> _Begun:
        new = job_after(Cause.CONVERSION_REQUESTED, owner, {"mapping": mapping.name}, document=document, job=job)
        values = {
            "job": Jsonb(new.as_json()),
            "owner": owner,
            "document": document,
            "filename": filename,
            "mapping": mapping.name,
            "mapping_sha256": mapping.sha256,
            "file": mapping.file,
            "text": mapping.text,
            "sha256": stored.sha256,
            "bytes": stored.bytes,
            "key": stored.key,
            "source_days": self.source_days,
        }
        counts = document is None and self.stored_bytes is not None  # the file of a document is already counted
        async with self.database.transaction() as connection:
            if counts:
                await lock_usage(connection, owner)
            row = await (await connection.execute(QUERIES.begin, values)).fetchone()
            if row is None:
                raise AssertionError("begin_conversion returns one row")
            begun = _Begun(*row)
            if counts and begun.key == stored.key:
                await check_quota(connection, owner, self.stored_bytes)
            await self.on_submitted(connection, Submission(begun.id, begun.created))
        return begun

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
        """Delete the stored file, if there is one. If this fails, the daily clean-up deletes it."""
        try:
            if stored:
                await self.bucket.delete([stored.key])
        except OctavoError as error:
            log.warning("unused objects stay until the clean-up", keys=[stored and stored.key], reason=error.line)


async def begin_batch(
    connection: Connection,
    owner: UUID,
    mapping: StoredMapping,
    *,
    documents: Sequence[UUID] = (),
    filters: Filters | None = None,
    cause: Cause = Cause.BATCH_REQUESTED,
) -> UUID:
    """Queue the conversion of many documents: the given `documents`, or all documents that match `filters`.

    This call only starts a job, so it is fast for any number of documents. The job reads a limited number of documents
    at a time and queues their conversions.
    """
    job = new_id()
    wanted: dict[str, JSON] = {"mapping": mapping.name}
    if filters is None:
        wanted["documents"] = [str(one) for one in sorted(set(documents))]
    else:
        wanted["filters"] = FILTERS.dump_python(filters, mode="json")
    await enqueue(connection, [job_after(cause, owner, wanted, job=job)])
    await connection.execute(QUERIES.insert_batch, {"id": job, "owner": owner, "mapping": mapping.name})
    return job


@dataclass(frozen=True, slots=True)
class BatchJob:
    """Queues the conversions of a batch of documents. Each stage of the job handles a limited number of documents."""

    run: Run[Any]

    async def list_documents(self) -> JSON:
        part, cursor = 0, ""
        while cursor is not None:
            cursor = (await self._part(part, cursor))["cursor"]
            part += 1

        async def work() -> JSON:
            return {"parts": part}

        async def save(connection: Connection, output: JSON) -> None:
            del output
            await connection.execute(QUERIES.end_listing, {"batch": self.run.job.id})
            await connection.execute(QUERIES.complete_batch, {"batch": self.run.job.id})

        return await self.run.stage("listed", work, save=save)

    async def _part(self, number: int, cursor: str) -> dict[str, Any]:
        async def work() -> JSON:
            documents, following = await self._documents(cursor)
            return {"documents": [str(one) for one in documents], "cursor": following}

        async def save(connection: Connection, output: Any) -> None:  # noqa: ANN401
            owner = await self.run.current_owner(connection)
            mapping = await find_mapping(connection, owner, str(self.run.input["mapping"]))
            jobs = _batch_jobs(owner, output["documents"], mapping)
            text = {"mapping_sha256": mapping.sha256, "file": mapping.file, "text": mapping.text}
            values = {"batch": self.run.job.id, "owner": owner, "jobs": Jsonb(jobs), **text}
            await connection.execute(QUERIES.begin_part, values)

        made: Any = await self.run.stage("queued", work, part=f"{number:06}", save=save)
        return made

    async def _documents(self, cursor: str) -> tuple[list[UUID], str | None]:
        """Return the next documents of the batch and the cursor for the documents after them.

        The cursor is None if no documents are left.
        """
        if isinstance(given := self.run.input.get("documents"), list):
            start = int(cursor or 0)
            end = start + BATCH_DOCUMENTS
            return [UUID(str(one)) for one in given[start:end]], str(end) if len(given) > end else None
        filters = FILTERS.validate_python(self.run.input["filters"])
        async with self.run.database.connection() as connection:
            owner = await self.run.current_owner(connection)
            page = await list_documents(
                connection, owner, filters, sort="oldest", cursor=cursor or None, limit=BATCH_DOCUMENTS
            )
        return [one.id for one in page.items], page.next_cursor


def _batch_jobs(owner: UUID, documents: Sequence[str], mapping: StoredMapping) -> list[JSON]:
    wanted: dict[str, JSON] = {"mapping": mapping.name}
    jobs = [job_after(Cause.BATCH_PART_LISTED, owner, wanted, document=UUID(one)) for one in documents]
    return [job.as_json() for job in jobs]


async def _only_pdf(body: AsyncIterable[bytes], label: str) -> AsyncGenerator[bytes]:
    """Yield the body unchanged. Raises `NotPdf` as soon as the first bytes show that the file is not a PDF."""
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
