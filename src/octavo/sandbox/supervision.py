"""Watches over one child from the order to its death, whatever child, caller or warm parent do meanwhile."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass

from octavo.sandbox.channel import Channel, GarbledError, Log, ProgressCallback
from octavo.sandbox.errors import ChildCrashed
from octavo.sandbox.files import WorkerFiles
from octavo.sandbox.limits import Limits, Outcome
from octavo.sandbox.link import ParentLink
from octavo.sandbox.pipes import PacedReader
from octavo.sandbox.protocol import ChildFiles
from octavo.sandbox.verdict import Ending, Exit, judge

# The kernel kills a dead warm parent's children within milliseconds.
_ORPHAN_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Supervision:
    """`task` is the number by which the warm parent knows the child."""

    link: ParentLink
    task: int
    limits: Limits

    async def run(
        self, child_files: ChildFiles, worker_files: WorkerFiles, on_progress: ProgressCallback | None
    ) -> Outcome:
        """Starts the child, and returns or raises when it is dead."""
        channel = Channel(on_progress, on_failure=lambda: self.link.kill(self.task))
        log = Log()
        readers = [PacedReader(worker_files.channel, channel.feed), PacedReader(worker_files.log, log.feed)]
        started = time.monotonic()
        exited = self.link.run(self.task, child_files)
        try:
            over_wall = await self._outlive(exited)
            exit_ = await _exit_or_orphaned(exited, readers)
            wall_seconds = time.monotonic() - started
            output_bytes = os.fstat(worker_files.output).st_size
        finally:
            os.close(worker_files.output)
            for reader in readers:
                reader.finish()
        return judge(
            Ending(
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

    async def _outlive(self, exited: asyncio.Future[Exit | None]) -> bool:
        """Waits for the child's death, and brings it about when time is up or the caller gives up."""
        try:
            await asyncio.wait([exited], timeout=self.limits.wall_seconds)
        finally:
            over_wall = not exited.done()
            if over_wall:
                self.link.kill(self.task)
                await _wait_undisturbed(exited)
        return over_wall


async def _wait_undisturbed(exited: asyncio.Future[Exit | None]) -> None:
    """A second cancellation must not leave a child behind; SIGKILL makes the wait short."""
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
    # Nobody can tell us about the child any more, but its pipes end with it.
    await asyncio.wait([reader.ended for reader in readers], timeout=_ORPHAN_SECONDS)
    raise ChildCrashed("The process that it was forked from ended.")


def _garbled(failure: Exception | None) -> str | None:
    if failure is None:
        return None
    if isinstance(failure, GarbledError):
        return str(failure)
    raise failure
