"""Uploads: begin, send the bytes, finalize. Nothing exists before finalize, and everything after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal
from uuid import UUID

import psycopg
import structlog
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.database import Connection, Database, load_queries
from octavo.intake.errors import (
    Duplicate,
    HashMismatch,
    NotCanonical,
    QuotaExceeded,
    SizeMismatch,
    TooManyUploads,
    UploadClosed,
    UploadIncomplete,
)
from octavo.intake.names import clean_filename
from octavo.jobs.queue import enqueue
from octavo.library.changes import lock_content, process_job
from octavo.model.errors import Empty, NotFound, OctavoError, TooLarge
from octavo.model.ids import new_id
from octavo.model.json import JSON
from octavo.storage import Body, Bucket, ObjectStream, Stored

log = structlog.get_logger()
QUERIES = load_queries("uploads")
HEAD_BYTES = 64 << 10
PUT_SECONDS = 3600
# An upload that nobody goes on with stops counting as one of many at once after this long.
CONCURRENT_SECONDS = 900

Policy = Literal["reuse", "new", "reject"]
Detect = Callable[[bytes, str, str], str]


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """What one owner may bring in; `stored_bytes` is None where there is no limit."""

    upload_bytes: int
    stored_bytes: int | None
    concurrent: int


@dataclass(frozen=True, slots=True)
class NewUpload:
    """What somebody says about a file before its bytes are there. Nothing of it is believed."""

    filename: str
    content_type: str = "application/octet-stream"
    bytes: int | None = None
    sha256: str | None = None
    duplicates: Policy = "reuse"
    source_type: str = "file"
    source_url: str | None = None
    given: dict[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class Ticket:
    """Where the bytes go; `put_url` is a path of our own web server or a full URL."""

    upload_id: UUID
    document_id: UUID
    process_id: UUID
    put_url: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an upload. `duplicate`: this was answered before."""

    state: str
    upload_id: UUID
    document_id: UUID
    process_id: UUID
    duplicate_of: UUID | None = None
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Upload:
    """One row; a method's own view of it may be older than the row."""

    id: UUID
    owner_id: UUID
    document_id: UUID
    process_id: UUID
    state: str
    is_canonical: bool
    duplicates: Policy
    filename: str
    content_type: str
    source_type: str
    source_url: str | None
    given: dict[str, JSON]
    claimed_bytes: int | None
    claimed_sha256: str | None
    incoming_key: str | None
    object_key: str | None
    bytes: int | None
    sha256: str | None
    error_code: str | None
    error_message: str | None
    created_at: Any


@dataclass(frozen=True, slots=True)
class Twin:
    """The document that a content is already."""

    id: UUID
    process_id: UUID
    status: str
    key: str


class Intake:
    """Brings files in for one owner at a time; `detect` tells a file's type from its first bytes."""

    def __init__(self, database: Database, bucket: Bucket, detect: Detect) -> None:
        self._database = database
        self._bucket = bucket
        self._detect = detect

    # Two steps and the bytes between them ------------------------------------------------------------------------

    async def begin(self, owner: UUID, new: NewUpload, limits: IntakeLimits) -> Ticket:
        """Make the record and say where the bytes go."""
        upload, document, process = new_id(), new_id(), new_id()
        incoming = f"incoming/{upload}"
        signed = await self._bucket.sign_put(incoming, seconds=PUT_SECONDS)
        async with self._database.transaction() as connection:
            await _check_concurrency(connection, owner, limits)
            values = {"id": upload, "owner": owner, "document": document, "process": process}
            await _insert_upload(connection, values, new, incoming if signed else None)
        if new.bytes is not None and new.bytes > limits.upload_bytes:
            raise await self._refuse(owner, upload, _too_large(limits))
        return Ticket(upload, document, process, signed or f"/api/v1/uploads/{upload}/content")

    async def receive(self, owner: UUID, upload_id: UUID, body: Body, limits: IntakeLimits) -> Stored:
        """Take the bytes. Sent twice, the last ones count; a transfer that breaks off leaves the upload as it was."""
        upload = await self.read(owner, upload_id)
        if upload.state != "pending":
            raise UploadClosed
        try:
            stored = await self._bucket.put(_source_key(upload), body, limit=limits.upload_bytes)
        except TooLarge:
            raise await self._refuse(owner, upload.id, _too_large(limits)) from None
        await self._keep_received(upload, stored)
        if stored.bytes == 0:
            raise await self._refuse(owner, upload.id, Empty())
        return stored

    async def finalize(self, owner: UUID, upload_id: UUID, limits: IntakeLimits) -> Outcome:
        """Make the document, or find the one that this content is already. Repeated, it answers the same."""
        upload = await self._received(owner, await self.read(owner, upload_id), limits)
        if upload.state in {"uploaded", "deduplicated"}:
            return await self._repeat(upload)
        if upload.state != "pending":
            raise UploadClosed(upload.error_message)
        if problem := _broken_claim(upload):
            raise await self._refuse(owner, upload.id, problem)
        source_type = upload.source_type
        if source_type == "file":
            source_type = self._detect(await self._head(upload), upload.filename, upload.content_type)
        try:
            outcome = await self._decide(upload, source_type, limits)
        except (Duplicate, QuotaExceeded) as error:
            raise await self._refuse(owner, upload.id, error) from None
        if outcome is None:  # somebody else finalized it meanwhile
            return await self._repeat(await self.read(owner, upload.id))
        # A twin's bytes are there already.
        unused = (upload.incoming_key, upload.object_key if outcome.duplicate_of else None)
        await self._remove([key for key in unused if key])
        return outcome

    async def take(self, owner: UUID, new: NewUpload, body: Body, limits: IntakeLimits) -> Outcome:
        """All three steps in one call."""
        ticket = await self.begin(owner, new, limits)
        try:
            await self.receive(owner, ticket.upload_id, body, limits)
        except OctavoError as error:
            await self._refuse(owner, ticket.upload_id, error)
            raise
        return await self.finalize(owner, ticket.upload_id, limits)

    async def read(self, owner: UUID, upload_id: UUID) -> Upload:
        """One upload of this owner."""
        async with (
            self._database.connection() as connection,
            connection.cursor(row_factory=class_row(Upload)) as cursor,
        ):
            await cursor.execute(QUERIES.read_upload, {"owner": owner, "id": upload_id})
            upload = await cursor.fetchone()
        if upload is None:
            raise NotFound
        return upload

    async def content(self, owner: UUID, upload_id: UUID) -> ObjectStream:
        """The bytes of the upload that a document is made from; of any other they are refused."""
        upload = await self.read(owner, upload_id)
        if not upload.is_canonical or upload.object_key is None:
            raise NotCanonical
        return await self._bucket.stream(upload.object_key)

    # Parts of them -----------------------------------------------------------------------------------------------

    async def _keep_received(self, upload: Upload, stored: Stored) -> None:
        values = {
            "owner": upload.owner_id,
            "id": upload.id,
            "key": stored.key,
            "bytes": stored.bytes,
            "sha256": stored.sha256,
        }
        async with self._database.transaction() as connection:
            row = await (await connection.execute(QUERIES.set_received, values)).fetchone()
        if row is None:
            await self._remove([stored.key])
            raise UploadClosed
        await self._remove([row[0]] if row[0] else [])

    async def _received(self, owner: UUID, upload: Upload, limits: IntakeLimits) -> Upload:
        """An upload whose bytes are under a key that only the server ever wrote to."""
        if upload.state != "pending" or upload.object_key:
            return upload
        info = await self._bucket.stat(upload.incoming_key) if upload.incoming_key else None
        if info is None or upload.incoming_key is None:
            raise UploadIncomplete
        if info.bytes > limits.upload_bytes:
            raise await self._refuse(owner, upload.id, _too_large(limits))
        # The link may be used again until it runs out, so what counts is a copy that it does not lead to.
        key = _source_key(upload)
        await self._bucket.copy(upload.incoming_key, key)
        stored = await self._measure(key)
        await self._keep_received(upload, stored)
        if stored.bytes == 0:
            raise await self._refuse(owner, upload.id, Empty())
        return await self.read(owner, upload.id)

    async def _measure(self, key: str) -> Stored:
        digest, size = sha256(), 0
        async for chunk in await self._bucket.stream(key):
            await asyncio.to_thread(digest.update, chunk)
            size += len(chunk)
        return Stored(key, size, digest.hexdigest())

    async def _head(self, upload: Upload) -> bytes:
        if upload.object_key is None:
            raise UploadIncomplete
        head = b""
        async for chunk in await self._bucket.stream(upload.object_key, end=HEAD_BYTES):
            head += chunk
        return head

    async def _decide(self, upload: Upload, source_type: str, limits: IntakeLimits) -> Outcome | None:
        """The one transaction: whose content it is, the document, its job, and their events."""
        content = {"owner": upload.owner_id, "sha256": upload.sha256}
        async with self._database.transaction() as connection:
            await lock_content(connection, upload.owner_id, upload.sha256)
            row = await (
                await connection.execute(QUERIES.lock_upload, {"owner": upload.owner_id, "id": upload.id})
            ).fetchone()
            if row is None:
                raise NotFound
            if row[0] != "pending":
                return None
            twin = await _find_twin(connection, content)
            if twin is None:
                await connection.execute(QUERIES.release_canonical, content)
                return await _make_document(connection, upload, source_type, limits)
            if upload.duplicates == "reject":
                raise Duplicate(f"It is document {twin.id}.")
            if upload.duplicates == "new":
                return await _make_document(connection, upload, source_type, limits, twin)
            await _close(connection, upload.id, "deduplicated", twin.id, twin.process_id)
            told = {"process": twin.process_id, "owner": upload.owner_id, "document": twin.id, "upload": upload.id}
            await connection.execute(QUERIES.record_deduplicated, told)
            return Outcome("deduplicated", upload.id, twin.id, twin.process_id, duplicate_of=twin.id)

    async def _repeat(self, upload: Upload) -> Outcome:
        twin = upload.document_id if upload.state == "deduplicated" else None
        return Outcome(upload.state, upload.id, upload.document_id, upload.process_id, twin, duplicate=True)

    async def _refuse(self, owner: UUID, upload_id: UUID, error: OctavoError) -> OctavoError:
        """Leave one row that says why, and none of the bytes; the error is given back to be raised."""
        values = {"owner": owner, "id": upload_id, "code": error.code, "message": error.line}
        async with self._database.transaction() as connection:
            row = await (await connection.execute(QUERIES.refuse_upload, values)).fetchone()
        await self._remove([key for key in row or () if key])
        return error

    async def _remove(self, keys: list[str]) -> None:
        """What is not removed now is found by the daily sweep, so that it must not fail a good upload."""
        try:
            if keys:
                await self._bucket.delete(keys)
        except OctavoError as error:
            log.warning("unused objects stay until the sweep", keys=keys, reason=error.line)


async def _insert_upload(connection: Connection, ids: dict[str, UUID], new: NewUpload, incoming: str | None) -> None:
    values = {
        **ids,
        "duplicates": new.duplicates,
        "filename": clean_filename(new.filename),
        "content_type": new.content_type,
        "source_type": new.source_type,
        "source_url": new.source_url,
        "given": Jsonb(new.given),
        "claimed_bytes": new.bytes,
        "claimed_sha256": new.sha256,
        "incoming_key": incoming,
    }
    try:
        await connection.execute(QUERIES.insert_upload, values)
    except psycopg.errors.ForeignKeyViolation:  # the owner was merged into another a moment ago
        raise NotFound from None


async def _check_concurrency(connection: Connection, owner: UUID, limits: IntakeLimits) -> None:
    values = {"owner": owner, "seconds": CONCURRENT_SECONDS}
    row = await (await connection.execute(QUERIES.count_pending, values)).fetchone()
    if row and row[0] >= limits.concurrent:
        raise TooManyUploads(f"At most {limits.concurrent} may be open.", retry_after_seconds=max(1.0, float(row[1])))


async def _find_twin(connection: Connection, content: dict[str, Any]) -> Twin | None:
    async with connection.cursor(row_factory=class_row(Twin)) as cursor:
        await cursor.execute(QUERIES.find_twin, content)
        return await cursor.fetchone()


async def _make_document(
    connection: Connection, upload: Upload, source_type: str, limits: IntakeLimits, twin: Twin | None = None
) -> Outcome:
    """Canonical when there is no twin; a twin's copy is made of what the twin has, as far as it has it."""
    if twin is None:
        await connection.execute(
            QUERIES.insert_object, {"key": upload.object_key, "bytes": upload.bytes, "sha256": upload.sha256}
        )
    await connection.execute(QUERIES.insert_document, _document_values(upload, source_type, twin))
    source = {"id": new_id(), "document": upload.document_id, "content_type": upload.content_type}
    await connection.execute(QUERIES.insert_source, source | {"key": twin.key if twin else upload.object_key})
    await _check_quota(connection, upload.owner_id, limits)
    await _close(connection, upload.id, "uploaded", upload.document_id, upload.process_id, canonical=twin is None)
    if twin and twin.status == "completed":
        values = {"twin": twin.id, "document": upload.document_id, "process": upload.process_id}
        await connection.execute(QUERIES.copy_results, values)
    else:
        await enqueue(connection, [process_job(upload.owner_id, upload.document_id, 1, upload.process_id)])
    return Outcome("uploaded", upload.id, upload.document_id, upload.process_id, duplicate_of=twin.id if twin else None)


def _document_values(upload: Upload, source_type: str, twin: Twin | None) -> dict[str, Any]:
    given = upload.given
    return {
        "id": upload.document_id,
        "owner": upload.owner_id,
        "process": upload.process_id,
        "title": given.get("title"),
        "author": given.get("author"),
        "filename": upload.filename,
        "content_type": upload.content_type,
        "source_type": source_type,
        "source_url": upload.source_url,
        "sha256": upload.sha256,
        "bytes": upload.bytes,
        "metadata": Jsonb({name: value for name, value in given.items() if name not in {"title", "author"}}),
        "duplicate_of": twin.id if twin else None,
    }


async def _check_quota(connection: Connection, owner: UUID, limits: IntakeLimits) -> None:
    row = await (await connection.execute(QUERIES.usage_of, {"owner": owner})).fetchone()
    if row and limits.stored_bytes is not None and row[0] > limits.stored_bytes:
        raise QuotaExceeded(f"At most {limits.stored_bytes:,} bytes may be kept.")


async def _close(
    connection: Connection, upload: UUID, state: str, document: UUID, process: UUID, *, canonical: bool = False
) -> None:
    values = {"id": upload, "state": state, "canonical": canonical, "document": document, "process": process}
    await connection.execute(QUERIES.close_upload, values)


def _broken_claim(upload: Upload) -> OctavoError | None:
    if upload.claimed_bytes is not None and upload.claimed_bytes != upload.bytes:
        return SizeMismatch(f"Announced were {upload.claimed_bytes:,} bytes, {upload.bytes:,} arrived.")
    if upload.claimed_sha256 is not None and upload.claimed_sha256 != upload.sha256:
        return HashMismatch()
    return None


def _too_large(limits: IntakeLimits) -> TooLarge:
    return TooLarge(f"At most {limits.upload_bytes:,} bytes are allowed.")


def _source_key(upload: Upload) -> str:
    """Never presigned, and never written twice: a repeated transfer gets another."""
    return f"sources/{upload.id}/{new_id()}"
