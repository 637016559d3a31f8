"""One worker process: opens the resources that jobs need, and runs jobs until it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import aclosing, suppress
from pathlib import Path
from uuid import UUID

import structlog

from octavo.ai.gateway_setup import LiveGateway, LiveModels
from octavo.core.instruments import stop_tracing
from octavo.core.settings import Settings
from octavo.database import Database, require_current
from octavo.deliver.subscribers import keep_administrators
from octavo.jobs.job_run import FaultPlan
from octavo.jobs.worker import Worker
from octavo.jobs.worker_state import WorkerLimits
from octavo.ops.instance import LATER, PRELOAD, bucket_of, fetch_client_of, open_database, open_recognition, sandbox_of
from octavo.ops.metrics import COUNTS
from octavo.owners.sessions import local_owner
from octavo.pipeline import Tools, known_chores, known_kinds, known_schedules

log = structlog.get_logger()
NICENESS = 5  # a third of the CPU share of others when all are busy


async def work(settings: Settings, *, beside_web: bool = False, worker_id: UUID | None = None) -> None:
    """Run jobs until stopped.

    If `beside_web` is true, run at low priority, because a web server on the same machine needs the CPU. `worker_id` is
    the id that the supervisor has chosen.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    async with (
        open_database(settings, supervised=beside_web) as database,
        aclosing(bucket_of(settings)) as bucket,
        aclosing(sandbox_of(settings, PRELOAD, later=LATER)) as sandbox,  # started by the first file that needs it
        fetch_client_of(settings) as fetch,
        open_recognition(settings) as recognition,
        aclosing(LiveModels(settings, database)) as models,
    ):
        if beside_web:
            _lower_priority()
        await _prepare(database, settings)
        await models.refresh()
        gateway = LiveGateway(models)
        limits = WorkerLimits(slots=settings.worker_slots, lease_seconds=settings.lease_seconds)
        tools = Tools(settings, database, bucket, sandbox, fetch, recognition, gateway, models)
        chores = [*known_chores(tools), COUNTS.add]
        faults, schedules = FaultPlan(settings.faults), known_schedules()
        worker = Worker(database, known_kinds(), tools, limits, faults, schedules, chores, worker_id=worker_id)
        log.info("worker started", worker=str(worker.id), slots=limits.slots)
        await worker.run(stopping)
        await COUNTS.try_to_add(database)
        await asyncio.to_thread(stop_tracing)
        log.info("worker stopped", worker=str(worker.id))


def _lower_priority() -> None:
    """Lower the priority of this process and of its later child processes, if the system supports it.

    Depending on its settings, Linux shares the CPU between sessions or between threads, so the priority of both is
    lowered. The built-in database is not affected: it is already running, and the supervisor restarts it if necessary.
    """
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICENESS))
    with suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            number = int(thread.name)
            os.setpriority(os.PRIO_PROCESS, number, os.getpriority(os.PRIO_PROCESS, number) + NICENESS)


async def _prepare(database: Database, settings: Settings) -> None:
    async with database.transaction() as connection:
        await require_current(connection)
        owner = await local_owner(connection)
        slack = settings.admin_slack.get_secret_value() if settings.admin_slack else None
        await keep_administrators(connection, owner, {"mail": settings.admin_mail, "slack": slack})
