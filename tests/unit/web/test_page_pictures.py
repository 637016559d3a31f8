"""Files are brought to this machine once, and pages that could not be drawn are not tried again at once."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from uuid import uuid4

import pytest

from octavo.core.errors import PageNotDrawn
from octavo.storage import Bucket, ObjectMissing, open_bucket
from octavo.web.context.page_pictures import FAILED_SECONDS, MOST_FAILED, FailedPages, LocalCopies, PageRequest
from tests.support.clock import Clock


@pytest.fixture
async def bucket(tmp_path: Path) -> AsyncGenerator[Bucket]:
    async with aclosing(open_bucket((tmp_path / "objects").as_uri())) as bucket:
        for key in ("one", "two", "three"):
            await bucket.put(key, key.encode() * 10)
        yield bucket


async def test_a_file_is_fetched_once_for_all_callers(bucket: Bucket) -> None:
    copies = LocalCopies(bucket)

    async def read() -> Path:
        async with copies.open("one") as path:
            assert path.read_bytes() == b"one" * 10
            return path

    assert len(set(await asyncio.gather(*(read() for _ in range(5))))) == 1
    await bucket.delete(["one"])
    await read()
    copies.close()


async def test_the_least_recently_used_copy_is_removed_first_but_never_one_in_use(bucket: Bucket) -> None:
    copies = LocalCopies(bucket, most_files=1)
    async with AsyncExitStack() as reading:
        first = await reading.enter_async_context(copies.open("one"))
        async with copies.open("two") as second:
            pass
        assert (first.exists(), second.exists()) == (True, False)
    async with copies.open("three") as third:
        pass
    assert (first.exists(), third.exists()) == (False, True)
    copies.close()
    assert not third.parent.exists()


async def test_a_missing_file_leaves_nothing_behind(bucket: Bucket) -> None:
    copies = LocalCopies(bucket)
    with pytest.raises(ObjectMissing):
        async with copies.open("four"):
            pass
    async with copies.open("one") as path:
        assert list(path.parent.iterdir()) == [path]
    copies.close()


async def test_files_that_somebody_tidied_up_are_brought_again(bucket: Bucket) -> None:
    copies = LocalCopies(bucket)
    async with copies.open("one") as path:
        pass
    shutil.rmtree(path.parent)
    for key in ("one", "two"):
        async with copies.open(key) as path:
            assert path.read_bytes() == key.encode() * 10
    copies.close()


def test_a_page_that_could_not_be_drawn_is_tried_again_later() -> None:
    clock, wanted = Clock(), PageRequest(uuid4(), uuid4(), 1, 800)
    failures = FailedPages(clock)
    failures.check(wanted)
    failures.note(wanted, "It took too long.")
    with pytest.raises(PageNotDrawn, match="too long"):
        failures.check(wanted)
    clock.now += FAILED_SECONDS
    failures.check(wanted)


def test_only_so_many_failures_are_remembered() -> None:
    failures, owner, document = FailedPages(Clock()), uuid4(), uuid4()
    pages = [PageRequest(owner, document, number, 800) for number in range(MOST_FAILED + 1)]
    for page in pages:
        failures.note(page, None)
    failures.check(pages[0])
    with pytest.raises(PageNotDrawn):
        failures.check(pages[-1])
