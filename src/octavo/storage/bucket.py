"""The interface of every bucket, its health check, and copies to local files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from octavo.core.errors import AlreadyStored, Defect, StorageFailed
from octavo.storage.bodies import Body
from octavo.storage.signed_links import Link

READ_LIMIT = 16 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as written; size and hash are measured while writing."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object as the bucket lists it."""

    key: str
    bytes: int
    last_modified: datetime


@dataclass(frozen=True, slots=True)
class ObjectStream:
    """The bytes of an object from `start` up to `end` (exclusive). Nothing stays open between two chunks."""

    info: ObjectInfo
    start: int
    end: int
    chunks: AsyncGenerator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.chunks


def cut_to_size(start: int, end: int | None, size: int) -> tuple[int, int]:
    """A range can extend beyond the object; a backward range is a bug of the caller."""
    if start < 0 or (end is not None and end < start):
        raise Defect(f"Invalid range from {start} to {end}.")
    return min(start, size), size if end is None else min(end, size)


class Bucket(Protocol):
    """Objects are written once, under keys created by the server. Memory use does not depend on the size."""

    async def put(self, key: str, body: Body, *, limit: int | None = None) -> Stored:
        """Store a body durably. `AlreadyStored`, `TooLarge`, a failure or a cancellation leave nothing behind."""
        ...

    async def read(self, key: str, *, limit: int = READ_LIMIT) -> bytes:
        """A small object as bytes; raises `TooLarge` above the limit."""
        ...

    async def stream(self, key: str, *, start: int = 0, end: int | None = None) -> ObjectStream:
        """An object of any size in chunks; `end` is exclusive, and both are limited to the size."""
        ...

    async def stat(self, key: str) -> ObjectInfo | None:
        """Size and time of an object, or None."""
        ...

    async def copy(self, source: str, target: str) -> None:
        """Copy an object to another key without reading it; raises `AlreadyStored` if that exists."""
        ...

    async def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; missing ones are ignored."""
        ...

    def list(self, prefix: str = "") -> AsyncIterator[ObjectInfo]:
        """All objects under `prefix` (whole segments), in no particular order, read page by page."""
        ...

    async def sign_get(self, key: str, *, seconds: int, filename: str, content_type: str) -> str:
        """A temporary download link: a full URL, or a path on our web server."""
        ...

    async def sign_put(self, key: str, *, seconds: int) -> str | None:
        """A temporary upload URL that can be used repeatedly; None if uploads must go through our web server."""
        ...

    async def verify_link(self, method: str, key: str, query: Mapping[str, str]) -> Link:
        """What a link to our web server allows; raises `LinkRefused` if it has expired or was changed."""
        ...

    async def sweep_unfinished(self, older_than_seconds: float) -> int:
        """Remove unfinished writes of killed processes; returns the number removed."""
        ...

    async def check(self) -> None:
        """Write, read back and delete a small object; raises `StorageFailed` with advice."""
        ...

    async def aclose(self) -> None:
        """Release threads and connections."""
        ...


async def copy_to_file(bucket: Bucket, key: str, path: Path) -> int:
    """Returns the size. A failed copy leaves no file."""
    stream = await bucket.stream(key)
    try:
        with await asyncio.to_thread(path.open, "wb") as file:
            async for chunk in stream:
                await asyncio.to_thread(file.write, chunk)
    except BaseException:
        path.unlink(missing_ok=True)  # noqa: ASYNC240 - do not wait after a cancellation
        raise
    return stream.info.bytes


# Ordinary objects, so that the daily clean-up finds those that a killed process left behind.
_FOLDER = "probes"


async def probe(bucket: Bucket) -> None:
    """Write, copy, read back, and check that a second write is refused; some S3 servers wrongly accept it."""
    content = uuid4().bytes
    written, copied = (f"{_FOLDER}/{uuid4().hex}" for _ in range(2))
    await bucket.put(written, content)
    try:
        await bucket.copy(written, copied)
        if await bucket.read(copied) != content:
            raise StorageFailed("The bucket returns other bytes than were written.")
        await _expect_refusal(bucket, written, copied)
    finally:
        await bucket.delete([written, copied])


async def _expect_refusal(bucket: Bucket, written: str, copied: str) -> None:
    attempts = partial(bucket.put, written, b"second"), partial(bucket.copy, written, copied)
    for attempt in attempts:
        try:
            await attempt()
        except AlreadyStored:
            continue
        raise StorageFailed("The bucket overwrites existing objects: its server must support `If-None-Match: *`.")
