"""Reads the messages and the stderr output of a child process at a limited rate.

Only small, well-formed messages are accepted.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, cast

from octavo.core.types import JSON
from octavo.sandbox import protocol
from octavo.sandbox.protocol import CHUNK_BYTES, KIB, Progress

_LOG_BYTES = 4 * KIB
_PROGRESS_PARTS = 3
_MAX_COUNT = 2**53

ProgressCallback = Callable[[Progress], None]


class GarbledError(Exception):
    """Raised if the child process violates the message protocol."""


def parse(document: bytes) -> JSON:
    """Parse strict JSON. Raises `GarbledError` if the JSON is invalid."""
    try:
        return cast("JSON", json.loads(document, parse_constant=_refuse_constant))
    except (ValueError, RecursionError) as error:
        raise GarbledError("its result is not JSON") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def parse_progress(document: bytes) -> Progress:
    """Parse a progress message. Every value is checked, because users will see it."""
    match parse(document):
        case [int(done), int() | None as total, str(unit)] if _is_count(done) and _is_count(total or 0):
            return Progress(done, total, printable(unit))
        case _:
            raise GarbledError("its progress message is invalid")


def _is_count(number: int) -> bool:
    return 0 <= number < _MAX_COUNT


def printable(text: str) -> str:
    """Replace characters that could control a terminal or break a log line with spaces."""
    return "".join(character if character.isprintable() else " " for character in text)


class Channel:
    """Splits the output of a child process into messages.

    If several progress messages arrive together, only the newest is reported.
    """

    def __init__(self, on_progress: ProgressCallback | None, on_failure: Callable[[], None]) -> None:
        self._on_progress = on_progress
        self._on_failure = on_failure
        self._rest = b""
        self.answer: bytes | None = None
        self.failure: Exception | None = None

    def feed(self, data: bytes) -> bool:
        """Process bytes from the child process.

        Returns True if only part of a result has arrived, so that the caller continues reading immediately.
        """
        if self.failure is None:
            try:
                self._take(data)
            except Exception as error:  # noqa: BLE001 - the progress callback belongs to the caller: `run` raises its error
                self.failure = error
                self._on_failure()
        return self._rest.startswith((protocol.VALUE, protocol.ERROR))

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > protocol.MAX_VALUE_BYTES:
            raise GarbledError("its result is too long")
        newest: bytes | None = None
        for line in lines:
            if self.answer is not None:
                raise GarbledError("it wrote more after its result")
            if line.startswith(protocol.PROGRESS):
                newest = line
            elif line.startswith((protocol.VALUE, protocol.ERROR)):
                self.answer = line
            else:
                raise GarbledError("it wrote something that is not a message")
        if newest is not None and self._on_progress:
            self._on_progress(parse_progress(newest[1:]))


class Log:
    """Keeps the last 4 KiB that the child process wrote to stderr."""

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, data: bytes) -> bool:
        """Append data, and drop the oldest bytes beyond 4 KiB. Always returns False, so that the caller pauses between
        reads.
        """
        self._tail = (self._tail + data)[-_LOG_BYTES:]
        return False

    @property
    def text(self) -> str:
        """The kept stderr output, without characters that could control a terminal."""
        lines = self._tail.decode(errors="replace").splitlines()
        return "\n".join(printable(line) for line in lines)


_PAUSE_SECONDS = 0.02
# After a smaller read the reader pauses even inside a result, because a child can send it byte by byte.
_WORTHWHILE_BYTES = 4096
# A pipe holds as much as one read takes; without the system call filter a child can enlarge it to a mebibyte.
_MOST_LEFT_CHUNKS = 18


class PacedReader:
    """Reads from a pipe and passes the data to `feed`.

    Pauses after most reads, to limit the CPU time spent on a child process that never stops writing. There is no pause
    after a large read if `feed` returns True, which means that it expects more data.
    """

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
        """Read once from the pipe. Returns whether to pause before the next read."""
        data = os.read(self._descriptor, CHUNK_BYTES)
        if not data:
            self.close()
            return False
        wants_more = self._feed(data)
        return not (wants_more and len(data) >= _WORTHWHILE_BYTES)

    def finish(self) -> None:
        """Read the last bytes that a dead child process left in the pipe, then close it."""
        with suppress(BlockingIOError):
            for _ in range(_MOST_LEFT_CHUNKS):
                if not self.ended.done():
                    self._take()
        self.close()

    def close(self) -> None:
        """Close the descriptor. Calling it again does nothing."""
        if self.ended.done():
            return
        if self._resume:
            self._resume.cancel()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self.ended.set_result(None)
