"""Daily clean-up of old documents in the trash, and of stored objects without a row."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from uuid import UUID

from octavo.core.errors import NotFound
from octavo.database import Database, load_queries
from octavo.library.changes import purge_documents
from octavo.storage import Bucket

QUERIES = load_queries("documents")
AT_ONCE = 500


async def purge_old_trash(database: Database, bucket: Bucket, days: int) -> int:
    """Permanently delete documents that have been in the trash for longer than the given time."""
    purged = 0
    while True:
        async with database.connection() as connection:
            rows = await (await connection.execute(QUERIES.old_trash, {"days": days, "most": AT_ONCE})).fetchall()
        by_owner: dict[UUID, list[UUID]] = defaultdict(list)
        for document, owner in rows:
            by_owner[owner].append(document)
        for owner, documents in by_owner.items():
            purged += await _purge(database, bucket, owner, documents)
        if len(rows) < AT_ONCE:
            return purged


async def _purge(database: Database, bucket: Bucket, owner: UUID, documents: list[UUID]) -> int:
    try:
        async with database.transaction() as connection:
            keys = await purge_documents(connection, owner, documents)
    except NotFound:  # one of them was restored or deleted in the meantime; the others are deleted next time
        return 0
    await bucket.delete(keys)
    return len(documents)


async def sweep_objects(database: Database, bucket: Bucket, older_than_seconds: float) -> int:
    """Delete stored objects without a row.

    Recent objects are kept, because their rows may not have been committed yet.
    """
    removed = 0
    batch: list[str] = []
    before = datetime.now(UTC) - timedelta(seconds=older_than_seconds)
    async for info in bucket.list():
        if info.last_modified <= before:
            batch.append(info.key)
        if len(batch) >= AT_ONCE:
            removed += await _remove_unknown(database, bucket, batch)
            batch = []
    return removed + await _remove_unknown(database, bucket, batch)


async def _remove_unknown(database: Database, bucket: Bucket, keys: list[str]) -> int:
    async with database.connection() as connection:
        rows = await (await connection.execute(QUERIES.known_keys, {"keys": keys})).fetchall()
    unknown = sorted(set(keys) - {row[0] for row in rows})
    await bucket.delete(unknown)
    return len(unknown)
