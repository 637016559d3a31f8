"""The layout and permissions of the data folder, and locks between the processes that use it."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path

from octavo.core.errors import DatabaseUnavailable, NotPossibleHere

PRIVATE = 0o700
# If Octavo runs as root, the database runs as another account, which must enter the folder but not list it.
PASSABLE = 0o711
POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The paths in the data folder. `prepare` creates the subfolders that every process needs."""

    root: Path

    @property
    def cluster(self) -> Path:
        return self.root / "postgres"

    @property
    def binaries(self) -> Path:
        return self.root / "postgres-binaries"

    @property
    def socket(self) -> Path:
        return self.root / "socket"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def objects(self) -> Path:
        return self.root / "objects"

    def prepare(self) -> None:
        """Create the data folder and its private subfolders."""
        make_folder(self.root, PASSABLE if os.geteuid() == 0 else PRIVATE)
        for folder in (self.run, self.secrets, self.logs):
            make_folder(folder, PRIVATE)


def make_folder(path: Path, mode: int) -> None:
    """Create a folder with these permissions. If it already exists, its permissions stay unchanged."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=mode, exist_ok=True)
    except OSError as error:
        raise NotPossibleHere(explain(error, path)) from error
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise NotPossibleHere(f"The folder {path} is not writable. Set OCTAVO_DATA_DIR to a writable one.")


def explain(error: OSError, path: Path) -> str:
    """Describe a file system error and what to do about it, in one line."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"The disk is full: {path} cannot be written. Free some space, or set OCTAVO_DATA_DIR."
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return f"No permission to write to {path}. Set OCTAVO_DATA_DIR to a writable folder."
    return f"{path} cannot be used as a folder: {error.strerror}. Set OCTAVO_DATA_DIR to another one."


class FileLock:
    """An open lock file. The lock can be shared or exclusive and is held until the file is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def try_lock(self, *, shared: bool = False) -> bool:
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock(self, *, shared: bool = False, seconds: float) -> None:
        """Wait for the lock. Raises `DatabaseUnavailable` after `seconds`."""
        deadline = time.monotonic() + seconds
        while not self.try_lock(shared=shared):
            if time.monotonic() > deadline:
                raise DatabaseUnavailable(f"Another process has held the lock {self.path} for {seconds:.0f} seconds.")
            time.sleep(POLL_SECONDS)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_locked(path: Path) -> bool:
    """Whether a running process holds an exclusive lock on this file."""
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        return not lock.try_lock(shared=True)
    finally:
        lock.close()
