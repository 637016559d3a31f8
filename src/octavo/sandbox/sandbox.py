"""Runs functions on untrusted files, each in a confined process that can be killed at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from octavo.sandbox import kernel, landlock, protocol
from octavo.sandbox.channel import ProgressCallback
from octavo.sandbox.errors import ParentEnded
from octavo.sandbox.function import Call
from octavo.sandbox.layers import Layers, explain, probe
from octavo.sandbox.limits import BACKGROUND_NICENESS, Limits, Outcome
from octavo.sandbox.link import ParentLink
from octavo.sandbox.supervision import InputFile, OutputFile, Supervision, open_files

# How often a task is started, if the parent process of its child ends.
STARTS = 3
_log = structlog.stdlib.get_logger(__name__)


class Sandbox:
    """Runs tasks in child processes. It starts when it is entered as a context manager, or with the first task.

    `preload` names modules that the parent process imports for all children; they must not start threads. `later` names
    modules that only some tasks need; the first tasks do not wait for them. `readable` lists additional folders that
    children can read and import from. `niceness` is the `nice` value of the children; by default they run as background
    work.
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
        """The default limits of a task."""
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

        If the parent process ends in the meantime, the function is started again, so progress may be reported twice.
        `output_file` is truncated first. The read and write positions of both files stay unchanged. The call returns
        only when the child is dead, even if the caller is cancelled. Raises errors from `octavo.sandbox.errors`, and
        errors from `octavo.core.errors` that the function raised.
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
        """Find out which layers work: a child tries to break each of them."""
        outcome = await self.run(probe.call(memory_bytes=self._limits.memory_bytes))
        return explain(outcome.value)

    async def _ready_link(self) -> ParentLink:
        """The link to the parent process, which is started if necessary.

        The start continues if this caller is cancelled: others wait for it, and the next caller needs it too.
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
        if not landlock.abi():  # without Landlock, children could read /proc
            kernel.hide_from_others()
        self._link = await ParentLink.start(self._preload, self._later, self._readable, self._niceness)
        return self._link

    def _note_start(self, started: asyncio.Task[ParentLink]) -> None:
        self._starting = None
        if not started.cancelled():
            started.exception()  # also read if no caller is left
