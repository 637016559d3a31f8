"""Upgrades a filled installation of version 0.1 with waiting jobs, while clients read, and reports what they notice.

    python -m benchmarks.upgrade --documents 2000 --old PYTHON

PYTHON is the Python of an environment with version 0.1 and its own packages, which runs the installation before the
upgrade. tests/data/README.md names the commit of this version. Install its packages from within its folder, because
its overrides of dependencies apply only there. The documents are copies of those in tests/data/backup-0.1.tar.xz.
Afterwards the new version restarts once more, on a port that stays open, as a socket unit of systemd keeps it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock
from uuid import UUID

import httpx
import psycopg

from octavo.core.settings import Settings
from octavo.database.migrator import known_migrations
from octavo.ops.backup import read_manifest, restore_backup
from octavo.ops.instance import database_address
from tests.support.instance import free_port
from tests.support.postgres import open_folder
from tests.support.processes import octavo_environment, wait_until
from tests.support.tree import ROOT

ARCHIVE = ROOT / "tests/data/backup-0.1.tar.xz"
# The tables of a document, and which of their columns are ids that each copy has of its own.
OWN_IDS = {"id", "document_id", "process_id", "job_id", "chunk_id", "family_id", "parent_id"}
TABLES = (
    *("documents", "uploads", "artifacts", "jobs", "job_stages", "chunks", "chunk_words", "chunk_concepts"),
    *("events", "chunk_embeddings", "document_passages", "document_tags", "document_words", "facts", "vocabulary"),
)
# Starts a command with a socket as descriptor 3.
AS_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.argv[2], sys.argv[2:])
"""
READERS = 4
PATIENCE_SECONDS = 120
COUNTS = b"""
    SELECT count(*), count(*) FILTER (WHERE status = 'completed'),
           (SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing')) FROM documents"""

# What must be the same after the upgrade, for each document that was done before: file, fields, tags and text.
CONTENTS = b"""
    SELECT d.id, concat_ws('|', encode(d.sha256, 'hex'), d.title, d.author, d.document_date, d.collection_id, d.summary,
        (SELECT string_agg(t.tag_id::text, ',' ORDER BY t.tag_id) FROM document_tags t WHERE t.document_id = d.id),
        (SELECT md5(string_agg(concat_ws('|', c.index, c.char_start, c.content), ',' ORDER BY c.index))
         FROM chunks c WHERE c.document_id = d.id AND c.revision = d.revision))
    FROM documents d WHERE d.status = 'completed'"""

FAILURES = b"""
    SELECT concat_ws(' ', error_code, kind, left(error_message, 200)), count(*)
    FROM jobs WHERE status IN ('failed', 'dead_letter') GROUP BY 1"""


# The installation before the upgrade ---------------------------------------------------------------------------------


async def restore_old(folder: Path, data: Path) -> None:
    """Restore the archive without migrating it: as version 0.1 left it."""
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(folder, filter="data")
    numbers = {one.number for one in read_manifest(folder / "backup").migrations}
    old = tuple(one for one in known_migrations() if one.number in numbers)
    with mock.patch("octavo.database.migrator.known_migrations", return_value=old):
        await restore_backup(Settings(data_dir=data), folder / "backup", lambda _text, _done, _total: None)


async def multiply(data: Path, wanted: int, waiting: int) -> None:
    """Copy the documents until there are at least `wanted`, of which about `waiting` have a job that waits."""
    async with database_address(Settings(data_dir=data)) as address:
        with psycopg.connect(address) as connection:
            connection.execute("SET session_replication_role = replica")
            for status, most in (("pending", waiting), ("completed", wanted - waiting)):
                names = [
                    row[0]
                    for row in connection.execute("SELECT id FROM documents WHERE status = %s", [status]).fetchall()
                ]
                connection.execute(
                    "CREATE TEMP TABLE chosen ON COMMIT DROP AS SELECT unnest(%s::uuid[]) AS id", [names]
                )
                for table in TABLES:
                    copy_rows(connection, table, math.ceil(most / len(names)) - 1)
                connection.execute("DROP TABLE chosen")
            connection.execute("UPDATE objects o SET refs = (SELECT count(*) FROM artifacts a WHERE a.key = o.key)")
            connection.execute(
                "UPDATE owner_usage SET (bytes, documents) = (SELECT sum(bytes), count(*) FROM documents)"
            )
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")


def copy_rows(connection: psycopg.Connection, table: str, copies: int) -> None:
    columns = connection.execute(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute "
        "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity = ''",
        [table],
    ).fetchall()
    values = ", ".join(copied(table, name, kind) for name, kind in columns)
    names = ", ".join(f'"{name}"' for name, _ in columns)
    connection.execute(
        f"INSERT INTO {table} ({names}) SELECT {values} FROM {table} t, generate_series(1, {copies}) AS n "
        f"WHERE {belongs(table)} {'ORDER BY n, t.id' if table == 'events' else ''} ON CONFLICT DO NOTHING".encode()
    )


def copied(table: str, name: str, kind: str) -> str:
    if kind == "uuid" and name in OWN_IDS:
        return f'md5(t."{name}"::text || n)::uuid'
    if name == "sha256" and kind == "bytea":
        return "sha256(t.sha256 || n::text::bytea)"
    if table == "jobs" and name == "key":
        return "t.key || ':' || n"
    return f't."{name}"'


def belongs(table: str) -> str:
    """Which rows belong to the chosen documents. Stages belong to jobs, and words to chunks."""
    if table == "documents":
        return "t.id IN (SELECT id FROM chosen)"
    if table == "job_stages":
        return "t.job_id IN (SELECT id FROM jobs WHERE document_id IN (SELECT id FROM chosen))"
    if table == "chunk_concepts":
        return "t.chunk_id IN (SELECT id FROM chunks WHERE document_id IN (SELECT id FROM chosen))"
    return "t.document_id IN (SELECT id FROM chosen)"


# What clients notice -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Reader:
    """A client that reads all the time. `requests` has the start, the end and the status of each; 0 is no response."""

    address: str
    key: str
    paths: Sequence[str]
    requests: list[tuple[float, float, int]] = field(default_factory=list[tuple[float, float, int]])
    # What was said about each request that failed.
    failures: list[str] = field(default_factory=list[str])

    def read(self, ending: threading.Event) -> None:
        headers = {"authorization": f"Bearer {self.key}"}
        with httpx.Client(base_url=self.address, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False) as client:
            while not ending.is_set():
                began, path = time.monotonic(), self.paths[len(self.requests) % len(self.paths)]
                try:
                    response = client.get(path)
                    status, said = response.status_code, f"{response.text[:200]!r} {dict(response.headers)}"
                except httpx.TransportError as error:
                    status, said = 0, repr(error)
                ended = time.monotonic()
                self.requests.append((began, ended, status))
                if status != 200:
                    since = began - self.requests[0][0]
                    self.failures.append(f"{path} at {since:.2f} s for {ended - began:.2f} s: {status} {said}")
                ending.wait(0.05)

    @property
    def errors(self) -> int:
        return sum(status != 200 for _, _, status in self.requests)

    @property
    def longest_error(self) -> float:
        """The longest time from a failure until a request was sent that succeeded."""
        longest, failing_since = 0.0, None
        for began, ended, status in self.requests:
            if status != 200 and failing_since is None:
                failing_since = ended
            if status == 200 and failing_since is not None:
                longest, failing_since = max(longest, began - failing_since), None
        return longest

    @property
    def longest_wait(self) -> float:
        return max(ended - began for began, ended, _ in self.requests)


@contextmanager
def reading(what: str, address: str, key: str, paths: Sequence[str]) -> Generator[None]:
    ending = threading.Event()
    readers = [Reader(address, key, paths) for _ in range(READERS)]
    threads = [threading.Thread(target=one.read, args=(ending,)) for one in readers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join()
    statuses = sorted({status for one in readers for _, _, status in one.requests} - {200})
    print(
        f"{what}: {sum(len(one.requests) for one in readers)} requests, {sum(one.errors for one in readers)} errors "
        f"{statuses or ''}; longest time with errors {max(one.longest_error for one in readers):.2f} s, "
        f"longest wait {max(one.longest_wait for one in readers):.2f} s"
    )
    print("\n".join(f"  {text}" for one in readers for text in one.failures))


# The upgrade ---------------------------------------------------------------------------------------------------------


class Installation:
    """`octavo up` as people start it. With a held port, this process keeps the port open, as systemd does."""

    def __init__(self, folder: Path) -> None:
        self.data, self.log = folder / "data", folder / "up.log"
        self.environment = octavo_environment(self.data, port=free_port())
        self.address = f"http://127.0.0.1:{self.environment['OCTAVO_PORT']}"
        self.python = sys.executable
        self.listener: socket.socket | None = None
        self.running: subprocess.Popen[bytes] | None = None

    def hold_port(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", int(self.environment["OCTAVO_PORT"])), backlog=2048)

    def start(self, *options: str) -> None:
        command, descriptors = [self.python, "-m", "octavo", "up", *options], ()
        if self.listener:
            descriptors = (self.listener.fileno(),)
            command = [sys.executable, "-c", AS_SYSTEMD, str(descriptors[0]), *command]
        already = len(self.log.read_text()) if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(command, env=self.environment, pass_fds=descriptors, stdout=log, stderr=log)
        wait_until(lambda: "Ctrl-C stops everything" in self.log.read_text()[already:], "it is ready")

    def stop(self) -> None:
        if self.running:
            self.running.terminate()
            self.running.wait()

    def octavo(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self.python, "-m", "octavo", *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)


def counts(data: Path) -> tuple[int, int, int]:
    """Documents, documents that are done, and jobs that wait or run."""

    async def read() -> tuple[int, int, int]:
        async with database_address(Settings(data_dir=data)) as address:
            with psycopg.connect(address) as connection:
                row = connection.execute(COUNTS).fetchone()
        assert row
        return row[0], row[1], row[2]

    return asyncio.run(read())


def describe(data: Path) -> str:
    documents, done, waiting = counts(data)
    return f"{documents:,} documents, {done:,} of them done, {waiting:,} unfinished jobs, failed: {failures(data)}"


def contents(data: Path) -> dict[UUID, str]:
    """The content of each document that is done."""

    async def read() -> dict[UUID, str]:
        async with database_address(Settings(data_dir=data)) as address:
            with psycopg.connect(address) as connection:
                return dict(connection.execute(CONTENTS).fetchall())

    return asyncio.run(read())


def failures(data: Path) -> dict[str, int]:
    """The number of failed jobs by their error."""

    async def read() -> dict[str, int]:
        async with database_address(Settings(data_dir=data)) as address:
            with psycopg.connect(address) as connection:
                return dict(connection.execute(FAILURES).fetchall())

    return asyncio.run(read())


def upgrade(folder: Path, old_python: str, documents: int, waiting: int) -> int:
    installation = Installation(folder)
    asyncio.run(restore_old(folder, installation.data))
    asyncio.run(multiply(installation.data, documents, waiting))
    print("before:", describe(installation.data))
    kept = contents(installation.data)
    installation.python = old_python
    installation.start()
    key, paths = prepare(installation)
    with reading("upgrade from 0.1", installation.address, key, paths):
        time.sleep(3)
        print("at the upgrade:", describe(installation.data))
        installation.python = sys.executable
        take_over(installation)
        time.sleep(3)
    installation.stop()
    installation.hold_port()
    installation.start()
    with reading("restart with a port that stays open", installation.address, key, paths):
        time.sleep(3)
        restart(installation)
        time.sleep(3)
    wait_until(lambda: counts(installation.data)[2] == 0, "all jobs are done", seconds=1800)
    print("after:", describe(installation.data))
    now = contents(installation.data)
    changed = [one for one, content in kept.items() if now.get(one) != content]
    print(f"lost or changed: {len(changed)} of {len(kept):,} documents that were done before")
    checked = installation.octavo("doctor")
    installation.stop()
    print(checked.stdout if checked.returncode else "doctor: everything is in order")
    return checked.returncode or bool(changed)


def take_over(installation: Installation) -> None:
    """Upgrade with `octavo up --replace`, which stops the old version."""
    before, began = installation.running, time.monotonic()
    installation.start("--replace")
    print(f"replaced in {time.monotonic() - began:.1f} s")
    if before:
        before.wait()


def restart(installation: Installation) -> None:
    began = time.monotonic()
    installation.stop()
    stopped = time.monotonic()
    installation.start()
    print(f"stopped in {stopped - began:.1f} s, ready again after {time.monotonic() - stopped:.1f} s")


def prepare(installation: Installation) -> tuple[str, list[str]]:
    key = json.loads(installation.octavo("keys", "add", "reader", "--scope", "read", "--json").stdout)["key"]
    found = json.loads(installation.octavo("ls", "--json").stdout)["items"]
    done = [one["id"] for one in found if one["status"] == "completed"][:5]
    return key, ["/api/v1/documents?limit=20", *(f"/api/v1/documents/{one}" for one in done)]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--documents", type=int, default=2000)
    options.add_argument("--waiting", type=int, default=60, help="Documents whose jobs wait.")
    options.add_argument("--old", required=True, help="Python of an environment with version 0.1.")
    options.add_argument("--log", type=Path, help="Copy the log of both versions to this file.")
    given = options.parse_args()
    os.environ.pop("OCTAVO_DATA_DIR", None)
    with open_folder() as folder:
        try:
            return upgrade(folder, given.old, given.documents, given.waiting)
        finally:
            if given.log:
                shutil.copyfile(folder / "up.log", given.log)


if __name__ == "__main__":
    sys.exit(main())
