"""`octavo up` starts all processes on one machine, restarts those that die, and stops them in order.

`octavo status` reads their status, and `octavo stop` stops them from another process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import psutil
import psycopg
import structlog

from octavo.ai.gateway_setup import check_models
from octavo.core.errors import DatabaseUnavailable, NotRunning, OctavoError, TimedOut
from octavo.core.http import shown_address
from octavo.core.settings import Settings
from octavo.core.types import new_id
from octavo.database import connect, migrate, retry_until_available
from octavo.database.embedded import DataFolder
from octavo.jobs.queue import release_workers
from octavo.ops.instance import (
    bucket_of,
    direct_address,
    embedded_server,
    keep_running,
    sandbox_of,
    start_database,
    web_processes,
)
from octavo.ops.ports import address_of, listen, listen_for_mails, new_socket, share_listener, try_to_open
from octavo.ops.processes import (
    Backoff,
    ProcessRecord,
    RecordFile,
    UpRecord,
    count_oom_kills,
    oom_since,
    read_record,
    was_killed,
)
from octavo.owners import make_sign_in_link, sign_in_url

log = structlog.get_logger()

GRACE_SECONDS = 15
# The longest wait for the web server. A live process may be slow on a busy machine; one that has ended has a fault.
READY_SECONDS, READY_AFTER_RESTART_SECONDS = 300, 60
SLOW_START_SECONDS = 20
RELEASE_SECONDS = 60
POLL_SECONDS = 0.05
STOP_SECONDS = 60
# The pause between two attempts to open the port of an `octavo up` that is stopping.
TAKE_OVER_SECONDS = 0.005
# The longest wait for new web processes to load their modules before the old ones are stopped.
LOAD_SECONDS = 120


@dataclass(slots=True)
class Child:
    """A process that the supervisor keeps running."""

    name: str
    arguments: Sequence[str]
    descriptors: Sequence[int] = ()
    restarts: int = 0
    process: asyncio.subprocess.Process | None = None
    worker: UUID | None = None

    @property
    def is_worker(self) -> bool:
        return self.arguments[0] == "worker"

    def record(self) -> ProcessRecord:
        worker = str(self.worker) if self.worker else None
        return ProcessRecord(self.name, self.process.pid if self.process else None, self.restarts, worker)


class Supervisor:
    """Runs Octavo on one data folder: opens the port, keeps the child processes running, and records them in a file.

    `listener` is the port, if it is already open. If `replaces` is true, a running `octavo up` is stopped first.
    """

    def __init__(
        self,
        settings: Settings,
        announce: Callable[[str], None],
        listener: socket.socket | None = None,
        *,
        replaces: bool = False,
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._replaces = replaces
        self._webs: list[Child] = []
        self._announce = announce
        self._folder = DataFolder(settings.data_dir)
        self._record = RecordFile(self._folder)
        self._left_behind: UpRecord | None = None
        self._children: list[Child] = []
        self._stopping = asyncio.Event()
        self._address = ""
        self._connection_info = ""
        self._releases: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Run until a signal arrives. If starting fails, no process is left running."""
        check_models(self._settings)
        self._folder.prepare()
        try:
            if self._replaces:
                await self._take_over()
            self._record.claim()
            try:
                await self._run_claimed()
            finally:
                self._record.release()
        finally:
            for web in self._webs:
                if web.process:
                    await end_process(web.process)

    async def _run_claimed(self) -> None:
        self._left_behind = self._record.left_behind()
        self._catch_signals()
        with self._listen() as listener, self._listen_for_mails() as mails:
            self._address = address_of(listener)
            await self._run_parts(listener, mails)

    async def _take_over(self) -> None:
        """Start the web processes, then stop the running `octavo up`, and take over its port.

        The new web processes load their modules while the old ones still serve requests. While the database is
        restarted, requests wait in the port's connection queue. If the port cannot be shared with the old process, it
        is opened as soon as it is free, so requests are refused only for the moment between two attempts to open it.
        """
        host, port = self._settings.host, self._settings.port
        before = self._record.read()
        shared = share_listener(before.pid, port) if before else None
        self._listener = listener = shared or new_socket(host)
        self._webs = web_children(web_processes(self._settings), listener.fileno())
        async with started_early(self._webs):
            await asyncio.to_thread(stop, self._settings, meanwhile=lambda: try_to_open(listener, host, port))
            self._listen()

    def _listen(self) -> socket.socket:
        return listen(self._settings.host, self._settings.port, self._left_behind, listener=self._listener)

    def _listen_for_mails(self) -> contextlib.AbstractContextManager[socket.socket | None]:
        """Open the port for emails, if one is set.

        The supervisor keeps the port open, so mail servers wait while the process for emails restarts.
        """
        place = self._settings.lmtp_listen
        return listen_for_mails(place, self._left_behind) if place else contextlib.nullcontext()

    async def _run_parts(self, listener: socket.socket, mails: socket.socket | None) -> None:
        server = embedded_server(self._settings)
        if server:
            server.check_version()
        tasks: list[asyncio.Task[None]] = []
        serving: list[asyncio.Task[None]] = []
        working: list[asyncio.Task[None]] = []
        probe = asyncio.create_task(describe_sandbox(self._settings))
        try:
            async with contextlib.aclosing(bucket_of(self._settings)) as bucket:
                await bucket.check()
            webs = self._webs or web_children(web_processes(self._settings), listener.fileno())
            workers = [Child(f"worker {number}", ("worker",)) for number in range(1, self._settings.workers + 1)]
            serving += [asyncio.create_task(self._keep_child(web)) for web in webs]
            connection_info = await start_database(self._settings, server)
            if server:
                tasks.append(asyncio.create_task(keep_running(server)))
            await migrate(direct_address(self._settings) or connection_info)
            self._connection_info = connection_info
            self._release_left_behind()
            working += [asyncio.create_task(self._keep_child(one)) for one in [*workers, *mail_children(mails)]]
            await self._announce_start(connection_info, probe)
            await self._stopping.wait()
        finally:
            await end_tasks(working)  # first, so that requests are served while jobs end
            await end_tasks(serving)
            listener.close()  # another `octavo up` can open it now
            await end_tasks([*tasks, probe, *self._releases])
            if server:
                await asyncio.to_thread(server.stop)

    async def _announce_start(self, connection_info: str, probe: asyncio.Task[str]) -> None:
        async with await connect(connection_info) as connection, connection.transaction():
            token = await make_sign_in_link(connection)
        if await self._wait_until_ready():
            self._announce(await probe)
            address = shown_address(self._settings, self._address)
            self._announce(f"Octavo is ready at {address}")
            self._announce(f"Sign in once with {sign_in_url(address, token)}")
            if self._settings.lmtp_listen:
                self._announce(f"Emails are received over LMTP at {self._settings.lmtp_listen}")
            self._announce("Ctrl-C stops everything.")

    async def _wait_until_ready(self) -> bool:
        started, is_slow = time.monotonic(), False
        while not self._stopping.is_set():
            if await is_ready(self._address):
                return True
            waited = time.monotonic() - started
            has_ended = any(child.restarts for child in self._children if child.arguments[0] == "web")
            if waited > (limit := READY_AFTER_RESTART_SECONDS if has_ended else READY_SECONDS):
                raise OctavoError(f"The web server was not ready after {limit} seconds. See the log.")
            if waited > SLOW_START_SECONDS and not is_slow:
                is_slow = True
                self._announce("The web server is still starting. This machine may be busy.")
            await asyncio.sleep(POLL_SECONDS)
        return False

    async def _keep_child(self, child: Child) -> None:
        self._children.append(child)
        backoff = Backoff()
        while True:
            started, oom_kills = time.monotonic(), count_oom_kills()
            try:
                child.process = child.process or await spawn(child)
            except OSError as error:  # for example, too little memory to start a process
                pause = backoff.after_run(0)
                log.warning("process cannot be started", process=child.name, reason=str(error), pause_seconds=pause)
                await asyncio.sleep(pause)
                continue
            self._write_record()
            try:
                code = await child.process.wait()
            except asyncio.CancelledError:
                await end_process(child.process)
                raise
            pause = backoff.after_run(time.monotonic() - started)
            log.warning("process ended, restarting it", process=child.name, code=code, pause_seconds=pause)
            if child.worker and code:
                self._release([child.worker], killed=was_killed(code, oom_kills))
            child.restarts += 1
            child.process = None
            self._write_record()
            await asyncio.sleep(pause)

    def _release_left_behind(self) -> None:
        """Requeue the jobs of workers that died together with an earlier supervisor, for example in a power failure."""
        if before := self._left_behind:
            workers = [UUID(process.worker) for process in before.processes if process.worker]
            self._release(workers, killed=not oom_since(before.oom_kills))

    def _release(self, workers: Sequence[UUID], *, killed: bool) -> None:
        """Requeue the jobs of workers that have ended.

        If the database is unavailable for too long, the jobs are requeued when their leases expire.
        """

        async def release() -> None:
            try:
                async with await connect(self._connection_info) as connection:
                    await release_workers(connection, workers, killed=killed)
            except psycopg.OperationalError as error:
                raise DatabaseUnavailable(str(error)) from None

        async def try_to_release() -> None:
            try:
                async with asyncio.timeout(RELEASE_SECONDS):
                    await retry_until_available(release)
            except (DatabaseUnavailable, psycopg.Error, TimeoutError) as error:
                log.warning("jobs of ended workers are requeued when their leases expire", reason=str(error))

        task = asyncio.create_task(try_to_release())
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    def _write_record(self) -> None:
        """Record all processes. If that fails, for example because the disk is full, they are still restarted."""
        children = [child.record() for child in self._children]
        try:
            self._record.write(UpRecord(os.getpid(), self._address, children, count_oom_kills()))
        except OSError as error:
            log.warning("cannot record the processes", reason=str(error))

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stopping.set)


def web_children(number: int, listener: int) -> list[Child]:
    """Define the web processes.

    All of them accept connections from the same socket, so new connections are still accepted when one process dies.
    """
    names = ["web", *(f"web {one}" for one in range(2, number + 1))]
    return [Child(name, ("web", "--fd", str(listener)), (listener,)) for name in names]


def mail_children(listener: socket.socket | None) -> list[Child]:
    """Define the process that receives emails. Returns an empty list if no port for emails is configured."""
    if listener is None:
        return []
    number = listener.fileno()
    return [Child("mail", ("lmtp", "--fd", str(number)), (number,))]


async def describe_sandbox(settings: Settings) -> str:
    """Describe the sandbox layers that work on this machine.

    Printed at every start, because a missing layer is a risk.
    """
    async with sandbox_of(settings) as sandbox:
        return (await sandbox.layers()).summary


@contextlib.asynccontextmanager
async def started_early(children: Sequence[Child]) -> AsyncGenerator[None]:
    """Start processes that load their modules immediately, but begin to work only when the context ends.

    Each process closes its end of the first pipe when it has loaded its modules or exits. It then waits until the
    second pipe is closed.
    """
    loading, loaded = os.pipe()
    begin, hold = os.pipe()
    finished, loop = asyncio.Event(), asyncio.get_running_loop()
    try:
        for child in children:
            child.process = await spawn(child, (loaded, begin))
        os.close(loaded)
        loop.add_reader(loading, finished.set)
        try:
            await asyncio.wait_for(finished.wait(), LOAD_SECONDS)
        except TimeoutError:
            log.warning("web processes are slow to start", seconds=LOAD_SECONDS)
        loop.remove_reader(loading)
        yield
    finally:
        for one in (loading, begin, hold):
            os.close(one)


async def spawn(child: Child, pipes: tuple[int, int] | None = None) -> asyncio.subprocess.Process:
    """Start a child process in a new session.

    Because of the new session, Ctrl-C reaches only the supervisor, which then stops its child processes in order. The
    supervisor chooses the id of each worker, so that it can requeue the worker's jobs when the worker ends. `pipes` are
    the pipes of `started_early`.
    """
    child.worker = new_id() if child.is_worker else None
    named = ("--id", str(child.worker)) if child.worker else ()
    early = ("--loaded", str(pipes[0]), "--begin", str(pipes[1])) if pipes else ()
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "octavo", *child.arguments, *named, *early, "--parent", str(os.getpid())),
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=(*child.descriptors, *(pipes or ())),
        start_new_session=True,
    )


async def end_process(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()


async def end_tasks(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def is_ready(address: str) -> bool:
    """Whether the web server reports that it is ready. Sends one plain request, without an HTTP client."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            try:
                writer.write(f"GET /readyz HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    name: str
    pid: int | None
    running: bool
    restarts: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Status:
    address: str
    ready: bool
    data_dir: str
    processes: list[ProcessStatus]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def read_status(settings: Settings) -> Status:
    """Read the status of the Octavo instance that uses this data folder."""
    record = read_record(settings.data_dir)
    if record is None:
        raise NotRunning
    processes = [_process("up", record.pid, 0)]
    processes += [_process(child.name, child.pid, child.restarts) for child in record.processes]
    server = embedded_server(settings)
    if server:
        processes.append(_process("database", server.pid(), 0))
    return Status(record.address, asyncio.run(is_ready(record.address)), str(settings.data_dir), processes)


def stop(settings: Settings, meanwhile: Callable[[], object] | None = None) -> bool:
    """Stop all processes that `octavo up` started, and wait for them. Returns False if nothing was running.

    `meanwhile` is called repeatedly until they have stopped.
    """
    record_file = RecordFile(DataFolder(settings.data_dir))
    record = record_file.read()
    if record:
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while record_file.is_claimed():
            if time.monotonic() > deadline:
                raise TimedOut(f"Process {record.pid} did not stop. End it with `kill -9 {record.pid}`.")
            if meanwhile:
                meanwhile()
            time.sleep(TAKE_OVER_SECONDS if meanwhile else POLL_SECONDS)
    server = embedded_server(settings)
    left = server is not None and server.pid() is not None
    if server and left:
        server.stop()
    return record is not None or left


def _process(name: str, pid: int | None, restarts: int) -> ProcessStatus:
    try:
        memory = psutil.Process(pid).memory_info().rss if pid else 0
    except psutil.Error:
        return ProcessStatus(name, pid, running=False, restarts=restarts, memory_bytes=0)
    return ProcessStatus(name, pid, running=pid is not None, restarts=restarts, memory_bytes=memory)
