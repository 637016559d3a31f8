"""Batches of pages are read in parallel, and nobody can tell from the result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from octavo.core.errors import BadInput
from octavo.extract import paged_file
from octavo.extract.paged_file import read_batches
from octavo.extract.pdf.page_batches import batch_ranges

RANGES = list(batch_ranges(450))


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paged_file, "PARALLEL_BATCHES", 2)


class Gate:
    """Batches whose first page is in `held` are complete only after all others that may run before them."""

    def __init__(self, held: int) -> None:
        self.held = held
        self.running = self.most_running = 0
        self.ended: list[int] = []
        self.opened = asyncio.Event()

    async def read(self, first: int, last: int) -> bytes:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        if first == self.held:
            await self.opened.wait()
        if last == RANGES[-1][1]:
            self.opened.set()
        self.running -= 1
        self.ended.append(first)
        return b"%d" % first


def collector(into: list[int]) -> Callable[[int], Awaitable[None]]:
    async def collect(pages: int) -> None:
        into.append(pages)

    return collect


async def test_batches_are_in_the_order_of_their_pages_however_they_end() -> None:
    gate, pages = Gate(held=1), list[int]()
    batches = await read_batches(RANGES, gate.read, collector(pages))
    assert gate.ended[-1] == 1
    assert batches == [b"1", b"101", b"201", b"301", b"401"]


async def test_only_complete_batches_are_counted() -> None:
    gate, pages = Gate(held=1), list[int]()
    await read_batches(RANGES, gate.read, collector(pages))
    assert pages == [100, 200, 300, 350, 450]


async def test_no_more_batches_are_in_memory_than_there_are_cores_for() -> None:
    gate = Gate(held=1)
    await read_batches(RANGES, gate.read, collector([]))
    assert gate.most_running == 2


async def test_a_failure_ends_the_batches_beside_it() -> None:
    cancelled: list[int] = []

    async def read(first: int, last: int) -> bytes:
        if first == 101:
            raise BadInput
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(first)
            raise
        return b""

    with pytest.raises(BadInput):
        await read_batches(RANGES, read, collector([]))
    assert cancelled == [1]
