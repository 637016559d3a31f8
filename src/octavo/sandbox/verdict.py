"""Decides how a task ended, from its exit status and its messages.

Reports from the kernel have priority over reports from the child process.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from typing import NoReturn

from octavo.core import errors
from octavo.core.types import JSON
from octavo.sandbox import protocol
from octavo.sandbox.channel import GarbledError, parse, printable
from octavo.sandbox.limits import (
    ChildCrashed,
    Limits,
    Outcome,
    OutOfMemory,
    OutOfTime,
    OutputTooLarge,
    StepOutOfTime,
    TaskFailed,
)

# Messages of allocators, C++ and Rust before they abort.
_MEMORY_WORDS = re.compile(
    r"bad_alloc|memory allocation of \d+|out of memory|cannot allocate memory|MemoryError", re.IGNORECASE
)
# A native library that runs out of memory is killed by a signal before it has used all the memory it allocated.
_NEAR_MEMORY_LIMIT = 0.8


@dataclass(frozen=True, slots=True)
class Exit:
    """The wait status of a child process and the resources it used, as reported by the parent process."""

    status: int
    cpu_seconds: float
    peak_memory_bytes: int

    @property
    def signal(self) -> int:
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0


@dataclass(frozen=True, slots=True)
class FinishedTask:
    """Everything that is known about a finished task, to decide how it ended."""

    exit: Exit
    limits: Limits
    wall_seconds: float
    over_wall: bool
    output_bytes: int
    answer: bytes | None
    garbled: str | None
    log: str


def judge(ending: FinishedTask) -> Outcome:
    """Return the outcome of a task, or raise the error that ended it."""
    if ending.output_bytes > ending.limits.output_bytes:
        raise OutputTooLarge(f"The limit is {ending.limits.output_bytes} bytes.")
    if ending.garbled:
        raise ChildCrashed(f"Broke the protocol: {ending.garbled}.", log=ending.log)
    if ending.exit.status != 0 or ending.answer is None:
        _raise_for_death(ending)
    value = _value(ending, ending.answer)
    return Outcome(
        value=value,
        output_bytes=ending.output_bytes,
        cpu_seconds=ending.exit.cpu_seconds,
        wall_seconds=ending.wall_seconds,
        peak_memory_bytes=ending.exit.peak_memory_bytes,
    )


def _raise_for_death(ending: FinishedTask) -> NoReturn:
    if ending.over_wall:
        raise OutOfTime(f"The limit is {ending.limits.wall_seconds:g} seconds.")
    if ending.exit.signal == signal.SIGPROF:  # a timer that the function has set for one of its steps
        raise StepOutOfTime
    if _is_out_of_cpu(ending):
        raise OutOfTime(f"The limit is {ending.limits.cpu_seconds:g} seconds of CPU time.")
    if _is_out_of_memory(ending):
        raise OutOfMemory(_memory_limit(ending), log=ending.log)
    raise ChildCrashed(_cause(ending.exit), log=ending.log)


def _is_out_of_cpu(ending: FinishedTask) -> bool:
    if ending.exit.signal == signal.SIGXCPU:
        return True
    return ending.exit.signal == signal.SIGKILL and ending.exit.cpu_seconds >= ending.limits.cpu_seconds


def _is_out_of_memory(ending: FinishedTask) -> bool:
    near_limit = ending.exit.peak_memory_bytes >= _NEAR_MEMORY_LIMIT * ending.limits.memory_bytes
    return near_limit or bool(_MEMORY_WORDS.search(ending.log))


def _memory_limit(ending: FinishedTask) -> str:
    return f"The limit is {ending.limits.memory_bytes} bytes of memory."


def _cause(exit_: Exit) -> str:
    if exit_.status == protocol.NOT_STARTED:
        return "No process could be started."
    if exit_.signal == signal.SIGKILL:
        return "The process was killed (SIGKILL). The machine may be short of memory."
    if exit_.signal:
        return f"Signal {exit_.signal} ({signal.strsignal(exit_.signal)})."
    return f"Exit status {os.waitstatus_to_exitcode(exit_.status)} without a result."


def _value(ending: FinishedTask, answer: bytes) -> JSON:
    try:
        document = parse(answer[1:])
        if answer.startswith(protocol.VALUE):
            return document
        match document:
            case {"kind": str(kind), "name": str(name), "detail": str() | None as detail}:
                _raise_failure(ending, kind, _clean(name), _clean(detail) if detail else None)
            case _:
                raise GarbledError("its error message is invalid")  # noqa: TRY301 - one exit for all invalid input
    except GarbledError as error:
        raise ChildCrashed(f"Broke the protocol: {error}.", log=ending.log) from error


def _raise_failure(ending: FinishedTask, kind: str, name: str, detail: str | None) -> NoReturn:
    if kind == protocol.FAILURE_MEMORY:
        raise OutOfMemory(_memory_limit(ending), log=ending.log)
    if kind == protocol.FAILURE_OUTPUT:
        raise OutputTooLarge(f"The limit is {ending.limits.output_bytes} bytes.")
    if kind == protocol.FAILURE_NAMED and (known := _believable_error(name)):
        raise known(detail)
    raise TaskFailed(name, detail or "", log=ending.log)


def _believable_error(name: str) -> type[errors.OctavoError] | None:
    """Return the error class with this name in `octavo.core.errors`, or None if a child process must not report it.

    Errors that do not use up an attempt are refused, because a hostile file could use them to cause endless retries.
    """
    found = getattr(errors, name, None)
    if not (isinstance(found, type) and issubclass(found, errors.OctavoError)):
        return None
    rule = errors.RETRY_RULES[found.error_class]
    return found if rule is None or rule.charged else None


def _clean(text: str) -> str:
    return printable(text[: protocol.MAX_TEXT])
