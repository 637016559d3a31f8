"""Defines functions that may run in the sandbox, and the files that they can use."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Concatenate, Generic, ParamSpec

from octavo.core.types import JSON
from octavo.sandbox import protocol

P = ParamSpec("P")
_PROGRESS_SECONDS = 0.1


@dataclass(slots=True)
class Task:
    """The files and the progress channel that a sandboxed function can use: one file to read and one file to write.

    `input` is seekable. `input_path` opens the same file again, for libraries that need a path. If there is no input
    file, both are empty. If there is no output file, writing to `output` fails.
    """

    input: BinaryIO
    output: BinaryIO
    channel: int = field(repr=False)
    _progress_due: float = field(default=0.0, init=False, repr=False)

    @property
    def input_path(self) -> str:
        """A path to the input file that works only inside this process."""
        return f"/dev/fd/{self.input.fileno()}"

    def progress(self, done: int, total: int | None = None, unit: str = "") -> None:
        """Report progress to the worker. This never blocks, so it can be called often."""
        now = time.monotonic()
        if now < self._progress_due and done != total:
            return
        self._progress_due = now + _PROGRESS_SECONDS
        line = protocol.frame(protocol.PROGRESS, [done, total, unit])
        # A pipe that polls as writable accepts a whole memory page, far more than one line.
        if len(line) <= protocol.MAX_PROGRESS_BYTES and select.select([], [self.channel], [], 0)[1]:
            os.write(self.channel, line)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a sandboxed function: its name ("package.module:name") and its arguments. Pass it to `Sandbox.run`."""

    function: str
    # Not shown in logs: they may contain a password.
    arguments: Mapping[str, JSON] = field(default_factory=dict[str, JSON], repr=False)


class SandboxedFunction(Generic[P]):
    """A function that sandbox processes are allowed to run. A direct call runs it in this process."""

    def __init__(self, function: Callable[Concatenate[Task, P], JSON]) -> None:
        self._function = function
        self._name = f"{function.__module__}:{function.__qualname__}"
        self.__doc__ = function.__doc__

    def __call__(self, task: Task, *args: P.args, **kwargs: P.kwargs) -> JSON:
        return self._function(task, *args, **kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """Create the call to pass to `Sandbox.run`.

        Pass the function's arguments by name, except `task`, which the sandbox supplies.
        """
        if args:
            raise TypeError(f"{self._name} takes its arguments by name")
        return Call(self._name, kwargs)  # pyright: ignore[reportArgumentType] - JSON, or `write_request` refuses it


def sandboxed(function: Callable[Concatenate[Task, P], JSON]) -> SandboxedFunction[P]:
    """Allow a function to run in the sandbox: `await sandbox.run(function.call(argument=1), input_file=path)`.

    Arguments are sent as JSON. Declare them after a `*`, with the types str, int, float, bool, None or lists of these.
    The worker imports the module too, so import parsers inside the function.
    """
    return SandboxedFunction(function)
