"""The bucket on one machine: a folder that several processes can share."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Mapping
from contextlib import aclosing, contextmanager, suppress
from datetime import datetime, timedelta
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

from octavo.core.errors import AlreadyStored, StorageFailed, TooLarge
from octavo.storage import folder
from octavo.storage.bucket import (
    READ_LIMIT,
    ObjectInfo,
    ObjectStream,
    Stored,
    check_key,
    check_prefix,
    cut_to_size,
    probe,
    segments,
)
from octavo.storage.s3_client import Link, sign_link, verify_link
from octavo.storage.writing import Body, ObjectMissing, StorageUnavailable, Threads, complete_or_undo, ended, in_blocks

BLOCK_BYTES = 1 << 20
PAGE_KEYS = 1_000
THREADS = 8

_SIGNING_KEY = (".octavo", "signing-key")
_SIGNING_KEY_BYTES = 32

_ADVICE = {
    errno.ENOSPC: "The disk is full. Free some space in {root}; work then resumes automatically.",
    errno.EDQUOT: "The disk quota is used up. Free some space in {root}; work then resumes automatically.",
    errno.EACCES: "No permission to access {root}. Check who owns the folder.",
    errno.EPERM: "The operation is not permitted in {root}. Check who owns the folder and whether its file system "
    "supports hard links.",
    errno.EROFS: "{root} is read-only. Check how its file system is mounted.",
    errno.ENOENT: "{root} has been removed or is not mounted.",
    errno.ENOTDIR: "{root} contains a file where a folder is expected.",
    errno.ELOOP: "{root} contains a symbolic link where a file is expected.",
    errno.EIO: "The disk that holds {root} reported an error. Check the disk.",
    errno.EMFILE: "Too many open files. Raise the limit (ulimit -n).",
}

# The whole folder is affected until somebody acts; other errors may be about one file.
_AWAY = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT}

P = ParamSpec("P")
T = TypeVar("T")


class LocalBucket:
    """A bucket in a folder (see `Bucket`). Files have mode 0600 and folders 0700.

    Names that begin with a dot are reserved.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._threads = Threads(THREADS)
        self._signing_key: bytes | None = None

    @classmethod
    def open(cls, root: Path) -> Self:
        """Open the bucket and create its folder.

        If the folder disappears later, for example because a disk was unmounted, it is not created again, and all calls
        fail.
        """
        bucket = cls(root)
        with bucket._named_failures():
            folder.make_root(root)
        return bucket

    async def put(self, key: str, body: Body, *, limit: int | None = None) -> Stored:
        """Write the object to a temporary file, sync it to disk, then give it its final name."""
        names = segments(key)
        file = folder.UnfinishedFile(self._root)
        if isinstance(body, bytes) and len(body) <= min(BLOCK_BYTES, BLOCK_BYTES if limit is None else limit):
            await complete_or_undo(self._run(_put_whole, key, file, body, names), lambda: self.delete([key]))
            return Stored(key, file.digest.bytes, file.digest.sha256)
        try:
            async with aclosing(in_blocks(body, BLOCK_BYTES, limit, self._threads)) as blocks:
                await self._write(file, blocks)
        except BaseException:
            await self._run(file.discard)
            raise
        await complete_or_undo(self._publish(key, file, names), lambda: self.delete([key]))
        return Stored(key, file.digest.bytes, file.digest.sha256)

    async def _publish(self, key: str, file: folder.UnfinishedFile, names: tuple[str, ...]) -> None:
        try:
            await self._run(_once, key, file.publish, names)
        finally:
            await self._run(file.discard)

    async def _write(self, file: folder.UnfinishedFile, blocks: AsyncIterator[bytes]) -> None:
        """Write the blocks. Each block is hashed and written while the next one is being received."""
        writing: asyncio.Task[None] | None = None
        try:
            async for block in blocks:
                if writing:
                    await writing
                writing = asyncio.create_task(self._run(file.write, block))
            if writing:
                await writing
        finally:
            if writing:
                await ended(writing)

    async def read(self, key: str, *, limit: int = READ_LIMIT) -> bytes:
        """Read the whole object in one call."""
        return await self._run(self._read, key, limit)

    def _read(self, key: str, limit: int) -> bytes:
        with self._open(key) as file:
            content = file.read(limit + 1)
        if len(content) > limit:
            raise TooLarge(f"{key} is larger than {limit:,} bytes, the limit for reading into memory.")
        return content

    async def stream(self, key: str, *, start: int = 0, end: int | None = None) -> ObjectStream:
        """Read an object in parts. Reopens the file for each part, so that an abandoned reader leaves no file open."""
        info = await self._run(self._stat, key)
        start, end = cut_to_size(start, end, info.bytes)
        return ObjectStream(info, start, end, self._chunks(key, start, end))

    async def _chunks(self, key: str, start: int, end: int) -> AsyncGenerator[bytes]:
        while start < end:
            chunk = await self._run(self._read_at, key, start, min(end - start, BLOCK_BYTES))
            start += len(chunk)
            yield chunk

    def _read_at(self, key: str, start: int, size: int) -> bytes:
        with self._open(key) as file:
            chunk = os.pread(file.fileno(), size, start)
        if not chunk:
            raise StorageFailed(f"{key} is truncated: it was changed in {self._root}.")
        return chunk

    async def stat(self, key: str) -> ObjectInfo | None:
        """Read the size and the modification time from the disk. Nothing is cached."""
        try:
            return await self._run(self._stat, key)
        except ObjectMissing:
            return None

    def _stat(self, key: str) -> ObjectInfo:
        with self._open(key) as file:
            return folder.describe(key, os.fstat(file.fileno()))

    def _open(self, key: str) -> FileIO:
        names = segments(key)
        with self._missing(key):
            return folder.open_file(self._root, names)

    async def copy(self, source: str, target: str) -> None:
        """Copy an object by creating a hard link, which is fast and uses no extra disk space."""
        copy = self._run(self._copy, source, target)
        await complete_or_undo(copy, lambda: self.delete([target]))

    def _copy(self, source: str, target: str) -> None:
        names = segments(source), segments(target)
        with self._missing(source):
            _once(target, folder.copy_file, self._root, *names)

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete the objects with these keys, in batches. Each batch is deleted in a thread."""
        remaining = iter(keys)
        while page := [segments(key) for key in islice(remaining, PAGE_KEYS)]:
            await self._run(self._delete, page)

    def _delete(self, page: list[tuple[str, ...]]) -> None:
        for names in page:
            folder.remove_file(self._root, names)

    async def list(self, prefix: str = "", *, after: str = "") -> AsyncIterator[ObjectInfo]:
        """List the objects. They are read in batches, each in a thread."""
        del after  # a folder is not sorted, and listing it is fast
        names = segments(check_prefix(prefix)) if prefix else ()
        files = folder.walk_files(self._root, names)
        try:
            while page := await self._run(lambda: [*islice(files, PAGE_KEYS)]):
                for info in page:
                    yield info
        finally:
            await self._run(files.close)

    async def sign_get(self, key: str, *, now: datetime, seconds: int, filename: str, content_type: str) -> str:
        """Create a signed download link. The link is a path on our web server."""
        secret, expires = await self._secret(), int(now.timestamp()) + seconds
        return sign_link(secret, Link("GET", check_key(key), expires, filename, content_type))

    async def sign_put(self, key: str, *, seconds: int) -> None:
        """Return None. There are no signed upload links, because files are uploaded through our web server."""

    async def verify_link(self, method: str, key: str, query: Mapping[str, str], *, now: datetime) -> Link:
        """Verify a signed link. All processes read the same signing key from the bucket folder."""
        return verify_link(await self._secret(), method, key, query, now=now.timestamp())

    async def sweep_unfinished(self, older_than_seconds: float) -> int:
        """Remove unfinished files that have not been written to for some time."""
        before = await self.read_clock() - timedelta(seconds=older_than_seconds)
        return await self._run(folder.remove_unfinished, self._root, before.timestamp())

    async def read_clock(self) -> datetime:
        """Return the timestamp that the file system would give a file written now."""
        return await self._run(folder.read_clock, self._root)

    async def check(self) -> None:
        """Test whether the bucket works (see `probe`)."""
        await probe(self)

    async def aclose(self) -> None:
        """Stop the threads that access the disk."""
        await self._threads.aclose()

    async def _secret(self) -> bytes:
        if self._signing_key is None:
            self._signing_key = await self._run(_signing_key, self._root)
        return self._signing_key

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._named_failures():
            return await self._threads.run(call, *args, **kwargs)

    @contextmanager
    def _missing(self, key: str) -> Generator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            if not self._root.is_dir():
                raise
            raise ObjectMissing(key) from None

    @contextmanager
    def _named_failures(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            advice = _ADVICE.get(error.errno or 0, "{error} in {root}.")
            failure = StorageUnavailable if error.errno in _AWAY else StorageFailed
            raise failure(advice.format(root=self._root, error=error.strerror or error)) from error


def _once(key: str, call: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    try:
        call(*args, **kwargs)
    except FileExistsError:
        raise AlreadyStored(key) from None


def _put_whole(key: str, file: folder.UnfinishedFile, body: bytes, names: tuple[str, ...]) -> None:
    """Write and publish a small object in one thread call, because three calls would take longer than the write."""
    try:
        file.write(body)
        _once(key, file.publish, names)
    finally:
        file.discard()


def _signing_key(root: Path) -> bytes:
    """Read the key for signing links from the bucket, or create it. All processes that use the bucket share it."""
    with suppress(FileNotFoundError), folder.open_file(root, _SIGNING_KEY) as file:
        return file.read(_SIGNING_KEY_BYTES)
    file = folder.UnfinishedFile(root)
    try:
        file.write(secrets.token_bytes(_SIGNING_KEY_BYTES))
        with suppress(FileExistsError):
            file.publish(_SIGNING_KEY)
    finally:
        file.discard()
    return _signing_key(root)
