"""Runs functions on untrusted files, each in a confined process that can be killed at any time.

A child process is watched until it ends, even if the caller is cancelled. The caller's files are reopened for the child
process, either for reading or for writing, so that their positions do not change.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeAlias

import structlog

from octavo.sandbox import kernel, protocol
from octavo.sandbox.channel import Channel, GarbledError, Log, PacedReader, ProgressCallback
from octavo.sandbox.layers import Layers, explain, probe
from octavo.sandbox.link import Exit, FinishedTask, ParentLink, judge
from octavo.sandbox.protocol import BACKGROUND_NICENESS, Call, ChildFiles, Limits, Outcome, ParentEnded

# How often a task is started, if the parent process of its child ends.
STARTS = 3
_log = structlog.stdlib.get_logger(__name__)
InputFile: TypeAlias = BinaryIO | int | Path
OutputFile: TypeAlias = BinaryIO | int

# Non-blocking, because opening a FIFO would wait for its other end before we can see that it is one.
_FLAGS = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class Sandbox:
    """Runs tasks in child processes. The sandbox starts when it is entered as a context manager, or with the first
    task.

    `preload` names modules that the parent process imports for all child processes. They must not start threads.
    `later` names modules that only some tasks need. They are imported when the sandbox is idle, so the first tasks do
    not wait for them. `readable` lists additional folders that child processes can read and import from. `niceness` is
    the `nice` value of the child processes. By default, they run as background work.
    """

    def __init__(
        self,
        *,
        preload: Sequence[str] = (),
        later: Sequence[str] = (),
        readable: Sequence[Path] = (),
        limits: Limits | None = None,
        parallel: int | None = None,
        niceness: int = BACKGROUND_NICENESS,
    ) -> None:
        self._preload = tuple(preload)
        self._later = tuple(later)
        self._readable = tuple(readable)
        self._limits = limits or Limits()
        self._niceness = niceness
        self._link: ParentLink | None = None
        self._starting: asyncio.Task[ParentLink] | None = None
        self._slots = asyncio.Semaphore(parallel) if parallel else nullcontext()
        self._tasks = count(1)
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._ready_link()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    @property
    def limits(self) -> Limits:
        """The default limits of a task, such as memory and time."""
        return self._limits

    async def aclose(self) -> None:
        """Kill running tasks, and wait until no process is left."""
        self._closed = True
        if self._starting:
            await asyncio.wait([self._starting])
        if self._link:
            await self._link.aclose()

    async def run(
        self,
        call: Call,
        *,
        input_file: InputFile | None = None,
        output_file: OutputFile | None = None,
        limits: Limits | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Outcome:
        """Run a sandboxed function in a new child process.

        `output_file` is truncated first. The positions of both files do not change. If the parent process ends during
        the call, the function is started again, so progress may be reported twice. Returns only after the child process
        has ended, even if the caller is cancelled. Raises the errors in `octavo.sandbox.protocol`, and errors from
        `octavo.core.errors` that the function raised.
        """
        async with self._slots:
            for starts_left in reversed(range(STARTS)):
                try:
                    return await self._run_once(call, input_file, output_file, limits or self._limits, on_progress)
                except ParentEnded:  # all its children ended with it; any of their files can be the cause
                    if self._closed or not starts_left:
                        raise
        raise AssertionError("the last start returns or raises")

    async def _run_once(
        self,
        call: Call,
        input_file: InputFile | None,
        output_file: OutputFile | None,
        limits: Limits,
        on_progress: ProgressCallback | None,
    ) -> Outcome:
        link = await self._ready_link()
        request = protocol.write_request(call.function, call.arguments, limits)
        child_files, worker_files = open_files(request, input_file, output_file)
        return await Supervision(link, next(self._tasks), limits).run(child_files, worker_files, on_progress)

    async def layers(self) -> Layers:
        """Return which sandbox layers work. A child process tests this by trying to break each layer."""
        outcome = await self.run(probe.call(memory_bytes=self._limits.memory_bytes))
        return explain(outcome.value)

    async def _ready_link(self) -> ParentLink:
        """Return the connection to the preloaded parent process.

        Starts the process if necessary. If this caller is cancelled, the start continues, because other callers wait
        for it.
        """
        if self._closed:
            raise RuntimeError("the sandbox is closed")
        if self._starting is None:
            if self._link and self._link.is_usable():
                return self._link
            self._starting = asyncio.create_task(self._start_link())
            self._starting.add_done_callback(self._note_start)
        return await asyncio.shield(self._starting)

    async def _start_link(self) -> ParentLink:
        if self._link:
            await self._link.aclose()
            _log.warning("sandbox.warm_parent_died", last_log_line=self._link.last_log_line)
            self._link = None
        if not kernel.landlock_abi():  # without Landlock, children could read /proc
            kernel.hide_from_others()
        self._link = await ParentLink.start(self._preload, self._later, self._readable, self._niceness)
        return self._link

    def _note_start(self, started: asyncio.Task[ParentLink]) -> None:
        self._starting = None
        if not started.cancelled():
            started.exception()  # also read if no caller is left


def open_input(given: InputFile | None) -> int:
    """Open a path, or reopen an open file, for reading only. None opens `/dev/null`."""
    return _open_regular(given, os.O_RDONLY)


def open_output(given: OutputFile | None) -> int:
    """Reopen an open file for writing only, and truncate it. None opens `/dev/null` for reading, so writing fails."""
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
    """The descriptors that the worker keeps for one task: the child's messages, its stderr, and the output file."""

    channel: int
    log: int
    output: int


def open_files(
    request: int, input_file: InputFile | None, output_file: OutputFile | None
) -> tuple[ChildFiles, WorkerFiles]:
    """Open the descriptors that the child process and the worker need for one task.

    If this fails, all descriptors are closed, including `request`.
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
    """Runs one task in a child process. `task` identifies the task in messages to the preloaded parent process."""

    link: ParentLink
    task: int
    limits: Limits

    async def run(
        self, child_files: ChildFiles, worker_files: WorkerFiles, on_progress: ProgressCallback | None
    ) -> Outcome:
        """Start the child process. Returns or raises only after the child process is dead."""
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
        """Wait for the child process. Kill it if it exceeds the time limit or the caller is cancelled.

        Returns whether it exceeded the time limit.
        """
        try:
            await asyncio.wait([exited], timeout=self.limits.wall_seconds)
        finally:
            over_wall = not exited.done()
            if over_wall:
                self.link.kill(self.task)
                await _wait_undisturbed(exited)
        return over_wall


async def _wait_undisturbed(exited: asyncio.Future[Exit | None]) -> None:
    """Wait until a killed child process has ended, even if the caller is cancelled. This takes only a short time.

    A cancellation is raised after the wait.
    """
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
