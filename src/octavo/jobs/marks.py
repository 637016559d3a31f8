"""Where in the line to begin looking for work.

Claimed jobs leave dead entries in the index until no snapshot can see them any more, so while a backup runs the
beginning of the line would get slower and slower to walk. A busy worker therefore begins where it claimed a moment
ago. What was put in line behind that by a slow transaction is found by the next look from the very beginning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

LAG_SECONDS = 0.5
WHOLE_LOOK_SECONDS = 3.0


class Mark(NamedTuple):
    """A place in line."""

    priority: int
    virtual_time: int


BEGINNING = Mark(0, 0)


class Claimed(Protocol):
    @property
    def priority(self) -> int: ...
    @property
    def virtual_time(self) -> int: ...


class Marks:
    """Time is a parameter: seconds of any steady clock."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, Mark]] = deque()
        self._mark = BEGINNING
        self._whole_look_at = 0.0

    def now(self, seconds: float) -> Mark:
        """The place to begin at: where a claim of a moment ago began, or the beginning of the line."""
        while self._recent and self._recent[0][0] <= seconds - LAG_SECONDS:
            self._mark = self._recent.popleft()[1]
        if seconds >= self._whole_look_at or not self._recent:
            self._whole_look_at = seconds + WHOLE_LOOK_SECONDS
            self._mark = BEGINNING
        return self._mark

    def add(self, jobs: Sequence[Claimed], seconds: float) -> None:
        """Remember what was just claimed."""
        self._recent.append((seconds, min(Mark(job.priority, job.virtual_time) for job in jobs)))
