"""Reports to load balancers and people whether this process is ready. The checks are quick and have no side effects."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from octavo.core.errors import DatabaseUnavailable, NotPossibleHere, OctavoError
from octavo.core.formatting import format_bytes
from octavo.database import Connection, Database, require_current
from octavo.records.jobs import Check
from octavo.storage import Bucket

log = structlog.get_logger()
TIMEOUT_SECONDS = 3
# Connections that are all in use for this long are stuck, not busy.
EXHAUSTED_SECONDS = 5
PROBE_KEY = "probe/readiness"


@dataclass(frozen=True, slots=True)
class Disk:
    """Local folders to which Octavo writes, and the free space that each of them needs."""

    folders: Sequence[Path]
    least_bytes: int


async def check_readiness(database: Database, bucket: Bucket, place: str, disk: Disk) -> list[Check]:
    """Check the database, the connection pool, the storage and the disks in parallel, each with a timeout."""
    checks = await asyncio.gather(
        _limited("database", _check_database(database)),
        _limited("connections", _check_connections(database)),
        _limited("storage", _check_storage(bucket, place)),
        _limited("disk", _check_disk(disk)),
    )
    for check in checks:
        if not check.ok:
            log.warning("not ready", check=check.name, detail=check.detail)
    return list(checks)


async def _limited(name: str, answer: Awaitable[str]) -> Check:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return Check(name, ok=True, detail=await answer)
    except OctavoError as error:
        return Check(name, ok=False, detail=error.line)
    except TimeoutError:
        return Check(name, ok=False, detail=f"No response within {TIMEOUT_SECONDS} seconds.")


async def _check_database(database: Database) -> str:
    """Check that the database server responds. If the connection pool is exhausted, a separate connection is used."""
    if database.seconds_exhausted() > 0:
        async with await database.connect_unpooled() as connection:
            return await _describe_server(connection)
    async with database.connection(wait_seconds=TIMEOUT_SECONDS) as connection:
        return await _describe_server(connection)


async def _describe_server(connection: Connection) -> str:
    state = await require_current(connection)
    version = connection.info.server_version
    return f"PostgreSQL {version // 10000}.{version % 10000}, schema {state.applied}"


async def _check_connections(database: Database) -> str:
    seconds = database.seconds_exhausted()
    if seconds >= EXHAUSTED_SECONDS:
        raise DatabaseUnavailable(f"All connections of this process have been in use for {seconds:.0f} seconds.")
    return "available" if seconds == 0 else "all in use"


async def _check_disk(disk: Disk) -> str:
    free = await asyncio.to_thread(lambda: [(free_bytes(folder), folder) for folder in disk.folders])
    for space, folder in free:
        if space < disk.least_bytes:
            raise NotPossibleHere(f"Only {format_bytes(space)} free in {folder}. Free some space.")
    return f"{format_bytes(min(free)[0])} free" if free else "no local disk is used"


def free_bytes(folder: Path) -> int:
    """Return the free space that the current user has on the folder's disk.

    Returns 0 if the disk has no free inodes.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    disk = os.statvfs(folder)
    return 0 if disk.f_files and not disk.f_favail else disk.f_bavail * disk.f_frsize


async def _check_storage(bucket: Bucket, place: str) -> str:
    await bucket.stat(PROBE_KEY)
    return place
