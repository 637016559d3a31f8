"""Objects as files on this machine, for those who need a path."""

from __future__ import annotations

import asyncio
from pathlib import Path

from octavo.storage.bucket import Bucket


async def copy_to_file(bucket: Bucket, key: str, path: Path) -> int:
    """Answers how many bytes it has. What breaks off leaves no file."""
    stream = await bucket.stream(key)
    try:
        with await asyncio.to_thread(path.open, "wb") as file:
            async for chunk in stream:
                await asyncio.to_thread(file.write, chunk)
    except BaseException:
        path.unlink(missing_ok=True)  # noqa: ASYNC240 - who was cancelled waits for nothing more
        raise
    return stream.info.bytes
