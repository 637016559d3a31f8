"""A call is made again a few times, waits as long as the server asks, and never for ever."""

from __future__ import annotations

from octavo.client.transport import RetryPolicy


class Clock:
    """Sleeps that take no time."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def test_pauses_grow_and_end() -> None:
    clock = Clock()
    tries = RetryPolicy(pauses=(0.1, 1.0), sleep=clock.sleep).begin()
    assert [await tries.pause() for _ in range(3)] == [True, True, False]
    assert clock.slept == [0.1, 1.0]
    assert tries.repeated


async def test_the_server_is_waited_for_but_not_for_ever() -> None:
    clock = Clock()
    tries = RetryPolicy(longest_wait=60, all_waits=100, sleep=clock.sleep).begin()
    assert not await tries.wait(61)
    assert not tries.repeated
    assert [await tries.wait(40) for _ in range(3)] == [True, True, False]
    assert clock.slept == [40, 40]
