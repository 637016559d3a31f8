"""Reports whether this process is ready, for load balancers and people. Quick and without side effects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from octavo.core.errors import OctavoError
from octavo.database import Database, require_current
from octavo.storage import Bucket

TIMEOUT_SECONDS = 3
PROBE_KEY = "probe/readiness"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    detail: str


async def check_readiness(database: Database, bucket: Bucket, place: str) -> list[Check]:
    """Check the database and the storage in parallel, each with a timeout."""
    return list(
        await asyncio.gather(
            _limited("database", _check_database(database)),
            _limited("storage", _check_storage(bucket, place)),
        )
    )


async def _limited(name: str, answer: Awaitable[str]) -> Check:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return Check(name, ok=True, detail=await answer)
    except OctavoError as error:
        return Check(name, ok=False, detail=error.line)
    except TimeoutError:
        return Check(name, ok=False, detail=f"No response within {TIMEOUT_SECONDS} seconds.")


async def _check_database(database: Database) -> str:
    async with database.connection(wait_seconds=TIMEOUT_SECONDS) as connection:
        state = await require_current(connection)
        version = connection.info.server_version
        return f"PostgreSQL {version // 10000}.{version % 10000}, schema {state.applied}"


async def _check_storage(bucket: Bucket, place: str) -> str:
    await bucket.stat(PROBE_KEY)
    return place
