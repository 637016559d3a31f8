"""Sources that are watched in a test, as if the time between two looks had passed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from octavo.core.settings import Settings
from octavo.fetch import GuardedClient
from octavo.intake.sources.definitions import add_source, show_source
from octavo.intake.sources.places import SourcePlan
from octavo.intake.sources.reading import Connections
from octavo.intake.sources.watching import source_watches
from octavo.jobs.kinds import Kinds
from octavo.library.documents import Filters, list_documents
from octavo.pipeline import Tools, add_files
from octavo.records.automation import SourceView
from octavo.records.documents import Document
from octavo.sandbox import Sandbox
from tests.support.library import Desk
from tests.support.processes import PATIENCE_SECONDS
from tests.support.working import working


@dataclass(frozen=True, slots=True)
class WatchedSource:
    """A source that is watched, and its owner."""

    desk: Desk
    owner: UUID
    connections: Connections
    source: UUID

    async def look(self) -> None:
        """Look as if the time between two looks had passed."""
        await self.desk.rows("UPDATE source_files SET seen_at = seen_at - interval '1 minute' WHERE state = 'waiting'")
        await self.desk.rows("UPDATE sources SET next_run_at = engine_now()")
        for watch in source_watches(self.connections):
            await watch(self.desk.database)

    async def documents(self) -> list[Document]:
        async with self.desk.database.connection() as connection:
            filters = Filters(versions=True)
            return (await list_documents(connection, self.owner, filters, sort="oldest", limit=200)).items

    async def until(self, reached: Callable[[list[Document], SourceView], bool]) -> list[Document]:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                await self.look()
                found = await self.documents()
                if reached(found, await self.view()):
                    return found
                await asyncio.sleep(0.1)

    async def view(self) -> SourceView:
        async with self.desk.database.connection() as connection:
            return await show_source(connection, self.owner, self.source)


@asynccontextmanager
async def adding(watched: WatchedSource, sandbox: Sandbox, folder: Path) -> AsyncGenerator[None]:
    """A worker that adds the files of sources, and does not process them."""
    kinds: Kinds[Tools] = Kinds()
    kinds.add(add_files.KIND)
    allow = watched.connections.settings.fetch_allow
    client = GuardedClient(frozenset(allow))
    async with working(watched.desk, sandbox, folder, client, kinds=kinds, fetch_allow=allow):
        yield


async def add_watched(
    desk: Desk, owner: UUID, settings: Settings, plan: SourcePlan, fetch: GuardedClient | None = None
) -> WatchedSource:
    async with desk.database.transaction() as connection:
        made = await add_source(connection, settings, owner, plan)
    fetch = fetch or GuardedClient(frozenset(settings.fetch_allow))
    return WatchedSource(desk, owner, Connections(settings, fetch, desk.database), made.id)
