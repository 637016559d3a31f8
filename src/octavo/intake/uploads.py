"""Uploads in three steps: `begin`, `receive` and `finalize`. The last step creates the document in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any
from uuid import UUID

import psycopg
import structlog
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.choreography import Cause, comparison_job
from octavo.core.errors import Empty, NotFound, OctavoError, TooLarge
from octavo.core.formatting import format_bytes
from octavo.core.types import new_id
from octavo.database import Connection, Database, load_queries
from octavo.intake.errors import (
    Duplicate,
    HashMismatch,
    NotCanonical,
    QuotaExceeded,
    SizeMismatch,
    UploadClosed,
    UploadIncomplete,
)
from octavo.intake.upload_rows import (
    NO_DOCUMENT,
    IntakeLimits,
    NewUpload,
    Upload,
    announced_upload,
    check_concurrency,
    check_quota,
    check_version,
    insert_upload,
    over_quota,
)
from octavo.jobs.queue import NewJob
from octavo.library.changes import process_job
from octavo.library.collections import ensure_collection
from octavo.library.highlights import place_highlights
from octavo.records.documents import Outcome, Ticket
from octavo.storage import Body, Bucket, ObjectMissing, ObjectStream, Stored, replace_damaged

log = structlog.get_logger()
QUERIES = load_queries("uploads")
HEAD_BYTES = 64 << 10
PUT_SECONDS = 3600
FIRST_REVISION = 1
# The number of rejected uploads kept per owner, so that a client that keeps on sending cannot fill the table.
MOST_REFUSED = 200
Detect = Callable[[bytes, str, str], str]
# Called in the transaction that creates an upload or a document, with the result of the call.
OnCreated = Callable[[Connection, Any], Awaitable[object]]


async def ignore_created(connection: Connection, created: object) -> None:
    del connection, created


class HeadRecorder:
    """Records the first bytes of a body as it is streamed."""

    def __init__(self, body: Body) -> None:
        self._kept = bytearray()
        self.body = self._pass_on(body) if isinstance(body, AsyncIterable) else body

    def read(self) -> bytes:
        return bytes(self._kept)

    async def _pass_on(self, body: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
        async for chunk in body:
            if len(self._kept) < HEAD_BYTES:
                self._kept += chunk[: HEAD_BYTES - len(self._kept)]
            yield chunk


class Intake:
    """Adds files to an account. `detect` finds the type of a file from its first bytes."""

    def __init__(self, database: Database, bucket: Bucket, detect: Detect) -> None:
        self._database = database
        self._bucket = bucket
        self._detect = detect

    # Two steps, with the bytes in between --------------------------------------------------------------------------

    async def begin(
        self, owner: UUID, new: NewUpload, limits: IntakeLimits, *, on_created: OnCreated = ignore_created
    ) -> Ticket:
        """Create an upload. The returned ticket contains the URL to which the client must send the bytes."""
        upload = announced_upload(owner, new)
        incoming = f"incoming/{upload.id}"
        signed = await self._bucket.sign_put(incoming, seconds=PUT_SECONDS)
        put_url = signed or f"/api/v1/uploads/{upload.id}/content"
        ticket = Ticket(upload.id, upload.document_id, upload.process_id, put_url)
        async with self._database.transaction() as connection:
            await check_version(connection, upload)
            await check_concurrency(connection, owner, limits)
            await insert_upload(connection, replace(upload, incoming_key=incoming if signed else None))
            if not _announces_too_much(upload, limits):
                await on_created(connection, ticket)
                return ticket
        raise await self._refuse(upload, _too_large(limits))

    async def receive(self, owner: UUID, upload_id: UUID, body: Body, limits: IntakeLimits) -> Stored:
        """Store the bytes of an upload. Bytes that are sent again replace the earlier ones.

        An interrupted transfer changes nothing.
        """
        upload = await self.read(owner, upload_id)
        if upload.state != "pending":
            raise UploadClosed
        try:
            stored = await self._bucket.put(_source_key(upload), body, limit=limits.upload_bytes)
        except TooLarge:
            raise await self._refuse(upload, _too_large(limits)) from None
        await self._keep_received(upload, stored)
        if stored.bytes == 0:
            raise await self._refuse(upload, Empty())
        return stored

    async def finalize(
        self, owner: UUID, upload_id: UUID, limits: IntakeLimits, *, on_created: OnCreated = ignore_created
    ) -> Outcome:
        """Create the document, or find the document with the same content. Repeated calls return the same result."""
        while True:
            upload = await self.read(owner, upload_id)
            if upload.state in {"uploaded", "deduplicated"}:
                return await self._repeat(upload)
            if upload.state != "pending":
                raise UploadClosed(upload.error_message)
            try:
                outcome = await self._finalize(await self._received(upload, limits), limits, on_created)
            except (ObjectMissing, UploadIncomplete, UploadClosed):
                if await self.read(owner, upload_id) == upload:
                    raise
            else:
                if outcome:
                    return outcome
            # Another request finalised it in the meantime, or sent its bytes again.

    async def _finalize(self, upload: Upload, limits: IntakeLimits, on_created: OnCreated) -> Outcome | None:
        if problem := _broken_claim(upload):
            raise await self._refuse(upload, problem)
        source_type = await self.source_type(upload)
        try:
            outcome = await self._place(upload, source_type, limits, on_created)
        except (Duplicate, QuotaExceeded, NotFound) as error:
            raise await self._refuse(upload, error) from None
        if outcome:  # a duplicate's bytes are already stored
            await self._heal(upload, outcome)
            unused = (upload.incoming_key, upload.object_key if outcome.duplicate_of else None)
            await self._remove([key for key in unused if key])
        return outcome

    async def take(
        self, owner: UUID, new: NewUpload, body: Body, limits: IntakeLimits, *, on_created: OnCreated = ignore_created
    ) -> Outcome:
        """Add a file in one call.

        The upload's row is created only after the bytes have arrived, so an interrupted transfer leaves no row behind.
        """
        upload = announced_upload(owner, new)
        if upload.version_of:
            async with self._database.connection() as connection:
                await check_version(connection, upload)
        beginning = HeadRecorder(body)
        try:
            upload = await self._store(upload, beginning.body, limits)
            source_type = await self.source_type(upload, beginning.read())
            outcome = await self._place(upload, source_type, limits, on_created, fresh=True)
        except OctavoError as error:
            raise await self._refuse(upload, error, fresh=True) from None
        except psycopg.Error:  # perhaps it was committed, and only the response was lost
            raise
        except Exception:
            await self._remove([upload.object_key] if upload.object_key else [])
            raise
        if outcome is None:
            raise AssertionError("no other request knows this upload")
        await self._heal(upload, outcome)
        await self._remove([upload.object_key] if outcome.duplicate_of and upload.object_key else [])
        return outcome

    async def _store(self, upload: Upload, body: Body, limits: IntakeLimits) -> Upload:
        if _announces_too_much(upload, limits):
            raise _too_large(limits)
        try:
            stored = await self._bucket.put(_source_key(upload), body, limit=limits.upload_bytes)
        except TooLarge:
            raise _too_large(limits) from None
        received = replace(upload, object_key=stored.key, bytes=stored.bytes, sha256=stored.sha256)
        if problem := Empty() if stored.bytes == 0 else _broken_claim(received):
            await self._remove([stored.key])
            raise problem
        return received

    async def read(self, owner: UUID, upload_id: UUID) -> Upload:
        """Read the upload with this id. Raises `NotFound` if it does not exist or belongs to another account."""
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
        """Return the bytes of an upload. Raises `NotCanonical` if no document was created from this upload."""
        async with self._database.connection() as connection:
            row = await (await connection.execute(QUERIES.content_key, {"owner": owner, "id": upload_id})).fetchone()
        if row is None:
            raise NotFound
        if row[0] is None:
            raise NotCanonical
        return await self._bucket.stream(row[0])

    # Steps ---------------------------------------------------------------------------------------------------------

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

    async def _received(self, upload: Upload, limits: IntakeLimits) -> Upload:
        """Make sure that the bytes are stored under a key to which only the server writes. Returns the updated upload.

        If the client sent the bytes to a signed URL, they are copied to such a key.
        """
        if upload.object_key:
            return upload
        info = await self._bucket.stat(upload.incoming_key) if upload.incoming_key else None
        if info is None or upload.incoming_key is None:
            raise UploadIncomplete
        if info.bytes > limits.upload_bytes:
            raise await self._refuse(upload, _too_large(limits))
        # The upload URL can be used again until it expires, so copy the bytes to another key.
        key = _source_key(upload)
        await self._bucket.copy(upload.incoming_key, key)
        stored = await self._measure(key)
        await self._keep_received(upload, stored)
        if stored.bytes == 0:
            raise await self._refuse(upload, Empty())
        return await self.read(upload.owner_id, upload.id)

    async def _measure(self, key: str) -> Stored:
        digest, size = sha256(), 0
        async for chunk in await self._bucket.stream(key):
            await asyncio.to_thread(digest.update, chunk)
            size += len(chunk)
        return Stored(key, size, digest.hexdigest())

    async def source_type(self, upload: Upload, head: bytes | None = None) -> str:
        """Return the source type of an upload. For a file, it is detected from the first bytes."""
        if upload.source_type != "file":
            return upload.source_type
        return self._detect(head or await self._head(upload), upload.filename, upload.content_type)

    async def _head(self, upload: Upload) -> bytes:
        if upload.object_key is None:
            raise UploadIncomplete
        head = b""
        async for chunk in await self._bucket.stream(upload.object_key, end=HEAD_BYTES):
            head += chunk
        return head

    async def _place(
        self, upload: Upload, source_type: str, limits: IntakeLimits, on_created: OnCreated, *, fresh: bool = False
    ) -> Outcome | None:
        async with self._database.transaction() as connection:
            outcome = await self.place(connection, upload, source_type, limits, fresh=fresh)
            if outcome:
                await on_created(connection, outcome)
            return outcome

    async def place(
        self,
        connection: Connection,
        upload: Upload,
        source_type: str,
        limits: IntakeLimits,
        *,
        fresh: bool = False,
        cause: Cause = Cause.UPLOAD_STORED,
    ) -> Outcome | None:
        """Finalise an upload in the caller's transaction: find duplicates, and create the document, job and events.

        If `fresh` is true, the upload's row is created first. Returns None if another request has finalised the upload
        or sent its bytes again in the meantime.
        """
        values = {
            "id": upload.id,
            "owner": upload.owner_id,
            "sha256": upload.sha256,
            "key": upload.object_key,
            "source_type": source_type,
            "quota": limits.stored_bytes,
            "process": Jsonb(_process_job(upload, cause).as_json()),
            "compare": Jsonb(_comparison_job(upload).as_json()),
        }
        try:
            if fresh:
                await insert_upload(connection, upload)
            row = await (await connection.execute(QUERIES.place, values)).fetchone()
            if row and row[0] == "uploaded":
                await _file(connection, upload)
                await check_quota(connection, upload.owner_id, limits.stored_bytes)
                if upload.version_of:  # its chunks may already be those of a duplicate
                    await place_highlights(connection, upload.document_id)
        except psycopg.errors.NoDataFound:
            raise NotFound(NO_DOCUMENT if upload.version_of else None) from None
        except psycopg.errors.ProgramLimitExceeded:
            raise over_quota(limits.stored_bytes) from None
        except psycopg.errors.UniqueViolation as error:
            if error.diag.constraint_name != "uploads_canonical":
                raise
            raise Duplicate(error.diag.message_detail or "") from None
        return _outcome(upload, *row) if row else None

    async def _heal(self, upload: Upload, outcome: Outcome) -> None:
        """If the stored copy of a duplicate is damaged, replace it with the uploaded bytes.

        A failure is only logged, because the upload itself has succeeded.
        """
        if outcome.duplicate_of is None or upload.object_key is None:
            return
        values = {"owner": upload.owner_id, "document": outcome.duplicate_of}
        async with self._database.connection() as connection:
            row = await (await connection.execute(QUERIES.source_object, values)).fetchone()
        if row is None or row[2] != upload.sha256:
            return
        try:
            damage = await replace_damaged(self._bucket, Stored(*row), upload.object_key)
        except OctavoError as error:
            log.warning("stored file could not be verified", key=row[0], reason=error.line)
        else:
            if damage:
                log.warning("damaged file replaced", key=row[0], document=str(outcome.duplicate_of), damage=damage)

    async def _repeat(self, upload: Upload) -> Outcome:
        twin = upload.document_id if upload.state == "deduplicated" else upload.duplicate_of
        outcome = _outcome(upload, upload.state, upload.document_id, upload.process_id, twin)
        return replace(outcome, duplicate=True)

    async def _refuse(self, upload: Upload, error: OctavoError, *, fresh: bool = False) -> OctavoError:
        """Reject an upload: record the reason, remove its bytes, and return the error to raise."""
        about = {"owner": upload.owner_id, "id": upload.id, "code": error.code, "message": error.line}
        values = about | {"most": MOST_REFUSED}
        async with self._database.transaction() as connection:
            if fresh:
                await insert_upload(connection, upload)
            row = await (await connection.execute(QUERIES.refuse_upload, values)).fetchone()
        await self._remove([key for key in row or () if key])
        return error

    async def _remove(self, keys: list[str]) -> None:
        """Delete objects. A failure is only logged, because the daily clean-up deletes objects that are left over."""
        try:
            if keys:
                await self._bucket.delete(keys)
        except OctavoError as error:
            log.warning("unused objects stay until the clean-up", keys=keys, reason=error.line)


async def _file(connection: Connection, upload: Upload) -> None:
    """Add the new document to the collection that was named in the upload.

    Limited members can add documents only to collections that they can change; a database trigger enforces this.
    """
    name = str(upload.given.get("collection") or "")
    if name or "by" in upload.given:
        collection = await ensure_collection(connection, upload.owner_id, name) if name else None
        await connection.execute(QUERIES.file_upload, {"document": upload.document_id, "collection": collection})


def _process_job(upload: Upload, cause: Cause) -> NewJob:
    job = process_job(cause, upload.owner_id, upload.document_id, FIRST_REVISION, upload.process_id)
    if extraction := upload.given.get("extraction"):
        job.input["extraction"] = extraction
    return job


def _comparison_job(upload: Upload) -> NewJob:
    """Build the job that compares a new document with the account's other documents.

    Used for a new document whose results were copied from a document with the same content. Such a document is not
    processed, so no other job would compare it.
    """
    return comparison_job(Cause.EMBEDDED, upload.owner_id, upload.document_id, FIRST_REVISION)


def _outcome(upload: Upload, state: str, document: UUID, process: UUID, twin: UUID | None) -> Outcome:
    return Outcome(state, upload.id, document, process, upload.bytes, upload.sha256, twin)


def _broken_claim(upload: Upload) -> OctavoError | None:
    if upload.claimed_bytes is not None and upload.claimed_bytes != upload.bytes:
        return SizeMismatch(f"Announced: {upload.claimed_bytes:,} bytes, received: {upload.bytes:,}.")
    if upload.claimed_sha256 is not None and upload.claimed_sha256 != upload.sha256:
        return HashMismatch()
    return None


def _announces_too_much(upload: Upload, limits: IntakeLimits) -> bool:
    return upload.claimed_bytes is not None and upload.claimed_bytes > limits.upload_bytes


def _too_large(limits: IntakeLimits) -> TooLarge:
    return TooLarge(f"The limit is {format_bytes(limits.upload_bytes)}.")


def _source_key(upload: Upload) -> str:
    """Create a storage key for one transfer. Clients never get a URL for this key, and it is written only once."""
    return f"sources/{upload.id}/{new_id()}"
