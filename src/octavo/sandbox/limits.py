"""Defines the limits of a sandboxed task, its progress, its outcome, and the errors with which it can end.

Each error inherits its `code` and `error_class` from its base class in `octavo.core.errors`.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """The process that starts parsers ended. This is not necessarily the fault of the file."""


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
