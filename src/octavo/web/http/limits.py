"""Rate limits, limits for wrong passwords, and bounded concurrency.

Each web process keeps its own counts in memory. This is accurate enough to stop floods, and no count has to survive a
restart.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from uuid import UUID

from octavo.core.errors import RateLimited
from octavo.core.settings import Settings
from octavo.intake.errors import TooManyUploads
from octavo.owners import Caller

MINUTE = 60.0
RETRY_UPLOAD_SECONDS = 5.0
MOST_WRONG_PASSWORDS = 10
WRONG_PASSWORDS_SECONDS = 15 * MINUTE
# Memory is bounded; the least recently used keys are dropped first.
MOST_KEYS = 50_000

Clock = Callable[[], float]


class TooFast(RateLimited):
    """Too many requests in a short time."""

    def __init__(self, wait_seconds: float) -> None:
        self.retry_after_seconds = max(1.0, wait_seconds)
        super().__init__(f"Try again in {math.ceil(self.retry_after_seconds)} seconds.")


class Buckets:
    """A token bucket for each key, with the same burst size and rate per minute."""

    def __init__(self, per_minute: int, clock: Clock = time.monotonic, most_keys: int = MOST_KEYS) -> None:
        self._size = per_minute
        self._clock = clock
        self._most_keys = most_keys
        self._buckets: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: str) -> None:
        now = self._clock()
        tokens, at = self._buckets.pop(key, (float(self._size), now))
        tokens = min(self._size, tokens + (now - at) * self._size / MINUTE)
        enough = tokens >= 1
        self._buckets[key] = (tokens - 1 if enough else tokens, now)
        self._drop_full(now)
        if not enough:
            raise TooFast((1 - tokens) * MINUTE / self._size)

    def _drop_full(self, now: float) -> None:
        """Drop buckets that have been idle for a minute. They are full again, like new ones."""
        while self._buckets:
            key, (_, at) = next(iter(self._buckets.items()))
            if now - at < MINUTE and len(self._buckets) <= self._most_keys:
                return
            del self._buckets[key]


class Failures:
    """Limits failures per key and period. An attempt counts as a failure until it succeeds, even while it runs."""

    def __init__(self, most: int, seconds: float, clock: Clock = time.monotonic, most_keys: int = MOST_KEYS) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._most_keys = most_keys
        self._tries: dict[str, deque[float]] = {}

    def __len__(self) -> int:
        return len(self._tries)

    def begin(self, key: str) -> None:
        now = self._clock()
        tries = self._tries[key] = self._tries.pop(key, deque())
        while tries and tries[0] <= now - self._seconds:
            tries.popleft()
        if len(tries) >= self._most:
            raise TooFast(tries[0] + self._seconds - now)
        tries.append(now)
        self._drop_old(now)

    def succeed(self, key: str) -> None:
        """Record that the attempt succeeded, so that it no longer counts as a failure."""
        tries = self._tries.get(key)
        if tries:
            tries.pop()

    def _drop_old(self, now: float) -> None:
        while self._tries:
            key, tries = next(iter(self._tries.items()))
            if tries and tries[-1] > now - self._seconds and len(self._tries) <= self._most_keys:
                return
            del self._tries[key]


class Transfers:
    """Limits how many uploads of one owner can be in progress."""

    def __init__(self) -> None:
        self._running: Counter[UUID] = Counter()

    @contextmanager
    def one(self, owner: UUID, most: int) -> Generator[None]:
        if self._running[owner] >= most:
            raise TooManyUploads(
                f"At most {most} uploads can run in parallel.", retry_after_seconds=RETRY_UPLOAD_SECONDS
            )
        self._running[owner] += 1
        try:
            yield
        finally:
            self._running[owner] -= 1
            if not self._running[owner]:
                del self._running[owner]


@dataclass(frozen=True, slots=True)
class Limits:
    """All limits of one web process."""

    owners: Buckets
    addresses: Buckets
    sign_ins: Failures
    transfers: Transfers = field(default_factory=Transfers)

    def admit(self, caller: Caller | None, address: str) -> None:
        """Count a request of an owner.

        Visitors are also counted by address, as one address can create any number of owners.
        """
        if caller is None or caller.is_anonymous:
            self.addresses.take(address)
        if caller is not None and not caller.is_admin:
            self.owners.take(str(caller.owner_id))


def make_limits(settings: Settings, clock: Clock = time.monotonic) -> Limits:
    return Limits(
        Buckets(settings.requests_per_minute, clock),
        Buckets(settings.requests_per_minute_anonymous, clock),
        Failures(MOST_WRONG_PASSWORDS, WRONG_PASSWORDS_SECONDS, clock),
    )


def group_address(host: str | None) -> str:
    """The key for rate limits: an IPv4 address, or the first half of an IPv6 address.

    One customer usually controls all IPv6 addresses with the same first half.
    """
    try:
        address = ip_address(host or "")
    except ValueError:
        return host or ""
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))
    return str(address)


class ConcurrencyLimit:
    """Limits how many tasks run in parallel, and how many run or wait in total.

    Any further task raises `TooFast` (429).
    """

    def __init__(self, parallel: int, most_waiting: int, busy_seconds: float) -> None:
        self._limit = asyncio.Semaphore(parallel)
        self._most_waiting = most_waiting
        self._busy_seconds = busy_seconds
        self._waiting = 0

    @asynccontextmanager
    async def take(self) -> AsyncGenerator[None]:
        if self._waiting >= self._most_waiting:
            raise TooFast(self._busy_seconds)
        self._waiting += 1
        try:
            async with self._limit:
                yield
        finally:
            self._waiting -= 1
