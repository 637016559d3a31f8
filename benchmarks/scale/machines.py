"""Four machines with one PostgreSQL server and one S3 server: how much faster they are than one, and what they survive.

`python -m benchmarks.scale.machines [NOTES] [SHARE]`, as root. A machine is a network namespace with a worker whose
processes together get SHARE of one processor (a quota of their control group). One machine processes NOTES notes, then
four machines four times as many, each machine's worth of a separate owner. Then four machines process as many again,
while one is cut off from the network, one is frozen, and the database is restarted. No note may be lost or doubled.

Only addresses of the namespaces and of loopback are used. The servers are in a namespace, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote
from uuid import UUID

import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from benchmarks.small_files import make_note
from octavo.core.settings import Settings
from octavo.database import migrate
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.ops.doctor import examine
from tests.support.library import open_desk
from tests.support.postgres import open_folder, trust_users_of_tests
from tests.support.processes import octavo_environment
from tests.support.s3 import S3Server, open_s3, running_s3_server

MACHINES, NOTES, SHARE, PERIOD = 4, 40, 0.2, 100_000
HUB, NETWORK, DATABASE_PORT, S3_PORT = "10.77.0.1", "10.77.0", 5432, 8333
LEASE_SECONDS, FAULT_LEASE_SECONDS, OUTAGE_SECONDS, PATIENCE_SECONDS = 600, 10, 25, 1800
WARM_NOTES = 4
WEIGHT = 8192
CGROUP = Path("/sys/fs/cgroup/cpu")
INSIDE = "OCTAVO_BENCHMARK_INSIDE"
LEFT = "SELECT count(*) FROM jobs WHERE status NOT IN ('complete', 'cancelled')"
WRONG = {
    "failed jobs": "SELECT count(*) FROM jobs WHERE status IN ('failed', 'dead_letter')",
    "unfinished documents": "SELECT count(*) FROM documents WHERE status <> 'completed' OR NOT embeddings_ready",
    "doubled documents": "SELECT count(*) - count(DISTINCT (owner_id, sha256)) FROM documents",
    "doubled chunks": "SELECT count(*) - count(DISTINCT (document_id, revision, index)) FROM chunks",
    "revisions": "SELECT count(*) FROM documents WHERE last_revision <> 1",
    "doubled connections": "SELECT count(*) - count(DISTINCT to_jsonb(c) - 'id' - 'created_at') FROM connections c",
}


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def inside(name: str) -> list[str]:
    """The beginning of a command in a namespace. Unlike `ip netns exec`, it does not hide the control groups."""
    return ["nsenter", f"--net=/var/run/netns/{name}"]


@contextmanager
def networks() -> Generator[tuple[str, list[str]]]:
    """A namespace for the servers with a bridge, and one for each machine with a cable to it."""
    mark = f"octavo-{os.getpid()}"
    hub, machines = f"{mark}-hub", [f"{mark}-{number}" for number in range(1, MACHINES + 1)]
    with ExitStack() as stack:
        for name in (hub, *machines):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "delete", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        ip("-n", hub, "addr", "add", f"{HUB}/24", "dev", "bridge")
        ip("-n", hub, "link", "set", "bridge", "up")
        for number, name in enumerate(machines, 1):
            ip("-n", hub, "link", "add", f"m{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", hub, "link", "set", f"m{number}", "master", "bridge", "up")
            ip("-n", name, "addr", "add", f"{NETWORK}.{number + 10}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        yield hub, machines


Connect: TypeAlias = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Forwarder(threading.Thread):
    """Makes the servers reachable for the machines: PostgreSQL has only a socket file, and S3 only loopback."""

    def __init__(self, socket_file: Path, s3_port: int) -> None:
        super().__init__(daemon=True)
        self._socket_file, self._s3_port = socket_file, s3_port
        self.ready = threading.Event()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        async def to_database(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._join(reader, writer, lambda: asyncio.open_unix_connection(str(self._socket_file)))

        async def to_storage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._join(reader, writer, lambda: asyncio.open_connection("127.0.0.1", self._s3_port))

        await asyncio.start_server(to_database, HUB, DATABASE_PORT)
        await asyncio.start_server(to_storage, HUB, S3_PORT)
        self.ready.set()
        await asyncio.Event().wait()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connect: Connect) -> None:
        with contextlib.suppress(OSError):
            there, back = await connect()
            await asyncio.gather(copy(reader, back), copy(there, writer), return_exceptions=True)
        writer.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while block := await reader.read(65536):
            writer.write(block)
            await writer.drain()
    writer.close()


def make_group(name: str) -> Path:
    """A control group that is preferred to other programs on this machine, so that it gets what its quota allows."""
    group = CGROUP / f"octavo-{os.getpid()}-{name}"
    group.mkdir()
    (group / "cpu.shares").write_text(str(WEIGHT))
    return group


@contextmanager
def in_group(name: str) -> Generator[None]:
    group = make_group(name)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (CGROUP / "cgroup.procs").write_text(str(os.getpid()))
        remove_group(group)


def remove_group(group: Path) -> None:
    """Waits until all its processes have ended."""
    while (group / "cgroup.procs").read_text().strip():
        time.sleep(0.1)
    group.rmdir()


@dataclass(slots=True)
class Machine:
    """A worker in a namespace, limited to a share of one processor."""

    name: str
    number: int
    worker: subprocess.Popen[bytes]
    group: Path
    frozen: list[psutil.Process] = field(default_factory=list[psutil.Process])

    def processes(self) -> list[psutil.Process]:
        mine = psutil.Process(self.worker.pid)
        return [mine, *mine.children(recursive=True)]

    def limit(self, share: float) -> None:
        (self.group / "cpu.cfs_period_us").write_text(str(PERIOD))
        (self.group / "cpu.cfs_quota_us").write_text(str(int(PERIOD * share)))

    def cut(self, *, off: bool) -> None:
        ip("-n", self.name, "link", "set", "eth0", "down" if off else "up")

    def freeze(self) -> None:
        self.frozen = self.processes()
        for process in self.frozen:
            process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        for process in self.frozen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
        self.frozen = []

    def end(self) -> None:
        self.thaw()
        for process in self.processes() if self.worker.poll() is None else []:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.worker.wait()
        remove_group(self.group)


@dataclass(frozen=True, slots=True)
class Place:
    info: str
    s3: S3Server
    folder: Path
    server: EmbeddedPostgres

    def one(self, query: str) -> int:
        with psycopg.connect(self.info, autocommit=True) as connection:
            row = connection.execute(query.encode()).fetchone()
        return int(row[0]) if row else 0

    def settings(self) -> dict[str, object]:
        parts = conninfo_to_dict(self.info)
        secret = quote(str(parts["password"]))
        return {
            "database_url": f"postgresql://{parts['user']}:{secret}@{HUB}:{DATABASE_PORT}/{parts['dbname']}",
            "storage_url": f"s3://{self.s3.bucket}/machines",
            "s3_endpoint": f"http://{HUB}:{S3_PORT}",
            "s3_access_key": self.s3.access_key,
            "s3_secret_key": self.s3.secret_key,
        }

    def start(self, name: str, number: int, lease_seconds: int) -> Machine:
        settings = {**self.settings(), "lease_seconds": lease_seconds}
        environment = octavo_environment(self.folder / f"machine-{number}", **settings)
        command = [*inside(name), sys.executable, "-m", "octavo", "worker"]
        with (self.folder / f"machine-{number}.log").open("ab") as log:
            worker = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        group = make_group(str(number))
        (group / "cgroup.procs").write_text(str(worker.pid))
        return Machine(name, number, worker, group)


@contextmanager
def servers() -> Generator[Place]:
    with open_folder() as folder, running_s3_server() as s3:
        server = EmbeddedPostgres(DataFolder(folder / "data"))
        info = server.start()
        try:
            trust_users_of_tests(info)
            asyncio.run(migrate(info))
            socket_file = next(Path(str(conninfo_to_dict(info)["host"])).glob(".s.PGSQL.*[0-9]"))
            forwarder = Forwarder(socket_file, int(s3.endpoint.rpartition(":")[2]))
            forwarder.start()
            forwarder.ready.wait()
            yield Place(info, s3, folder, server)
        finally:
            server.stop()


async def add_notes(place: Place, owners: int, notes: int, first: int) -> None:
    async with aclosing(open_s3(place.s3, "machines")) as bucket, open_desk(place.info, bucket) as desk:
        for number in range(owners):
            owner: UUID = await desk.new_owner()
            for note in range(notes):
                await desk.add(owner, make_note(first + number * notes + note))


def wait(place: Place, query: str, wanted: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while place.one(query) != wanted:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{query}: not {wanted} in {PATIENCE_SECONDS} s")
        time.sleep(0.2)


def run(place: Place, names: Sequence[str], notes: int, share: float, first: int, *, faults: bool = False) -> float:
    """Process a machine's worth of notes on each machine. Returns the notes per second."""
    with ExitStack() as stack:
        machines = list[Machine]()
        for number, name in enumerate(names, 1):
            machines.append(place.start(name, number, FAULT_LEASE_SECONDS if faults else LEASE_SECONDS))
            stack.callback(machines[-1].end)
            # The other machines are frozen, so that this one loads its models before it is measured.
            wait(place, "SELECT count(*) FROM workers", number)
            asyncio.run(add_notes(place, 1, WARM_NOTES, first + number * WARM_NOTES))
            wait(place, LEFT, 0)
            machines[-1].freeze()
        for one in machines:
            one.thaw()
            one.limit(share)
        asyncio.run(add_notes(place, len(names), notes, first + 10_000))
        began = time.monotonic()
        if faults:
            harm(place, machines)
        wait(place, LEFT, 0)
        taken = time.monotonic() - began
        for one in machines:
            one.worker.send_signal(signal.SIGTERM)
    place.one("WITH gone AS (DELETE FROM workers RETURNING 1) SELECT count(*) FROM gone")
    return len(names) * notes / taken


def harm(place: Place, machines: Sequence[Machine]) -> None:
    """One is cut off, one is frozen, and the database is restarted; longer than leases last."""
    wait(place, "SELECT (count(DISTINCT leased_by) >= 3)::int FROM jobs WHERE status = 'processing'", 1)
    machines[1].cut(off=True)
    machines[2].freeze()
    place.server.stop()
    place.server.start()
    time.sleep(OUTAGE_SECONDS)
    machines[1].cut(off=False)
    machines[2].thaw()


async def problems(place: Place) -> list[str]:
    chosen = place.settings()
    chosen |= {name: SecretStr(str(chosen[name])) for name in ("database_url", "s3_access_key", "s3_secret_key")}
    checks = await examine(Settings(data_dir=place.folder / "doctor", **chosen), checksums=False)  # pyright: ignore[reportArgumentType]
    return [f"{one.name}: {one.detail}" for one in checks if not one.ok]


def measure(names: Sequence[str], notes: int, share: float) -> int:
    with in_group("servers"), servers() as place:
        one = run(place, names[:1], notes, share, 0)
        print(f"1 machine with {share} of a processor: {one:.2f} notes/s", flush=True)
        four = run(place, names, notes, share, 100_000)
        print(f"{MACHINES} machines: {four:.2f} notes/s, {four / one:.2f} times as many", flush=True)
        harmed = run(place, names, notes, share, 200_000, faults=True)
        print(f"{MACHINES} machines, one cut off, one frozen, the database restarted: {harmed:.2f} notes/s", flush=True)
        expected = (1 + 2 * MACHINES) * (notes + WARM_NOTES)
        wrong = {name: found for name, query in WRONG.items() if (found := place.one(query))}
        stored, taken = (
            place.one("SELECT count(*) FROM documents"),
            place.one("SELECT count(*) FROM jobs WHERE attempt > 1"),
        )
        print(f"{stored} of {expected} notes, wrong: {wrong or 'nothing'}, {taken} jobs were taken over", flush=True)
        found = asyncio.run(problems(place))
        print("\n".join(found) or "octavo doctor: no problems", flush=True)
    return 0 if stored == expected and not wrong and four / one >= 0.8 * MACHINES else 1


def main(notes: int = NOTES, share: float = SHARE) -> int:
    if names := os.environ.get(INSIDE):
        return measure(names.split(","), notes, share)
    with networks() as (hub, machines):
        command = [sys.executable, "-m", "benchmarks.scale.machines", str(notes), str(share)]
        environment = {**os.environ, INSIDE: ",".join(machines)}
        return subprocess.run([*inside(hub), *command], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2]), *map(float, sys.argv[2:3])))
