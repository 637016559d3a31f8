"""Permissions that are taken away from the data folder cost nothing but time: a clear error, and work goes on after."""

from __future__ import annotations

import asyncio
import ctypes
import os
import pwd
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from threading import Barrier
from uuid import UUID

import pytest

from octavo.ops.health import Disk, check_readiness
from octavo.storage.local import THREADS, LocalBucket
from octavo.storage.writing import StorageUnavailable
from tests.support.engine import engine_on
from tests.support.library import Desk, open_desk
from tests.support.processes import PATIENCE_SECONDS
from tests.support.processing import OpenSandbox
from tests.support.working import add, finished, text_of, working


@pytest.fixture
async def desk(database_info: str, folder: Path) -> AsyncIterator[Desk]:
    objects = folder / "objects"
    async with aclosing(LocalBucket.open(objects)) as bucket, open_desk(database_info, bucket) as desk:
        if os.geteuid() == 0:
            await obey_permissions(bucket, objects)
        yield desk


async def obey_permissions(bucket: LocalBucket, objects: Path) -> None:
    """Root may do everything, so every thread of the bucket accesses files as somebody else."""
    nobody = pwd.getpwnam("nobody").pw_uid
    everybody_here = Barrier(THREADS)

    def become_nobody() -> None:
        ctypes.CDLL(None).setfsuid(nobody)
        everybody_here.wait(30)

    os.chown(objects, nobody, -1)
    objects.parent.chmod(0o755)
    threads = bucket._threads  # pyright: ignore[reportPrivateUsage]
    await asyncio.gather(*(threads.run(become_nobody) for _ in range(THREADS)))


async def test_permissions_taken_away_stop_work_clearly_and_it_goes_on_when_they_return(
    desk: Desk, database_info: str, folder: Path
) -> None:
    owner, objects = await desk.new_owner(), folder / "objects"
    document = await add(desk, owner, "a.md", b"# Kept\n\nSome words.")
    objects.chmod(0)
    try:
        with pytest.raises(StorageUnavailable, match="No permission to access"):
            await add(desk, owner, "b.md", b"# Refused")
        checks = await check_readiness(desk.database, desk.bucket, str(objects), Disk([folder], 0))
        assert {one.name: one.detail for one in checks if not one.ok}.keys() == {"storage"}
        async with working(desk, OpenSandbox(), folder):
            with engine_on(database_info) as engine:
                for failures in range(6):  # more often than an attempt may fail
                    await waits(desk, document, failures + 1)
                    engine.advance(3600)
                objects.chmod(0o700)
                engine.advance(3600)
            shown = await finished(desk, owner, document)
    finally:
        objects.chmod(0o700)
    assert (shown.status, shown.text_ready) == ("completed", True)
    assert await text_of(desk, owner, document) == "# Kept\n\nSome words."
    assert (await add(desk, owner, "b.md", b"# Refused")) != document
    await desk.check_books()


async def waits(desk: Desk, document: UUID, times: int) -> None:
    """Until the job has waited that often."""
    statement = """
        SELECT waits, failures, (SELECT string_agg(detail::text, ' ') FROM events e WHERE e.process_id = j.id) AS told
        FROM jobs j WHERE document_id = %s"""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (row := (await desk.rows(statement, document))[0])["waits"] < times:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert row["failures"] == 0
    assert "No permission to access" in row["told"]
