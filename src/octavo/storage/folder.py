"""Reads and writes the files of the local bucket.

A write returns only when the file is durable. Symbolic links are never followed. All functions block, so call them in
threads. If they fail, they raise OSError.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from stat import S_ISREG
from uuid import uuid4

from octavo.storage.bucket import UNFINISHED, ObjectInfo
from octavo.storage.writing import Digest

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PUBLISH_ATTEMPTS = 20

Names = Sequence[str]


def make_root(root: Path) -> None:
    """Create the bucket's folder and its parent folders, and sync them to disk."""
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
        with opened_folder(folder.parent, ()) as parent:
            os.fsync(parent)


@contextmanager
def opened_folder(root: Path, names: Names, *, make: bool = False) -> Generator[int]:
    """Open a folder one path component at a time from the root, so that any symbolic link below the root is refused."""
    folder = os.open(root, _FOLDER)
    try:
        for name in names:
            if make:
                _make_folder(name, folder)
            below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def _make_folder(name: str, parent: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    # Sync even if it existed: another process may have just created it and not synced it yet.
    os.fsync(parent)


class UnfinishedFile:
    """A temporary file that is hashed as it is written.

    It becomes an object of the bucket when it is published under its final name.
    """

    def __init__(self, root: Path) -> None:
        self.digest = Digest()
        self._root = root
        self._name = uuid4().hex
        self._file: int | None = None

    def write(self, block: bytes) -> None:
        """Hash and write a block in one thread call. A second call would cost as much time as hashing 100 KB."""
        file = self._open()
        self.digest.update(block)
        rest = memoryview(block)
        while rest:
            rest = rest[os.write(file, rest) :]

    def publish(self, names: Names) -> None:
        """Give the file its final name. Raises FileExistsError if the name is taken."""
        os.fsync(self._open())
        with opened_folder(self._root, [UNFINISHED]) as folder:
            _link(self._root, folder, self._name, names)

    def discard(self) -> None:
        """Remove the temporary file. A published object is not affected."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            with suppress(FileNotFoundError), opened_folder(self._root, [UNFINISHED]) as folder:
                os.unlink(self._name, dir_fd=folder)

    def _open(self) -> int:
        if self._file is None:
            with opened_folder(self._root, [UNFINISHED], make=True) as folder:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                self._file = os.open(self._name, flags, 0o600, dir_fd=folder)
        return self._file


def _link(root: Path, source_folder: int, source_name: str, names: Names) -> None:
    """Publish a file with a hard link.

    This is atomic and never replaces a file, so each object is written only once.
    """
    *folders, name = names
    for attempt in range(_PUBLISH_ATTEMPTS):
        try:
            with opened_folder(root, folders, make=True) as folder:
                os.link(source_name, name, src_dir_fd=source_folder, dst_dir_fd=folder, follow_symlinks=False)
                _keep_name(folder, name)
        except FileNotFoundError:  # another process deleted the last object of this folder, and the folder with it
            if attempt == _PUBLISH_ATTEMPTS - 1:
                raise
        else:
            return


def _keep_name(folder: int, name: str) -> None:
    try:
        os.fsync(folder)
    except OSError:
        os.unlink(name, dir_fd=folder)
        raise


def copy_file(root: Path, source: Names, target: Names) -> None:
    """Copy an object by creating a hard link. This is sufficient, because objects never change."""
    *folders, name = source
    with opened_folder(root, folders) as folder:
        # The clean-up keeps recent objects, and the new key must count as recent.
        os.utime(name, dir_fd=folder, follow_symlinks=False)
        _link(root, folder, name, target)


def open_file(root: Path, names: Names) -> FileIO:
    """Open a file for reading. A path that is not a regular file is treated as missing."""
    *folders, name = names
    with opened_folder(root, folders) as folder:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    if S_ISREG(os.fstat(file).st_mode):
        return FileIO(file)
    os.close(file)
    raise FileNotFoundError("/".join(names))


def describe(key: str, status: os.stat_result) -> ObjectInfo:
    """Create an `ObjectInfo` from an object's key and the status of its file."""
    return ObjectInfo(key, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


def remove_file(root: Path, names: Names) -> None:
    """Remove a file if it exists, and the folders that become empty."""
    *folders, name = names
    with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
        with opened_folder(root, folders) as folder:
            os.unlink(name, dir_fd=folder)
        with suppress(OSError):  # stops at a folder that is not empty
            _remove_empty_folders(root, folders)


def _remove_empty_folders(root: Path, folders: Names) -> None:
    for depth in range(len(folders), 0, -1):
        with opened_folder(root, folders[: depth - 1]) as parent:
            os.rmdir(folders[depth - 1], dir_fd=parent)


def walk_files(root: Path, names: Names) -> Generator[ObjectInfo]:
    """Yield every object in a folder. Symbolic links and names that begin with a dot are not objects."""
    with suppress(FileNotFoundError, NotADirectoryError), opened_folder(root, names) as folder:
        yield from _walk(folder, "".join(f"{name}/" for name in names))


def _walk(folder: int, prefix: str) -> Generator[ObjectInfo]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            with suppress(FileNotFoundError):  # deleted in the meantime
                if entry.is_dir(follow_symlinks=False):
                    yield from _walk_below(folder, entry.name, prefix)
                elif entry.is_file(follow_symlinks=False):
                    yield describe(prefix + entry.name, entry.stat(follow_symlinks=False))


def _walk_below(folder: int, name: str, prefix: str) -> Generator[ObjectInfo]:
    below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield from _walk(below, f"{prefix}{name}/")
    finally:
        os.close(below)


def read_clock(root: Path) -> datetime:
    """Return the current time of the file system.

    If the folder is mounted from another machine, this is that machine's time.
    """
    with opened_folder(root, [UNFINISHED], make=True) as folder:
        name = uuid4().hex
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            return datetime.fromtimestamp(os.fstat(file).st_mtime, UTC)
        finally:
            os.close(file)
            os.unlink(name, dir_fd=folder)


def remove_unfinished(root: Path, before: float) -> int:
    """Remove unfinished files that were last written before `before`. Returns the number removed."""
    removed = 0
    with (
        suppress(FileNotFoundError),
        opened_folder(root, [UNFINISHED]) as folder,
        os.scandir(folder) as entries,
    ):
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_mtime < before:
                    os.unlink(entry.name, dir_fd=folder)
                    removed += 1
    return removed
