"""File locks between processes. The kernel releases a lock when its process ends for any reason."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from octavo.core.errors import DatabaseUnavailable

POLL_SECONDS = 0.01


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
    """Whether a live process holds the lock exclusively."""
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        return not lock.try_lock(shared=True)
    finally:
        lock.close()
