"""Daily clean-up: deletes old documents from the trash, expired documents, and objects without a database row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from uuid import UUID

from octavo.core.errors import NotFound
from octavo.database import Connection, Database, load_queries
from octavo.library.changes import purge_documents, trash_documents
from octavo.storage import Bucket

QUERIES = load_queries("documents")
AT_ONCE = 500
# The most objects that are listed in one part of a sweep. S3 lists some 10,000 in a second.
PART_KEYS = 200_000


async def purge_old_trash(database: Database, bucket: Bucket, days: int) -> int:
    """Permanently delete documents that have been in the trash for at least this long."""
    return await _for_each_owner(database, QUERIES.old_trash, {"days": days}, partial(_purge, database, bucket))


async def expire_visitors(database: Database, bucket: Bucket, days: int) -> int:
    """Permanently delete the documents and conversions of visitors whose last session ended this many days ago."""
    purge = partial(_purge, database, bucket, event="expired")
    expired = await _for_each_owner(database, QUERIES.left_documents, {"days": days}, purge)
    async with database.transaction() as connection:
        rows = await (await connection.execute(QUERIES.delete_left_jobs, {"days": days})).fetchall()
        unused = await connection.execute(QUERIES.delete_unused_objects, {"keys": [row[0] for row in rows]})
        keys = [row[0] for row in await unused.fetchall()]
    await bucket.delete(keys)
    return expired


async def expire_collections(database: Database) -> int:
    """Move documents to the trash after the retention period of their collection."""
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
    """Deletes stored objects without a database row, one part of the bucket after the other.

    Recent objects are kept, because their rows may not have been committed yet. Listing a bucket with millions of
    objects takes minutes. So a part is limited, and an interrupted sweep continues after the key `after`.
    """

    def __init__(self, database: Database, bucket: Bucket, older_than_seconds: float, after: str = "") -> None:
        self._database = database
        self._bucket = bucket
        self._older_than = timedelta(seconds=older_than_seconds)
        self._objects = bucket.list(after=after)
        self.last = after
        self.has_ended = False

    async def sweep_part(self, most: int = PART_KEYS) -> int:
        """Check the next `most` objects. Returns the number of deleted objects."""
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
