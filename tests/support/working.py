"""A real worker in the test's own process, for as long as a test wants, and what came of its work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from octavo.ai.gateway import Gateway
from octavo.core.settings import Settings
from octavo.extract.detect import detect
from octavo.fetch import GuardedClient
from octavo.intake import Intake, NewUpload
from octavo.jobs.job_run import FaultPlan
from octavo.jobs.kinds import Kinds
from octavo.jobs.worker import Worker
from octavo.jobs.worker_state import WorkerLimits
from octavo.library.documents import show_document
from octavo.library.files import find_file
from octavo.pipeline import Tools, known_chores, known_kinds
from octavo.records.documents import Document
from octavo.sandbox import Sandbox
from tests.support.library import LIMITS, Desk
from tests.support.processes import PATIENCE_SECONDS


@asynccontextmanager
async def working(
    desk: Desk,
    sandbox: Sandbox,
    folder: Path,
    fetch: GuardedClient | None = None,
    gateway: Gateway | None = None,
    kinds: Kinds[Tools] | None = None,
    *,
    has_chores: bool = False,
    **settings: Any,  # noqa: ANN401
) -> AsyncGenerator[None]:
    chosen = Settings(data_dir=folder, **settings)
    tools = Tools(chosen, desk.database, desk.bucket, sandbox, fetch or GuardedClient())
    if gateway:
        tools = replace(tools, gateway=gateway)
    stopping = asyncio.Event()
    chores = known_chores(tools) if has_chores else ()
    limits = WorkerLimits(lease_seconds=30)
    worker = Worker(desk.database, kinds or known_kinds(), tools, limits, FaultPlan(""), chores=chores)
    task = asyncio.create_task(worker.run(stopping))
    try:
        yield
    finally:
        stopping.set()
        await task
        await tools.fetch.aclose()


async def finished(desk: Desk, owner: UUID, document: UUID) -> Document:
    async with asyncio.timeout(PATIENCE_SECONDS), desk.database.connection() as connection:
        # The worker is in the same process, so polling has to be cheap.
        pending = b"SELECT FROM documents WHERE id = %s AND status = 'pending'"
        while (await connection.execute(pending, [document])).rowcount:  # noqa: ASYNC110 - it makes it end
            await asyncio.sleep(0.02)
        return await show_document(connection, owner, document)


async def text_of(desk: Desk, owner: UUID, document: UUID, kind: str = "markdown") -> str:
    async with desk.database.connection() as connection:
        file = await find_file(connection, owner, document, kind)
    return (await desk.bucket.read(file.key)).decode()


async def add(desk: Desk, owner: UUID, name: str, body: bytes, **more: Any) -> UUID:  # noqa: ANN401
    intake = Intake(desk.database, desk.bucket, detect)
    return (await intake.take(owner, NewUpload(name, **more), body, LIMITS)).document_id
