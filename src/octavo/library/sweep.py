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


async def sweep_objects(database: Database, bucket: Bucket, older_than_seconds: float) -> int:
    """Delete stored objects without a database row.

    Recent objects are kept, because their rows may not have been committed yet.
    """
    async with database.connection() as connection:
        removed = await delete_kept_objects(connection, bucket)
    batch: list[str] = []
    before = await bucket.read_clock() - timedelta(seconds=older_than_seconds)
    async for info in bucket.list():
        if info.last_modified <= before:
            batch.append(info.key)
        if len(batch) >= AT_ONCE:
            removed += await _remove_unknown(database, bucket, batch)
            batch = []
    return removed + await _remove_unknown(database, bucket, batch)


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
