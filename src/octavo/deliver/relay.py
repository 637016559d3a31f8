"""Moves events on: into the lines of subscribers and before the eyes of owners, each exactly once.

Every worker runs one; a row lock lets one of them through at a time. It looks more often for a moment after there was
something to do, because the end of a delivery lets the next of its line go.
"""

from __future__ import annotations

from octavo.database import Database, load_queries
from octavo.deliver.messages import ERRORS, NEWS

QUERIES = load_queries("deliveries")
BATCH = 1000
IDLE_SECONDS = 0.5
BUSY_SECONDS = 0.1


async def relay(database: Database) -> float:
    """One step; answers after how many seconds the next one is due."""
    done = await relay_once(database)
    if done >= BATCH:
        return 0.0
    return BUSY_SECONDS if done else IDLE_SECONDS


async def relay_once(database: Database, batch: int = BATCH) -> int:
    """How much there was to do: events read and deliveries begun."""
    async with database.connection() as connection:
        values = {"most": batch, "news": list(NEWS), "errors": list(ERRORS)}
        row = await (await connection.execute(QUERIES.relay, values)).fetchone()
        return row[0] if row else 0
