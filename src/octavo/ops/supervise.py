"""`octavo up`: starts all processes on one machine, restarts those that die, and stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from octavo.ai.gateway_setup import check_models
from octavo.core.errors import NotPossibleHere, OctavoError
from octavo.core.settings import Settings
from octavo.database import connect, migrate
from octavo.database.embedded import DataFolder
from octavo.ops.instance import (
    bucket_of,
    embedded_server,
    keep_running,
    sandbox_of,
    start_database,
    web_processes,
)
from octavo.ops.processes import Backoff
from octavo.ops.record import ProcessRecord, RecordFile, UpRecord
from octavo.owners import make_sign_in_link

log = structlog.get_logger()

GRACE_SECONDS = 15
READY_SECONDS = 60
POLL_SECONDS = 0.05
# Opening the port is retried: after a kill, the previous web process releases it only a moment later.
PORT_TRIES, PORT_PAUSE_SECONDS = 20, 0.05
BACKLOG = 2048


@dataclass(slots=True)
class Child:
    """A process that the supervisor keeps running."""

    name: str
    arguments: Sequence[str]
    descriptors: Sequence[int] = ()
    restarts: int = 0
    process: asyncio.subprocess.Process | None = None

    def record(self) -> ProcessRecord:
        return ProcessRecord(self.name, self.process.pid if self.process else None, self.restarts)


class Supervisor:
    """Owns the port, the record and the child processes for one data folder."""

    def __init__(self, settings: Settings, announce: Callable[[str], None]) -> None:
        self._settings = settings
        self._announce = announce
        self._folder = DataFolder(settings.data_dir)
        self._record = RecordFile(self._folder)
        self._children: list[Child] = []
        self._stopping = asyncio.Event()
        self._address = ""

    async def run(self) -> None:
        """Run until a signal arrives. If starting fails, no process is left running."""
        check_models(self._settings)
        self._folder.prepare()
        self._record.claim()
        try:
            self._catch_signals()
            with listen(self._settings.host, self._settings.port) as listener:
                self._address = address_of(listener)
                await self._run_parts(listener)
        finally:
            self._record.release()

    async def _run_parts(self, listener: socket.socket) -> None:
        server = embedded_server(self._settings)
        tasks: list[asyncio.Task[None]] = []
        probe = asyncio.create_task(describe_sandbox(self._settings))
        try:
            async with contextlib.aclosing(bucket_of(self._settings)) as bucket:
                await bucket.check()
            webs = web_children(web_processes(self._settings), listener.fileno())
            workers = [Child(f"worker {number}", ("worker",)) for number in range(1, self._settings.workers + 1)]
            tasks += [asyncio.create_task(self._keep_child(web)) for web in webs]
            connection_info = await start_database(self._settings, server)
            if server:
                tasks.append(asyncio.create_task(keep_running(server)))
            await migrate(connection_info)
            tasks += [asyncio.create_task(self._keep_child(worker)) for worker in workers]
            await self._welcome(connection_info, probe)
            await self._stopping.wait()
        finally:
            await end_tasks([*tasks, probe])
            if server:
                await asyncio.to_thread(server.stop)

    async def _welcome(self, connection_info: str, probe: asyncio.Task[str]) -> None:
        async with await connect(connection_info) as connection, connection.transaction():
            token = await make_sign_in_link(connection)
        if await self._wait_until_ready():
            self._announce(await probe)
            self._announce(f"Octavo is ready at {self._address}")
            self._announce(f"Sign in once with {self._address}/sign-in?token={token}")
            self._announce("Ctrl-C stops everything.")

    async def _wait_until_ready(self) -> bool:
        deadline = time.monotonic() + READY_SECONDS
        while not self._stopping.is_set():
            if await is_ready(self._address):
                return True
            if time.monotonic() > deadline:
                raise OctavoError(f"The web server was not ready after {READY_SECONDS} seconds. See the log.")
            await asyncio.sleep(POLL_SECONDS)
        return False

    async def _keep_child(self, child: Child) -> None:
        self._children.append(child)
        backoff = Backoff()
        while True:
            started = time.monotonic()
            child.process = await spawn(child)
            self._write_record()
            try:
                code = await child.process.wait()
            except asyncio.CancelledError:
                await end_process(child.process)
                raise
            pause = backoff.after_run(time.monotonic() - started)
            log.warning("process ended, restarting it", process=child.name, code=code, pause_seconds=pause)
            child.restarts += 1
            child.process = None
            self._write_record()
            await asyncio.sleep(pause)

    def _write_record(self) -> None:
        self._record.write(UpRecord(os.getpid(), self._address, [child.record() for child in self._children]))

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stopping.set)


def web_children(number: int, listener: int) -> list[Child]:
    """The web processes. All accept connections from the same socket, so none is lost when one of them dies."""
    names = ["web", *(f"web {one}" for one in range(2, number + 1))]
    return [Child(name, ("web", "--fd", str(listener)), (listener,)) for name in names]


async def describe_sandbox(settings: Settings) -> str:
    """Describe the sandbox layers that work on this machine.

    Printed at every start, because a missing layer is a risk.
    """
    async with sandbox_of(settings) as sandbox:
        return (await sandbox.layers()).summary


def listen(host: str, port: int) -> socket.socket:
    """Open the port before anything else starts. It stays open while a web process restarts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for attempt in range(PORT_TRIES):
        # The explicit protocol enables TCP_NODELAY: small responses are sent without delay.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            if error.errno == errno.EADDRINUSE and attempt + 1 < PORT_TRIES:
                time.sleep(PORT_PAUSE_SECONDS)
                continue
            raise NotPossibleHere(explain_address(error, host, port)) from None
        return listener
    raise AssertionError("the last attempt returns or raises")


def explain_address(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use. Stop the other program, or set OCTAVO_PORT."
    if error.errno == errno.EACCES:
        return f"Port {port} requires root. Set OCTAVO_PORT to a port above 1023."
    reason = error.strerror or error
    return f"Cannot listen on {host} port {port}: {reason}. Set OCTAVO_HOST to an address of this machine."


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}"


async def spawn(child: Child) -> asyncio.subprocess.Process:
    """Start a child in a new session.

    Ctrl-C then reaches only the supervisor, which stops its children in order.
    """
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "octavo", *child.arguments, "--parent", str(os.getpid())),
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=child.descriptors,
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
