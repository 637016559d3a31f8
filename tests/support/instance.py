"""A whole installation under test: `octavo up` as a person starts it, on a folder and a port of its own."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast

import psutil

from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.ops.processes import RecordFile
from tests.support.processes import (
    PATIENCE_SECONDS,
    Running,
    octavo_environment,
    processes_mentioning,
    report_on,
    run_octavo,
    start_octavo,
    wait_until,
)

# Below those that the system chooses from, and open to browsers; every process begins elsewhere.
FIRST_PORT, LAST_PORT = 11_000, 32_000
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class Instance:
    """Started and killed as often as a test likes; the port stays the same."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.data = folder / "data"
        self.log = folder / "up.log"
        self.environment = octavo_environment(self.data, **{"port": free_port(), "web": 1, **settings})
        self.address = f"http://127.0.0.1:{self.environment['OCTAVO_PORT']}"
        self.process: Running | None = None

    def start(self, prefix: Sequence[str] = (), *, replace: bool = False) -> None:
        already = len(self.log.read_text()) if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = start_octavo(
                ["up", *(["--replace"] if replace else [])], self.environment, log.fileno(), prefix=prefix
            )
        try:
            wait_until(lambda: self._has_announced(already), "it says that it is ready")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.report()}") from None

    def report(self) -> str:
        return report_on(self.everything(), self.log)

    def _has_announced(self, already: int) -> bool:
        said = self.log.read_text()[already:]
        if self.process and self.process.poll() is not None:
            raise AssertionError(f"octavo up ended: {said}")
        return "Ctrl-C stops everything" in said

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    def is_ready(self) -> bool:
        with contextlib.suppress(OSError), _open(f"{self.address}/readyz", timeout=5) as answer:
            return answer.status == 200
        return False

    def status(self) -> dict[str, Any]:
        return cast("dict[str, Any]", json.loads(self.octavo("status", "--json").stdout))

    def process_ids(self) -> dict[str, int | None]:
        """As `octavo status` shows them, without starting a command for it."""
        record = RecordFile(DataFolder(self.data)).read()
        if record is None:
            return {}
        children = {one.name: one.pid for one in record.processes}
        return {"up": record.pid, **children, "database": EmbeddedPostgres(DataFolder(self.data)).pid()}

    def sign_in_link(self) -> str:
        return self.log.read_text().rpartition("Sign in once with ")[2].split()[0]

    def octavo(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_octavo(arguments, self.environment)

    def everything(self) -> list[psutil.Process]:
        """Every live process of this installation: those of `up` and those that serve its data folder."""
        found = {process.pid: process for process in processes_mentioning(str(self.data))}
        if self.process and self.process.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended a moment ago
                family = psutil.Process(self.pid)
                found |= {one.pid: one for one in [family, *family.children(recursive=True)]}
        return list(found.values())

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def end(self) -> None:
        """Whatever happened before, nothing is left."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE_SECONDS)
        for process in self.everything():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if self.process:
            self.process.wait()


@contextmanager
def instance_in(folder: Path, **settings: object) -> Generator[Instance]:
    instance = Instance(folder, **settings)
    try:
        yield instance
    finally:
        instance.end()


@cache
def ports_of(process: int) -> Iterator[int]:
    """By process, because test processes are forked from one that has imported this."""
    return itertools.count(process * 1009)


def free_port() -> int:
    """A port that the system gives to nobody by itself, and this process gives only once."""
    while True:
        port = FIRST_PORT + next(ports_of(os.getpid())) % (LAST_PORT - FIRST_PORT)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def fetch(url: str) -> tuple[int, dict[str, str], bytes]:
    """One request; an error status is an answer like any other."""
    try:
        with _open(url, timeout=PATIENCE_SECONDS) as answer:
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {name.lower(): value for name, value in error.headers.items()}, error.read()
