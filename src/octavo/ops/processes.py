"""Child processes: they end when their parent ends, and are restarted with growing pauses."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.5


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
