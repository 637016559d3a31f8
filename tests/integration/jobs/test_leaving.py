"""A worker in this process that is asked to stop while what it does beside its jobs does not listen at first."""

from __future__ import annotations

import asyncio

from octavo.database import Database
from octavo.jobs.kinds import Kinds
from octavo.jobs.worker import Worker
from octavo.jobs.worker_state import WorkerLimits
from tests.support.processes import PATIENCE_SECONDS


async def test_a_cancellation_that_gets_lost_does_not_keep_a_worker(database_info: str) -> None:
    begun = asyncio.Event()
    lost: list[asyncio.CancelledError] = []

    async def deaf_once(_: Database) -> float:
        """As `asyncio.wait_for` of Python 3.11 is, when its answer comes at the same moment."""
        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError as error:
            if lost:
                raise
            lost.append(error)
        return 0

    stopping = asyncio.Event()
    async with Database(database_info, connections=4) as database:
        worker = Worker(database, Kinds[None](), None, WorkerLimits(), chores=[deaf_once])
        running = asyncio.create_task(worker.run(stopping))
        await begun.wait()
        stopping.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await running
    assert lost
