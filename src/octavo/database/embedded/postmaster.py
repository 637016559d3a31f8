"""Reads what a running server says of itself in `postmaster.pid`, and knows a stale file when it sees one."""

from __future__ import annotations

import contextlib
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
    """The live server of this data directory; None for no file, a dead pid, a zombie or another program's pid."""
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


def remove_stale_file(cluster: Path) -> None:
    """PostgreSQL itself refuses to start when another program has got the old number."""
    (cluster / "postmaster.pid").unlink(missing_ok=True)


def end_orphan(cluster: Path, patience_seconds: float) -> None:
    """End a server whose keeper is gone; committed rows stay, it recovers at its next start."""
    deadline = time.monotonic() + patience_seconds
    wanted = signal.SIGINT
    while postmaster := read_postmaster(cluster):
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(postmaster.pid).send_signal(wanted)
            psutil.wait_procs([psutil.Process(postmaster.pid)], timeout=1)
        if time.monotonic() > deadline:
            wanted = signal.SIGQUIT
        time.sleep(POLL_SECONDS)
