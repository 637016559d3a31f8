"""Checks sources for files with the matching reader, records the files, and queues the jobs that add them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from functools import partial
from uuid import UUID

import psycopg
import structlog
from psycopg.types.json import Jsonb

from octavo.choreography import Cause, job_after
from octavo.core.errors import OctavoError
from octavo.core.types import new_id
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.intake.sources.buckets import BucketReader
from octavo.intake.sources.extension_sources import ExtensionReader
from octavo.intake.sources.feeds import FeedReader
from octavo.intake.sources.folders import FolderEvents, FolderReader
from octavo.intake.sources.mailboxes import MailboxReader
from octavo.intake.sources.reading import LOOK_SECONDS, MOST_PATH_BYTES, Connections, Look, Reader, SeenFile, Source
from octavo.intake.sources.webdav import DavReader
from octavo.jobs.queue import enqueue
from octavo.jobs.worker_state import DueIn
from octavo.records.automation import SourceKind

log = structlog.get_logger()
QUERIES = load_queries("sources")
IDLE_SECONDS = 1.0
# The shortest pause, used while another worker is checking the source that is due.
LEAST_PAUSE = 0.1
# The maximum number of added files that one check moves or marks.
MOST_FINISHED = 10_000
OpenReader = Callable[[Source], Reader]


@dataclass(frozen=True, slots=True)
class SourceWatch:
    """A background task of a worker: checks the sources of the given kinds when they are due."""

    kinds: Sequence[SourceKind]
    open_reader: OpenReader

    async def __call__(self, database: Database) -> float:
        """Check the next source that is due. Returns the number of seconds until another source is due."""
        values = {"kinds": list(self.kinds)}
        async with database.transaction() as connection:
            rows = await fetch_rows(connection, QUERIES.next_due, values)
            if not rows:
                (due,) = await fetch_rows(connection, QUERIES.due_in, values)
                return IDLE_SECONDS if due["seconds"] is None else DueIn(max(LEAST_PAUSE, due["seconds"]))
        source = Source.of(rows[0])
        try:
            await self._look(database, source)
        except (OSError, OctavoError, TimeoutError) as error:
            await _fail(database, source, explain(source, error))
        except psycopg.Error:
            raise
        except Exception as error:
            log.exception("source check failed", source=str(source.id), kind=source.kind)
            await _fail(database, source, f"Internal error ({type(error).__name__}). It has been logged.")
        return 0.0

    async def _look(self, database: Database, source: Source) -> None:
        async with aclosing(self.open_reader(source)) as reader, asyncio.timeout(LOOK_SECONDS):
            look = await reader.look()
            await record_look(database, source, look, reader.settle_seconds)
            if source.options.after != "keep":
                await _finish_added(database, source, reader)


@dataclass(frozen=True, slots=True)
class FolderAlarm:
    """A background task of a worker: requests an immediate check of each folder in which files change."""

    events: FolderEvents

    async def __call__(self, database: Database) -> float:
        changed = await self.events.next_changes()
        if changed:
            async with database.transaction() as connection:
                rows = await fetch_rows(connection, QUERIES.hurry_sources, {"sources": sorted(changed)})
            self.events.forget(changed - {row["id"] for row in rows})
        return DueIn(IDLE_SECONDS)


def explain(source: Source, error: Exception) -> str:
    """Return the error message that is shown for a source that could not be checked."""
    thing = "folder" if source.kind == "folder" else "server"
    if isinstance(error, OctavoError):
        return error.line
    if isinstance(error, TimeoutError):
        return f"The {thing} did not respond in time."
    return f"The {thing} cannot be read: {getattr(error, 'strerror', None) or type(error).__name__}."


async def record_look(database: Database, source: Source, look: Look, settle: float) -> None:
    """Record the files that a check found, and queue a job that adds the new ones.

    A file is not added until it has been unchanged for `settle` seconds, because before that it may be incomplete.
    """
    files = Jsonb([asdict(one) for one in _recordable(look.files)])
    async with database.transaction() as connection:
        held = await fetch_rows(connection, QUERIES.lock_source, {"id": source.id})
        if not held or held[0]["paused"]:  # deleted or paused meanwhile
            return
        await _record_files(connection, source, look, files)
        (count,) = await fetch_rows(connection, QUERIES.count_waiting, {"source": source.id, "settle": settle})
        job = await _enqueue(connection, source) if count["settled"] and not held[0]["busy"] else None
        soon = settle + 0.5 if count["waiting"] > count["settled"] and not held[0]["busy"] else None
        values = {"source": source.id, "job": job, "error": None, "seconds": soon}
        await connection.execute(QUERIES.finish_look, values)


def _recordable(files: Sequence[SeenFile]) -> Iterable[SeenFile]:
    """Return the files that can be recorded. Duplicate paths, and paths that are too long, are left out."""
    return {one.path: one for one in files if len(one.path.encode()) <= MOST_PATH_BYTES}.values()


async def _record_files(connection: Connection, source: Source, look: Look, files: Jsonb) -> None:
    values = {"source": source.id, "files": files}
    await connection.execute(QUERIES.record_files, values)
    if look.complete:
        await connection.execute(QUERIES.forget_waiting, values)
        await connection.execute(QUERIES.forget_versions, values)
    if look.position is not None:
        await connection.execute(QUERIES.set_position, {"source": source.id, "position": Jsonb(look.position)})


async def _finish_added(database: Database, source: Source, reader: Reader) -> None:
    """Move or mark the files that have been added.

    The check does this instead of the job, so that no file is forgotten if the job is killed.
    """
    async with database.connection() as connection:
        values = {"source": source.id, "most": MOST_FINISHED}
        rows = await fetch_rows(connection, QUERIES.unfinished_files, values)
    finished = await reader.finish([SeenFile(**row) for row in rows]) if rows else ()
    if finished:
        async with database.transaction() as connection:
            values = {"source": source.id, "paths": [one.path for one in finished]}
            await connection.execute(QUERIES.finish_files, values)


async def _enqueue(connection: Connection, source: Source) -> UUID:
    key = f"source:{source.id}"
    job = job_after(
        Cause.FILES_FOUND, source.owner_id, {"source": str(source.id)}, key=f"{key}:{new_id()}", cap_key=key, cap=1
    )
    (made,) = await enqueue(connection, [job])
    return made.id


async def _fail(database: Database, source: Source, error: str) -> None:
    values = {"source": source.id, "job": None, "error": error, "seconds": None}
    async with database.transaction() as connection:
        await connection.execute(QUERIES.finish_look, values)


LOCAL: tuple[SourceKind, ...] = ("folder",)


_REMOTE_READERS: dict[SourceKind, Callable[[Source, Connections], Reader]] = {
    "imap": MailboxReader,
    "s3": BucketReader,
    "webdav": DavReader,
    "rss": FeedReader,
    "extension": ExtensionReader,
}


def open_reader(connections: Connections, source: Source) -> Reader:
    """Return the reader of a source, without connecting yet."""
    if source.kind == "folder":
        return FolderReader(source)
    return _REMOTE_READERS[source.kind](source, connections)


def source_watches(connections: Connections, events: FolderEvents | None = None) -> list[SourceWatch]:
    """Return the background tasks that check sources. A slow server does not delay the checks of folders."""
    folders = SourceWatch(LOCAL, partial(FolderReader, events=events))
    return [folders, SourceWatch(tuple(_REMOTE_READERS), partial(open_reader, connections))]


def source_chores(connections: Connections) -> list[SourceWatch | FolderAlarm]:
    """Return the background tasks that check sources, and the one that requests immediate checks of changed folders."""
    events = FolderEvents()
    return [*source_watches(connections, events), FolderAlarm(events)]
