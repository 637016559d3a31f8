"""Watched folders on the server. Files are never deleted, and symbolic links are never followed.

Linux reports changes to folders immediately (inotify). Network drives do not report changes that other machines make,
so every folder is also checked at regular intervals.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import stat
import struct
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar
from uuid import UUID

from octavo.core.settings import Settings
from octavo.intake.errors import BadFolder
from octavo.intake.sources.reading import LOOK_SECONDS, MOST_FILES, FileChanged, Look, ReadFile, SeenFile, Source
from octavo.intake.upload_rows import NewUpload

SETTLE_SECONDS = 2.0
MOST_DEPTH = 20
MOVED_TO = "added"
BLOCK_BYTES = 1 << 20
# Names that programs use for files that are not complete yet, or that are not documents.
_PARTIAL = (".part", ".partial", ".crdownload", ".download", ".tmp", ".temp", ".swp", ".opdownload", "~")
_NEVER = frozenset({"thumbs.db", "desktop.ini"})
# From <sys/inotify.h>. A file that was created by a link, or moved here, is not closed after writing.
_CREATED, _CLOSED, _MOVED_HERE, _ONLY_FOLDERS = 0x100, 0x008, 0x080, 0x01000000
_FORGOTTEN, _OVERFLOW = 0x8000, 0x4000
_EVENT = struct.Struct("iIII")
_MOST_EVENT_BYTES = 1 << 16
# More folders are only checked at regular times.
MOST_WATCHED = 4000
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_THREADS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="octavo-folders")
_LOOKING: set[UUID] = set()
_LIBC = ctypes.CDLL(None)
T = TypeVar("T")


class FolderEvents:
    """Reports the sources whose folders have changed. Works only on Linux; on other systems, nothing is reported."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._sources: dict[int, set[UUID]] = {}  # by the number of the watch
        self._changed = asyncio.Event()
        self._lock = threading.Lock()

    def open(self) -> None:
        """Start reporting changes. Called in the event loop, before the first folder is watched."""
        if self._file is None and hasattr(_LIBC, "inotify_init1"):
            file = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if file >= 0:  # or else this user has too many of them
                self._file = file
                weakref.finalize(self, os.close, file)
                self._changed.set()

    def watch(self, source: UUID, folder: Path) -> None:
        """Report changes in this folder from now on. Does nothing if there are too many folders."""
        with self._lock:
            if self._file is None or len(self._sources) >= MOST_WATCHED:
                return
            mask = _CREATED | _CLOSED | _MOVED_HERE | _ONLY_FOLDERS
            watch = _LIBC.inotify_add_watch(self._file, os.fsencode(folder), mask)
            if watch >= 0:
                self._sources.setdefault(watch, set()).add(source)

    async def next_changes(self) -> set[UUID]:
        """Wait for a change, and return the sources whose folders have changed.

        If `open` is called during the wait, returns an empty set. The next call then waits for changes.
        """
        loop, file = asyncio.get_running_loop(), self._file
        if file is not None:
            loop.add_reader(file, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            if file is not None:
                loop.remove_reader(file)
        self._changed.clear()
        with self._lock:
            return self._read(file) if file is not None else set()

    def forget(self, sources: Iterable[UUID]) -> None:
        """Stop reporting changes to these sources."""
        gone = set(sources)
        with self._lock:
            for watch, known in list(self._sources.items()):
                known.difference_update(gone)
                if not known and self._file is not None:
                    _LIBC.inotify_rm_watch(self._file, watch)
                    del self._sources[watch]

    def _read(self, file: int) -> set[UUID]:
        changed: set[UUID] = set()
        with suppress(BlockingIOError):
            while block := os.read(file, _MOST_EVENT_BYTES):
                for watch, mask in _read_events(block):
                    if mask & _OVERFLOW:
                        changed.update(*self._sources.values())
                    elif mask & _FORGOTTEN:
                        self._sources.pop(watch, None)
                    else:
                        changed |= self._sources.get(watch, set())
        return changed


def _read_events(block: bytes) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(block):
        watch, mask, _, length = _EVENT.unpack_from(block, start)
        yield watch, mask
        start += _EVENT.size + length


class FolderReader:
    """Reads a folder. System errors are raised as `OSError`.

    If `events` is set, it watches the folders that a check finds, and reports later changes in them.
    """

    def __init__(self, source: Source, events: FolderEvents | None = None) -> None:
        self._source = source
        self._events = events
        self._folder = Path(source.address)
        self.settle_seconds = SETTLE_SECONDS
        # If added files are moved, a file with the same name is a new one.
        self.makes_versions = source.options.after != "move"

    async def look(self) -> Look:
        deep = self._source.options.subfolders != "ignore"
        scan = partial(scan_folder, self._folder, deep=deep)
        if self._events:
            self._events.open()
            scan = partial(scan, visit=partial(self._events.watch, self._source.id))
        return Look(await self._in_thread(scan))

    async def read(self, file: SeenFile) -> ReadFile:
        return ReadFile(NewUpload(file.name, bytes=file.bytes), read_file(self._folder, file))

    def parents(self, file: SeenFile) -> tuple[str, ...]:
        return PurePosixPath(file.path).parts[:-1]

    async def finish(self, files: Sequence[SeenFile]) -> Sequence[SeenFile]:
        return await self._in_thread(partial(move_added, self._folder, files))

    async def aclose(self) -> None:
        """Do nothing, because no file stays open."""

    async def _in_thread(self, call: Callable[[], T]) -> T:
        """Call a function in a thread, with a time limit, because a network drive may never respond.

        A thread that hangs cannot be stopped. Until it ends, further calls for the same source raise `TimeoutError`, so
        that each source blocks at most one thread.
        """
        source = self._source.id
        if source in _LOOKING:
            raise TimeoutError
        _LOOKING.add(source)
        looking = asyncio.get_running_loop().run_in_executor(_THREADS, call)
        looking.add_done_callback(lambda _: _LOOKING.discard(source))
        async with asyncio.timeout(LOOK_SECONDS):
            return await asyncio.shield(looking)


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


def scan_folder(folder: Path, *, deep: bool, visit: Callable[[Path], None] | None = None) -> list[SeenFile]:
    """List the files in a folder, sorted by path. Symbolic links and hidden or incomplete files are skipped.

    `visit` is called with each folder, before its files are listed.
    """
    found: list[SeenFile] = []
    _scan(folder, (), found, MOST_DEPTH if deep else 1, visit)
    return sorted(found, key=lambda file: file.path)  # so that of two identical files, always the same is added


def _scan(
    folder: Path, parents: tuple[str, ...], found: list[SeenFile], depth: int, visit: Callable[[Path], None] | None
) -> None:
    here = folder.joinpath(*parents)
    if visit:
        visit(here)
    with os.scandir(here) as entries:
        for entry in entries:
            if not is_wanted(entry.name) or entry.is_symlink():
                continue
            path = (*parents, entry.name)
            with suppress(OSError):  # it was removed meanwhile, or cannot be read
                if entry.is_file(follow_symlinks=False):
                    about = entry.stat(follow_symlinks=False)
                    if about.st_size:  # an empty file is not complete yet
                        found.append(SeenFile("/".join(path), about.st_size, about.st_mtime_ns))
                elif depth > 1 and entry.is_dir(follow_symlinks=False) and path != (MOVED_TO,):
                    _scan(folder, path, found, depth - 1, visit)
            if len(found) > MOST_FILES:
                raise BadFolder(f"It has more than {MOST_FILES:,} files.")


def is_wanted(name: str) -> bool:
    """Whether a file or folder with this name is read. Hidden and incomplete files and invalid names are skipped."""
    lower = name.lower()
    if name.startswith((".", "~$")) or lower.endswith(_PARTIAL) or lower in _NEVER:
        return False
    return not any(0xDC80 <= ord(character) <= 0xDCFF for character in name)  # noqa: PLR2004 - not valid UTF-8


def has_control(path: str) -> bool:
    """Whether a path on a server contains control characters, which no document's name needs."""
    return any(ord(character) < 32 or ord(character) == 127 for character in path)  # noqa: PLR2004 - of ASCII


def open_inside(folder: Path, path: str) -> int:
    """Open a file in a folder for reading. The caller closes the returned file descriptor.

    No part of the path may be a symbolic link, even if somebody replaces a folder with a link at the same time.
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


def move_added(folder: Path, files: Iterable[SeenFile]) -> list[SeenFile]:
    """Move added files into the subfolder `added`, without replacing any files in it.

    Returns the files that were moved or no longer exist. Files that have changed are not moved. If a file cannot be
    moved, the next check tries again.
    """
    gone: list[SeenFile] = []
    for file in files:
        try:
            if _move_one(folder, file):
                gone.append(file)
        except (FileNotFoundError, NotADirectoryError):
            gone.append(file)
        except OSError:
            continue
    return gone


def _move_one(folder: Path, file: SeenFile) -> bool:
    *parents, name = PurePosixPath(file.path).parts
    here = _open_folders(folder, parents)
    try:
        about = os.stat(name, dir_fd=here, follow_symlinks=False)
        is_same = (about.st_size, about.st_mtime_ns) == (file.bytes, file.modified) and stat.S_ISREG(about.st_mode)
        if is_same:
            _move(folder, here, parents, name)
        return is_same
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


async def read_file(folder: Path, file: SeenFile) -> AsyncGenerator[bytes]:
    """Yield the bytes of a file.

    Raises `FileChanged` if the file has changed since the check found it, or changes while it is being read.
    """
    try:
        opened = await asyncio.to_thread(open_inside, folder, file.path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileChanged from None
    try:
        _check_unchanged(opened, file)
        while block := await asyncio.to_thread(os.read, opened, BLOCK_BYTES):
            yield block
        _check_unchanged(opened, file)
    finally:
        os.close(opened)


def _check_unchanged(opened: int, file: SeenFile) -> None:
    about = os.fstat(opened)
    if (about.st_size, about.st_mtime_ns) != (file.bytes, file.modified):
        raise FileChanged
