"""The record of a running Octavo instance in the data folder, which `octavo status` and `octavo stop` read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from octavo.core.errors import AlreadyRunning, NotPossibleHere
from octavo.database.embedded import DataFolder
from octavo.database.embedded.data_folder import explain
from octavo.database.embedded.locks import FileLock, is_locked


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


class RecordFile:
    """The file with the record. It is valid only while its lock is held.

    The kernel releases the lock when the supervisor ends.
    """

    def __init__(self, folder: DataFolder) -> None:
        self._lock_path = folder.run / "up.lock"
        self._path = folder.run / "up.json"
        self._lock: FileLock | None = None

    def claim(self) -> None:
        """Become the only supervisor of this data folder. Raises `AlreadyRunning` if there is another one."""
        try:
            lock = FileLock(self._lock_path)
        except OSError as error:
            raise NotPossibleHere(explain(error, self._lock_path)) from error
        if not lock.try_lock():
            lock.close()
            running = self.read()
            where = f"It is running at {running.address} (process {running.pid}). " if running else ""
            raise AlreadyRunning(
                f"{where}Stop it with `octavo stop`, or set OCTAVO_DATA_DIR to start another instance."
            )
        self._lock = lock

    def write(self, record: UpRecord) -> None:
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(record)))
        temporary.replace(self._path)

    def read(self) -> UpRecord | None:
        """The record of the running supervisor; None if none is running or it has only just started."""
        return self._load() if is_locked(self._lock_path) else None

    def left_behind(self) -> UpRecord | None:
        """After `claim`: the record of an earlier supervisor that was killed."""
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
