"""Uploads that were begun and never finished."""

from __future__ import annotations

from octavo.database import Database, load_queries
from octavo.storage import Bucket

QUERIES = load_queries("uploads")
AT_ONCE = 500


async def sweep_abandoned(database: Database, bucket: Bucket, older_than_seconds: float) -> int:
    """Close uploads that nobody goes on with, and remove what was sent of them."""
    swept = 0
    while True:
        values = {"seconds": older_than_seconds, "most": AT_ONCE}
        async with database.transaction() as connection:
            rows = await (await connection.execute(QUERIES.abandoned, values)).fetchall()
        await bucket.delete(key for row in rows for key in row if key)
        swept += len(rows)
        if len(rows) < AT_ONCE:
            return swept
