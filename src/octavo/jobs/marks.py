"""Where in the line to begin looking for work.

Claimed jobs leave dead entries in the index until no snapshot can see them any more, so while a backup runs the
beginning of the line would get slower and slower to walk. A busy worker therefore begins where it claimed a moment
ago. What was put in line behind that by a slow transaction is found by the next look from the very beginning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

PRIORITIES = 10
LAG_SECONDS = 0.5
WHOLE_LOOK_SECONDS = 3.0


class Claimed(Protocol):
    @property
    def priority(self) -> int: ...
    @property
    def virtual_time(self) -> int: ...


class Marks:
    """Time is a parameter: seconds of any steady clock."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int, int]] = deque()
        self._marks = [0] * PRIORITIES
        self._whole_look_at = 0.0

    def now(self, seconds: float) -> list[int]:
        """For each priority the place to begin at."""
        if seconds >= self._whole_look_at or not self._recent:
            self._whole_look_at = seconds + WHOLE_LOOK_SECONDS
            return [0] * PRIORITIES
        while self._recent and self._recent[0][0] <= seconds - LAG_SECONDS:
            _, priority, place = self._recent.popleft()
            self._marks[priority] = max(self._marks[priority], place)
        return list(self._marks)

    def add(self, jobs: Sequence[Claimed], seconds: float) -> None:
        """Remember what was just claimed."""
        for priority in {job.priority for job in jobs}:
            place = min(job.virtual_time for job in jobs if job.priority == priority)
            self._recent.append((seconds, priority, place))
