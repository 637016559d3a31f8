"""Child processes: they end when their parent ends, and are restarted with growing pauses."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

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

    `oom_kills` is their number when the process started. If the kernel has killed a process for its memory since then,
    or if this cannot be known, the process itself may be the cause.
    """
    return -code in SIGNALS_FROM_OUTSIDE and not oom_since(oom_kills)


def oom_since(oom_kills: int | None) -> bool:
    """Whether the kernel may have killed a process because memory ran out, since there were this many such kills."""
    now = count_oom_kills()
    return now is None or oom_kills is None or now > oom_kills


def count_oom_kills() -> int | None:
    """How many processes the kernel has killed because memory ran out, since it started. None if it does not tell."""
    try:
        counters = Path("/proc/vmstat").read_text().split()
        return int(counters[counters.index("oom_kill") + 1])
    except (OSError, ValueError):
        return None


@dataclass(slots=True)
class Backoff:
    """The pause before a restart. It is doubled after each short run and reset after a long one."""

    first_seconds: float = 0.1
    most_seconds: float = 10.0
    reset_after_seconds: float = 30.0
    _quick_ends: int = 0

    def after_run(self, seconds: float) -> float:
        """The pause after a run that took this many seconds."""
        if seconds >= self.reset_after_seconds:
            self._quick_ends = 0
        pause = min(self.most_seconds, self.first_seconds * 2**self._quick_ends)
        self._quick_ends += 1
        return pause
