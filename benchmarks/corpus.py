"""Whole folders of files, hostile ones too, through the running product: how each ends and what it costs.

`python -m benchmarks.corpus FOLDER…`; every tenth file is followed by a small text, which must not feel its neighbours.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from benchmarks.uploads import Client, sign_in
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from tests.support.instance import Instance, instance_in
from tests.support.postgres import open_folder

SAMPLE_SECONDS = 0.25
MOST_SECONDS = 4 * 3600
SLOWEST = 10
EVERY = 10
OPEN = "SELECT count(*) FROM jobs WHERE status NOT IN ('complete', 'failed', 'dead_letter', 'cancelled')"
ENDS = """
    SELECT d.filename, d.status, d.quality, j.error_code, j.status = 'dead_letter', j.attempt,
        coalesce(extract(epoch FROM coalesce(j.completed_at, j.failed_at) - j.started_at), 0)::float8
    FROM documents d JOIN jobs j ON j.document_id = d.id AND j.kind = 'process_document'
    ORDER BY 7 DESC"""


@dataclass(slots=True)
class Peak:
    """The most that a worker and its children held in memory, and the data folder on disk."""

    memory: int = 0
    disk: int = 0


@contextmanager
def watched(instance: Instance) -> Generator[Peak]:
    peak, ended = Peak(), threading.Event()

    def look() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            with suppress(psutil.Error):
                worker = psutil.Process(worker_of(instance))
                family = [worker, *worker.children(recursive=True)]
                peak.memory = max(peak.memory, sum(one.memory_full_info().uss for one in family))
            peak.disk = max(peak.disk, size_of(instance.data))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def worker_of(instance: Instance) -> int:
    return next(pid for name, pid in instance.process_ids().items() if name.startswith("worker") and pid)


def size_of(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def send(client: Client, paths: list[Path]) -> None:
    for number, path in enumerate(paths):
        refused = "no bytes"
        if body := path.read_bytes():
            refused = post(client, path.name, body)
        if refused:
            print(f"refused: {path.name}: {refused}")
        if number % EVERY == 0:
            post(client, f"neighbour-{number}.txt", f"A neighbour, number {number}.".encode())


def post(client: Client, name: str, body: bytes) -> str:
    try:
        client.call("POST", "/api/v1/documents", [body], x_upload_filename=name)
    except RuntimeError as error:
        client.connection.close()
        return str(error)
    return ""


def report(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    rows = connection.execute(ENDS).fetchall()
    for (status, quality, code, dead), count in Counter(row[1:5] for row in rows).most_common():
        print(f"{count:5}  {status}  {quality}  {code or ''}{'  given up' if dead else ''}")
    print("slowest:")
    for name, status, quality, code, _, attempts, seconds in rows[:SLOWEST]:
        print(f"  {seconds:7.1f} s  {name}: {status} {quality} {code or ''}, {attempts} attempts")
    neighbours = [row for row in rows if str(row[0]).startswith("neighbour-")]
    good = sum(row[1:3] == ("completed", "full") for row in neighbours)
    print(f"neighbours complete: {good} of {len(neighbours)}")


def main(*folders: str) -> None:
    paths = sorted(path for folder in folders for path in Path(folder).rglob("*") if path.is_file())
    limits = {"requests_per_minute": 1_000_000, "workers": 1}
    with open_folder() as folder, instance_in(folder, **limits) as instance:
        instance.start()
        worker, began = worker_of(instance), time.monotonic()
        client = Client(instance, sign_in(instance))
        with watched(instance) as peak:
            send(client, paths)
            sent = size_of(instance.data)
            info = EmbeddedPostgres(DataFolder(instance.data)).connection_info()
            with psycopg.connect(info, autocommit=True) as connection:
                while time.monotonic() - began < MOST_SECONDS and connection.execute(OPEN).fetchone() != (0,):
                    time.sleep(1)
                report(connection)
        size = sum(path.stat().st_size for path in paths)
        print(f"{len(paths)} files, {size >> 20} MB, {time.monotonic() - began:.0f} s")
        print(f"the worker lives: {worker_of(instance) == worker}; with its children {peak.memory >> 20} MB at most")
        print(f"data folder: {sent >> 20} MB when all was sent, {peak.disk >> 20} MB at most")


if __name__ == "__main__":
    main(*sys.argv[1:])
