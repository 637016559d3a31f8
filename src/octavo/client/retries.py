"""Rules for retrying a call: after broken connections, and when the server asks the client to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

PAUSES = (0.1, 0.3, 1.0, 2.0)
# If the server asks for a longer wait, the error is reported to the user instead.
LONGEST_WAIT_SECONDS = 60.0
ALL_WAITS_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`pauses`: seconds before each retry after a broken connection.

    Waiting times that the server requests are limited separately.
    """

    pauses: Sequence[float] = PAUSES
    longest_wait: float = LONGEST_WAIT_SECONDS
    all_waits: float = ALL_WAITS_SECONDS
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def begin(self) -> Retries:
        return Retries(self)


class Retries:
    """The retries that are left for one call."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._pauses = list(policy.pauses)
        self._waited = 0.0
        self.repeated = False

    async def pause(self) -> bool:
        """Pause before the next attempt. Returns False if no attempts are left."""
        if not self._pauses:
            return False
        await self._sleep(self._pauses.pop(0))
        return True

    async def wait(self, seconds: float) -> bool:
        """Wait as long as the server requests. Returns False if the policy does not allow such a long wait."""
        if seconds > self._policy.longest_wait or self._waited + seconds > self._policy.all_waits:
            return False
        self._waited += seconds
        await self._sleep(seconds)
        return True

    async def _sleep(self, seconds: float) -> None:
        self.repeated = True
        await self._policy.sleep(seconds)
