"""Files of the bucket on this machine for a while: who looks at a page looks at the next one too."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from octavo.storage import Bucket, copy_to_file

MOST_FILES = 8
MOST_BYTES = 256 << 20


@dataclass(slots=True)
class Copy:
    path: Path
    bytes: int
    users: int = 0

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


class LocalCopies:
    """Those that were used longest ago go first, and none while somebody reads it."""

    def __init__(self, bucket: Bucket, *, most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES) -> None:
        self._bucket = bucket
        self._most_files = most_files
        self._most_bytes = most_bytes
        self._folder = tempfile.TemporaryDirectory(prefix="octavo-")
        self._kept: dict[str, Copy] = {}
        self._fetching: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._made = 0

    @asynccontextmanager
    async def open(self, key: str) -> AsyncGenerator[Path]:
        lock = self._fetching.setdefault(key, asyncio.Lock())
        async with lock:
            copy = self._kept.pop(key, None)
            if copy is None or not copy.path.exists():
                copy = await self._fetch(key)
            self._kept[key] = copy
            copy.users += 1
        try:
            yield copy.path
        finally:
            copy.users -= 1
            self._drop_oldest()

    async def _fetch(self, key: str) -> Copy:
        self._made += 1
        path = Path(self._folder.name, str(self._made))
        # Whoever tidies up temporary files may have taken the folder.
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return Copy(path, await copy_to_file(self._bucket, key, path))

    def _drop_oldest(self) -> None:
        for key, copy in list(self._kept.items()):
            fits = sum(one.bytes for one in self._kept.values()) <= self._most_bytes
            if len(self._kept) <= self._most_files and fits:
                return
            if not copy.users:
                del self._kept[key]
                copy.remove()

    def close(self) -> None:
        self._folder.cleanup()
