"""A sandbox that keeps what each of its tasks cost."""

from __future__ import annotations

from typing import Any

from octavo.sandbox import Outcome, Sandbox


class Counting(Sandbox):
    def __init__(self, preload: tuple[str, ...]) -> None:
        super().__init__(preload=preload)
        self.outcomes: list[Outcome] = []

    async def run(self, *arguments: Any, **named: Any) -> Outcome:  # noqa: ANN401
        outcome = await super().run(*arguments, **named)
        self.outcomes.append(outcome)
        return outcome
