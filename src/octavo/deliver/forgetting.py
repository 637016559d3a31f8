"""What was told long ago is forgotten: it is in the events as long as those are kept."""

from __future__ import annotations

from octavo.database import Database, load_queries

QUERIES = load_queries("deliveries")
KEPT_DAYS = 90


async def forget_tries(database: Database) -> int:
    return await _forget(database, QUERIES.forget_tries)


async def forget_notifications(database: Database) -> int:
    """News, and errors that were read and resolved."""
    return await _forget(database, QUERIES.forget_notifications)


async def _forget(database: Database, query: bytes) -> int:
    async with database.connection() as connection:
        return (await connection.execute(query, {"days": KEPT_DAYS})).rowcount
