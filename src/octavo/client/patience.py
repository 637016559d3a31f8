"""How long the client tries: pauses after broken connections, and the server's own wish to be asked later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

PAUSES = (0.1, 0.3, 1.0, 2.0)
# Asked later than this, a person is better told.
LONGEST_WAIT_SECONDS = 60.0
ALL_WAITS_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Patience:
    """`pauses`: one for each time that a broken call is made again. Waits that the server asks for count apart."""

    pauses: Sequence[float] = PAUSES
    longest_wait: float = LONGEST_WAIT_SECONDS
    all_waits: float = ALL_WAITS_SECONDS
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def begin(self) -> Tries:
        return Tries(self)


class Tries:
    """What is left of the patience for one call."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._pauses = list(patience.pauses)
        self._waited = 0.0
        self.repeated = False

    async def pause(self) -> bool:
        """Wait before the next try; false when there is none left."""
        if not self._pauses:
            return False
        await self._sleep(self._pauses.pop(0))
        return True

    async def wait(self, seconds: float) -> bool:
        """Wait as long as the server asks; false when that is longer than anybody wants to."""
        if seconds > self._patience.longest_wait or self._waited + seconds > self._patience.all_waits:
            return False
        self._waited += seconds
        await self._sleep(seconds)
        return True

    async def _sleep(self, seconds: float) -> None:
        self.repeated = True
        await self._patience.sleep(seconds)
