"""A ZIP file on the server as a source of documents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from zipfile import ZipFile

from octavo.extensions import StoredFile

PIECE = 1 << 20


class ZipStore:
    def __init__(self, address: str, password: str) -> None:
        self._path = Path(address.removeprefix("zip://"))
        self._password = password.encode() or None

    async def list_files(self) -> list[StoredFile]:
        return await asyncio.to_thread(self._list)

    def _list(self) -> list[StoredFile]:
        with ZipFile(self._path) as archive:
            return [
                StoredFile(one.filename, one.file_size, f"{one.CRC:08x}")
                for one in archive.infolist()
                if not one.is_dir()
            ]

    async def read(self, path: str) -> AsyncIterator[bytes]:
        with ZipFile(self._path) as archive, archive.open(path, pwd=self._password) as file:
            while piece := await asyncio.to_thread(file.read, PIECE):
                yield piece

    async def aclose(self) -> None:
        """Nothing stays open."""
