"""A file on its way to a server: read in pieces, hashed as it goes, never in memory as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from octavo.client.errors import FileChanged

PIECE_BYTES = 256 << 10

OnProgress = Callable[[int], None]


class FileBody:
    """One transfer of the first `size` bytes; `on_progress` is told how many are sent. A repeated one is another."""

    def __init__(self, file: Path, size: int, on_progress: OnProgress | None = None) -> None:
        self._file = file
        self._size = size
        self._on_progress = on_progress
        self._digest = sha256()

    @property
    def sha256(self) -> str:
        """Of what was sent; meant to be read at the end."""
        return self._digest.hexdigest()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream, piece = await asyncio.to_thread(self._open)
        try:
            sent = 0
            while piece:
                sent += len(piece)
                yield piece
                if self._on_progress:
                    self._on_progress(sent)
                # What fits into one piece is opened, read and hashed in one visit to a thread.
                piece = await asyncio.to_thread(self._read, stream, sent) if sent < self._size else b""
        finally:
            stream.close()

    def _open(self) -> tuple[BinaryIO, bytes]:
        stream = self._file.open("rb", buffering=0)
        try:
            return stream, self._read(stream, 0)
        except BaseException:
            stream.close()
            raise

    def _read(self, stream: BinaryIO, sent: int) -> bytes:
        piece = stream.read(min(PIECE_BYTES, self._size - sent))
        if not piece and sent < self._size:
            raise FileChanged(str(self._file))
        self._digest.update(piece)
        return piece
