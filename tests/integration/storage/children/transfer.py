"""Moves one large object in and out of a bucket and prints what it took, in a process with a memory of its own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from octavo.storage import Bucket, open_bucket

MEBIBYTE = 1 << 20
ROUNDS = 3
CHUNK_BYTES = 64 << 10  # what a web server hands on


def chunks(total: int) -> Iterator[bytes]:
    block = os.urandom(CHUNK_BYTES - 8)
    for number in range(total // CHUNK_BYTES):
        yield number.to_bytes(8, "big") + block


async def body(total: int) -> AsyncIterator[bytes]:
    for chunk in chunks(total):
        yield chunk


def resident_bytes(field: str) -> int:
    """From /proc, because the peak that getrusage tells begins with that of the parent process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def plain_seconds(folder: Path, total: int) -> float:
    """The least that must be done: hash, write, and make durable."""
    start = time.perf_counter()
    digest = hashlib.sha256()
    with (folder / "plain").open("wb", buffering=MEBIBYTE) as file:
        for chunk in chunks(total):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - start
    (folder / "plain").unlink()
    return seconds


async def transfer(bucket: Bucket, total: int) -> dict[str, float]:
    start = time.perf_counter()
    stored = await bucket.put("large", body(total))
    middle = time.perf_counter()
    digest = hashlib.sha256()
    async for chunk in await bucket.stream("large"):
        digest.update(chunk)
    end = time.perf_counter()
    assert (stored.bytes, stored.sha256) == (total, digest.hexdigest())
    return {"put_seconds": middle - start, "get_seconds": end - middle}


async def share_of_plain_speed(bucket: Bucket, folder: Path, total: int) -> float:
    """In turns, and the best of each: a disk is slow for whoever comes first, and others use it too."""
    plain, put = list[float](), list[float]()
    for _ in range(ROUNDS):
        plain.append(plain_seconds(folder, total))
        start = time.perf_counter()
        await bucket.put("large", body(total))
        put.append(time.perf_counter() - start)
        await bucket.delete(["large"])
    return min(plain) / min(put)


async def measure(total: int, bucket_options: dict[str, Any], folder: Path | None) -> dict[str, float]:
    bucket = open_bucket(**bucket_options)
    await bucket.check()
    before = resident_bytes("VmRSS")
    result = await transfer(bucket, total)
    result["grown_mebibytes"] = (resident_bytes("VmHWM") - before) / MEBIBYTE
    await bucket.delete(["large"])
    if folder:
        result["share_of_plain_speed"] = await share_of_plain_speed(bucket, folder, total)
    await bucket.aclose()
    return result


if __name__ == "__main__":
    task = json.load(sys.stdin)
    folder = Path(task["folder"]) if task["folder"] else None
    print(json.dumps(asyncio.run(measure(task["bytes"], task["bucket"], folder))))  # noqa: T201
