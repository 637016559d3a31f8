"""Sources of documents: watched folders.

Every worker calls `watch_sources` regularly, and a row lock gives each source to one of them. A look at a folder only
records its files. A file whose size and time are the same in two looks is added by a job. Files are never deleted, and
a file that disappears never takes its document with it.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from octavo.choreography import Cause, job_after
from octavo.core.errors import BadInput, NotFound
from octavo.core.ids import new_id
from octavo.core.settings import Settings
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.intake.errors import BadFolder
from octavo.jobs.queue import enqueue
from octavo.jobs.worker_state import DueIn
from octavo.library.collections import clean_label
from octavo.library.errors import NameTaken
from octavo.records.automation import FailedFile, SourceCounts, SourceOptions, SourceState, SourceView

QUERIES = load_queries("sources")
DEFAULT_SECONDS, LEAST_SECONDS, MOST_SECONDS = 10, 2, 86_400
# A file must have the same size and time for this long before it is added.
SETTLE_SECONDS = 2.0
IDLE_SECONDS = 1.0
# If another worker holds the source that is due, it is looked for again after this time.
LEAST_PAUSE = 0.1
LOOK_SECONDS = 60.0
MOST_FILES, MOST_DEPTH = 200_000, 20
MOST_FAILED = 100
MOVED_TO = "added"
# Names that programs use for files that are not complete yet, or that are not documents.
_PARTIAL = (".part", ".partial", ".crdownload", ".download", ".tmp", ".temp", ".swp", ".opdownload", "~")
_NEVER = frozenset({"thumbs.db", "desktop.ini"})
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_THREADS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="octavo-folders")
_LOOKING: set[UUID] = set()
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file in a folder. `path` is relative to the folder; `modified` is in nanoseconds."""

    path: str
    bytes: int
    modified: int


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A watched folder, as workers use it."""

    id: UUID
    owner_id: UUID
    folder: Path
    options: SourceOptions


# Definitions --------------------------------------------------------------------------------------------------------


async def list_sources(connection: Connection, owner: UUID) -> list[SourceView]:
    """List the sources of an owner, oldest first."""
    return [_as_view(row) for row in await fetch_rows(connection, QUERIES.list_sources, {"owner": owner})]


async def show_source(connection: Connection, owner: UUID, source: UUID) -> SourceView:
    for one in await list_sources(connection, owner):
        if one.id == source:
            return one
    raise NotFound


async def add_folder(
    connection: Connection,
    settings: Settings,
    owner: UUID,
    path: str,
    *,
    name: str | None = None,
    options: SourceOptions | None = None,
    every_seconds: int = DEFAULT_SECONDS,
) -> SourceView:
    """Watch a folder on the server. Only administrators may call this, because it reads files of the server."""
    folder = await asyncio.to_thread(check_folder, settings, path)
    made = new_id()
    values = {"id": made, "owner": owner, "kind": "folder", "name": clean_label(name or folder.name or "/", "source")}
    values |= {"address": str(folder), "options": Jsonb(asdict(options or SourceOptions())), "every": every_seconds}
    await _save(connection, QUERIES.insert_source, values)
    return await show_source(connection, owner, made)


async def edit_source(
    connection: Connection,
    owner: UUID,
    source: UUID,
    *,
    name: str | None = None,
    options: dict[str, Any] | None = None,
    every_seconds: int | None = None,
    paused: bool | None = None,
) -> SourceView:
    """Change a source. Its folder cannot be changed."""
    await show_source(connection, owner, source)
    values: Row = {"id": source, "owner": owner, "name": clean_label(name, "source") if name else None}
    values |= {"options": Jsonb(options) if options else None, "every": every_seconds}
    await _save(connection, QUERIES.edit_source, values)
    if paused is not None:
        await connection.execute(QUERIES.pause_source, {"id": source, "owner": owner, "paused": paused})
    return await show_source(connection, owner, source)


async def run_source(connection: Connection, owner: UUID, source: UUID) -> SourceView:
    """Look at a source now. Files that failed before are tried again."""
    await show_source(connection, owner, source)
    await connection.execute(QUERIES.run_source, {"id": source, "owner": owner})
    return await show_source(connection, owner, source)


async def delete_source(connection: Connection, owner: UUID, source: UUID) -> None:
    """Stop watching a source. Its documents and its files stay."""
    if not await fetch_rows(connection, QUERIES.delete_source, {"id": source, "owner": owner}):
        raise NotFound


async def list_failed(connection: Connection, owner: UUID, source: UUID) -> list[FailedFile]:
    """List the files that could not be added, newest first."""
    await show_source(connection, owner, source)
    values = {"owner": owner, "source": source, "most": MOST_FAILED}
    return [FailedFile(**row) for row in await fetch_rows(connection, QUERIES.failed_files, values)]


async def _save(connection: Connection, query: bytes, values: Row) -> None:
    try:
        async with connection.transaction():
            await connection.execute(query, values)
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name == "sources_address":
            raise BadFolder("This folder is already watched.") from None
        raise NameTaken(values["name"]) from None


def _as_view(row: Row) -> SourceView:
    return SourceView(
        id=row["id"],
        kind=row["kind"],
        name=row["name"],
        path=row["address"],
        state=_state(row),
        options=SourceOptions(**row["options"]),
        every_seconds=row["every_seconds"],
        last_run=row["last_run_at"],
        next_run=None if row["paused"] else row["next_run_at"],
        error=row["error"],
        counts=SourceCounts(row["added"], row["known"], row["waiting"], row["failed"]),
        job_id=row["job_id"],
        created_at=row["created_at"],
    )


def _state(row: Row) -> SourceState:
    if row["paused"]:
        return "paused"
    if row["error"]:
        return "failing"
    return "adding" if row["busy"] else "watching"


# Folders ------------------------------------------------------------------------------------------------------------


def check_folder(settings: Settings, path: str) -> Path:
    """Resolve symbolic links in the path and return the folder. Raises `BadFolder` if it cannot be watched."""
    given = Path(path)
    if "\0" in path or not given.is_absolute():
        raise BadFolder("Use an absolute path on the server.")
    try:
        folder = given.resolve(strict=True)
        readable = folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)
    except (OSError, RuntimeError):
        raise BadFolder("The folder does not exist on the server, or cannot be read.") from None
    if not readable:
        raise BadFolder("This is not a folder that the server can read.")
    for own in _own_folders(settings):
        if folder.is_relative_to(own) or own.is_relative_to(folder):
            raise BadFolder("This folder contains, or is inside, the folder where Octavo stores its own data.")
    return folder


def _own_folders(settings: Settings) -> Iterator[Path]:
    yield settings.data_dir.resolve()
    if settings.storage_url and settings.storage_url.startswith("file://"):
        yield Path(settings.storage_url.removeprefix("file://")).resolve()


def scan_folder(folder: Path, *, deep: bool) -> list[SeenFile]:
    """List the files in a folder by path. Links are not followed, and hidden and incomplete files are left out."""
    found: list[SeenFile] = []
    _scan(folder, (), found, MOST_DEPTH if deep else 1)
    return sorted(found, key=lambda file: file.path)  # of two equal files, always the same one is added


def _scan(folder: Path, parents: tuple[str, ...], found: list[SeenFile], depth: int) -> None:
    with os.scandir(folder.joinpath(*parents)) as entries:
        for entry in entries:
            if not _is_wanted(entry.name) or entry.is_symlink():
                continue
            path = (*parents, entry.name)
            with suppress(OSError):  # it was removed meanwhile, or cannot be read
                if entry.is_file(follow_symlinks=False):
                    about = entry.stat(follow_symlinks=False)
                    if about.st_size:  # an empty file is not complete yet
                        found.append(SeenFile("/".join(path), about.st_size, about.st_mtime_ns))
                elif depth > 1 and entry.is_dir(follow_symlinks=False) and path != (MOVED_TO,):
                    _scan(folder, path, found, depth - 1)
            if len(found) > MOST_FILES:
                raise BadFolder(f"It has more than {MOST_FILES:,} files.")


def _is_wanted(name: str) -> bool:
    lower = name.lower()
    if name.startswith((".", "~$")) or lower.endswith(_PARTIAL) or lower in _NEVER:
        return False
    return not any(0xDC80 <= ord(character) <= 0xDCFF for character in name)  # noqa: PLR2004 - not valid UTF-8


def open_inside(folder: Path, path: str) -> int:
    """Open a file in a folder for reading. No part of the path may be a link, even if it was replaced by one meanwhile.

    The caller closes the returned file descriptor.
    """
    *parents, name = PurePosixPath(path).parts
    place = _open_folders(folder, parents)
    try:
        file = os.open(name, _FLAGS, dir_fd=place)
    finally:
        os.close(place)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise BadFolder("This is not a file.")
    return file


def _open_folders(folder: Path, names: Sequence[str], *, create: bool = False) -> int:
    place = os.open(folder, _FLAGS | os.O_DIRECTORY)
    try:
        for name in names:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=place)
            inner = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=place)
            os.close(place)
            place = inner
    except BaseException:
        os.close(place)
        raise
    return place


def move_added(folder: Path, files: Iterable[SeenFile]) -> None:
    """Move files to the sub-folder of added files, unless they changed. A file there is never replaced."""
    for file in files:
        *parents, name = PurePosixPath(file.path).parts
        with suppress(OSError):  # it was moved or removed meanwhile; if it cannot be moved, it stays
            here = _open_folders(folder, parents)
            try:
                about = os.stat(name, dir_fd=here, follow_symlinks=False)
                if (about.st_size, about.st_mtime_ns) == (file.bytes, file.modified) and stat.S_ISREG(about.st_mode):
                    _move(folder, here, parents, name)
            finally:
                os.close(here)


def _move(folder: Path, here: int, parents: Sequence[str], name: str) -> None:
    there = _open_folders(folder, [MOVED_TO, *parents], create=True)
    try:
        given, number, target = PurePosixPath(name), 1, name
        while _exists(target, there):
            number += 1
            target = f"{given.stem} ({number}){given.suffix}"
        os.rename(name, target, src_dir_fd=here, dst_dir_fd=there)
    finally:
        os.close(there)


def _exists(name: str, place: int) -> bool:
    try:
        os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


# Watching -----------------------------------------------------------------------------------------------------------


async def watch_sources(database: Database) -> float:
    """Look at the next due source. Returns the number of seconds until the next one is due."""
    async with database.transaction() as connection:
        rows = await fetch_rows(connection, QUERIES.next_due, {})
        if not rows:
            (due,) = await fetch_rows(connection, QUERIES.due_in, {})
            return IDLE_SECONDS if due["seconds"] is None else DueIn(max(LEAST_PAUSE, due["seconds"]))
    source = as_folder(rows[0])
    try:
        found = await _look_at(source)
    except (OSError, BadInput, TimeoutError) as error:
        await _finish(database, source, error=_explain(error))
        return 0.0
    await record_look(database, source, found)
    if source.options.after == "move":
        try:
            await _move_added(database, source, found)
        except TimeoutError as error:
            await _finish(database, source, error=_explain(error))
    return 0.0


async def _look_at(source: FolderSource) -> list[SeenFile]:
    return await _in_thread(source, partial(scan_folder, source.folder, deep=source.options.subfolders != "ignore"))


async def _in_thread(source: FolderSource, call: Callable[[], T]) -> T:
    """Call a function in a thread, because a network drive may never answer. Only one thread waits for each source."""
    if source.id in _LOOKING:
        raise TimeoutError
    _LOOKING.add(source.id)
    looking = asyncio.get_running_loop().run_in_executor(_THREADS, call)
    looking.add_done_callback(lambda _: _LOOKING.discard(source.id))
    async with asyncio.timeout(LOOK_SECONDS):
        return await asyncio.shield(looking)


def _explain(error: Exception) -> str:
    if isinstance(error, BadInput):
        return error.line
    if isinstance(error, TimeoutError):
        return "The folder did not answer in time."
    return f"The folder cannot be read: {getattr(error, 'strerror', None) or type(error).__name__}."


def as_folder(row: Row) -> FolderSource:
    return FolderSource(row["id"], row["owner_id"], Path(row["address"]), SourceOptions(**row["options"]))


async def record_look(database: Database, source: FolderSource, found: Sequence[SeenFile]) -> None:
    """Record the files that were seen. If some of them stopped changing, a job adds them."""
    files = Jsonb([asdict(one) for one in found])
    async with database.transaction() as connection:
        held = await fetch_rows(connection, QUERIES.lock_source, {"id": source.id})
        if not held or held[0]["paused"]:  # deleted or paused meanwhile
            return
        await connection.execute(QUERIES.record_files, {"source": source.id, "files": files})
        await connection.execute(QUERIES.forget_waiting, {"source": source.id, "files": files})
        await connection.execute(QUERIES.forget_versions, {"source": source.id, "files": files})
        (count,) = await fetch_rows(connection, QUERIES.count_waiting, {"source": source.id, "settle": SETTLE_SECONDS})
        job = await _enqueue(connection, source) if count["settled"] and not held[0]["busy"] else None
        soon = SETTLE_SECONDS + 0.5 if count["waiting"] and not held[0]["busy"] else None
        values = {"source": source.id, "job": job, "error": None, "seconds": soon}
        await connection.execute(QUERIES.finish_look, values)


async def _move_added(database: Database, source: FolderSource, found: Sequence[SeenFile]) -> None:
    """Move the files that have been added. Done here and not by the job, so that no file is forgotten after a kill."""
    async with database.connection() as connection:
        values = {"source": source.id, "paths": [one.path for one in found]}
        rows = await fetch_rows(connection, QUERIES.added_files, values)
    unchanged = {SeenFile(**row) for row in rows}.intersection(found)
    if unchanged:
        await _in_thread(source, partial(move_added, source.folder, unchanged))


async def _enqueue(connection: Connection, source: FolderSource) -> UUID:
    key = f"source:{source.id}"
    job = job_after(
        Cause.FILES_FOUND, source.owner_id, {"source": str(source.id)}, key=f"{key}:{new_id()}", cap_key=key, cap=1
    )
    (made,) = await enqueue(connection, [job])
    return made.id


async def _finish(database: Database, source: FolderSource, *, error: str) -> None:
    values = {"source": source.id, "job": None, "error": error, "seconds": None}
    async with database.transaction() as connection:
        await connection.execute(QUERIES.finish_look, values)
