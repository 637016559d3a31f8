"""For what takes long while somebody waits: a few at once, some in line, and who comes after them comes back later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from octavo.web.limits import TooFast


class Turns:
    """Of one web process."""

    def __init__(self, at_once: int, most_waiting: int, busy_seconds: float) -> None:
        self._turns = asyncio.Semaphore(at_once)
        self._most_waiting = most_waiting
        self._busy_seconds = busy_seconds
        self._waiting = 0

    @asynccontextmanager
    async def take(self) -> AsyncGenerator[None]:
        if self._waiting >= self._most_waiting:
            raise TooFast(self._busy_seconds)
        self._waiting += 1
        try:
            async with self._turns:
                yield
        finally:
            self._waiting -= 1
