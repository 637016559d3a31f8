"""No process outlives its purpose: not when a task is cancelled, not when the preloaded parent or worker is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from octavo.sandbox import Call, ChildCrashed, Sandbox
from octavo.sandbox.protocol import ParentEnded
from tests.support.processes import PATIENCE_SECONDS

CHILDREN = Path(__file__).parent / "children"


@pytest_asyncio.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """One for each test: these tests kill it."""
    async with Sandbox(readable=[CHILDREN]) as started:
        yield started


def preloaded_parents() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "octavo.sandbox.parent" in child.cmdline()]


def wait_for_end(process: psutil.Process) -> None:
    """Without reaping it, and without giving the event loop a chance to notice."""
    with contextlib.suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.001)


async def start_sleeper(sandbox: Sandbox) -> asyncio.Task[object]:
    """Returns once the child has said that it is asleep."""
    asleep = asyncio.Event()
    task: asyncio.Task[object] = asyncio.create_task(
        sandbox.run(Call("deaths:sleep_for_ever"), on_progress=lambda _progress: asleep.set())
    )
    await asyncio.wait_for(asleep.wait(), PATIENCE_SECONDS)
    return task


async def test_cancelled_task_leaves_no_process(sandbox: Sandbox) -> None:
    task = await start_sleeper(sandbox)
    [parent] = preloaded_parents()
    assert len(parent.children()) == 1
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 2
    assert parent.children() == []


async def test_second_cancellation_does_not_leave_a_process_either(sandbox: Sandbox) -> None:
    task = await start_sleeper(sandbox)
    [parent] = preloaded_parents()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert parent.children() == []


async def test_a_task_over_the_limit_waits_until_another_has_ended() -> None:
    async with Sandbox(readable=[CHILDREN], parallel=1) as sandbox:
        first = await start_sleeper(sandbox)
        second = asyncio.create_task(start_sleeper(sandbox))
        [parent] = preloaded_parents()
        await asyncio.wait([second], timeout=0.1)
        assert len(parent.children()) == 1
        first.cancel()
        sleeper = await second
        assert len(parent.children()) == 1
        sleeper.cancel()
        await asyncio.gather(first, sleeper, return_exceptions=True)


async def test_a_task_whose_preloaded_parent_is_killed_is_started_again(sandbox: Sandbox) -> None:
    """Whoever killed it, it was not the file; but what kills it each time is a crash."""
    asleep, killed = asyncio.Event(), set[int]()
    task = asyncio.create_task(sandbox.run(Call("deaths:sleep_for_ever"), on_progress=lambda _progress: asleep.set()))
    for _ in range(3):
        await asyncio.wait_for(asleep.wait(), PATIENCE_SECONDS)
        asleep.clear()
        [parent] = preloaded_parents()
        [child] = parent.children()
        parent.kill()
        killed.add(parent.pid)
        psutil.wait_procs([parent, child], timeout=PATIENCE_SECONDS)
        assert not child.is_running()
    with pytest.raises(ParentEnded):
        await task
    assert (await sandbox.run(Call("innocent:echo", {"again": True}))).value == {"again": True}
    [replacement] = preloaded_parents()
    assert replacement.pid not in killed


async def test_preloaded_parent_killed_while_idle_goes_unnoticed(sandbox: Sandbox) -> None:
    [parent] = preloaded_parents()
    parent.kill()
    wait_for_end(parent)
    assert (await sandbox.run(Call("innocent:echo", {"again": True}))).value == {"again": True}


async def test_killed_child_is_a_crash(sandbox: Sandbox) -> None:
    task = await start_sleeper(sandbox)
    [parent] = preloaded_parents()
    [child] = parent.children()
    child.kill()
    with pytest.raises(ChildCrashed, match="SIGKILL"):
        await task
    assert parent.is_running()


def test_killed_worker_takes_everything_with_it() -> None:
    with subprocess.Popen([sys.executable, str(CHILDREN / "worker.py")], stdout=subprocess.PIPE) as worker:
        assert worker.stdout
        processes = [psutil.Process(pid) for pid in json.loads(worker.stdout.readline())]
        assert len(processes) == 3
        worker.kill()
        _, alive = psutil.wait_procs(processes, timeout=5)
    assert alive == []


async def test_closing_ends_running_tasks() -> None:
    async with Sandbox(readable=[CHILDREN]) as sandbox:
        task = await start_sleeper(sandbox)
        [parent] = preloaded_parents()
        family = [parent, *parent.children()]
    with pytest.raises(ChildCrashed):
        await task
    assert not any(process.is_running() for process in family)


async def test_fifty_tasks_run_in_parallel(sandbox: Sandbox) -> None:
    started = [sandbox.run(Call("innocent:echo", {"number": number})) for number in range(50)]
    outcomes = await asyncio.gather(*started)
    assert [outcome.value for outcome in outcomes] == [{"number": number} for number in range(50)]
    [parent] = preloaded_parents()
    assert parent.children() == []


async def test_nothing_is_left_open(sandbox: Sandbox) -> None:
    [parent] = preloaded_parents()
    await sandbox.run(Call("innocent:nothing"))
    before = psutil.Process().num_fds()
    for _ in range(20):
        await sandbox.run(Call("innocent:nothing"))
        with pytest.raises(ChildCrashed):
            await sandbox.run(Call("deaths:exit_quietly"))
    assert psutil.Process().num_fds() == before
    assert parent.children() == []
