"""A sandbox that keeps the cost of each of its tasks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from octavo.sandbox import Outcome
from octavo.sandbox.sandbox import Sandbox


class Counting(Sandbox):
    """`most_running`: the largest number of tasks that ran in parallel; `task_seconds`: the sum of their durations."""

    def __init__(self, preload: tuple[str, ...], readable: Sequence[Path] = ()) -> None:
        super().__init__(preload=preload, readable=readable)
        self.outcomes: list[Outcome] = []
        self.most_running = 0
        self.task_seconds = 0.0
        self._running = 0

    async def run(self, *arguments: Any, **named: Any) -> Outcome:  # noqa: ANN401
        self._running += 1
        self.most_running = max(self.most_running, self._running)
        started = time.monotonic()
        try:
            outcome = await super().run(*arguments, **named)
        finally:
            self._running -= 1
            self.task_seconds += time.monotonic() - started
        self.outcomes.append(outcome)
        return outcome

    def take_seconds(self) -> float:
        """Processor seconds of all tasks since the last call."""
        seconds = sum(one.cpu_seconds for one in self.outcomes)
        self.outcomes.clear()
        return seconds
