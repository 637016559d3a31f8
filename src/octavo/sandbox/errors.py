"""How a task can end badly; each error keeps the code and class of its parent in `octavo.core`."""

from __future__ import annotations

from octavo.core import errors


class ChildCrashed(errors.Crashed):
    """The part that reads files crashed on this one. Nothing else was affected."""

    def __init__(self, detail: str | None = None, *, log: str = "") -> None:
        super().__init__(detail)
        # For our own logs: what the child wrote to stderr can be chosen by the file's author.
        self.log = log


class OutOfMemory(ChildCrashed):
    """Reading this file took more memory than it may."""


class OutOfTime(errors.TimedOut):
    """Reading this file took longer than it may."""


class OutputTooLarge(errors.TooLarge):
    """What came out of this file is larger than the limit."""


class TaskFailed(errors.OctavoError):
    """Reading this file failed in a way that Octavo has no better name for."""

    def __init__(self, type_name: str, message: str, *, log: str = "") -> None:
        super().__init__(f"{type_name}: {message}" if message else type_name)
        self.type_name = type_name
        self.message = message
        self.log = log


# What a file can do to the process that reads it. Other errors of a task are about the file itself.
ENDED = (ChildCrashed, OutOfTime, OutputTooLarge, TaskFailed)
