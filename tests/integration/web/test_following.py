"""One reader for each process: however streams come and go, every seat gets each event once."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from octavo.database import Database, connect
from octavo.web.live import MOST_WAITING, Hub, StreamIntervals
from tests.support.live import tell, tell_many
from tests.support.processes import PATIENCE_SECONDS

AT_ONCE = StreamIntervals(poll_seconds=0)


async def take_pauses(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("pauses", range(8))
async def test_a_reader_that_is_stopped_at_any_moment_never_runs_beside_the_next_one(
    database_info: str, pauses: int
) -> None:
    """It waits for the only connection, and gets it in the moment in which the last seat is left."""
    owner = uuid4()
    async with Database(database_info, connections=1) as database, await connect(database_info) as other:
        hub = Hub(database, AT_ONCE)
        async with hub.subscribe(owner):
            async with database.connection():
                await take_pauses(50)  # the reader waits in line
            await take_pauses(pauses)
        async with hub.subscribe(owner) as seat:
            told = [await tell(other, owner) for _ in range(3)]
            got: list[object] = []
            async with asyncio.timeout(PATIENCE_SECONDS):
                while len(got) < 3:
                    got += [event.process_id for event in await seat.take()]
            readers = [task for task in asyncio.all_tasks() if "Hub._read" in repr(task)]
            await asyncio.sleep(0.05)  # in which a second one would have read them again
            assert (got, len(readers)) == (told, 1)


async def test_an_overflow_ends_slow_streams_but_not_those_still_catching_up(database_info: str) -> None:
    owner = uuid4()
    async with Database(database_info) as database:
        hub = Hub(database, AT_ONCE)
        async with hub.subscribe(owner, is_behind=True) as reading, hub.subscribe(owner) as slow:
            tell_many(database_info, owner, MOST_WAITING + 1)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await slow.ended.wait()
            assert (slow.is_slow, reading.is_slow, reading.ended.is_set()) == (True, False, False)
            assert [reading.catch_up(), reading.catch_up()] == [False, True]  # it reads once more, and has all
