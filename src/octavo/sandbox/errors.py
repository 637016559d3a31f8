"""Errors for sandboxed tasks.

Each error inherits its `code` and `error_class` from its base class in `octavo.core.errors`.
"""

from __future__ import annotations

from octavo.core import errors


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
