"""Runs calls that a cancellation must not interrupt: blocking calls in threads, and calls with side effects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """Runs blocking calls in threads. A cancelled caller waits for its call, so that no file is closed while in use."""

    def __init__(self, count: int) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="octavo-storage")

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call in a thread and return its result."""
        future = asyncio.get_running_loop().run_in_executor(self._executor, lambda: call(*args, **kwargs))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await ended(future)
            raise

    async def aclose(self) -> None:
        """Stop the threads when their calls have ended."""
        await asyncio.to_thread(self._executor.shutdown)


async def complete_or_undo(work: Coroutine[Any, Any, None], undo: Callable[[], Awaitable[None]]) -> None:
    """Run `work`. If the caller is cancelled, let `work` finish and then undo it.

    If `work` were stopped halfway, it would be unknown whether it had taken effect.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await ended(task)
        if not task.cancelled() and task.exception() is None:
            await undo()
        raise


async def ended(future: asyncio.Future[Any]) -> None:
    """Wait until a future is done, even if the caller is cancelled several times. Ignores the result."""
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    if not future.cancelled():
        future.exception()
