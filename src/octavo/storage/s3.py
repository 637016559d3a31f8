"""A bucket that several machines can share: S3, accessed through the obstore library.

docs/decisions/0002-storage.md explains why large objects are written to a temporary key first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar
from uuid import uuid4

import obstore
import structlog
from obstore.exceptions import AlreadyExistsError, BaseError

from octavo.core.errors import AlreadyStored, StorageFailed, TooLarge
from octavo.storage.bucket import (
    READ_LIMIT,
    UNFINISHED,
    ObjectInfo,
    ObjectStream,
    Stored,
    check_key,
    check_prefix,
    cut_to_size,
    probe,
)
from octavo.storage.s3_client import (
    AccessKeys,
    Link,
    S3Address,
    attachment_header,
    explain,
    is_missing_bucket,
    open_store,
    presign,
)
from octavo.storage.writing import Body, Digest, LinkRefused, ObjectMissing, Threads, complete_or_undo, in_blocks

if TYPE_CHECKING:
    from obstore import ObjectMeta

PART_BYTES = 8 << 20
PARTS_IN_FLIGHT = 3
PAGE_KEYS = 1_000
THREADS = 4
# The largest object that Amazon S3 copies in one call. Only such a copy can be refused if the key exists.
MOST_BYTES = 5 << 30

_CLAIM_SECONDS = 15
_CLAIM_POLL_SECONDS = 0.2

T = TypeVar("T")
log = structlog.stdlib.get_logger(__name__)


class S3Bucket:
    """A bucket in S3 (see `Bucket`). Without access keys (`keys`), the AWS default credential chain is used."""

    def __init__(self, address: S3Address, keys: AccessKeys | None) -> None:
        self._address = address
        self._keys = keys
        self._threads = Threads(THREADS)
        self._store = open_store(address, keys, timeout=timedelta(minutes=1))
        self._copying_store = open_store(address, keys, timeout=timedelta(minutes=15))

    async def put(self, key: str, body: Body, *, limit: int | None = None) -> Stored:
        """Store an object.

        A small object takes one conditional request. A large one is written to a temporary key first.
        """
        check_key(key)
        digest, temporary, second = Digest(), f"{UNFINISHED}/{uuid4().hex}", None
        most = MOST_BYTES if limit is None else min(limit, MOST_BYTES)
        try:
            async with aclosing(in_blocks(body, PART_BYTES, most, self._threads)) as blocks:
                first, second = await anext(blocks, b""), await anext(blocks, None)
                if second is None:
                    await self._threads.run(digest.update, first)
                else:
                    await self._upload(temporary, self._hashed(digest, [first, second], blocks))
        except BaseException:
            if second is not None:
                await self._clean_up(temporary)
            raise
        publish = self._create(key, first) if second is None else self._publish(temporary, key)
        await complete_or_undo(publish, lambda: self.delete([key]))
        return Stored(key, digest.bytes, digest.sha256)

    async def _create(self, key: str, content: bytes) -> None:
        await self._ask(key, obstore.put_async(self._store, key, content, mode="create"))

    async def _publish(self, temporary: str, key: str) -> None:
        try:
            await self._copy(temporary, key)
        finally:
            await self._clean_up(temporary)

    async def _upload(self, name: str, blocks: AsyncGenerator[bytes]) -> None:
        writer = obstore.open_writer_async(self._store, name, buffer_size=PART_BYTES, max_concurrency=PARTS_IN_FLIGHT)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(writer)  # aborts the upload after an exception or a cancellation
            await stack.enter_async_context(aclosing(blocks))
            async for block in blocks:
                await self._ask(name, writer.write(block))
            stack.pop_all()
        await complete_or_undo(self._ask(name, writer.close()), lambda: self._clean_up(name))

    async def _hashed(self, digest: Digest, head: Iterable[bytes], rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        for block in head:
            await self._threads.run(digest.update, block)
            yield block
        async for block in rest:
            await self._threads.run(digest.update, block)
            yield block

    async def read(self, key: str, *, limit: int = READ_LIMIT) -> bytes:
        """Read an object. The size is checked before the content is fetched."""
        result = await self._ask(key, obstore.get_async(self._store, check_key(key)), reads=key)
        if result.meta["size"] > limit:
            raise TooLarge(f"{key} is larger than {limit:,} bytes, the limit for reading into memory.")
        return bytes(await self._ask(key, result.bytes_async(), reads=key))

    async def stream(self, key: str, *, start: int = 0, end: int | None = None) -> ObjectStream:
        """Read an object in parts, with one request for each part.

        The server could cut off a single long response to a slow reader, and such a response could not be retried.
        """
        info = await self._head(check_key(key))
        start, end = cut_to_size(start, end, info.bytes)
        return ObjectStream(info, start, end, self._chunks(key, start, end))

    async def _chunks(self, key: str, start: int, end: int) -> AsyncGenerator[bytes]:
        while start < end:
            stop = min(end, start + PART_BYTES)
            answer = obstore.get_range_async(self._store, key, start=start, end=stop)
            chunk = await self._ask(key, answer, reads=key)
            start += len(chunk)
            yield bytes(chunk)

    async def stat(self, key: str) -> ObjectInfo | None:
        """Return the size and modification time of an object.

        Returns None if the object or the whole bucket is missing, because S3 does not distinguish the two cases here.
        """
        try:
            return await self._head(check_key(key))
        except ObjectMissing:
            return None

    async def _head(self, key: str) -> ObjectInfo:
        return _describe(await self._ask(key, obstore.head_async(self._store, key), reads=key))

    async def copy(self, source: str, target: str) -> None:
        """Copy an object on the server, without downloading it."""
        await complete_or_undo(self._copy(check_key(source), check_key(target)), lambda: self.delete([target]))

    async def _copy(self, source: str, target: str) -> None:
        """Lock the target key, then copy.

        The lock is needed because some servers cannot check for an existing target and copy in one step.
        """
        claim = f"{UNFINISHED}/claims/{target}"
        await self._take_claim(claim, target)
        try:
            copy = obstore.copy_async(self._copying_store, source, target, overwrite=False)
            await self._ask(target, copy, reads=source)
        finally:
            await self._clean_up(claim)

    async def _take_claim(self, claim: str, key: str) -> None:
        deadline = time.monotonic() + _CLAIM_SECONDS
        while time.monotonic() < deadline:
            try:
                return await self._create(claim, b"")
            except AlreadyStored:
                if await self.stat(key):
                    raise AlreadyStored(key) from None
            await asyncio.sleep(_CLAIM_POLL_SECONDS)
        raise StorageFailed(f"Another write of {key} is in progress, or was interrupted and will be cleaned up later.")

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete the objects in as few requests as possible. S3 limits the number of objects per request."""
        remaining = iter(keys)
        while page := [check_key(key) for key in islice(remaining, PAGE_KEYS)]:
            await self._delete(page)

    async def _delete(self, names: list[str]) -> None:
        await self._ask(names[0], obstore.delete_async(self._store, names))

    async def _clean_up(self, name: str) -> None:
        try:
            await self._delete([name])
        except (
            StorageFailed
        ) as error:  # the clean-up removes it later; the operation itself succeeded or has its own error
            log.warning("storage_left_unfinished", name=name, reason=error.line)

    async def list(self, prefix: str = "", *, after: str = "") -> AsyncIterator[ObjectInfo]:
        """List the objects in as few requests as possible. S3 limits the number of objects per request."""
        async for info in self._objects(check_prefix(prefix), after):
            if not info.key.startswith("."):
                yield info

    async def _objects(self, prefix: str, after: str = "") -> AsyncGenerator[ObjectInfo]:
        pages = obstore.list(  # pyright: ignore[reportUnknownMemberType] - its other form needs arrow
            self._store, prefix or None, offset=after or None, chunk_size=PAGE_KEYS
        )
        while page := await self._ask(prefix, anext(pages, None)):
            for meta in page:
                yield _describe(meta)

    async def sign_get(self, key: str, *, now: datetime, seconds: int, filename: str, content_type: str) -> str:
        """Create a download link.

        With the default credential chain, the link cannot set the file name or the content type.
        """
        check_key(key)
        if self._keys is None:
            return await self._sign("GET", key, seconds)
        query = {
            "response-content-disposition": attachment_header(filename),
            "response-content-type": content_type,
        }
        url, region = self._address.object_url(key), self._address.region
        return presign("GET", url, query, self._keys, region=region, seconds=seconds, now=now)

    async def sign_put(self, key: str, *, seconds: int) -> str:
        """Create an upload URL. It can be used repeatedly, so copy the object to another key before trusting it."""
        return await self._sign("PUT", check_key(key), seconds)

    async def _sign(self, method: Literal["GET", "PUT"], key: str, seconds: int) -> str:
        return await self._ask(key, obstore.sign_async(self._store, method, key, timedelta(seconds=seconds)))

    async def verify_link(self, method: str, key: str, query: Mapping[str, str], *, now: datetime) -> Link:
        """Refuse every link. S3 verifies its own links, so no valid link points to our web server."""
        del method, key, query, now
        raise LinkRefused

    async def sweep_unfinished(self, older_than_seconds: float) -> int:
        """Remove old temporary keys.

        Parts of interrupted uploads cannot be listed here. Set up a lifecycle rule for the bucket to remove them.
        """
        before = await self.read_clock() - timedelta(seconds=older_than_seconds)
        old = [info.key async for info in self._objects(UNFINISHED) if info.last_modified < before]
        for start in range(0, len(old), PAGE_KEYS):
            await self._delete(old[start : start + PAGE_KEYS])
        return len(old)

    async def read_clock(self) -> datetime:
        """Return the modification time that the server would give to an object written now."""
        name = f"{UNFINISHED}/{uuid4().hex}"
        await self._create(name, b"")
        try:
            return _describe(await self._ask(name, obstore.head_async(self._store, name), reads=name)).last_modified
        finally:
            await self._clean_up(name)

    async def check(self) -> None:
        """Test whether the bucket works (see `probe`)."""
        await probe(self)

    async def aclose(self) -> None:
        """Stop the threads. Connections close when the bucket object is freed."""
        await self._threads.aclose()

    async def _ask(self, key: str, answer: Awaitable[T], *, reads: str | None = None) -> T:
        """Wait for a request and convert its errors.

        `reads` is the key of the object that the request reads. If `reads` is None, a "not found" response means that
        the bucket or the server is missing.
        """
        try:
            return await answer
        except AlreadyExistsError:
            raise AlreadyStored(key) from None
        except FileNotFoundError as error:
            if reads is None or is_missing_bucket(error):
                raise explain(error, self._address) from None
            raise ObjectMissing(reads) from None
        except BaseError as error:
            raise explain(error, self._address) from None


def _describe(meta: ObjectMeta) -> ObjectInfo:
    return ObjectInfo(meta["path"], meta["size"], meta["last_modified"])
