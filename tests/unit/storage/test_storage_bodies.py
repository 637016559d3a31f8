from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import TooLarge
from octavo.storage.writing import Body, Digest, Threads, in_blocks


async def blocks_of(body: Body, size: int, limit: int | None = None) -> list[bytes]:
    threads = Threads(1)
    try:
        return [block async for block in in_blocks(body, size, limit, threads)]
    finally:
        await threads.aclose()


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", []),
        (b"abcd", [b"abcd"]),
        (b"abcde", [b"abcd", b"e"]),
    ],
)
async def test_bytes_are_cut(body: bytes, expected: list[bytes]) -> None:
    assert await blocks_of(body, 4) == expected


async def test_a_file_is_read_block_by_block(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abcdefghi")
    assert await blocks_of(path, 4) == [b"abcd", b"efgh", b"i"]


async def test_small_chunks_are_joined_and_large_ones_cut() -> None:
    assert await blocks_of(chunks(b"a", b"b", b"", b"c", b"defghijkl"), 4) == [b"abc", b"defg", b"hijk", b"l"]


async def test_the_limit_itself_is_allowed() -> None:
    assert await blocks_of(chunks(b"ab", b"cd"), 8, limit=4) == [b"abcd"]


async def test_one_byte_more_is_refused() -> None:
    with pytest.raises(TooLarge, match="4 bytes"):
        await blocks_of(chunks(b"ab", b"cde"), 8, limit=4)


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 30))
async def test_nothing_is_lost_and_no_block_is_too_large(parts: list[bytes], size: int) -> None:
    blocks = await blocks_of(chunks(*parts), size)
    assert b"".join(blocks) == b"".join(parts)
    assert all(0 < len(block) <= size for block in blocks)
    assert len(blocks) == 1 or not 0 < sum(map(len, parts)) <= size


def test_a_digest_is_that_of_all_blocks() -> None:
    digest = Digest()
    digest.update(b"ab")
    digest.update(b"c")
    assert (digest.bytes, digest.sha256) == (3, hashlib.sha256(b"abc").hexdigest())
