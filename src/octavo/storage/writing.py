"""Functions that all buckets use to write objects: they split content into blocks, hash it, and run calls in threads.

A cancellation never interrupts a blocking call or a call with side effects.

Also defines errors about single objects, such as a missing file. If the disk or the S3 server fails, `StorageFailed` is
raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from octavo.core.errors import BadInput, Defect, ErrorClass, StorageFailed, TooLarge
from octavo.core.formatting import format_bytes

P = ParamSpec("P")
T = TypeVar("T")
Body = bytes | Path | AsyncIterable[bytes]


class Threads:
    """Runs blocking calls in threads.

    If a caller is cancelled, it still waits for its call, so that no file is closed while in use.
    """

    def __init__(self, count: int) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="octavo-storage")

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call in a thread and return its result."""
        future = asyncio.get_running_loop().run_in_executor(self._executor, lambda: call(*args, **kwargs))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await ended(future)
            raise

    async def aclose(self) -> None:
        """Stop the threads when their calls have ended."""
        await asyncio.to_thread(self._executor.shutdown)


async def complete_or_undo(work: Coroutine[Any, Any, None], undo: Callable[[], Awaitable[None]]) -> None:
    """Run `work`. If the caller is cancelled, let `work` finish and then undo it.

    If `work` were stopped halfway, it would be unknown whether it had taken effect.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await ended(task)
        if not task.cancelled() and task.exception() is None:
            await undo()
        raise


async def ended(future: asyncio.Future[Any]) -> None:
    """Wait until a future is done, even if the caller is cancelled several times.

    The result of the future is ignored.
    """
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    if not future.cancelled():
        future.exception()


class Digest:
    """Computes the size and SHA-256 hash of bytes while they are added."""

    def __init__(self) -> None:
        self.bytes = 0
        self._hash = sha256()

    def update(self, block: bytes) -> None:
        """Add bytes to the hash and the size. Hashing blocks the calling thread."""
        self._hash.update(block)
        self.bytes += len(block)

    @property
    def sha256(self) -> str:
        """The hash in hexadecimal."""
        return self._hash.hexdigest()


async def in_blocks(body: Body, size: int, limit: int | None, threads: Threads) -> AsyncGenerator[bytes]:
    """Split the content of an object into blocks of at most `size` bytes.

    Small pieces are joined, so that fewer thread calls are needed.
    """
    pending: list[bytes] = []
    held = total = 0
    async with aclosing(_chunks(body, size, threads)) as chunks:
        async for chunk in chunks:
            total += len(chunk)
            if limit is not None and total > limit:
                raise TooLarge(f"The limit is {format_bytes(limit)}.")
            for piece in _pieces(chunk, size):
                if held + len(piece) > size:
                    yield b"".join(pending)
                    pending, held = [], 0
                pending.append(piece)
                held += len(piece)
    if held:
        yield b"".join(pending)


def _pieces(chunk: bytes, size: int) -> list[bytes]:
    return [chunk[start : start + size] for start in range(0, len(chunk), size)]


async def _chunks(body: Body, size: int, threads: Threads) -> AsyncGenerator[bytes]:
    if isinstance(body, bytes):
        yield body
    elif isinstance(body, Path):
        position = 0
        while chunk := await threads.run(_read_at, body, position, size):
            position += len(chunk)
            yield chunk
    else:
        async for chunk in body:
            yield chunk


def _read_at(path: Path, position: int, size: int) -> bytes:
    """Read one block.

    The file is opened again for each block, so that a cancellation cannot leave it open. Opening it is fast.
    """
    with path.open("rb", buffering=0) as file:
        file.seek(position)
        return file.read(size)


class BadKey(Defect):
    """Internal error: invalid storage key. It has been logged; nothing was stored."""

    code = "BAD_KEY"


class StorageUnavailable(StorageFailed):
    """The storage cannot be used at the moment. Work resumes automatically when it is available again."""

    error_class = ErrorClass.NETWORK  # not the fault of a file, so the attempt does not count


class ObjectMissing(StorageFailed):
    """A stored file is missing."""

    error_class = ErrorClass.PERMANENT
    status = 404


class ObjectDamaged(StorageFailed):
    """A stored file is truncated or was changed. Upload the same file again to replace it."""

    code = "FILE_DAMAGED"
    error_class = ErrorClass.PERMANENT
    status = 409  # waiting does not help: the stored bytes conflict with their checksum until somebody uploads the file


class LinkRefused(BadInput):
    """This link has expired or was changed. Open the document again to get a new one."""

    code = "LINK_REFUSED"
    error_class = ErrorClass.PERMANENT
    status = 403
