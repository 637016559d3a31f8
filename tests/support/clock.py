"""Time that passes only when a test says so, and clocks of processes that jump."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import FrameType

# A process that finds this variable lets its clock jump by so many seconds: forward at SIGUSR1, back at SIGUSR2.
JUMPS = "TEST_CLOCK_JUMPS"


@dataclass(slots=True)
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def install_jumps() -> None:
    """Let the wall clock of this process jump, if its environment says so. Its monotonic clock does not jump."""
    if seconds := os.environ.get(JUMPS):
        import time_machine

        clock = time_machine.travel(datetime.now(UTC), tick=True).start()
        jump = timedelta(seconds=float(seconds))

        def shift(number: int, frame: FrameType | None) -> None:
            del frame
            clock.shift(jump if number == signal.SIGUSR1 else -jump)
            os.write(2, b"test clock jumped\n")

        signal.signal(signal.SIGUSR1, shift)
        signal.signal(signal.SIGUSR2, shift)
