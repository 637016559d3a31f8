"""Starts `octavo` commands as forks of a process that has already imported everything.

A command that is started the usual way spends one to two seconds of processor time on imports, and the suite starts
hundreds. A fork is a real process too: it has its own environment, files and signals, and it can be killed at any
moment. An `octavo up` that was forked forks its web processes and workers, and a worker the parent process of its
sandbox. A sandbox that a test opens in its own process is a fork, too, if it preloads modules. The usual way is covered
by tests of `octavo up` and of the sandbox.

All test processes of a run share one process that has imported everything; it forks a server for each of them.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import faulthandler
import fcntl
import gc
import importlib
import json
import logging
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any, NoReturn, cast

import psutil
import typer.main

from tests.support.built_once import build_once
from tests.support.clock import install_jumps
from tests.support.clusters import copy_clusters

ROOT = Path(__file__).parents[2]
PYTHON = sys.executable  # tests may put another one in its place for a while
NUMBER = struct.Struct("i")
SANDBOX = "octavo.sandbox.parent"
NO_MODULES = "[]"
EARLY = -1  # beside the numbers of the files that the process gets
# Names the socket of the process that all test processes share.
SHARED = "TEST_PRELOADED_SOCKET"
# At this signal a forked command writes the stacks of its threads to its standard error.
WRITE_STACKS = signal.SIGRTMIN + 5
STANDARD_FILES = 3
MOST_FILES = 16
# Of Linux on the usual processors.
HUGE_PAGE, MADV_HUGEPAGE, MADV_COLLAPSE = 2**21, 14, 25
# What commands import at their start or with their first document.
MODULES = (
    "octavo.cli",
    "octavo.client",
    "anyio._backends._asyncio",
    "octavo.ops.doctor",
    "octavo.ops.logs",
    "octavo.ops.processes",
    "octavo.ops.work",
    "octavo.pipeline.document_comparison",
    "octavo.web.app",
    "nupunkt",
    "numpy",
    "py3langid",
    "rich.live",
    "rich.progress",
    "vaderSentiment.vaderSentiment",
)


class Process:
    """The part of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def _wait(self, timeout: float | None) -> int | None:
        with self._lock:
            if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
                self.returncode = os.waitstatus_to_exitcode(read_number(self._status))
                os.close(self._status)
            return self.returncode

    async def ended(self) -> int:
        """As `wait`, without blocking the event loop."""
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        if self.poll() is None:
            loop.add_reader(self._status, told.set)
            try:
                await told.wait()
            finally:
                loop.remove_reader(self._status)
        return self.wait()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


# In the process of the tests ---------------------------------------------------------------------------------------


def start(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: int,
    errors: int | None = None,
    *,
    given: int | None = None,
    pass_fds: Sequence[int] = (),
    cwd: Path | None = None,
) -> Process:
    """Like `subprocess.Popen` of `octavo` with these arguments and files; without `given`, its input is empty."""
    order = Order(list(arguments), dict(environment), str(cwd or Path.cwd()), [0, 1, 2, *pass_fds])
    if given is not None:
        return send(order, [given, output, output if errors is None else errors, *pass_fds])
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a device
        return send(order, [nothing.fileno(), output, output if errors is None else errors, *pass_fds])


def send(order: Order, files: Sequence[int]) -> Process:
    status, told = os.pipe()
    preloaded().send(order, [told, *files])
    os.close(told)
    return Process(read_number(status), status)


def request_stacks(pid: int) -> bool:
    """Let a forked command write its stacks; returns whether it will. Another program would end at the signal."""
    with contextlib.suppress(OSError):
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        if int(status["SigCgt"], 16) >> (WRITE_STACKS - 1) & 1:
            os.kill(pid, WRITE_STACKS)
            return True
    return False


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    cwd: Path | None = None,
    given: bytes = b"",
    seconds: float,
) -> subprocess.CompletedProcess[str]:
    """One command to its end; `given` is its standard input."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        source.write(given)
        source.seek(0)
        process = start(arguments, environment, output.fileno(), errors.fileno(), given=source.fileno(), cwd=cwd)
        try:
            code = process.wait(seconds)
        finally:
            process.kill()
        texts = [read_all(file) for file in (output, errors)]
    return subprocess.CompletedProcess(["octavo", *arguments], code, *texts)


@dataclass(frozen=True, slots=True)
class Order:
    """What to run; `numbers` are the numbers that the files sent with it get in the new process."""

    arguments: list[str]
    environment: dict[str, str]
    cwd: str
    numbers: list[int]


# The parent processes of sandboxes that this process has opened, and that are not its children.
FORKED_SANDBOXES: list[int] = []


def descendants() -> set[int]:
    """The processes that this process has started, with those of its sandboxes."""
    found = {one.pid for one in psutil.Process().children(recursive=True)}
    for pid in FORKED_SANDBOXES:
        with contextlib.suppress(psutil.NoSuchProcess):
            found |= {one.pid for one in psutil.Process(pid).children(recursive=True)}
    return found


def fork_sandboxes() -> None:
    """Let the sandboxes that tests of this process open be forks, if they preload modules.

    One that preloads nothing starts the usual way, because a fork would have imported what its tasks need.
    """
    usual = asyncio.create_subprocess_exec

    async def start_child(*command: str, pass_fds: Sequence[int] = (), **options: Any) -> Any:  # noqa: ANN401
        arguments = command[command.index(SANDBOX) + 1 :] if SANDBOX in command else ()
        if not arguments or arguments[2] == NO_MODULES:
            return await usual(*command, pass_fds=pass_fds, **options)
        order = Order([SANDBOX, *arguments], {}, "/", [0, 1, 2, *pass_fds])
        with open(os.devnull, "r+b") as nothing:  # noqa: ASYNC230, PTH123 - a device
            files = [nothing.fileno(), nothing.fileno(), options["stderr"].fileno(), *pass_fds]
            kept = [os.dup(file) for file in files]
        started = await asyncio.to_thread(send_and_close, order, kept)
        FORKED_SANDBOXES.append(started.pid)
        return SandboxParent(started)

    asyncio.create_subprocess_exec = start_child


def send_and_close(order: Order, files: Sequence[int]) -> Process:
    """In a thread: the first time, the process that forks has to import everything."""
    try:
        return send(order, files)
    finally:
        for file in files:
            os.close(file)


class SandboxParent:
    """The part of `asyncio.subprocess.Process` that a sandbox uses."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.wait, self.kill = process.ended, process.kill


@contextlib.contextmanager
def shared_by_all(*, early: bool) -> Generator[None]:
    """Start one process that forks for all test processes that are started meanwhile.

    If `early`, it imports everything while the tests are collected; otherwise when the first test process asks.
    """
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        os.environ[SHARED] = f"{folder}/socket"
        listener.bind(os.environ[SHARED])
        listener.listen()
        control, process = start_preloaded(listener.fileno(), *([EARLY] if early else []))
        try:
            yield
        finally:
            del os.environ[SHARED]
            control.close()
            process.wait()


def start_preloaded(*listeners: int) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """It ends when this end of its socket is closed."""
    control, other = socket.socketpair()
    with other:
        numbers = [other.fileno(), *listeners]
        command = [PYTHON, "-m", "tests.support.preloaded", *map(str, numbers)]
        kept = [one for one in numbers if one != EARLY]
        return control, subprocess.Popen(command, cwd=ROOT, pass_fds=kept, stdin=subprocess.DEVNULL)


class Preloaded:
    """The process that forks; it ends, with all that it started, when this one does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        if shared := os.environ.get(SHARED):
            self._control = socket.socket(socket.AF_UNIX)
            self._control.connect(shared)
        else:
            self._control, self._process = start_preloaded()
        atexit.register(self.end)

    def send(self, order: Order, files: list[int]) -> None:
        body = json.dumps([order.arguments, order.environment, order.cwd, order.numbers]).encode()
        with self._lock:
            socket.send_fds(self._control, [NUMBER.pack(len(body))], files)
            self._control.sendall(body)

    def end(self) -> None:
        self._control.close()
        if self._process:
            self._process.wait()


@cache
def preloaded() -> Preloaded:
    return Preloaded()


def read_all(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def read_number(source: int) -> int:
    found = os.read(source, NUMBER.size)
    if not found:
        raise RuntimeError("the process that starts commands has ended")
    return cast("int", NUMBER.unpack(found)[0])


# In the process that forks -----------------------------------------------------------------------------------------


class Forks:
    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.status_files: dict[int, int] = {}

    def serve(self) -> Order | None:
        """Returns what to run in each new process, and nothing in this one when the tests are over."""
        child_ended, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, ignore)
        while True:
            ready = select.select([self.control, child_ended], [], [])[0]
            if child_ended in ready:
                os.read(child_ended, 4096)
                self.reap()
            if self.control in ready:
                header, files, _, _ = socket.recv_fds(self.control, NUMBER.size, MOST_FILES)
                if not header:
                    return self.end()
                body = read_exactly(self.control, NUMBER.unpack(header)[0])
                order = Order(*json.loads(body))
                if self.fork(files):
                    become(order, files[1:])
                    return order

    def fork(self, files: list[int]) -> bool:
        """Whether this is the new process."""
        pid = os.fork()
        if pid == 0:
            return True
        os.write(files[0], NUMBER.pack(pid))
        self.status_files[pid] = files[0]
        for file in files[1:]:
            os.close(file)
        return False

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                file = self.status_files.pop(ended[0])
                with contextlib.suppress(BrokenPipeError):
                    os.write(file, NUMBER.pack(ended[1]))
                os.close(file)

    def end(self) -> None:
        for pid in self.status_files:
            os.kill(pid, signal.SIGKILL)


def serve_all(control: socket.socket, listener: socket.socket) -> socket.socket | None:
    """Returns the connection in a new process for each test process, and nothing in this one when the run is over."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    while True:
        if control in select.select([control, listener], [], [])[0]:
            return None
        connection = listener.accept()[0]
        load()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            listener.close()
            return connection
        connection.close()


def ignore(number: int, frame: object) -> None:
    """A handler that only wakes the loop: an ignored signal would not."""


def become(order: Order, files: list[int]) -> None:
    """Leaves nothing of the process that was forked but what it had imported."""
    reset_signals()
    above = max([*order.numbers, *files]) + 1
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD, above) for file in files]
    os.closerange(STANDARD_FILES, above)
    for file, number in zip(moved, order.numbers, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(order.environment)
    os.chdir(order.cwd)


def reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def read_exactly(source: socket.socket, count: int) -> bytes:
    body = b""
    while len(body) < count:
        body += source.recv(count - len(body))
    return body


class Child:
    """The part of `asyncio.subprocess.Process` that a supervisor uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._file = os.pidfd_open(pid)
        self._loop.add_reader(self._file, self._reap)

    def _reap(self) -> None:
        self._loop.remove_reader(self._file)
        os.close(self._file)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._ended.set()

    async def wait(self) -> int | None:
        await self._ended.wait()
        return self.returncode

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def fork_children(*, of_up: bool) -> None:
    """Let a supervisor fork its web processes and workers, and a worker the parent process of its sandbox.

    Other programs start as usual.
    """
    usual = asyncio.create_subprocess_exec

    async def start_child(*command: str, pass_fds: Sequence[int] = (), **options: Any) -> Any:  # noqa: ANN401
        if of_up and command[1:3] == ("-m", "octavo"):
            return fork_child(lambda: run_octavo(command[3:]), pass_fds)
        if SANDBOX in command:
            errors = options["stderr"].fileno()
            return fork_child(lambda: run_sandbox(command[command.index(SANDBOX) + 1 :], errors), [*pass_fds, errors])
        return await usual(*command, pass_fds=pass_fds, **options)

    asyncio.create_subprocess_exec = start_child


def fork_child(run: Callable[[], int], kept: Sequence[int]) -> Child:
    if pid := os.fork():
        return Child(pid)
    become_child(kept)
    return end(run())


def become_child(kept: Sequence[int]) -> None:
    """Keep these files and the standard ones, and nothing of the event loop."""
    os.setsid()
    reset_signals()
    asyncio._set_running_loop(None)
    atexit._clear()  # pyright: ignore[reportPrivateUsage]
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a device
        os.dup2(nothing.fileno(), 0)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers
        if int(name) not in {0, 1, 2, *kept}:
            with contextlib.suppress(OSError):
                os.close(int(name))


def run_sandbox(arguments: Sequence[str], errors: int) -> int:
    """As `python -m octavo.sandbox.parent` does with these arguments."""
    faulthandler.unregister(WRITE_STACKS)
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
        os.dup2(nowhere.fileno(), 1)
    os.dup2(errors, 2)
    os.close(errors)
    os.chdir("/")
    importlib.import_module(SANDBOX).main(*arguments)
    return 0


def run_sandbox_of_tests(control: str, _worker: str, *arguments: str) -> int:
    """It ends with the process that forked it, which ends with the test process."""
    os.setsid()
    importlib.import_module(SANDBOX).main(control, str(os.getppid()), *arguments)
    return 0


def run_octavo(arguments: Sequence[str]) -> int:
    """As `python -m octavo` does with these arguments; returns its exit code."""
    sys.argv[1:] = arguments
    try:
        runpy.run_module("octavo", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        sys.stderr.write(f"{ended.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        return 1
    return 0


def end(code: int) -> NoReturn:
    """As the interpreter ends, but without the time it takes to free everything that was imported."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def load_data() -> None:
    """What a process loads with its first document takes it almost a second of processor time.

    Nothing of it starts a thread, which a fork would lose.
    """
    from octavo.database import load_queries
    from octavo.extract.file_reader import PRELOAD_BY_TYPE
    from octavo.language import offline_embedder, prepare
    from octavo.ops.instance import LATER, PRELOAD

    prepare()
    offline_embedder()
    for name in (*PRELOAD, *LATER, *(one for many in PRELOAD_BY_TYPE.values() for one in many)):
        importlib.import_module(name)
    logging.disable()  # of what the library for queries says about some
    for file in files("octavo.database").joinpath("queries").iterdir():
        _ = load_queries(file.name.removesuffix(".sql")).statements
    logging.disable(logging.NOTSET)


def build_routes() -> None:
    """A web process builds its routes with its first request, which takes it half a second of processor time."""
    from fastapi.routing import iter_route_contexts

    from octavo.core.settings import Settings
    from octavo.web.app import create_app

    for _ in iter_route_contexts(create_app(Settings(data_dir=Path("/nowhere"))).routes):
        pass


@cache
def load() -> None:
    for name in MODULES:
        importlib.import_module(name)
    build_routes()
    build_once()
    copy_clusters()
    typer.main.get_command(importlib.import_module("octavo.cli.app").app)
    load_data()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    use_huge_pages()


def use_huge_pages() -> None:
    """With 300 MB in small pages, a fork and its end take 20 ms of processor time; with huge pages, they take 5 ms.

    Where the kernel cannot do that, forks only take longer.
    """
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, _, _, _, *name = line.split()
        if rights == "rw-p" and name in ([], ["[heap]"]):
            start, end = (int(one, 16) for one in addresses.split("-"))
            for page in range(-(-start // HUGE_PAGE), end // HUGE_PAGE):
                madvise(page * HUGE_PAGE, HUGE_PAGE, MADV_HUGEPAGE)
                madvise(page * HUGE_PAGE, HUGE_PAGE, MADV_COLLAPSE)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    numbers = [int(one) for one in sys.argv[1:]]
    if EARLY in numbers:
        load()
    control, *listeners = (socket.socket(fileno=number) for number in numbers if number != EARLY)
    connection = serve_all(control, listeners[0]) if listeners else control
    if connection is None:
        return
    load()
    if order := Forks(connection).serve():
        if order.arguments[:1] == [SANDBOX]:
            end(run_sandbox_of_tests(*order.arguments[1:]))
        install_jumps()
        faulthandler.register(WRITE_STACKS, file=STANDARD_FILES - 1)
        fork_children(of_up=order.arguments[:1] == ["up"])
        end(run_octavo(order.arguments))


if __name__ == "__main__":
    main()
