"""Reads the file `postmaster.pid` of a running server, and recognises a stale one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

POLL_SECONDS = 0.01
STATUS_LINE = 7


@dataclass(frozen=True, slots=True)
class Postmaster:
    pid: int
    status: str

    @property
    def is_ready(self) -> bool:
        return self.status == "ready"


def read_postmaster(cluster: Path) -> Postmaster | None:
    """The running server of this data directory; None if there is none.

    The process in `postmaster.pid` may be dead, a zombie or another program.
    """
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        process = psutil.Process(int(lines[0]))
        if process.status() == psutil.STATUS_ZOMBIE or not _serves(process, cluster):
            return None
    except (OSError, ValueError, IndexError, psutil.Error):
        return None
    return Postmaster(process.pid, lines[STATUS_LINE].strip() if len(lines) > STATUS_LINE else "")


def _serves(process: psutil.Process, cluster: Path) -> bool:
    command = process.cmdline()
    return bool(command) and Path(command[0]).name == "postgres" and str(cluster) in command


def remove_stale_files(cluster: Path, socket_folder: Path) -> None:
    """Remove the files of a dead server.

    PostgreSQL does not start if the process id in them belongs to a zombie or to another program.
    """
    (cluster / "postmaster.pid").unlink(missing_ok=True)
    for file in socket_folder.glob(".s.PGSQL.*"):
        file.unlink(missing_ok=True)


def end_orphan(cluster: Path, patience_seconds: float) -> None:
    """Stop a server whose keeper has died. It recovers at the next start, and no committed data is lost."""
    started = time.monotonic()
    signalled: dict[int, signal.Signals] = {}
    while postmaster := read_postmaster(cluster):
        patient = time.monotonic() - started < patience_seconds
        wanted = signal.SIGINT if patient else signal.SIGQUIT
        if signalled.get(postmaster.pid) != wanted:
            with contextlib.suppress(ProcessLookupError):
                os.kill(postmaster.pid, wanted)
            signalled[postmaster.pid] = wanted
        time.sleep(POLL_SECONDS)
