"""The worker's ear for one child. It may hear lies, so it keeps only what is small and well formed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NoReturn, cast

from octavo.core.types import JSON
from octavo.sandbox import protocol
from octavo.sandbox.limits import KIB, Progress

_LOG_BYTES = 4 * KIB
_PROGRESS_PARTS = 3
_MAX_COUNT = 2**53

ProgressCallback = Callable[[Progress], None]


class GarbledError(Exception):
    """The child did not keep to the protocol."""


def parse(document: bytes) -> JSON:
    """Strict JSON of bounded size, or `GarbledError`."""
    try:
        return cast("JSON", json.loads(document, parse_constant=_refuse_constant))
    except (ValueError, RecursionError) as error:
        raise GarbledError("its answer is not JSON") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def parse_progress(document: bytes) -> Progress:
    """Checks every part, because this goes on to whoever watches."""
    match parse(document):
        case [int(done), int() | None as total, str(unit)] if _is_count(done) and _is_count(total or 0):
            return Progress(done, total, printable(unit))
        case _:
            raise GarbledError("its progress makes no sense")


def _is_count(number: int) -> bool:
    return 0 <= number < _MAX_COUNT


def printable(text: str) -> str:
    """Without what could steer a terminal or break a log line."""
    return "".join(character if character.isprintable() else " " for character in text)


class Channel:
    """Splits what the child says into lines; of progress only the newest counts."""

    def __init__(self, on_progress: ProgressCallback | None, on_failure: Callable[[], None]) -> None:
        self._on_progress = on_progress
        self._on_failure = on_failure
        self._rest = b""
        self.answer: bytes | None = None
        self.failure: Exception | None = None

    def feed(self, data: bytes) -> bool:
        """Takes a chunk; wants more at once while an answer is half there."""
        if self.failure is None:
            try:
                self._take(data)
            except Exception as error:  # noqa: BLE001 - the progress callback is the caller's: `run` raises it
                self.failure = error
                self._on_failure()
        return self._rest.startswith((protocol.VALUE, protocol.ERROR))

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > protocol.MAX_VALUE_BYTES:
            raise GarbledError("its answer is too long")
        newest: bytes | None = None
        for line in lines:
            if self.answer is not None:
                raise GarbledError("it went on after its answer")
            if line.startswith(protocol.PROGRESS):
                newest = line
            elif line.startswith((protocol.VALUE, protocol.ERROR)):
                self.answer = line
            else:
                raise GarbledError("it wrote something that is no message")
        if newest is not None and self._on_progress:
            self._on_progress(parse_progress(newest[1:]))


class Log:
    """The end of what the child wrote to stderr."""

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, data: bytes) -> bool:
        """Takes a chunk and forgets all but the last few lines."""
        self._tail = (self._tail + data)[-_LOG_BYTES:]
        return False

    @property
    def text(self) -> str:
        """Safe to print."""
        lines = self._tail.decode(errors="replace").splitlines()
        return "\n".join(printable(line) for line in lines)
