"""Runs in a mount namespace of its own, where it may make a small disk, fill it, and make it read-only."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from octavo.core.errors import StorageFailed
from octavo.storage import Bucket, open_bucket

MEBIBYTE = 1 << 20


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True)


def files_in(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.is_file())


async def expect_failure(bucket: Bucket, size: int, words: str) -> None:
    try:
        await bucket.put("new", bytes(size))
    except StorageFailed as error:
        line = error.line
    else:
        line = "it was stored"
    assert words in line, line


async def fill_and_free(bucket: Bucket, root: Path) -> None:
    await bucket.put("first", bytes(3 * MEBIBYTE))
    await expect_failure(bucket, 2 * MEBIBYTE, "The disk is full")
    assert files_in(root) == ["first"]
    await bucket.delete(["first"])
    await bucket.put("second", bytes(2 * MEBIBYTE))
    assert len(await bucket.read("second")) == 2 * MEBIBYTE


async def read_only(bucket: Bucket, root: Path) -> None:
    mount("-t", "tmpfs", "-o", "remount,ro", "tmpfs", root)
    await expect_failure(bucket, 1, "is read-only")
    assert len(await bucket.read("second")) == 2 * MEBIBYTE
    try:
        await bucket.check()
    except StorageFailed:
        pass
    else:
        raise AssertionError("the check found nothing")
    mount("-t", "tmpfs", "-o", "remount,rw", "tmpfs", root)
    await bucket.check()


async def main(root: Path) -> None:
    mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", root)
    bucket = open_bucket(root.as_uri())
    await fill_and_free(bucket, root)
    await read_only(bucket, root)
    assert files_in(root) == ["second"]
    await bucket.aclose()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
    print("passed as", os.geteuid())  # noqa: T201
