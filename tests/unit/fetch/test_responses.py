"""A body is unpacked as it comes, and never beyond its limit."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator

import pytest

from octavo.core.errors import TooLarge
from octavo.fetch import AnswerBroken
from octavo.fetch.client import Body
from octavo.fetch.urls import AnswerIncomplete

TEXT = b"Some words that are sent. " * 500


async def in_pieces(data: bytes, size: int = 100) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("X-GZIP", gzip.compress(TEXT)),
        (" deflate ", zlib.compress(TEXT)),
        ("deflate", bare(TEXT)),
    ],
    ids=["plain", "identity", "gzip", "x-gzip", "deflate", "bare deflate"],
)
async def test_it_arrives_as_it_was(encoding: str, packed: bytes) -> None:
    assert await Body(encoding, len(TEXT)).read(in_pieces(packed)) == TEXT
    with pytest.raises(TooLarge):
        await Body(encoding, len(TEXT) - 1).read(in_pieces(packed))


async def test_a_bomb_is_never_unpacked_beyond_the_limit() -> None:
    """One piece of a hundred kilobytes would become a hundred megabytes."""
    bomb = gzip.compress(bytes(100 << 20), 9)
    body = Body("gzip", 1000)
    with pytest.raises(TooLarge):
        await body.read(in_pieces(bomb, len(bomb)))
    assert body.size == 1001


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "unknown"], ids=str)
async def test_packings_that_were_not_asked_for_are_refused(encoding: str) -> None:
    with pytest.raises(AnswerBroken):
        await Body(encoding, 1000).read(in_pieces(b"x"))


@pytest.mark.parametrize(
    "sent", [b"no gzip at all", gzip.compress(TEXT)[:-8] + bytes(8)], ids=["no gzip", "wrong checksum"]
)
async def test_what_cannot_be_unpacked_is_said_to_be_broken(sent: bytes) -> None:
    with pytest.raises(AnswerBroken):
        await Body("gzip", 100_000).read(in_pieces(sent))


@pytest.mark.parametrize(
    ("encoding", "sent"),
    [("gzip", gzip.compress(TEXT)), ("deflate", zlib.compress(TEXT)), ("deflate", bare(TEXT))],
    ids=["gzip", "deflate", "bare deflate"],
)
async def test_a_packed_response_that_ends_early_is_not_taken_for_whole(encoding: str, sent: bytes) -> None:
    for length in (1, len(sent) // 2, len(sent) - 1):
        with pytest.raises(AnswerIncomplete):
            await Body(encoding, 100_000).read(in_pieces(sent[:length]))
    assert await Body(encoding, 100_000).read(in_pieces(b"")) == b""
