"""A real web server process on a database of its own, with the settings and the log that a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from octavo.database import connect
from octavo.owners import Caller
from octavo.owners.callers import make_key
from octavo.owners.sessions import local_owner
from tests.support import preloaded
from tests.support.instance import fetch, free_port
from tests.support.postgres import Server, as_url, open_folder
from tests.support.processes import PATIENCE_SECONDS, octavo_environment, running_octavo, wait_until


@dataclass(frozen=True, slots=True)
class WebProcess:
    address: str
    database_info: str
    folder: Path
    environment: Mapping[str, str] = field(repr=False)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def log(self) -> str:
        return (self.folder / "web.log").read_text()

    def machine_key(self) -> str:
        """A key that may do everything, as the owner of the machine makes it."""

        async def make() -> str:
            async with await connect(self.database_info) as connection:
                machine = Caller(await local_owner(connection), "local", None, "owner", "admin", "session")
                return (await make_key(connection, machine, name="machine", scope="admin")).key

        return asyncio.run(make())

    def process_documents(self) -> None:
        """A worker does all that there is to do, and goes."""
        with running_octavo(["worker"], self.environment):
            wait_until(self._is_idle, "every document is processed")

    def _is_idle(self) -> bool:
        with psycopg.connect(self.database_info) as connection:
            return connection.execute(b"SELECT FROM documents WHERE status = 'pending'").fetchone() is None


@contextmanager
def running_web(server: Server, **settings: object) -> Generator[WebProcess]:
    with open_folder() as folder, server.database() as info, (folder / "web.log").open("wb") as log:
        port = free_port()
        environment = octavo_environment(folder / "data", port=port, database_url=as_url(info), **settings)
        process = preloaded.start(["web"], environment, log.fileno())
        web = WebProcess(f"http://127.0.0.1:{port}", info, folder, environment)
        try:
            wait_until(lambda: _answers(web, process), "the web server answers")
            yield web
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def _answers(web: WebProcess, process: preloaded.Process) -> bool:
    if process.poll() is not None:
        raise AssertionError(f"the web server ended: {web.log()}")
    try:
        return fetch(f"{web.address}/healthz")[0] == 200
    except OSError:
        return False
