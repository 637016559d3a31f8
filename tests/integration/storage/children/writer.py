"""Puts objects without end until it is killed, and tells of each one that was acknowledged."""

from __future__ import annotations

import asyncio
import random
import sys

from octavo.storage import Bucket, open_bucket

MOST_BYTES = 3 << 20


def content_of(key: str) -> bytes:
    """What an object must hold is known from its key alone."""
    source = random.Random(key)
    return source.randbytes(source.randrange(MOST_BYTES))


async def write_forever(bucket: Bucket, name: str) -> None:
    number = 0
    while True:
        key = f"objects/{name}/{number}"
        await bucket.put(key, content_of(key))
        print(key, flush=True)  # noqa: T201
        number += 1


async def main(url: str, name: str) -> None:
    bucket = open_bucket(url)
    await asyncio.gather(*(write_forever(bucket, f"{name}-{lane}") for lane in range(3)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
