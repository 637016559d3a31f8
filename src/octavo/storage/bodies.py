"""Splits the content of an object into blocks for writing, and enforces the size limit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path

from octavo.core.errors import TooLarge
from octavo.core.formatting import format_bytes
from octavo.storage.threads import Threads

Body = bytes | Path | AsyncIterable[bytes]


class Digest:
    """The size and SHA-256 hash of the bytes added so far."""

    def __init__(self) -> None:
        self.bytes = 0
        self._hash = sha256()

    def update(self, block: bytes) -> None:
        """Add a block. Blocks the thread while hashing."""
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
