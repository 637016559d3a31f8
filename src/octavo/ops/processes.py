"""Tools for supervising processes, and the file in the data folder that lists them.

`octavo status` and `octavo stop` read this file. Child processes end when their parent ends. A process that ends is
restarted after a pause, which is doubled after each short run.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from octavo.core.errors import AlreadyRunning, NotPossibleHere
from octavo.database.embedded import DataFolder
from octavo.database.embedded.data_folder import FileLock, explain, is_locked

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.5
# Signals that people and other programs send. A process that crashes ends with another signal or with an exit code.
SIGNALS_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})


def end_with_parent(parent: int) -> None:
    """End this process when its parent ends.

    On Linux the kernel does this; on other systems a thread checks twice a second.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it ended before prctl took effect
        os._exit(1)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)


def was_killed(code: int, oom_kills: int | None) -> bool:
    """Whether a process with this exit code was killed from outside.

    `oom_kills` is the number of out-of-memory kills on this machine when the process started. If there have been more
    since then, or if the number is unknown, the kernel may have killed this process for using too much memory, and the
    result is False.
    """
    return -code in SIGNALS_FROM_OUTSIDE and not oom_since(oom_kills)


def oom_since(oom_kills: int | None) -> bool:
    """Whether there have been more than `oom_kills` out-of-memory kills on this machine.

    Returns True if the number is unknown.
    """
    now = count_oom_kills()
    return now is None or oom_kills is None or now > oom_kills


def count_oom_kills() -> int | None:
    """Count the out-of-memory kills since this machine started. Returns None if the system does not report them."""
    try:
        counters = Path("/proc/vmstat").read_text().split()
        return int(counters[counters.index("oom_kill") + 1])
    except (OSError, ValueError):
        return None


@dataclass(slots=True)
class Backoff:
    """Computes the pause before a process is restarted.

    It is doubled after each short run and reset after a long one.
    """

    first_seconds: float = 0.1
    most_seconds: float = 10.0
    reset_after_seconds: float = 30.0
    _quick_ends: int = 0

    def after_run(self, seconds: float) -> float:
        """Return how long to wait before restarting a process that ran for this many seconds."""
        if seconds >= self.reset_after_seconds:
            self._quick_ends = 0
        pause = min(self.most_seconds, self.first_seconds * 2**self._quick_ends)
        self._quick_ends += 1
        return pause


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    name: str
    pid: int | None
    restarts: int
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class UpRecord:
    pid: int
    address: str
    processes: list[ProcessRecord] = field(default_factory=list[ProcessRecord])
    oom_kills: int | None = None

    def is_ending(self) -> bool:
        """Whether any process that was started by this `octavo up` still exists."""
        return any(one.pid and psutil.pid_exists(one.pid) for one in self.processes)


def read_record(data_dir: Path) -> UpRecord | None:
    """Return the record of the supervisor that is running on this data folder. Returns None if there is none."""
    return RecordFile(DataFolder(data_dir)).read()


class RecordFile:
    """The file in which the supervisor records its processes. It is valid only while the supervisor holds its lock.

    The kernel releases the lock when the supervisor ends.
    """

    def __init__(self, folder: DataFolder) -> None:
        self._lock_path = folder.run / "up.lock"
        self._path = folder.run / "up.json"
        self._lock: FileLock | None = None

    def claim(self) -> None:
        """Make this process the only supervisor of the data folder. Raises `AlreadyRunning` if there is another one."""
        try:
            lock = FileLock(self._lock_path)
        except OSError as error:
            raise NotPossibleHere(explain(error, self._lock_path)) from error
        if not lock.try_lock():
            lock.close()
            running = self.read()
            where = f"Octavo is running at {running.address} (process {running.pid}). " if running else ""
            raise AlreadyRunning(f"{where}Run `octavo stop` first, or set OCTAVO_DATA_DIR to start another instance.")
        self._lock = lock

    def write(self, record: UpRecord) -> None:
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(record)))
        temporary.replace(self._path)

    def read(self) -> UpRecord | None:
        """Return the record of the running supervisor.

        Returns None if no supervisor is running, or if it has not written its file yet.
        """
        return self._load() if is_locked(self._lock_path) else None

    def left_behind(self) -> UpRecord | None:
        """Return the record of an earlier supervisor that was killed. Returns None if there is none.

        Call this after `claim`.
        """
        return self._load()

    def _load(self) -> UpRecord | None:
        try:
            stored = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return None
        processes = [ProcessRecord(**process) for process in stored.pop("processes")]
        return UpRecord(**stored, processes=processes)

    def is_claimed(self) -> bool:
        return is_locked(self._lock_path)

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
        if self._lock:
            self._lock.close()
