"""Defines the limits of a sandboxed task, its progress, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass

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
