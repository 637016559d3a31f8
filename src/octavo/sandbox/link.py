"""The worker's connection to the preloaded parent process, which forks the sandboxed child processes.

Starts the parent process, sends orders without blocking, and handles its notices.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from octavo.core.errors import Defect
from octavo.sandbox.channel import printable
from octavo.sandbox.limits import KIB
from octavo.sandbox.protocol import NOTICE, ORDER, ChildFiles, Notice, Order
from octavo.sandbox.verdict import Exit

_START_SECONDS = 60
_CLOSE_SECONDS = 5
_LOG_BYTES = 4 * KIB


class ParentLink:
    """The worker's connection to one preloaded parent process, from its start to its end."""

    def __init__(self, control: socket.socket, process: asyncio.subprocess.Process, log: IO[bytes]) -> None:
        self._loop = asyncio.get_running_loop()
        self._control = control
        self._process = process
        self._log = log
        self._received = b""
        self._unsent: deque[tuple[bytes, tuple[int, ...]]] = deque()
        self._exits: dict[int, asyncio.Future[Exit | None]] = {}
        self.started: asyncio.Future[None] = self._loop.create_future()
        self.is_lost = False
        self.last_log_line = ""
        self._loop.add_reader(control, self._receive)

    @classmethod
    async def start(
        cls, preload: Sequence[str], later: Sequence[str], readable: Sequence[Path], niceness: int
    ) -> ParentLink:
        """Start the parent process. Returns when it has imported its modules and accepts tasks."""
        folders = [str(path.resolve()) for path in readable]
        lists = (json.dumps(list(one)) for one in (preload, later, folders))
        link = await cls._spawn(*lists, str(niceness))
        try:
            done, _ = await asyncio.wait([link.started], timeout=_START_SECONDS)
        except asyncio.CancelledError:
            await link.aclose()
            raise
        if done and not link.is_lost:
            return link
        await link.aclose()
        raise Defect(f"The sandbox did not start: {link.last_log_line or 'no reason was given.'}")

    @classmethod
    async def _spawn(cls, *arguments: str) -> ParentLink:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - the standard library's signature
        log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        with theirs:
            # It is also killed when the thread that started it ends: for the kernel, that thread is its parent.
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-X", "utf8", "-m", "octavo.sandbox.parent"),
                *(str(theirs.fileno()), str(os.getpid()), *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
                env={},
                cwd="/",
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        return cls(ours, process, log)

    def is_usable(self) -> bool:
        """Whether the preloaded parent process is alive.

        Reads from the socket, because the event loop may not have noticed the end of the process yet.
        """
        if not self.is_lost:
            self._receive()
        return not self.is_lost

    def run(self, task: int, files: ChildFiles) -> asyncio.Future[Exit | None]:
        """Start a child process. Takes ownership of `files`.

        Returns a future that completes when the child process has ended and was reaped. Its result is the exit status,
        or None if the preloaded parent process ended first.
        """
        exited: asyncio.Future[Exit | None] = self._loop.create_future()
        self._exits[task] = exited
        self._send(Order.RUN, task, files)
        return exited

    def kill(self, task: int) -> None:
        """Kill a child process. Does nothing if it is already dead."""
        self._send(Order.KILL, task)

    def _send(self, order: Order, task: int, descriptors: tuple[int, ...] = ()) -> None:
        self._unsent.append((ORDER.pack(order, task), descriptors))
        self._flush()

    def _flush(self) -> None:
        try:
            while self._unsent:
                message, descriptors = self._unsent[0]
                socket.send_fds(self._control, [message], descriptors)
                self._unsent.popleft()
                _close_all(descriptors)
            self._loop.remove_writer(self._control)
        except BlockingIOError:
            self._loop.add_writer(self._control, self._flush)
        except OSError:
            self._lose()

    def _receive(self) -> None:
        try:
            data = self._control.recv(64 * KIB)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        self._received += data
        while len(self._received) >= NOTICE.size:
            notice, task, *exit_ = NOTICE.unpack_from(self._received)
            self._received = self._received[NOTICE.size :]
            self._handle(notice, task, Exit(*exit_))

    def _handle(self, notice: int, task: int, exit_: Exit) -> None:
        if notice == Notice.READY:
            self.started.set_result(None)
        else:
            self._exits.pop(task).set_result(exit_)

    def _lose(self) -> None:
        if not self.is_lost:
            self.is_lost = True
            self._loop.remove_reader(self._control)
            self._loop.remove_writer(self._control)
            self._control.close()
        while self._unsent:
            _close_all(self._unsent.pop()[1])
        while self._exits:
            self._exits.popitem()[1].set_result(None)
        if not self.started.done():
            self.started.set_result(None)

    async def aclose(self) -> None:
        """Stop the parent process and all its child processes, and wait until it has ended."""
        self._lose()
        try:
            await asyncio.wait_for(self._process.wait(), _CLOSE_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        finally:
            self.last_log_line = self._read_log()
            self._log.close()

    def _read_log(self) -> str:
        if self._log.closed:
            return self.last_log_line
        size = os.fstat(self._log.fileno()).st_size
        tail = os.pread(self._log.fileno(), _LOG_BYTES, max(0, size - _LOG_BYTES))
        return printable((tail.decode(errors="replace").splitlines() or [""])[-1])


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
