"""Responses of a fetch, decompressed while they arrive and never beyond the limit."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass

from octavo.core.errors import TooLarge
from octavo.core.formatting import format_bytes
from octavo.fetch.errors import AnswerBroken, AnswerIncomplete


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """`bytes` limits the decompressed body; `seconds` limits the whole fetch including redirects."""

    bytes: int
    seconds: float
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """A response with any status. `url` is the final URL; header names are in lower case."""

    url: str
    status: int
    content_type: str
    headers: Mapping[str, str]
    body: bytes


ACCEPTED = "gzip, deflate"
_EITHER_HEADER = zlib.MAX_WBITS | 32  # gzip or zlib, detected by its header
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})


class Body:
    """Reads one response body and removes one layer of compression.

    Bytes are counted while decompressing, because a small response can expand to a huge one.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        name = encoding.strip().lower()
        if name and name != "identity" and name not in _PACKED:
            raise AnswerBroken(f"Unsupported compression: {name[:40]}.")
        self._limit = limit
        self._bytes = bytearray()
        self._unpacker = zlib.decompressobj(_EITHER_HEADER) if name in _PACKED else None
        self._bare_tried = name != "deflate"

    @property
    def size(self) -> int:
        return len(self._bytes)

    async def read(self, chunks: AsyncIterable[bytes]) -> bytes:
        received = False
        async for chunk in chunks:
            self._bytes += self._unpack(chunk) if self._unpacker else chunk
            if len(self._bytes) > self._limit:
                raise TooLarge(f"The limit is {format_bytes(self._limit)}.")
            received = received or bool(chunk)
        if self._unpacker and received and not self._unpacker.eof:
            raise AnswerIncomplete
        return bytes(self._bytes)

    def _unpack(self, chunk: bytes) -> bytes:
        room = self._limit - len(self._bytes) + 1
        unpacker = self._unpacker
        if unpacker is None or unpacker.eof:
            return b""
        try:
            made = unpacker.decompress(chunk, room)
        except zlib.error:
            if self._bare_tried or self._bytes:
                raise AnswerBroken from None
            # Some servers send deflate without its header.
            self._bare_tried = True
            self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._unpack(chunk)
        return made
