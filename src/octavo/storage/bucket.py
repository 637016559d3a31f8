"""Defines the interface of a storage bucket and the format of its keys.

Also contains functions for any bucket: they copy, verify and repair objects, and test whether the bucket works.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol
from uuid import uuid4

from octavo.core.errors import AlreadyStored, Defect, StorageFailed
from octavo.storage.s3_client import Link
from octavo.storage.writing import BadKey, Body, ObjectDamaged, ObjectMissing

READ_LIMIT = 16 << 20

MOST_CHARACTERS = 512

# Names that begin with a dot are reserved for the buckets. This is the folder for unfinished writes and for claims
# (locks on keys). Old entries were left by processes that died.
UNFINISHED = ".unfinished"

_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


def check_key(key: str) -> str:
    """Return the key if it is valid, otherwise raise `BadKey`.

    An invalid key is a bug, because the server creates all keys.
    """
    if len(key) > MOST_CHARACTERS or not _KEY.fullmatch(key):
        raise BadKey(repr(key[:MOST_CHARACTERS]))
    return key


def check_prefix(prefix: str) -> str:
    """Return the prefix of keys if it is valid.

    It must be empty or consist of complete segments, such as `documents/1`.
    """
    return check_key(prefix) if prefix else prefix


def segments(key: str) -> tuple[str, ...]:
    """Split a key such as `a/b/c` into its segments."""
    return tuple(check_key(key).split("/"))


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored object: its key, and the size and hash of the content that was written."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object in the bucket, with its size and modification time."""

    key: str
    bytes: int
    last_modified: datetime


@dataclass(frozen=True, slots=True)
class ObjectStream:
    """The bytes of an object from `start` up to `end` (exclusive).

    No file or connection stays open between two chunks.
    """

    info: ObjectInfo
    start: int
    end: int
    chunks: AsyncGenerator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.chunks


def cut_to_size(start: int, end: int | None, size: int) -> tuple[int, int]:
    """Limit a byte range to the size of the object.

    A range that is negative or ends before it starts is a bug in the caller, so it raises `Defect`.
    """
    if start < 0 or (end is not None and end < start):
        raise Defect(f"Invalid range from {start} to {end}.")
    return min(start, size), size if end is None else min(end, size)


class Bucket(Protocol):
    """Stores objects under keys that the server creates. Each key is written only once.

    Memory use does not depend on the size of objects.
    """

    async def put(self, key: str, body: Body, *, limit: int | None = None) -> Stored:
        """Store the content of an object durably.

        Raises `AlreadyStored` or `TooLarge`. A failed write leaves nothing behind.
        """
        ...

    async def read(self, key: str, *, limit: int = READ_LIMIT) -> bytes:
        """Read a small object. Raises `TooLarge` if it is larger than `limit` bytes."""
        ...

    async def stream(self, key: str, *, start: int = 0, end: int | None = None) -> ObjectStream:
        """Read an object of any size in parts.

        `end` is exclusive. A range that extends beyond the object is shortened.
        """
        ...

    async def stat(self, key: str) -> ObjectInfo | None:
        """Return the size and modification time of an object. Returns None if it does not exist."""
        ...

    async def copy(self, source: str, target: str) -> None:
        """Copy an object to another key without downloading it. Raises `AlreadyStored` if that key exists."""
        ...

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete objects. Missing objects are ignored."""
        ...

    def list(self, prefix: str = "", *, after: str = "") -> AsyncIterator[ObjectInfo]:
        """List all objects whose key starts with `prefix`, page by page, in no particular order.

        A prefix matches only whole segments of a key, so `a` does not match `ab/c`. `after` is the last key of an
        earlier listing that was interrupted: S3 continues after it, but a folder is listed from the start again.
        """
        ...

    async def sign_get(self, key: str, *, now: datetime, seconds: int, filename: str, content_type: str) -> str:
        """Create a download link that is valid for `seconds` from `now`: a full URL, or a path on our web server.

        `now` is the database's time, so that all processes agree on when a link expires.
        """
        ...

    async def sign_put(self, key: str, *, seconds: int) -> str | None:
        """Create a temporary, reusable upload URL. Returns None if uploads must go through our web server."""
        ...

    async def verify_link(self, method: str, key: str, query: Mapping[str, str], *, now: datetime) -> Link:
        """Verify a link to our web server. Raises `LinkRefused` if it has expired or was changed."""
        ...

    async def read_clock(self) -> datetime:
        """Return the current time of the storage system, which sets the timestamps of objects.

        It may differ from the time of this machine.
        """
        ...

    async def sweep_unfinished(self, older_than_seconds: float) -> int:
        """Remove unfinished writes that killed processes left behind. Returns the number removed."""
        ...

    async def check(self) -> None:
        """Write, read back and delete a small object. Raises `StorageFailed` with advice if this fails."""
        ...

    async def aclose(self) -> None:
        """Release threads and connections."""
        ...


async def find_damage(bucket: Bucket, wanted: Stored, *, read: bool = True) -> str | None:
    """Describe the damage to an object. Returns None if the object is intact.

    If `read` is False, only the size is checked.
    """
    info = await bucket.stat(wanted.key)
    if info is None:
        return "is missing"
    if info.bytes != wanted.bytes:
        return f"has {info.bytes:,} of {wanted.bytes:,} bytes"
    if read and await _hash(bucket, wanted.key) != wanted.sha256:
        return "does not match its checksum"
    return None


async def _hash(bucket: Bucket, key: str) -> str | None:
    digest = sha256()
    try:
        async for chunk in await bucket.stream(key):
            await asyncio.to_thread(digest.update, chunk)
    except ObjectMissing:
        return None
    return digest.hexdigest()


async def replace_damaged(bucket: Bucket, wanted: Stored, copy: str) -> str | None:
    """Replace a damaged object with a copy of its original bytes, and describe the damage.

    Returns None if the object is intact. The object is missing for a moment while it is replaced. This is harmless,
    because the damaged object was unusable.
    """
    damage = await find_damage(bucket, wanted)
    if damage:
        await bucket.delete([wanted.key])
        with suppress(AlreadyStored):  # somebody else replaced it
            await bucket.copy(copy, wanted.key)
    return damage


async def copy_to_file(bucket: Bucket, key: str, path: Path, checksum: str | None = None) -> int:
    """Copy an object to a local file and return its size. A failed copy leaves no file.

    Raises `ObjectDamaged` if the SHA-256 of the bytes is not `checksum` (hexadecimal).
    """
    stream, digest = await bucket.stream(key), sha256()

    def write(file: BinaryIO, chunk: bytes) -> None:
        digest.update(chunk)
        file.write(chunk)

    try:
        # Opened without a thread: after a cancellation nobody would close the file that the thread opens.
        with path.open("wb") as file:
            async for chunk in stream:
                await asyncio.to_thread(write, file, chunk)
        _compare(key, digest.hexdigest(), checksum)
    except BaseException:
        path.unlink(missing_ok=True)  # noqa: ASYNC240 - do not wait after a cancellation
        raise
    return stream.info.bytes


async def read_checked(bucket: Bucket, key: str, *, limit: int, checksum: str | None = None) -> bytes:
    """Read a small object. Raises `ObjectDamaged` if the SHA-256 of the bytes is not `checksum` (hexadecimal)."""
    content = await bucket.read(key, limit=limit)
    _compare(key, sha256(content).hexdigest(), checksum)
    return content


def _compare(key: str, found: str, checksum: str | None) -> None:
    if checksum is not None and found != checksum:
        raise ObjectDamaged(key)


# The health check writes ordinary objects, so the daily clean-up removes those that a killed process left behind.
_FOLDER = "probes"


async def probe(bucket: Bucket) -> None:
    """Test a bucket: write, copy and read back an object.

    Also checks that an object cannot be overwritten, because some S3 servers wrongly allow it.
    """
    content = uuid4().bytes
    written, copied = (f"{_FOLDER}/{uuid4().hex}" for _ in range(2))
    await bucket.put(written, content)
    try:
        await bucket.copy(written, copied)
        if await bucket.read(copied) != content:
            raise StorageFailed("The bucket returned bytes that differ from those written.")
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
        raise StorageFailed("The bucket overwrites existing objects. Its server must support `If-None-Match: *`.")
