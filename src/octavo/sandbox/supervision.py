"""Opens the files of one child and watches it from start to end, even if the caller is cancelled.

Files are always opened again. So a child can either read or write a file, never both, and the caller's file positions
do not move.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from octavo.sandbox.channel import Channel, GarbledError, Log, PacedReader, ProgressCallback
from octavo.sandbox.errors import ParentEnded
from octavo.sandbox.limits import Limits, Outcome
from octavo.sandbox.link import ParentLink
from octavo.sandbox.protocol import ChildFiles
from octavo.sandbox.verdict import Exit, FinishedTask, judge

InputFile: TypeAlias = BinaryIO | int | Path
OutputFile: TypeAlias = BinaryIO | int

# Non-blocking, because opening a FIFO would wait for its other end before we can see that it is one.
_FLAGS = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


def open_input(given: InputFile | None) -> int:
    """Open a path, or reopen an open file, for reading only. None opens `/dev/null`."""
    return _open_regular(given, os.O_RDONLY)


def open_output(given: OutputFile | None) -> int:
    """Open a path, or reopen an open file, for writing only, and truncate it."""
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
    """The worker's descriptors: for the child's messages, its stderr, and the output file, to measure its size."""

    channel: int
    log: int
    output: int


def open_files(
    request: int, input_file: InputFile | None, output_file: OutputFile | None
) -> tuple[ChildFiles, WorkerFiles]:
    """Open the descriptors that child and worker need for one task.

    If this fails, all are closed, including `request`.
    """
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


# The kernel kills the children of a dead preloaded parent within milliseconds.
_ORPHAN_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Supervision:
    """Runs one task in a child. `task` is the number by which the parent process identifies the child."""

    link: ParentLink
    task: int
    limits: Limits

    async def run(
        self, child_files: ChildFiles, worker_files: WorkerFiles, on_progress: ProgressCallback | None
    ) -> Outcome:
        """Start the child. Returns or raises only after the child is dead."""
        channel = Channel(on_progress, on_failure=lambda: self.link.kill(self.task))
        log = Log()
        readers = [PacedReader(worker_files.channel, channel.feed), PacedReader(worker_files.log, log.feed)]
        started = time.monotonic()
        exited = self.link.run(self.task, child_files)
        try:
            over_wall = await self._wait_or_kill(exited)
            exit_ = await _exit_or_orphaned(exited, readers)
            wall_seconds = time.monotonic() - started
            output_bytes = os.fstat(worker_files.output).st_size
        finally:
            os.close(worker_files.output)
            for reader in readers:
                reader.finish()
        return judge(
            FinishedTask(
                exit=exit_,
                limits=self.limits,
                wall_seconds=wall_seconds,
                over_wall=over_wall,
                output_bytes=output_bytes,
                answer=channel.answer,
                garbled=_garbled(channel.failure),
                log=log.text,
            )
        )

    async def _wait_or_kill(self, exited: asyncio.Future[Exit | None]) -> bool:
        """Wait for the child. Kill it when the time is up or the caller is cancelled. Returns whether it was killed."""
        try:
            await asyncio.wait([exited], timeout=self.limits.wall_seconds)
        finally:
            over_wall = not exited.done()
            if over_wall:
                self.link.kill(self.task)
                await _wait_undisturbed(exited)
        return over_wall


async def _wait_undisturbed(exited: asyncio.Future[Exit | None]) -> None:
    """Wait until the child is dead, and raise a cancellation only then. After SIGKILL this takes little time."""
    cancelled: asyncio.CancelledError | None = None
    while not exited.done():
        try:
            await asyncio.wait([exited])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled


async def _exit_or_orphaned(exited: asyncio.Future[Exit | None], readers: list[PacedReader]) -> Exit:
    if exit_ := exited.result():
        return exit_
    # The preloaded parent can no longer report the exit, but the pipes are closed when the child ends.
    await asyncio.wait([reader.ended for reader in readers], timeout=_ORPHAN_SECONDS)
    raise ParentEnded


def _garbled(failure: Exception | None) -> str | None:
    if failure is None:
        return None
    if isinstance(failure, GarbledError):
        return str(failure)
    raise failure
