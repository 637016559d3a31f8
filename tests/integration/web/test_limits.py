"""Limits hold over all web processes, nobody pays for another, and counting costs little."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import psycopg
import pytest
from psycopg.rows import TupleRow

from octavo.core.errors import RateLimited
from octavo.core.settings import Settings
from octavo.database import Database
from octavo.intake.errors import TooManyUploads
from octavo.web.http.limits import Allowance, Allowances, SignIns, Slots, TooFast
from tests.support.clock import Clock

SIX = Allowance(6)
FULL = RateLimited("full")


class Process:
    """What one web process counts with."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.allowances = Allowances(database, clock, most_keys=10)
        self.slots = Slots(database)

    async def taken(self, key: str, wanted: int, allowance: Allowance = SIX) -> int:
        """How many of so many calls are let through."""
        through = 0
        for _ in range(wanted):
            try:
                await self.allowances.take(key, allowance)
            except TooFast:
                continue
            through += 1
        return through


class World:
    """Several web processes on one database."""

    def __init__(self, database: Database, connection: psycopg.AsyncConnection[TupleRow]) -> None:
        self.clock = Clock()
        self.database = database
        self.connection = connection
        self.one, self.other = Process(database, self.clock), Process(database, self.clock)

    async def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        await self.connection.execute(
            b"UPDATE engine_clock SET shift = shift + make_interval(secs => %s)", [float(seconds)]
        )

    async def number(self, statement: bytes) -> int:
        row = await (await self.connection.execute(statement)).fetchone()
        assert row
        return row[0]


@pytest.fixture
async def world(database_info: str) -> AsyncGenerator[World]:
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(database_info))
        connect = psycopg.AsyncConnection.connect(database_info, autocommit=True)
        made = World(database, await stack.enter_async_context(await connect))
        for process in (made.one, made.other):
            stack.push_async_callback(process.slots.aclose)
        yield made


# Requests ----------------------------------------------------------------------------------------------------------


async def test_two_processes_share_one_allowance(world: World) -> None:
    assert await world.one.taken("a", 4) == 4
    assert await world.other.taken("a", 4) == 2
    assert await world.one.taken("a", 1) == 0
    assert await world.other.taken("b", 4) == 4


@pytest.mark.parametrize(("seconds", "more"), [(9, 0), (11, 1), (31, 3), (61, 6), (3600, 6)])
async def test_used_calls_are_refilled_over_time(world: World, seconds: float, more: int) -> None:
    assert await world.one.taken("a", 20) == 6
    await world.pass_time(seconds)
    assert await world.one.taken("a", 20) + await world.other.taken("a", 20) == more


async def test_a_refusal_says_when_to_come_back_and_that_is_true(world: World) -> None:
    await world.one.taken("a", 6)
    with pytest.raises(TooFast) as refused:
        await world.one.allowances.take("a", SIX)
    wait = refused.value.retry_after_seconds or 0
    assert 0 < wait <= 10
    await world.pass_time(wait + 0.01)
    assert await world.one.taken("a", 1) == 1


async def test_most_requests_and_all_refused_ones_leave_the_database_alone(world: World) -> None:
    large = Allowance(600)
    await world.one.allowances.take("a", large)
    before = await world.number(b"SELECT tokens::int FROM allowances")
    assert await world.one.taken("a", 5, large) == 5
    assert await world.number(b"SELECT tokens::int FROM allowances") == before == 594
    assert await world.one.taken("b", 7) == 6
    await world.connection.execute(b"ALTER TABLE allowances RENAME TO hidden")
    assert await world.one.taken("b", 100) == 0


async def test_a_large_allowance_is_exceeded_by_no_more_than_a_hundredth_per_process(world: World) -> None:
    large = Allowance(1000)
    through = await world.one.taken("a", 800, large) + await world.other.taken("a", 800, large)
    assert 1000 <= through <= 1020


async def test_memory_and_table_are_bounded(world: World) -> None:
    for number in range(50):
        await world.one.allowances.take(str(number), SIX)
    assert len(world.one.allowances) == 10
    await world.pass_time(3601)
    await world.one.allowances.take("last", SIX)
    assert await world.number(b"SELECT count(*) FROM allowances") == 1


# Signing in --------------------------------------------------------------------------------------------------------


def sign_ins(process: Process, **settings: int) -> SignIns:
    return SignIns(process.allowances, Settings(**settings))  # pyright: ignore[reportArgumentType] - these are numbers


async def tried(sign_ins: SignIns, email: str, address: str, times: int = 1) -> int:
    """How many of so many wrong passwords are tried."""
    through = 0
    for _ in range(times):
        try:
            await sign_ins.begin(email, address)
        except TooFast:
            continue
        through += 1
    return through


async def test_wrong_passwords_count_over_all_processes_and_right_ones_do_not(world: World) -> None:
    one, other = sign_ins(world.one, sign_in_tries=3), sign_ins(world.other, sign_in_tries=3)
    for _ in range(10):
        await one.begin("ada@example.org", "192.0.2.1")
        await one.succeed("ADA@example.org", "192.0.2.1")
    assert await tried(one, "ada@example.org", "192.0.2.1", 2) == 2
    assert await tried(other, "ADA@example.org", "192.0.2.1", 2) == 1
    assert await tried(other, "ada@example.org", "192.0.2.2") == 1
    assert await tried(other, "bob@example.org", "192.0.2.1") == 1


async def test_one_address_cannot_spray_many_accounts(world: World) -> None:
    one = sign_ins(world.one, sign_in_tries_address=5)
    assert sum([await tried(one, f"{name}@example.org", "192.0.2.1") for name in range(20)]) == 5
    assert await tried(one, "0@example.org", "192.0.2.2") == 1


async def test_an_account_tried_from_many_addresses_slows_down_and_is_not_locked(world: World) -> None:
    one, other = sign_ins(world.one, sign_in_tries_email=9), sign_ins(world.other, sign_in_tries_email=9)
    assert sum([await tried(one, "ada@example.org", f"192.0.2.{number}") for number in range(40)]) == 9
    assert await tried(other, "ada@example.org", "198.51.100.1") == 0
    await world.pass_time(101)
    assert await tried(other, "ada@example.org", "198.51.100.1", 3) == 1
    assert await tried(other, "bob@example.org", "198.51.100.1") == 1


async def test_the_table_of_tries_holds_no_e_mail_address(world: World) -> None:
    await sign_ins(world.one).begin("ada@example.org", "192.0.2.1")
    assert await world.number(b"SELECT count(*) FROM allowances WHERE key LIKE '%ada%'") == 0


# In progress -------------------------------------------------------------------------------------------------------


async def test_two_processes_share_the_slots_of_an_owner(world: World) -> None:
    async with world.one.slots.hold("a", 2, FULL), world.other.slots.hold("a", 2, FULL):
        for process in (world.one, world.other):
            with pytest.raises(RateLimited):
                async with process.slots.hold("a", 2, FULL):
                    pass
        async with world.one.slots.hold("b", 1, FULL):
            pass
    async with world.other.slots.hold("a", 2, FULL), world.other.slots.hold("a", 2, FULL):
        pass
    assert await world.number(b"SELECT count(*) FROM slots") == 0


async def test_many_at_the_same_moment_never_get_more_slots_than_there_are(world: World) -> None:
    free, most = asyncio.Event(), 0

    async def hold(process: Process) -> bool:
        nonlocal most
        try:
            async with process.slots.hold("a", 5, TooManyUploads("full")):
                most += 1
                await free.wait()
        except TooManyUploads:
            return False
        return True

    tasks = [asyncio.create_task(hold(process)) for process in (world.one, world.other) * 10]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    while sum(task.done() for task in tasks) < 15:
        await asyncio.wait([task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED)
    free.set()
    assert sum(await asyncio.gather(*tasks)) == most == 5


async def test_the_slots_of_a_killed_process_come_back(world: World) -> None:
    await world.connection.execute(b"INSERT INTO slots VALUES ('a', gen_random_uuid(), 1, clock_timestamp())")
    with pytest.raises(RateLimited):
        async with world.one.slots.hold("a", 1, FULL):
            pass
    await world.connection.execute(b"UPDATE slots SET seen_at = seen_at - interval '31 seconds'")
    async with world.one.slots.hold("a", 1, FULL):
        pass
