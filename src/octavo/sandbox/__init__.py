"""Runs parsers of untrusted files in killable processes: one file to read, one to write, and nothing else."""

from typing import TYPE_CHECKING

from octavo.core.types import JSON
from octavo.sandbox.errors import ENDED, ChildCrashed, OutOfMemory, OutOfTime, OutputTooLarge, TaskFailed
from octavo.sandbox.function import Call, SandboxedFunction, Task, sandboxed
from octavo.sandbox.layers import Layer, Layers
from octavo.sandbox.limits import PATIENCE, Limits, Outcome, Progress

if TYPE_CHECKING:
    from octavo.sandbox.sandbox import Sandbox

__all__ = [
    "ENDED",
    "JSON",
    "PATIENCE",
    "Call",
    "ChildCrashed",
    "Layer",
    "Layers",
    "Limits",
    "OutOfMemory",
    "OutOfTime",
    "Outcome",
    "OutputTooLarge",
    "Progress",
    "Sandbox",
    "SandboxedFunction",
    "Task",
    "TaskFailed",
    "sandboxed",
]


def __getattr__(name: str) -> object:
    """Imported late: the warm parent does without the worker's side, which saves a quarter of each fork."""
    if name != "Sandbox":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from octavo.sandbox.sandbox import Sandbox

    return Sandbox
