"""How fast the ground is: starts of the database and of everything, storage against plain writing, sandbox overhead."""

from __future__ import annotations

import asyncio
import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil

from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.sandbox import Sandbox
from octavo.storage import open_bucket
from tests.support.instance import instance_in
from tests.support.postgres import open_folder

ROUNDS = 5
OBJECT_BYTES = 256 << 20
BLOCK = os.urandom(1 << 20)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def show(name: str, values: list[float], unit: str = "s") -> None:
    print(
        f"{name:<46} median {statistics.median(values):7.3f} {unit}   worst {max(values):7.3f} {unit}   n={len(values)}"
    )


def database_starts() -> None:
    first: list[float] = []
    again: list[float] = []
    killed: list[float] = []
    for _ in range(ROUNDS):
        with open_folder() as root:
            server = EmbeddedPostgres(DataFolder(root / "data"))
            first.append(seconds(server.start))
            server.stop()
            again.append(seconds(server.start))
            pid = server.pid()
            assert pid
            psutil.Process(pid).kill()
            while server.is_running():
                time.sleep(0.001)
            killed.append(seconds(server.start))
            server.stop()
    show("database, first start (made from nothing)", first)
    show("database, next start", again)
    show("database, start after kill -9", killed)


def whole_starts() -> None:
    first: list[float] = []
    again: list[float] = []
    for _ in range(ROUNDS):
        with open_folder() as root, instance_in(root) as instance:
            first.append(seconds(instance.start))
            instance.stop()
            again.append(seconds(instance.start))
    show("octavo up until ready, empty data folder", first)
    show("octavo up until ready, next start", again)


async def blocks() -> AsyncIterator[bytes]:
    for _ in range(OBJECT_BYTES // len(BLOCK)):
        yield BLOCK


def plain_write(folder: Path) -> None:
    digest = hashlib.sha256()
    with (folder / "plain").open("wb") as stream:
        for _ in range(OBJECT_BYTES // len(BLOCK)):
            digest.update(BLOCK)
            stream.write(BLOCK)
        stream.flush()
        os.fsync(stream.fileno())


def storage_ratio() -> None:
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        async def put(number: int) -> None:
            bucket = open_bucket((folder / "bucket").as_uri())
            await bucket.put(f"bench/{number}", blocks())
            await bucket.aclose()

        for number in range(ROUNDS):
            plain = seconds(lambda: plain_write(folder))
            ours = seconds(lambda number=number: asyncio.run(put(number)))
            ratios.append(plain / ours)
    show("storage, speed of put by plain hash and write", ratios, "x")


def sandbox_latency() -> None:
    async def measure() -> list[float]:
        times: list[float] = []
        async with Sandbox() as sandbox:
            await sandbox.run("builtins:bool")
            for _ in range(200):
                started = time.perf_counter()
                await sandbox.run("builtins:bool")
                times.append((time.perf_counter() - started) * 1000)
        return times

    show("sandbox, an empty task from call to answer", asyncio.run(measure()), "ms")


if __name__ == "__main__":
    for part in (database_starts, whole_starts, storage_ratio, sandbox_latency):
        part()
