"""What a function inside the sandbox is given."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from octavo.core.json import JSON
from octavo.sandbox import protocol

_PROGRESS_SECONDS = 0.1


@dataclass(slots=True)
class Task:
    """The whole world of a function in the sandbox: nothing else can be read, written or reached.

    `input` is seekable, and `input_path` opens the same file anew, for libraries that want a path. If the
    caller gave none, both are empty; if the caller gave no output, writing to `output` fails.
    """

    input: BinaryIO
    output: BinaryIO
    arguments: Mapping[str, JSON]
    channel: int = field(repr=False)
    _progress_due: float = field(default=0.0, init=False, repr=False)

    @property
    def input_path(self) -> str:
        """A path to the input that works inside this process only."""
        return f"/dev/fd/{self.input.fileno()}"

    def progress(self, done: int, total: int | None = None, unit: str = "") -> None:
        """Tells the worker how far this is. Call it as often as you like: it never waits."""
        now = time.monotonic()
        if now < self._progress_due and done != total:
            return
        self._progress_due = now + _PROGRESS_SECONDS
        line = protocol.frame(protocol.PROGRESS, [done, total, unit])
        # A pipe that polls as writable takes a page at once, far more than a line.
        if len(line) <= protocol.MAX_PROGRESS_BYTES and select.select([], [self.channel], [], 0)[1]:
            os.write(self.channel, line)
