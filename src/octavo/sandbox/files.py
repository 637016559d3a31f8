"""Opens what a child is given: always anew, never the caller's own descriptor.

So a child can either read or write a file, not both, and its seeking does not move the caller's position.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from octavo.sandbox.protocol import ChildFiles

InputFile: TypeAlias = BinaryIO | int | Path
OutputFile: TypeAlias = BinaryIO | int

# Not blocking, because opening a FIFO would wait for its other side before we can see that it is one.
_FLAGS = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


def open_input(given: InputFile | None) -> int:
    """A new descriptor, only for reading."""
    return _open_regular(given, os.O_RDONLY)


def open_output(given: OutputFile | None) -> int:
    """A new descriptor, only for writing; what the file held before is gone."""
    return _open_regular(given, os.O_WRONLY | os.O_TRUNC)


def _open_regular(given: InputFile | None, mode: int) -> int:
    if given is None:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    descriptor = os.open(_path(given), mode | _FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("a task reads and writes regular files only")
    return descriptor


def _path(given: InputFile) -> str:
    if isinstance(given, Path):
        return str(given)
    return f"/dev/fd/{given if isinstance(given, int) else given.fileno()}"


@dataclass(frozen=True, slots=True)
class WorkerFiles:
    """The worker's ends: what the child says, what it writes to stderr, and the output, to measure it."""

    channel: int
    log: int
    output: int


def open_all(
    request: int, input_file: InputFile | None, output_file: OutputFile | None
) -> tuple[ChildFiles, WorkerFiles]:
    """Both sides' descriptors for one task, with `request` among them; opens all or none."""
    with ExitStack() as opened:

        def keep(descriptor: int) -> int:
            opened.callback(os.close, descriptor)
            return descriptor

        keep(request)
        reading = keep(open_input(input_file))
        writing = keep(open_output(output_file))
        measured = keep(os.dup(writing))
        channel, channel_of_child = map(keep, os.pipe())
        log, log_of_child = map(keep, os.pipe())
        opened.pop_all()
    return (
        ChildFiles(request, reading, writing, channel_of_child, log_of_child),
        WorkerFiles(channel, log, measured),
    )
