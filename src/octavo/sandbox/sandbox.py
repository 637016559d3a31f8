"""Runs functions on untrusted files in processes that can do nothing else, and that can always be killed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from octavo.sandbox import files, kernel, landlock, protocol
from octavo.sandbox.channel import ProgressCallback
from octavo.sandbox.function import Call
from octavo.sandbox.layers import Layers, explain, probe
from octavo.sandbox.limits import PATIENCE, Limits, Outcome
from octavo.sandbox.link import ParentLink
from octavo.sandbox.supervision import Supervision

_log = structlog.stdlib.get_logger(__name__)


class Sandbox:
    """One per process that reads files, used as an async context manager; it starts with the first task at the latest.

    `preload` names modules the warm parent imports, so that children need not; they should not start threads. Those of
    `later` only some tasks need, and the first tasks do not wait for them. `readable` are further folders from which
    children may read and import. `patience` is how far children make way for others, as `nice` counts: nobody waits
    for most of what they do.
    """

    def __init__(
        self,
        *,
        preload: Sequence[str] = (),
        later: Sequence[str] = (),
        readable: Sequence[Path] = (),
        limits: Limits | None = None,
        at_once: int | None = None,
        patience: int = PATIENCE,
    ) -> None:
        self._preload = tuple(preload)
        self._later = tuple(later)
        self._readable = tuple(readable)
        self._limits = limits or Limits()
        self._patience = patience
        self._link: ParentLink | None = None
        self._starting = asyncio.Lock()
        self._turns = asyncio.Semaphore(at_once) if at_once else nullcontext()
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
        """What a task may take when nothing else is said."""
        return self._limits

    async def aclose(self) -> None:
        """Kills what still runs; returns when no process is left."""
        self._closed = True
        if self._link:
            await self._link.aclose()

    async def run(
        self,
        call: Call,
        *,
        input_file: files.InputFile | None = None,
        output_file: files.OutputFile | None = None,
        limits: Limits | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Outcome:
        """Run a sandboxed function in a new child process.

        `output_file` is emptied first, and neither file's position moves. Leaves, also when cancelled, only
        once the child is dead. Raises the errors of `octavo.sandbox.errors`, and those of
        `octavo.core.errors` that the function raised.
        """
        limits = limits or self._limits
        async with self._turns:
            link = await self._ready_link()
            request = protocol.write_request(call.function, call.arguments, limits)
            child_files, worker_files = files.open_all(request, input_file, output_file)
            return await Supervision(link, next(self._tasks), limits).run(child_files, worker_files, on_progress)

    async def layers(self) -> Layers:
        """Which layers hold, found out by a child that tries to break them."""
        outcome = await self.run(probe.call(memory_bytes=self._limits.memory_bytes))
        return explain(outcome.value)

    async def _ready_link(self) -> ParentLink:
        async with self._starting:
            if self._closed:
                raise RuntimeError("the sandbox is closed")
            if self._link and not self._link.is_usable():
                await self._link.aclose()
                _log.warning("sandbox.warm_parent_died", last_words=self._link.last_words)
                self._link = None
            if self._link is None:
                if not landlock.abi():  # which would keep children out of /proc
                    kernel.hide_from_others()
                self._link = await ParentLink.start(self._preload, self._later, self._readable, self._patience)
            return self._link
