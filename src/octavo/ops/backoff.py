"""How long to wait before starting again what ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Doubles with each quick end and is forgotten after a run that lasted."""

    first_seconds: float = 0.1
    most_seconds: float = 10.0
    forgiven_after_seconds: float = 30.0
    _quick_ends: int = 0

    def after_run(self, seconds: float) -> float:
        """The pause after a run of this length."""
        if seconds >= self.forgiven_after_seconds:
            self._quick_ends = 0
        pause = min(self.most_seconds, self.first_seconds * 2**self._quick_ends)
        self._quick_ends += 1
        return pause
