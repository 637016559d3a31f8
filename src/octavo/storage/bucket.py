"""What every bucket does; the rest of Octavo knows nothing else of storage."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from octavo.core.errors import Defect
from octavo.storage.bodies import Body
from octavo.storage.links import Link

READ_LIMIT = 16 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it was written; size and hash are those of the bytes that went through."""

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
    """The bytes of an object from `start` to before `end`. Nothing is held open between two chunks."""

    info: ObjectInfo
    start: int
    end: int
    chunks: AsyncGenerator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.chunks


def cut_to_size(start: int, end: int | None, size: int) -> tuple[int, int]:
    """A range may reach beyond the object; a backward one is a mistake of the caller."""
    if start < 0 or (end is not None and end < start):
        raise Defect(f"There is no range from {start} to {end}.")
    return min(start, size), size if end is None else min(end, size)


class Bucket(Protocol):
    """Objects are written once, under keys made by the server. Memory is constant for any size."""

    async def put(self, key: str, body: Body, *, limit: int | None = None) -> Stored:
        """Store a body, durable and whole. `AlreadyStored`, `TooLarge`, a failure or a cancel leave nothing."""
        ...

    async def read(self, key: str, *, limit: int = READ_LIMIT) -> bytes:
        """A small object at once; `TooLarge` when it is not small."""
        ...

    async def stream(self, key: str, *, start: int = 0, end: int | None = None) -> ObjectStream:
        """An object of any size in chunks; `end` is exclusive, and both are cut to the size."""
        ...

    async def stat(self, key: str) -> ObjectInfo | None:
        """Size and time of an object, or None when there is none."""
        ...

    async def copy(self, source: str, target: str) -> None:
        """Store an object under another key too, without reading it; `AlreadyStored` when that is taken."""
        ...

    async def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that do not exist are no error."""
        ...

    def list(self, prefix: str = "") -> AsyncIterator[ObjectInfo]:
        """All objects under the segments of `prefix`, in no particular order, read page by page."""
        ...

    async def sign_get(self, key: str, *, seconds: int, filename: str, content_type: str) -> str:
        """A link that downloads one object for a while: a full URL, or a path of our own web server."""
        ...

    async def sign_put(self, key: str, *, seconds: int) -> str | None:
        """A URL that takes one object, any number of times for a while; None when only our web server can."""
        ...

    async def verify_link(self, method: str, key: str, query: Mapping[str, str]) -> Link:
        """What a link to our own web server allows; `LinkRefused` when it is old or altered."""
        ...

    async def sweep_unfinished(self, older_than_seconds: float) -> int:
        """Remove what processes that were killed left half written; gives the number of things removed."""
        ...

    async def check(self) -> None:
        """Really write, read back, and delete a small object; `StorageFailed` says what is wrong."""
        ...

    async def aclose(self) -> None:
        """Let go of threads and connections."""
        ...
