"""Web and worker processes on one data folder, killed and started again as a test likes; the port stays open."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psycopg

from octavo.core.settings import Settings
from octavo.database import connect
from octavo.owners import make_sign_in_link, use_sign_in_link
from tests.support import preloaded
from tests.support.engine import NO_SCHEDULES
from tests.support.postgres import as_url
from tests.support.processes import PATIENCE_SECONDS, octavo_environment, run_octavo

BACKLOG = 200


class Site:
    """Like `octavo up`, but whoever is killed is started again at once, and only when the test says so."""

    def __init__(self, folder: Path, connection_info: str, **settings: object) -> None:
        self.data = folder / "data"
        self.data.mkdir(exist_ok=True)
        self.log = folder / "site.log"
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self.port = int(self.listener.getsockname()[1])
        self.database_url = as_url(connection_info)
        self.environment = octavo_environment(self.data, **{"database_url": self.database_url, **settings})
        self.started: list[preloaded.Process] = []
        with psycopg.connect(connection_info) as connection:
            connection.execute(NO_SCHEDULES)

    @property
    def settings(self) -> Settings:
        return Settings.model_validate({"data_dir": self.data, "database_url": self.database_url})

    def start_web(self) -> preloaded.Process:
        return self._start("web", "--fd", str(self.listener.fileno()))

    def start_worker(self, **settings: object) -> preloaded.Process:
        return self._start("worker", **settings)

    def _start(self, *arguments: str, **settings: object) -> preloaded.Process:
        more = {f"OCTAVO_{name.upper()}": str(value) for name, value in settings.items()}
        with self.log.open("ab") as log:
            process = preloaded.start(
                arguments, self.environment | more, log.fileno(), pass_fds=[self.listener.fileno()]
            )
        self.started.append(process)
        return process

    def octavo(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_octavo(arguments, self.environment)

    def sign_in(self) -> str:
        """The session of the owner of this machine."""

        async def open_session() -> str:
            async with await connect(self.database_url) as connection, connection.transaction():
                return await use_sign_in_link(connection, await make_sign_in_link(connection))

        return asyncio.run(open_session())

    def end(self) -> None:
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
        self.listener.close()


@contextmanager
def site_in(folder: Path, connection_info: str, **settings: object) -> Generator[Site]:
    site = Site(folder, connection_info, **settings)
    try:
        yield site
    finally:
        site.end()


class Caller:
    """Sends requests in pieces, so that a test can stop between any two bytes."""

    def __init__(self, site: Site, session: str) -> None:
        self._port = site.port
        self._session = session
        self._connection: HTTPConnection | None = None

    def send(self, method: str, path: str, headers: dict[str, str], length: int, pieces: Iterable[bytes]) -> None:
        """All of the request; the answer is read separately."""
        self.close()
        self._connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_SECONDS)
        self._connection.putrequest(method, path)
        given = {"Cookie": f"octavo_session={self._session}", "Content-Length": str(length), **headers}
        for name, value in given.items():
            self._connection.putheader(name, value)
        self._connection.endheaders()
        for piece in pieces:
            self._connection.send(piece)

    def wait_for_continue(self) -> None:
        """Until the server reads the body of a request that was sent with `Expect: 100-continue`."""
        assert self._connection
        said = b""
        while not said.endswith(b"\r\n\r\n"):
            # Byte by byte, because the response follows.
            byte = self._connection.sock.recv(1)
            assert byte, said
            said += byte
        assert said.startswith(b"HTTP/1.1 100 "), said

    def answer(self) -> tuple[int, Any]:
        assert self._connection
        response = self._connection.getresponse()
        body = response.read()
        self.close()
        is_json = "json" in (response.getheader("content-type") or "")
        return response.status, json.loads(body) if is_json else body

    def close(self) -> None:
        if self._connection:
            self._connection.close()

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """One whole request with a small body."""
        sent = json.dumps(body).encode() if body is not None else b""
        self.send(method, path, {"Content-Type": "application/json"} if sent else {}, len(sent), [sent])
        return self.answer()
