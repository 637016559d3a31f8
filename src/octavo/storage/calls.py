"""Calls that a cancel must not leave half way: blocking ones in threads, and those with lasting effects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """Blocking calls off the event loop. A cancelled caller waits, so that no file is closed under its call."""

    def __init__(self, count: int) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="octavo-storage")

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call in a thread and give its result."""
        future = asyncio.get_running_loop().run_in_executor(self._executor, lambda: call(*args, **kwargs))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await ended(future)
            raise

    async def aclose(self) -> None:
        """End the threads as soon as their calls have ended."""
        await asyncio.to_thread(self._executor.shutdown)


async def complete_or_undo(work: Coroutine[Any, Any, None], undo: Callable[[], Awaitable[None]]) -> None:
    """Bring `work` to its end in any case: cut off, nobody would know whether it took effect."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await ended(task)
        if not task.cancelled() and task.exception() is None:
            await undo()
        raise


async def ended(future: asyncio.Future[Any]) -> None:
    """Wait for it, however often the caller is cancelled meanwhile; what came of it is not asked."""
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    if not future.cancelled():
        future.exception()
