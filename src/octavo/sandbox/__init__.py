"""Runs parsers on untrusted files in disposable processes.

Each process can read only one input file, besides Python and system libraries, and write only one output file.
"""

from typing import TYPE_CHECKING

from octavo.core.types import JSON
from octavo.sandbox.layers import Layer, Layers
from octavo.sandbox.protocol import (
    BACKGROUND_NICENESS,
    ENDED,
    Call,
    ChildCrashed,
    Limits,
    Outcome,
    OutOfMemory,
    OutOfTime,
    OutputTooLarge,
    Progress,
    SandboxedFunction,
    StepOutOfTime,
    Task,
    TaskFailed,
    sandboxed,
)

if TYPE_CHECKING:
    from octavo.sandbox.sandbox import Sandbox

__all__ = [
    "BACKGROUND_NICENESS",
    "ENDED",
    "JSON",
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
    "StepOutOfTime",
    "Task",
    "TaskFailed",
    "sandboxed",
]


def __getattr__(name: str) -> object:
    """Import `Sandbox` only when it is used.

    The preloaded parent process, which forks the sandboxed processes, does not need it and forks a quarter faster
    without it.
    """
    if name != "Sandbox":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from octavo.sandbox.sandbox import Sandbox

    return Sandbox
