"""The application with documents that are really processed, and readers who are really somebody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from octavo.jobs.job_run import FaultPlan
from octavo.jobs.worker import Worker
from octavo.jobs.worker_state import WorkerLimits
from octavo.pipeline import Tools, known_kinds
from octavo.sandbox import Sandbox
from tests.support.passwords import hash_fast
from tests.support.postgres import Server, open_folder
from tests.support.processes import PATIENCE_SECONDS
from tests.support.processing import OpenSandbox
from tests.support.visitors import House, house_on


@dataclass(frozen=True, slots=True)
class Room:
    """`owner` has an account; everybody else is made by the test."""

    house: House
    owner: httpx.AsyncClient

    async def upload(self, name: str, body: str | bytes) -> str:
        content = body.encode() if isinstance(body, str) else body
        headers = {"x-upload-filename": quote(name)}
        answer = await self.owner.post("/api/v1/documents", content=content, headers=headers)
        assert answer.status_code == 202, answer.text
        return answer.json()["document_id"]

    async def add(self, name: str, body: str | bytes) -> str:
        """Upload, and wait until it is done."""
        document = await self.upload(name, body)
        async with self.working():
            await self.until_done()
        return document

    async def until_done(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self.house.rows("SELECT FROM documents WHERE status = 'pending'"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def working(self, sandbox: Sandbox | None = None) -> AsyncGenerator[None]:
        services = self.house.app.state.services
        tools = Tools(services.settings, services.database, services.bucket, sandbox or OpenSandbox())
        stopping = asyncio.Event()
        worker = Worker(services.database, known_kinds(), tools, WorkerLimits(lease_seconds=30), FaultPlan(""))
        task = asyncio.create_task(worker.run(stopping))
        try:
            yield
        finally:
            stopping.set()
            await task

    async def read(self, path: str) -> str:
        answer = await self.owner.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(newest_server: Server) -> AsyncGenerator[House]:
    """One application for all tests of a file; each has an owner of its own."""
    with open_folder() as folder, newest_server.database() as info, pytest.MonkeyPatch.context() as patch:
        hash_fast(patch)
        limits = {"requests_per_minute": 10**6, "requests_per_minute_anonymous": 10**6}
        async with house_on(info, folder, **limits) as house:
            yield house


@pytest_asyncio.fixture(loop_scope="module")
async def room(house: House) -> Room:
    return Room(house, await house.person(f"{uuid4()}@example.org"))
