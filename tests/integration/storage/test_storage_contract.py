"""What both buckets promise, on a real file system and a real S3 server."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from octavo.core.errors import AlreadyStored, Defect, TooLarge
from octavo.storage import BadKey, Bucket, ObjectMissing, Stored
from octavo.storage.local import BLOCK_BYTES
from octavo.storage.s3 import PART_BYTES, S3Bucket

MEBIBYTE = 1 << 20
LARGE = PART_BYTES + MEBIBYTE


async def pieces(content: bytes, size: int = 64 << 10) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def everything(bucket: Bucket, prefix: str = "") -> set[str]:
    return {info.key async for info in bucket.list(prefix)}


async def assert_nothing_is_left(bucket: Bucket) -> None:
    assert await everything(bucket) == set()
    assert await bucket.sweep_unfinished(-60) == 0  # everything would be old enough


@pytest.mark.parametrize(
    "size",
    [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 20 * MEBIBYTE],
)
async def test_a_stored_object_can_be_read_back(bucket: Bucket, size: int) -> None:
    content = os.urandom(size)
    stored = await bucket.put("a/b", pieces(content))
    assert stored == Stored("a/b", size, hashlib.sha256(content).hexdigest())
    assert await bucket.read("a/b", limit=size) == content
    stream = await bucket.stream("a/b")
    assert b"".join([chunk async for chunk in stream]) == content
    assert (stream.info.bytes, stream.start, stream.end) == (size, 0, size)
    assert await everything(bucket) == {"a/b"}


async def test_bytes_and_files_can_be_put_too(bucket: Bucket, tmp_path: Path) -> None:
    content = os.urandom(LARGE)
    (tmp_path / "file").write_bytes(content)
    stored = [await bucket.put("bytes", content), await bucket.put("file", tmp_path / "file")]
    assert {one.sha256 for one in stored} == {hashlib.sha256(content).hexdigest()}
    assert await bucket.read("file") == await bucket.read("bytes") == content


async def test_a_stream_of_one_object_can_be_put_as_another(bucket: Bucket) -> None:
    first = await bucket.put("a", os.urandom(LARGE))
    second = await bucket.put("b", await bucket.stream("a"))
    assert second == Stored("b", first.bytes, first.sha256)


async def test_the_information_of_an_object(bucket: Bucket) -> None:
    await bucket.put("a/b", b"12345")
    info = await bucket.stat("a/b")
    assert info is not None
    assert (info.key, info.bytes) == ("a/b", 5)
    assert abs(info.last_modified - datetime.now(UTC)) < timedelta(minutes=1)
    assert await bucket.stat("a") is None
    assert await bucket.stat("a/b/c") is None


@pytest.mark.parametrize("size", [10, LARGE])
async def test_an_object_is_written_once(bucket: Bucket, size: int) -> None:
    content = os.urandom(size)
    await bucket.put("a", content)
    for second in (b"small", os.urandom(LARGE)):
        with pytest.raises(AlreadyStored):
            await bucket.put("a", second)
    assert await bucket.read("a") == content
    assert await bucket.sweep_unfinished(-60) == 0


@pytest.mark.parametrize(("size", "writers"), [(1_000, 20), (LARGE, 5)])
async def test_one_of_many_writers_wins(bucket: Bucket, size: int, writers: int) -> None:
    contents = [os.urandom(size) for _ in range(writers)]
    results = await asyncio.gather(*(bucket.put("a", one) for one in contents), return_exceptions=True)
    won = [index for index, result in enumerate(results) if isinstance(result, Stored)]
    assert len(won) == 1
    assert sum(isinstance(result, AlreadyStored) for result in results) == writers - 1
    assert await bucket.read("a") == contents[won[0]]
    assert await bucket.sweep_unfinished(-60) == 0


async def test_one_of_many_copies_wins(bucket: Bucket) -> None:
    contents = [os.urandom(100) for _ in range(5)]
    for index, content in enumerate(contents):
        await bucket.put(f"source/{index}", content)
    copies = (bucket.copy(f"source/{index}", "target") for index in range(5))
    results = await asyncio.gather(*copies, return_exceptions=True)
    assert sum(isinstance(result, AlreadyStored) for result in results) == 4
    assert await bucket.read("target") == contents[results.index(None)]


@pytest.mark.parametrize("limit", [0, 100, LARGE + MEBIBYTE])
async def test_too_large_a_body_leaves_nothing(bucket: Bucket, limit: int) -> None:
    with pytest.raises(TooLarge):
        await bucket.put("a", pieces(bytes(limit + 1)), limit=limit)
    await assert_nothing_is_left(bucket)


async def test_a_body_of_the_limit_is_stored(bucket: Bucket) -> None:
    assert (await bucket.put("a", pieces(bytes(100), 7), limit=100)).bytes == 100


@pytest.mark.parametrize("error", [ValueError("ours"), FileNotFoundError("ours")])
@pytest.mark.parametrize("size", [0, 100, 3 * PART_BYTES])
async def test_a_body_that_fails_leaves_nothing(bucket: Bucket, size: int, error: Exception) -> None:
    async def failing() -> AsyncIterator[bytes]:
        async for piece in pieces(bytes(size)):
            yield piece
        raise error

    with pytest.raises(type(error), match="ours"):
        await bucket.put("a", failing())
    await assert_nothing_is_left(bucket)


@pytest.mark.parametrize("size", [0, 100, 3 * PART_BYTES])
async def test_a_cancel_while_the_body_comes_leaves_nothing(bucket: Bucket, size: int) -> None:
    waiting = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        async for piece in pieces(bytes(size)):
            yield piece
        waiting.set()
        await asyncio.Event().wait()

    put = asyncio.create_task(bucket.put("a", endless()))
    await waiting.wait()
    put.cancel()
    with pytest.raises(asyncio.CancelledError):
        await put
    await assert_nothing_is_left(bucket)


@pytest.mark.parametrize("size", [100, LARGE])
async def test_a_cancel_at_any_moment_leaves_all_or_nothing(bucket: Bucket, size: int) -> None:
    """Stepping through the event loop meets every place where a put can be waiting."""
    for steps in [*range(12), *range(12, 120, 9)]:
        put = asyncio.create_task(bucket.put("a", bytes(size)))
        for _ in range(steps):
            await asyncio.sleep(0.001 if steps > 12 else 0)
        put.cancel()
        try:
            await put
        except asyncio.CancelledError:
            await assert_nothing_is_left(bucket)
        else:
            assert len(await bucket.read("a")) == size
            await bucket.delete(["a"])


RANGES: list[tuple[int, int | None, slice]] = [
    (0, None, slice(None)),
    (1, None, slice(1, None)),
    (0, 1, slice(0, 1)),
    (PART_BYTES - 1, PART_BYTES + 1, slice(PART_BYTES - 1, PART_BYTES + 1)),
    (5, 5, slice(0, 0)),
    (LARGE - 3, LARGE + 100, slice(LARGE - 3, None)),  # cut to the size
    (LARGE + 5, LARGE + 9, slice(0, 0)),
]


async def test_ranges(bucket: Bucket) -> None:
    content = os.urandom(LARGE)
    await bucket.put("a", content)
    for start, end, expected in RANGES:
        stream = await bucket.stream("a", start=start, end=end)
        got = b"".join([chunk async for chunk in stream])
        assert got == content[expected], (start, end)
        assert stream.end - stream.start == len(got), (start, end)


@pytest.mark.parametrize(("start", "end"), [(-1, None), (2, 1)])
async def test_backward_ranges_are_defects(bucket: Bucket, start: int, end: int) -> None:
    await bucket.put("a", b"123")
    with pytest.raises(Defect):
        await bucket.stream("a", start=start, end=end)


async def test_reading_at_once_has_a_limit(bucket: Bucket) -> None:
    await bucket.put("a", b"12345")
    with pytest.raises(TooLarge):
        await bucket.read("a", limit=4)


async def test_many_objects_are_listed_and_deleted(bucket: Bucket) -> None:
    count = 1_500 if isinstance(bucket, S3Bucket) else 150  # S3 lists and deletes a thousand at a time
    keys = {f"many/{number % 7}/{number}" for number in range(count)}
    slots = asyncio.Semaphore(32)

    async def put(key: str) -> None:
        async with slots:
            await bucket.put(key, b"x")

    await asyncio.gather(*map(put, keys), put("other"), put("many-more/1"))
    assert await everything(bucket) == keys | {"other", "many-more/1"}
    assert await everything(bucket, "many") == keys
    assert await everything(bucket, "many/3") == {key for key in keys if key.startswith("many/3/")}
    assert await everything(bucket, "none") == set()
    await bucket.delete(keys)
    assert await everything(bucket) == {"other", "many-more/1"}


async def test_deleting_twice_is_not_an_error(bucket: Bucket) -> None:
    await bucket.put("a/b", b"x")
    for _ in range(2):
        await bucket.delete(["a/b", "never/there"])
    assert await bucket.stat("a/b") is None
    await bucket.put("a/b", b"again")
    assert await bucket.read("a/b") == b"again"


@pytest.mark.parametrize("size", [0, 10, LARGE])
async def test_a_copy_is_independent_and_written_once(bucket: Bucket, size: int) -> None:
    content = os.urandom(size)
    await bucket.put("incoming/a", content)
    await bucket.copy("incoming/a", "final/a")
    with pytest.raises(AlreadyStored):
        await bucket.copy("incoming/a", "final/a")
    await bucket.delete(["incoming/a"])
    assert await bucket.read("final/a") == content
    assert await bucket.sweep_unfinished(-60) == 0


async def test_a_missing_object_is_named(bucket: Bucket) -> None:
    calls: list[Callable[[], object]] = [
        lambda: bucket.read("no/thing"),
        lambda: bucket.stream("no/thing"),
        lambda: bucket.copy("no/thing", "target"),
    ]
    for call in calls:
        with pytest.raises(ObjectMissing, match="no/thing"):
            await call()  # pyright: ignore[reportGeneralTypeIssues] - each is a coroutine
    await assert_nothing_is_left(bucket)


@pytest.mark.parametrize("key", ["../escape", "/etc/passwd", "a/../../b", ".octavo/signing-key", ".unfinished/x", ""])
async def test_hostile_keys_are_refused_everywhere(bucket: Bucket, key: str) -> None:
    with pytest.raises(BadKey):
        await bucket.put(key, b"x")
    with pytest.raises(BadKey):
        await bucket.read(key)
    with pytest.raises(BadKey):
        await bucket.stream(key)
    with pytest.raises(BadKey):
        await bucket.stat(key)
    with pytest.raises(BadKey):
        await bucket.copy(key, "a")
    with pytest.raises(BadKey):
        await bucket.copy("a", key)
    with pytest.raises(BadKey):
        await bucket.delete([key])
    with pytest.raises(BadKey):
        await bucket.sign_get(key, now=datetime.now(UTC), seconds=1, filename="f", content_type="text/plain")


async def test_the_check_leaves_nothing(bucket: Bucket) -> None:
    await bucket.check()
    await assert_nothing_is_left(bucket)


async def test_the_sweep_keeps_recent_objects(bucket: Bucket) -> None:
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield bytes(BLOCK_BYTES)
        yield bytes(BLOCK_BYTES)
        waiting.set()
        await go_on.wait()

    put = asyncio.create_task(bucket.put("a", slow()))
    await waiting.wait()
    assert await bucket.sweep_unfinished(60) == 0
    go_on.set()
    assert (await put).bytes == 2 * BLOCK_BYTES
