from __future__ import annotations

import asyncio
import threading

import pytest

from octavo.storage.writing import Threads, complete_or_undo


async def test_a_cancelled_caller_waits_for_its_call() -> None:
    threads, begun, go_on, ended = Threads(1), asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def call() -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        ended.set()

    caller = asyncio.create_task(threads.run(call))
    await begun.wait()
    caller.cancel()
    await asyncio.sleep(0)
    caller.cancel()  # an impatient second time
    await asyncio.sleep(0)
    assert not caller.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended.is_set()
    await threads.aclose()


@pytest.mark.parametrize(("fails", "expected"), [(False, ["done", "undone"]), (True, [])])
async def test_a_cancel_undoes_what_took_effect(fails: bool, expected: list[str]) -> None:
    begun, go_on, log = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> None:
        begun.set()
        await go_on.wait()
        if fails:
            raise OSError
        log.append("done")

    async def undo() -> None:
        log.append("undone")

    caller = asyncio.create_task(complete_or_undo(work(), undo))
    await begun.wait()
    caller.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert log == expected


async def test_a_failure_is_passed_on_and_nothing_undone() -> None:
    async def work() -> None:
        raise OSError

    async def undo() -> None:
        raise AssertionError

    with pytest.raises(OSError):  # noqa: PT011 - the plain class is what was raised
        await complete_or_undo(work(), undo)
