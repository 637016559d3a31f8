"""Reads what a child writes at a bounded pace, so that one that never stops writing costs next to nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from octavo.sandbox.protocol import CHUNK_BYTES

_PAUSE_SECONDS = 0.02
# Who sends an answer byte by byte has to wait as well.
_WORTHWHILE_BYTES = 4096
# A pipe holds one chunk; a child that the filter does not hold back can make it a mebibyte.
_MOST_LEFT_CHUNKS = 18


class PacedReader:
    """Gives each chunk to `feed`, which answers whether it wants more at once, in the middle of something."""

    def __init__(self, descriptor: int, feed: Callable[[bytes], bool]) -> None:
        os.set_blocking(descriptor, False)
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._feed = feed
        self._resume: asyncio.TimerHandle | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> None:
        if not self._take() or self.ended.done():
            return
        self._loop.remove_reader(self._descriptor)
        self._resume = self._loop.call_later(_PAUSE_SECONDS, self._continue)

    def _continue(self) -> None:
        self._resume = None
        self._loop.add_reader(self._descriptor, self._read)

    def _take(self) -> bool:
        """Reads one chunk; tells whether a pause is due."""
        data = os.read(self._descriptor, CHUNK_BYTES)
        if not data:
            self.close()
            return False
        wants_more = self._feed(data)
        return not (wants_more and len(data) >= _WORTHWHILE_BYTES)

    def finish(self) -> None:
        """Takes what is left in the pipe, which is little: the child is dead."""
        with suppress(BlockingIOError):
            for _ in range(_MOST_LEFT_CHUNKS):
                if not self.ended.done():
                    self._take()
        self.close()

    def close(self) -> None:
        """Gives the descriptor back; safe to call twice."""
        if self.ended.done():
            return
        if self._resume:
            self._resume.cancel()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self.ended.set_result(None)
