"""The messages between the worker, the preloaded parent process and the child processes that it forks.

The parent process receives only numbers and file descriptors. Arguments, which may contain a password, are passed to
the child process in a file that the parent process never reads. If the parent process had them in memory, later child
processes would inherit them.

Also defines sandboxed functions, and the limits, progress, outcome and errors of a sandboxed task. Each error inherits
its `code` and `error_class` from its base class in `octavo.core.errors`.
"""

from __future__ import annotations

import json
import os
import select
import struct
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import BinaryIO, Concatenate, Generic, NamedTuple, ParamSpec, TypedDict, cast

from octavo.core import errors
from octavo.core.types import JSON

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
# The `nice` value of background work: it yields to requests of users and to the heartbeats of the worker.
BACKGROUND_NICENESS = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a sandboxed task.

    `memory_bytes` includes at least 20 MiB that every child process inherits from the preloaded parent process.
    """

    memory_bytes: int = 2 * GIB
    cpu_seconds: int = 30
    wall_seconds: float = 60
    output_bytes: int = 256 * MIB
    open_files: int = 256


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a sandboxed task. `total` is None if unknown."""

    done: int
    total: int | None
    unit: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The return value of a task, and the resources that it used."""

    value: JSON
    output_bytes: int
    cpu_seconds: float
    wall_seconds: float
    peak_memory_bytes: int


class ChildCrashed(errors.Crashed):
    """The parser crashed on this file. Nothing else was affected."""

    def __init__(self, detail: str | None = None, *, log: str = "") -> None:
        super().__init__(detail)
        # For our own logs only: the author of the file controls what the child writes to stderr.
        self.log = log


class ParentEnded(ChildCrashed):
    """The process that starts the parsers has ended. The file is not necessarily the cause."""


class OutOfMemory(ChildCrashed):
    """Reading this file took more memory than the limit."""


class OutOfTime(errors.TimedOut):
    """Reading this file took longer than the limit."""


class StepOutOfTime(OutOfTime):
    """One step took longer than its limit."""


class OutputTooLarge(errors.TooLarge):
    """The output for this file is larger than the limit."""


class TaskFailed(errors.OctavoError):
    """Reading this file failed with an unexpected error."""

    def __init__(self, type_name: str, message: str, *, log: str = "") -> None:
        super().__init__(f"{type_name}: {message}" if message else type_name)
        self.type_name = type_name
        self.message = message
        self.log = log


# Errors of a child that failed. All other errors describe the file.
ENDED = (ChildCrashed, OutOfTime, OutputTooLarge, TaskFailed)


# Between worker and preloaded parent: messages of fixed size, so that the stream needs no framing.


class Order(IntEnum):
    """An order that the worker sends to the preloaded parent process, for example to start a child process."""

    RUN = 1
    KILL = 2


class Notice(IntEnum):
    """A message that the preloaded parent process sends to the worker, for example when a child process has ended."""

    READY = 1
    EXITED = 2


ORDER = struct.Struct("!BQ")  # order, task
NOTICE = struct.Struct("!BQqdQ")  # notice, task, wait status, CPU seconds, peak memory in bytes

# In place of a wait status, which is never negative: the preloaded parent could not fork.
NOT_STARTED = -1


class ChildFiles(NamedTuple):
    """The file descriptors that are sent to the parent process with `Order.RUN`, in the order of the fields."""

    request: int
    input: int
    output: int
    channel: int
    log: int


# From child to worker: one JSON document per line; the first byte is the kind of message.

PROGRESS = b"P"
VALUE = b"V"
ERROR = b"E"

MAX_VALUE_BYTES = 1 * MIB
MAX_PROGRESS_BYTES = 256
MAX_REQUEST_BYTES = 1 * MIB
MAX_TEXT = 500

CHUNK_BYTES = 64 * KIB


class Request(TypedDict):
    """A request to a child process: the function to call, its arguments and its limits."""

    function: str
    arguments: dict[str, JSON]
    limits: dict[str, int | float]


class Failure(TypedDict):
    """The reason why the function did not return. `kind` is one of the `FAILURE_` constants."""

    kind: str
    name: str
    detail: str | None


FAILURE_MEMORY = "memory"
FAILURE_OUTPUT = "output"
FAILURE_NAMED = "named"  # an error of octavo.core.errors
FAILURE_OTHER = "other"


def frame(kind: bytes, document: object) -> bytes:
    """Encode a message as one line for the channel between the processes. Raises `ValueError` for NaN, which is not
    JSON.
    """
    return kind + json.dumps(document, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def write_request(function: str, arguments: Mapping[str, JSON], limits: Limits) -> int:
    """Write the request to an unnamed file. Returns its descriptor, positioned at the start."""
    request = Request(function=function, arguments=dict(arguments), limits=asdict(limits))
    document = json.dumps(request, allow_nan=False).encode()
    if len(document) > MAX_REQUEST_BYTES:
        raise ValueError(f"the arguments take {len(document)} bytes; pass large data in the input file")
    descriptor = _unnamed_file()
    os.pwrite(descriptor, document, 0)
    return descriptor


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("request")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def read_request(descriptor: int) -> tuple[str, dict[str, JSON], Limits]:
    """Read the request that `write_request` wrote, and close the descriptor."""
    with os.fdopen(descriptor, "rb") as file:
        request = cast("Request", json.load(file))
    return request["function"], request["arguments"], Limits(**request["limits"])  # pyright: ignore[reportArgumentType]


P = ParamSpec("P")
_PROGRESS_SECONDS = 0.1


@dataclass(slots=True)
class Task:
    """The files and the progress channel that a sandboxed function can use.

    `input` is seekable. `input_path` is a path to the same file, for libraries that need a path. If there is no input
    file, both refer to an empty file. If there is no output file, writing to `output` fails.
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
        line = frame(PROGRESS, [done, total, unit])
        # A pipe that polls as writable accepts a whole memory page, far more than one line.
        if len(line) <= MAX_PROGRESS_BYTES and select.select([], [self.channel], [], 0)[1]:
            os.write(self.channel, line)


@dataclass(frozen=True, slots=True)
class Call:
    """A call to a sandboxed function: its name ("package.module:name") and its arguments. Pass it to `Sandbox.run`."""

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
    """Allow a function to run in the sandbox.

    Example: `await sandbox.run(function.call(argument=1), input_file=path)`. Arguments are sent as JSON. Declare them
    after a `*`, with the types str, int, float, bool, None or lists of these. The worker imports the module too, so
    import parsers inside the function.
    """
    return SandboxedFunction(function)
