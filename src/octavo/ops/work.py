"""One worker process: opens what jobs need, and runs them until it is asked to stop."""

from __future__ import annotations

import asyncio
import signal

import structlog

from octavo.jobs.faults import FaultPlan
from octavo.jobs.worker import Worker, WorkerLimits
from octavo.model.settings import Settings
from octavo.ops.instance import open_database
from octavo.pipeline import Tools, known_kinds

log = structlog.get_logger()


async def work(settings: Settings) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    async with open_database(settings) as database:
        limits = WorkerLimits(slots=settings.worker_slots, lease_seconds=settings.lease_seconds)
        worker = Worker(database, known_kinds(), Tools(settings), limits, FaultPlan(settings.faults))
        log.info("worker started", worker=str(worker.id), slots=limits.slots)
        await worker.run(stopping)
        log.info("worker stopped", worker=str(worker.id))
