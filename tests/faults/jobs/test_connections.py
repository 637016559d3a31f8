"""A connection that breaks at any statement: before it arrives, or after it is done and only the answer is lost."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.engine import Engine, Workers, most_at_once, wait_for_end, workers_in
from tests.support.processes import wait_until

SOCKET = ".s.PGSQL.5432"
SLOTS = 5
# Ends of what a client asks: Sync and a simple query; the server answers each with ReadyForQuery, which is `Z`.
ENDS = (b"S", b"Q")


class Proxy:
    """Between workers and PostgreSQL; breaks a connection at every `every`th question, in turn before and after it."""

    every = 0

    def __init__(self, folder: Path, target: str) -> None:
        self.folder = folder
        self.target = target
        self.cuts = {"before": 0, "after": 0}
        self._questions = itertools.count(1)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen(50)
        self._open = True
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._open = False
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while self._open:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        with client, server:
            try:
                server.connect(self.target)
                self._forward(client, server)
            except (OSError, EOFError):
                pass
            finally:
                _hang_up(client, server)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        silent = threading.Event()
        back = threading.Thread(target=self._answer, args=(server, client, silent), daemon=True)
        back.start()
        server.sendall(_read_start(client))
        while True:
            message = _read_message(client)
            if message[:1] in ENDS and self.every and next(self._questions) % self.every == 0:
                after = self.cuts["after"] < self.cuts["before"]
                self.cuts["after" if after else "before"] += 1
                if after:  # let it be done, and the answer go nowhere
                    silent.set()
                    server.sendall(message)
                    back.join(10)
                return
            server.sendall(message)

    def _answer(self, server: socket.socket, client: socket.socket, silent: threading.Event) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                message = _read_message(server)
                if not silent.is_set():
                    client.sendall(message)
                elif message[:1] == b"Z":
                    return
        _hang_up(client)


def _hang_up(*streams: socket.socket) -> None:
    """Closing alone does not wake a thread that reads."""
    for stream in streams:
        with contextlib.suppress(OSError):
            stream.shutdown(socket.SHUT_RDWR)


def _read_start(stream: socket.socket) -> bytes:
    length = _read(stream, 4)
    return length + _read(stream, int.from_bytes(length) - 4)


def _read_message(stream: socket.socket) -> bytes:
    head = _read(stream, 5)
    return head + _read(stream, int.from_bytes(head[1:]) - 4)


def _read(stream: socket.socket, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = stream.recv(count - len(parts))
        if not part:
            raise EOFError
        parts += part
    return parts


@pytest.fixture
def proxy(folder: Path, engine: Engine) -> Iterator[Proxy]:
    host = str(conninfo_to_dict(engine.info)["host"])
    one = Proxy(folder, f"{host}/{SOCKET}")
    yield one
    one.close()


def cut_connections(engine: Engine, owner: UUID, workers: Workers, proxy: Proxy, every: int, jobs: int) -> None:
    processes = [workers.start(worker_slots=SLOTS), workers.start(worker_slots=SLOTS)]
    wait_until(lambda: engine.one("SELECT count(*) FROM workers") == 2, "both are there")
    proxy.every = every
    engine.put(owner, count=jobs, cap_key="few", cap=8, input={"stages": 2, "seconds": 0.01})
    wait_for_end(engine, 60 + jobs)
    assert engine.statuses() == {"complete": jobs}
    assert engine.one("SELECT count(*) FROM job_stages") == 2 * jobs
    doubled = "SELECT FROM events WHERE kind = 'stage' GROUP BY process_id, detail ->> 'stage' HAVING count(*) > 1"
    assert engine.rows(doubled) == []
    assert min(proxy.cuts.values()) >= jobs / 20
    assert [process.poll() for process in processes] == [None, None]
    assert most_at_once(engine)["few"] <= 8
    assert max(most_at_once(engine, "events.detail ->> 'worker'").values()) <= SLOTS


def test_broken_connections_lose_and_double_nothing(engine: Engine, owner: UUID, folder: Path, proxy: Proxy) -> None:
    with workers_in(folder, make_conninfo(engine.info, host=str(proxy.folder)), lease_seconds=5) as workers:
        cut_connections(engine, owner, workers, proxy, 5, 60)


@pytest.mark.long
@pytest.mark.parametrize("every", range(3, 13))
def test_connections_broken_at_every_statement_lose_and_double_nothing(
    engine: Engine, owner: UUID, folder: Path, proxy: Proxy, every: int
) -> None:
    with workers_in(folder, make_conninfo(engine.info, host=str(proxy.folder)), lease_seconds=5) as workers:
        cut_connections(engine, owner, workers, proxy, every, 200)
