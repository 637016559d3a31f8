"""Reads the status of the Octavo instance on this machine, and stops it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from octavo.core.errors import NotRunning, TimedOut
from octavo.core.settings import Settings
from octavo.database.embedded import DataFolder
from octavo.ops.instance import embedded_server
from octavo.ops.processes import RecordFile
from octavo.ops.supervise import is_ready

STOP_SECONDS = 60
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    name: str
    pid: int | None
    running: bool
    restarts: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Status:
    address: str
    ready: bool
    data_dir: str
    processes: list[ProcessStatus]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def read_status(settings: Settings) -> Status:
    """Read the status of the Octavo instance that runs on this data folder."""
    record = RecordFile(DataFolder(settings.data_dir)).read()
    if record is None:
        raise NotRunning
    processes = [_process("up", record.pid, 0)]
    processes += [_process(child.name, child.pid, child.restarts) for child in record.processes]
    server = embedded_server(settings)
    if server:
        processes.append(_process("database", server.pid(), 0))
    return Status(record.address, asyncio.run(is_ready(record.address)), str(settings.data_dir), processes)


def stop(settings: Settings) -> bool:
    """Stop all processes that `octavo up` started, and wait for them. Returns False if nothing was running."""
    record_file = RecordFile(DataFolder(settings.data_dir))
    record = record_file.read()
    if record:
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while record_file.is_claimed():
            if time.monotonic() > deadline:
                raise TimedOut(f"Process {record.pid} did not stop. End it with `kill -9 {record.pid}`.")
            time.sleep(POLL_SECONDS)
    server = embedded_server(settings)
    left = server is not None and server.pid() is not None
    if server and left:
        server.stop()
    return record is not None or left


def _process(name: str, pid: int | None, restarts: int) -> ProcessStatus:
    try:
        memory = psutil.Process(pid).memory_info().rss if pid else 0
    except psutil.Error:
        return ProcessStatus(name, pid, running=False, restarts=restarts, memory_bytes=0)
    return ProcessStatus(name, pid, running=pid is not None, restarts=restarts, memory_bytes=memory)
