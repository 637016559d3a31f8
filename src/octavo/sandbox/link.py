"""The worker's connection to the preloaded parent process, which forks the sandboxed child processes.

Starts the parent process, sends orders to it without blocking, and handles its notices. Also judges how a task ended,
based on the exit status and the messages of its child process. The kernel's reports are trusted more than those of the
child process.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from octavo.core import errors
from octavo.core.errors import Defect
from octavo.core.types import JSON
from octavo.sandbox import protocol
from octavo.sandbox.channel import GarbledError, parse, printable
from octavo.sandbox.protocol import (
    KIB,
    NOTICE,
    ORDER,
    ChildCrashed,
    ChildFiles,
    Limits,
    Notice,
    Order,
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
    """The data about a finished task from which `judge` determines the outcome."""

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
    """Return the error class with this name in `octavo.core.errors`.

    Returns None if a child process must not report this error. Errors that do not use up an attempt are refused,
    because a hostile file could use them to cause endless retries.
    """
    found = getattr(errors, name, None)
    if not (isinstance(found, type) and issubclass(found, errors.OctavoError)):
        return None
    rule = errors.RETRY_RULES[found.error_class]
    return found if rule is None or rule.charged else None


def _clean(text: str) -> str:
    return printable(text[: protocol.MAX_TEXT])


_START_SECONDS = 60
_CLOSE_SECONDS = 5
_LOG_BYTES = 4 * KIB


class ParentLink:
    """The worker's connection to one preloaded parent process. Starts the process, sends it orders, and stops it."""

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

        Reads from the socket, because the event loop may not yet have noticed that the process has exited.
        """
        if not self.is_lost:
            self._receive()
        return not self.is_lost

    def run(self, task: int, files: ChildFiles) -> asyncio.Future[Exit | None]:
        """Start a child process. Takes ownership of `files`.

        Returns a future that completes when the child process has ended and has been reaped. Its result is the exit
        status, or None if the preloaded parent process ended first.
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
