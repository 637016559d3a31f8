"""Daily clean-up: deletes old documents from the trash, expired documents, and objects without a database row.

Also moves old events and finished jobs to compressed files in the storage.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, TypeAlias
from uuid import UUID

import psycopg
import structlog
from psycopg.rows import class_row

from octavo.core.errors import NotFound
from octavo.core.types import new_id
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.library.changes import purge_documents, trash_documents
from octavo.storage import Bucket, ObjectDamaged, Stored

log = structlog.get_logger()
QUERIES = load_queries("documents")
ARCHIVES = load_queries("archives")
AT_ONCE = 500
# The maximum number of objects that are listed in one part of a sweep. S3 lists about 10,000 per second.
PART_KEYS = 200_000
# The number of rows per query, and the maximum number of events and of jobs in one file.
ARCHIVE_ROWS, FILE_EVENTS, FILE_JOBS = 5_000, 500_000, 5_000
GZIP = 31  # the format of zlib for files that gzip reads
DROP_TRIES, DROP_SECONDS = 20, 0.5


async def purge_old_trash(database: Database, bucket: Bucket, days: int) -> int:
    """Permanently delete documents that have been in the trash for at least `days` days."""
    return await _for_each_owner(database, QUERIES.old_trash, {"days": days}, partial(_purge, database, bucket))


async def expire_visitors(database: Database, bucket: Bucket, days: int) -> int:
    """Permanently delete documents and conversions of visitors whose last session ended at least `days` days ago."""
    purge = partial(_purge, database, bucket, event="expired")
    expired = await _for_each_owner(database, QUERIES.left_documents, {"days": days}, purge)
    async with database.transaction() as connection:
        rows = await (await connection.execute(QUERIES.delete_left_jobs, {"days": days})).fetchall()
        unused = await connection.execute(QUERIES.delete_unused_objects, {"keys": [row[0] for row in rows]})
        keys = [row[0] for row in await unused.fetchall()]
    await bucket.delete(keys)
    return expired


async def expire_collections(database: Database) -> int:
    """Move documents to the trash after the retention period of their collection, or on their expiry date."""
    return await _for_each_owner(database, QUERIES.expired_documents, {}, partial(_trash, database))


async def _for_each_owner(
    database: Database, query: bytes, values: Mapping[str, object], change: Callable[[UUID, list[UUID]], Awaitable[int]]
) -> int:
    """Apply a change to all documents that a query finds, account by account and in batches.

    Returns the number of changed documents.
    """
    changed = 0
    while True:
        async with database.connection() as connection:
            rows = await (await connection.execute(query, {**values, "most": AT_ONCE})).fetchall()
        by_owner: dict[UUID, list[UUID]] = defaultdict(list)
        for document, owner in rows:
            by_owner[owner].append(document)
        done = [await change(owner, documents) for owner, documents in by_owner.items()]
        changed += sum(done)
        if len(rows) < AT_ONCE or not any(done):
            return changed


async def _purge(
    database: Database, bucket: Bucket, owner: UUID, documents: list[UUID], *, event: str = "purged"
) -> int:
    try:
        async with database.transaction() as connection:
            keys = await purge_documents(connection, owner, documents, event)
    except NotFound:  # one of them was restored or deleted in the meantime; the others are deleted next time
        return 0
    await bucket.delete(keys)
    return len(documents)


async def _trash(database: Database, owner: UUID, documents: list[UUID]) -> int:
    try:
        async with database.transaction() as connection:
            await trash_documents(connection, owner, documents, "expired")
    except NotFound:  # one of them was deleted in the meantime; the others expire next time
        return 0
    return len(documents)


class ObjectSweep:
    """Deletes stored objects without a database row. The bucket is checked in parts.

    Recent objects are kept, because their rows may not have been committed yet. Listing a bucket with millions of
    objects takes minutes, so each part has a limited size, and an interrupted sweep continues after the key `after`.
    """

    def __init__(self, database: Database, bucket: Bucket, older_than_seconds: float, after: str = "") -> None:
        self._database = database
        self._bucket = bucket
        self._older_than = timedelta(seconds=older_than_seconds)
        self._objects = bucket.list(after=after)
        self.last = after
        self.has_ended = False

    async def sweep_part(self, most: int = PART_KEYS) -> int:
        """Check up to `most` more objects. Returns the number of deleted objects."""
        before, removed, listed = await self._bucket.read_clock() - self._older_than, 0, 0
        batch: list[str] = []
        while listed < most and not self.has_ended:
            info = await anext(self._objects, None)
            self.has_ended = info is None
            if info:
                listed, self.last = listed + 1, info.key
                batch += [info.key] if info.last_modified <= before else []
            if len(batch) >= AT_ONCE or self.has_ended:
                removed += await _remove_unknown(self._database, self._bucket, batch)
                batch = []
        return removed + await _remove_unknown(self._database, self._bucket, batch)


async def delete_kept_objects(connection: Connection, bucket: Bucket) -> int:
    """Delete objects that were kept only for a backup and are not used elsewhere. Returns the number deleted."""
    rows = await (await connection.execute(QUERIES.delete_kept_objects)).fetchall()
    await bucket.delete([row[0] for row in rows])
    return len(rows)


async def _remove_unknown(database: Database, bucket: Bucket, keys: list[str]) -> int:
    async with database.connection() as connection:
        rows = await (await connection.execute(QUERIES.known_keys, {"keys": keys})).fetchall()
    unknown = sorted(set(keys) - {row[0] for row in rows})
    await bucket.delete(unknown)
    return len(unknown)


# Archives -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Archive:
    """A compressed file with events or jobs, one JSON object per line."""

    name: str
    kind: str
    key: str
    rows: int
    made_at: datetime
    bytes: int
    sha256: str


class ArchiveLines:
    """Encodes the lines of an archive file, and counts and hashes them.

    `epoch` and `last_id` are the position of the last event in the file.
    """

    def __init__(self, epoch: int = 0, last_id: int = 0) -> None:
        self.rows, self.epoch, self.last_id = 0, epoch, last_id
        self._digest = sha256()

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def encode(self, lines: list[str]) -> bytes:
        text = "".join(f"{line}\n" for line in lines).encode()
        self.rows += len(lines)
        self._digest.update(text)
        return text


# Moves the next rows that are older than this many days to a file. Returns their number.
ArchivePart: TypeAlias = Callable[[Database, Bucket, int], Awaitable[int]]


async def archive_events(database: Database, bucket: Bucket, days: int) -> int:
    """Archive the next events of the oldest month that ended at least `days` days ago. Returns how many were archived.

    When all events of a month are in files, the partition of the month is dropped, which takes only milliseconds.
    """
    async with database.connection() as connection:
        months = [str(row["name"]) for row in await fetch_rows(connection, ARCHIVES.old_months, {"days": days})]
    for month in months:
        async with database.connection() as connection:
            row = await (await connection.execute(_of_month(ARCHIVES.is_settled, month))).fetchone()
            (done,) = await fetch_rows(connection, ARCHIVES.archived_so_far, {"name": month})
        if not row or not row[0]:
            log.warning("events are not archived, because some were not delivered", month=month)
            continue
        lines = ArchiveLines(done["epoch"], done["id"])
        key = f"archives/{new_id()}"
        stored = await _write_file(bucket, key, lines, _read_events(database, month, lines))
        if lines.rows:
            row = {"name": f"{month}.{done['files'] + 1:04}", "kind": "events", "key": key, "rows": lines.rows}
            async with database.transaction() as connection:
                await _insert_archive(connection, stored, {**row, "last_epoch": lines.epoch, "last_id": lines.last_id})
            return lines.rows
        await bucket.delete([key])
        await _drop_month(database, month, done["rows"])
    return 0


async def archive_jobs(database: Database, bucket: Bucket, days: int) -> int:
    """Move finished jobs to a file, except those that other rows refer to. Returns the number of deleted jobs."""
    async with database.connection() as connection:
        found = await fetch_rows(connection, ARCHIVES.old_jobs, {"days": days, "most": FILE_JOBS})
    if not found:
        return 0
    lines, key = ArchiveLines(), f"archives/{new_id()}"

    async def read() -> AsyncGenerator[list[str]]:
        yield [row["line"] for row in found]

    stored = await _write_file(bucket, key, lines, read())
    name = f"jobs_{key.rpartition('/')[2]}"
    row = {"name": name, "kind": "jobs", "key": key, "rows": lines.rows, "last_epoch": None, "last_id": None}
    async with database.transaction() as connection:
        await _insert_archive(connection, stored, row)
        deleted = await connection.execute(ARCHIVES.delete_jobs, {"jobs": [one["id"] for one in found]})
    return deleted.rowcount


async def list_archives(connection: Connection) -> list[Archive]:
    """Return all archives, oldest first."""
    async with connection.cursor(row_factory=class_row(Archive)) as cursor:
        await cursor.execute(ARCHIVES.list)
        return await cursor.fetchall()


async def read_archive(bucket: Bucket, key: str) -> AsyncGenerator[bytes]:
    """Yield the uncompressed text of an archive in blocks."""
    unpacker = zlib.decompressobj(GZIP)
    async for block in await bucket.stream(key):
        yield await asyncio.to_thread(unpacker.decompress, block)
    yield unpacker.flush()
    if not unpacker.eof:
        raise ObjectDamaged(f"{key} is not complete.")


async def _read_events(database: Database, month: str, lines: ArchiveLines) -> AsyncGenerator[list[str]]:
    query, most = _of_month(ARCHIVES.events_after, month), FILE_EVENTS
    while most > 0:
        async with database.connection() as connection:
            values = {"epoch": lines.epoch, "id": lines.last_id, "most": min(most, ARCHIVE_ROWS)}
            rows = await fetch_rows(connection, query, values)
        if not rows:
            return
        most, lines.epoch, lines.last_id = most - len(rows), rows[-1]["epoch"], rows[-1]["id"]
        yield [row["line"] for row in rows]


async def _write_file(bucket: Bucket, key: str, lines: ArchiveLines, pages: AsyncIterable[list[str]]) -> Stored:
    """Write a compressed file. Then read it from the storage and compare it with the rows of the database."""

    async def compress() -> AsyncGenerator[bytes]:
        packer = zlib.compressobj(wbits=GZIP)
        async for page in pages:
            yield await asyncio.to_thread(packer.compress, lines.encode(page))
        yield packer.flush()

    stored = await bucket.put(key, compress())
    digest = sha256()
    async for block in read_archive(bucket, key):
        await asyncio.to_thread(digest.update, block)
    if digest.hexdigest() != lines.digest:
        raise ObjectDamaged(f"The content of {key} differs from what was written.")
    return stored


async def _insert_archive(connection: Connection, stored: Stored, values: Mapping[str, Any]) -> None:
    file = {"key": stored.key, "bytes": stored.bytes, "sha256": stored.sha256}
    await connection.execute(ARCHIVES.insert_object, file)
    await connection.execute(ARCHIVES.insert_archive, values)


async def _drop_month(database: Database, month: str, archived: int) -> None:
    """Drop the partition of a month if all its events are in files.

    Dropping the partition needs a lock. While an attempt waits for this lock, other transactions wait, too. So each
    attempt waits only briefly. If it fails, it is repeated several times.
    """
    for _ in range(DROP_TRIES):
        try:
            async with database.transaction() as connection:
                await connection.execute(ARCHIVES.wait_briefly)
                row = await (await connection.execute(_of_month(ARCHIVES.count_partition, month))).fetchone()
                if row == (archived,):
                    await connection.execute(_of_month(ARCHIVES.drop_partition, month))
                else:
                    log.error("events are not dropped, because not all are archived", month=month, archived=archived)
                return
        except psycopg.errors.LockNotAvailable:
            await asyncio.sleep(DROP_SECONDS)
    log.warning("events are dropped tomorrow, because the table is in use", month=month)


def _of_month(query: bytes, month: str) -> bytes:
    """Insert the name of a partition into a query. PostgreSQL does not accept it as a parameter."""
    return query.replace(b"{partition}", month.encode())
