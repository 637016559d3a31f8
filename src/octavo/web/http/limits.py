"""Limits on request rates, wrong passwords, uploads and streams in progress, and parallel work.

Except for `ConcurrencyLimit`, counts are stored in the database, so that limits apply to all web processes together.
The counts may be lost if the database crashes.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import Context
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from uuid import UUID

import psycopg

from octavo.core.errors import DatabaseUnavailable, OctavoError, RateLimited
from octavo.core.settings import Settings
from octavo.core.types import hash_token, new_id
from octavo.database import Connection, Database, fetch_rows, is_cancelled, load_queries
from octavo.intake.errors import TooManyUploads
from octavo.owners import Caller

QUERIES = load_queries("limits")
MINUTE, HOUR = 60.0, 3600.0
RETRY_UPLOAD_SECONDS = 5.0
WRONG_PASSWORDS_SECONDS = 15 * MINUTE
INVITATIONS_PER_HOUR = 60
# A bucket that was not used for this long is full again, so it is deleted. No bucket takes longer to fill.
FORGET_SECONDS = HOUR
# If a web process has not reported for this long, its uploads and streams no longer count.
SILENT_SECONDS = 30.0
RETURN_SECONDS = 2.0
# Memory is bounded; the least recently used keys are dropped first.
MOST_KEYS = 50_000

Clock = Callable[[], float]


class TooFast(RateLimited):
    """Too many requests in a short time."""

    def __init__(self, wait_seconds: float) -> None:
        self.retry_after_seconds = max(1.0, wait_seconds)
        super().__init__(f"Try again in {math.ceil(self.retry_after_seconds)} seconds.")


@dataclass(frozen=True, slots=True)
class Allowance:
    """A rate limit, implemented as a token bucket. A full bucket allows `size` calls; an empty one is full again after
    `seconds`.
    """

    size: int
    seconds: float = MINUTE

    @property
    def batch(self) -> int:
        """The number of calls that a web process takes from the bucket in one database query.

        From small buckets, calls are taken one by one.
        """
        return max(1, self.size // 100)


@dataclass(frozen=True, slots=True)
class Quota:
    """The remaining calls of a rate limit, for the RateLimit-Policy and RateLimit headers (an IETF draft).

    `left` may be a little too low, because other web processes may have taken calls from the bucket in advance.
    """

    name: str
    allowance: Allowance
    left: int

    @property
    def policy(self) -> str:
        return f'"{self.name}";q={self.allowance.size};w={math.ceil(self.allowance.seconds)}'

    @property
    def state(self) -> str:
        missing = self.allowance.size - self.left
        return f'"{self.name}";r={self.left};t={math.ceil(missing * self.allowance.seconds / self.allowance.size)}'


@dataclass(slots=True)
class Lease:
    """Calls that a process has taken from a token bucket in advance and not used yet.

    If the bucket was empty, the process tries again at `empty_until`. `left` is the number of calls that were left in
    the bucket at `seen_at`.
    """

    calls: int = 0
    empty_until: float = 0.0
    left: float = 0.0
    seen_at: float = 0.0


class Allowances:
    """Rate limits that all web processes share. The token buckets are in the database."""

    def __init__(self, database: Database, clock: Clock = time.monotonic, most_keys: int = MOST_KEYS) -> None:
        self._database = database
        self._clock = clock
        self._most_keys = most_keys
        self._leases: dict[str, Lease] = {}
        self._forget_at = clock() + FORGET_SECONDS

    def __len__(self) -> int:
        return len(self._leases)

    async def take(self, key: str, allowance: Allowance) -> None:
        """Take one token from the bucket with this key. Raises `TooFast` if the bucket is empty."""
        lease = self._lease_of(key)
        if (wait := lease.empty_until - self._clock()) > 0:
            raise TooFast(wait)
        if lease.calls < 1:
            await self._refill(key, allowance, lease)
        lease.calls -= 1

    def quota(self, name: str, key: str, allowance: Allowance) -> Quota:
        """Return how many calls a rate limit still allows, without querying the database."""
        lease, now = self._lease_of(key), self._clock()
        filled = lease.left + (now - lease.seen_at) * allowance.size / allowance.seconds
        left = 0 if lease.empty_until > now else min(allowance.size, int(lease.calls + filled))
        return Quota(name, allowance, max(0, left))

    async def give_back(self, key: str, allowance: Allowance) -> None:
        """Return a token to the bucket, so that the request does not count towards the limit."""
        self._lease_of(key).empty_until = 0.0
        async with self._database.connection() as connection:
            await connection.execute(QUERIES.return_allowance, {"key": key, "size": allowance.size})

    async def _refill(self, key: str, allowance: Allowance, lease: Lease) -> None:
        values = {"key": key, "size": allowance.size, "period": allowance.seconds, "wanted": allowance.batch}
        async with self._database.connection() as connection:
            (row,) = await fetch_rows(connection, QUERIES.take_allowance, values)
            left = await fetch_rows(connection, QUERIES.tokens_left, {"key": key})
            await self._forget_old(connection)
        lease.calls += row["granted"]
        lease.left, lease.seen_at = (left[0]["tokens"] if left else 0.0), self._clock()
        if lease.calls < 1:
            lease.empty_until = self._clock() + row["wait_seconds"]
            raise TooFast(row["wait_seconds"])

    def _lease_of(self, key: str) -> Lease:
        lease = self._leases[key] = self._leases.pop(key, None) or Lease()
        if len(self._leases) > self._most_keys:
            del self._leases[next(iter(self._leases))]
        return lease

    async def _forget_old(self, connection: Connection) -> None:
        """Delete token buckets that are full again. Does nothing if it already did so within the last hour."""
        now = self._clock()
        if now >= self._forget_at:
            self._forget_at = now + FORGET_SECONDS
            await connection.execute(QUERIES.forget_allowances, {"seconds": FORGET_SECONDS})


class Slots:
    """Counts uploads and event streams in progress across all web processes.

    Each process writes its own count and renews it every few seconds. The count of a process that was killed expires.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._process = new_id()
        self._held: Counter[str] = Counter()
        self._keeping: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def hold(self, key: str, most: int, full: OctavoError) -> AsyncGenerator[None]:
        """Occupy one of the `most` slots for this key while the context manager is active.

        Raises `full` if all slots are taken.
        """
        values = {"key": key, "process": self._process, "most": most, "silent_seconds": SILENT_SECONDS}
        async with self._database.connection() as connection:
            (row,) = await fetch_rows(connection, QUERIES.take_slot, values)
        if not row["taken"]:
            raise full
        self._held[key] += 1
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._keep(), context=Context())
        try:
            yield
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]
            await self._return(key)

    async def aclose(self) -> None:
        if self._keeping:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)

    async def _return(self, key: str) -> None:
        """Release a slot. If this fails or is cancelled, the next heartbeat corrects the count."""
        with suppress(DatabaseUnavailable, psycopg.Error):
            async with self._database.connection(wait_seconds=RETURN_SECONDS) as connection:
                await connection.execute(QUERIES.return_slot, {"key": key, "process": self._process})

    async def _keep(self) -> None:
        """Write the number of used slots to the database every few seconds, until no slot is in use."""
        while self._held and not is_cancelled():
            await asyncio.sleep(SILENT_SECONDS / 3)
            held = dict(self._held)
            values = {"keys": list(held), "numbers": list(held.values()), "process": self._process}
            with suppress(DatabaseUnavailable, psycopg.Error):
                async with self._database.connection() as connection:
                    await connection.execute(QUERIES.keep_slots, values)
                    await connection.execute(QUERIES.forget_slots, {"silent_seconds": SILENT_SECONDS})
        self._keeping = None


class Transfers:
    """Limits how many uploads one account can have in progress."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots

    def one(self, owner: UUID, most: int) -> AbstractAsyncContextManager[None]:
        full = TooManyUploads(f"At most {most} uploads can run in parallel.", retry_after_seconds=RETRY_UPLOAD_SECONDS)
        return self._slots.hold(f"uploads {owner}", most, full)


class SignIns:
    """Limits wrong passwords per IP address, per email address, and per combination of both.

    An attempt is counted when it starts and refunded if it succeeds. After too many wrong passwords, sign-in is not
    locked but slowed down: one more attempt is allowed every `15 minutes / size`, where `size` is the limit that was
    reached.
    """

    def __init__(self, allowances: Allowances, settings: Settings) -> None:
        self._allowances = allowances
        self._address = Allowance(settings.sign_in_tries_address, WRONG_PASSWORDS_SECONDS)
        self._pair = Allowance(settings.sign_in_tries, WRONG_PASSWORDS_SECONDS)
        self._email = Allowance(settings.sign_in_tries_email, WRONG_PASSWORDS_SECONDS)

    async def begin(self, email: str, address: str) -> None:
        for key, allowance in self._buckets(email, address):
            await self._allowances.take(key, allowance)

    async def succeed(self, email: str, address: str) -> None:
        """Record that the sign-in succeeded, so that the attempt no longer counts towards the limit."""
        for key, allowance in self._buckets(email, address):
            await self._allowances.give_back(key, allowance)

    def _buckets(self, email: str, address: str) -> list[tuple[str, Allowance]]:
        """Return the rate limits that apply to a sign-in attempt, beginning with the one for the IP address.

        Their keys contain only a hash of the email address.
        """
        person = hash_token(email.lower()).hex()
        return [
            (f"sign-in from {address}", self._address),
            (f"sign-in as {person} from {address}", self._pair),
            (f"sign-in as {person}", self._email),
        ]


@dataclass(frozen=True, slots=True)
class Limits:
    """All limits that the web processes share."""

    allowances: Allowances
    owner: Allowance
    visitor: Allowance
    new_visitors: Allowance
    sign_ups: Allowance
    sign_ins: SignIns
    transfers: Transfers
    slots: Slots

    async def admit(self, caller: Caller | None, address: str) -> None:
        """Count a request towards the rate limit of its account.

        Administrators are not limited. Requests from visitors are also counted by IP address, because one address can
        create any number of visitor accounts. Requests without credentials are counted only by IP address.
        """
        for _, key, allowance in self._applied(caller, address):
            await self.allowances.take(key, allowance)

    def quotas(self, caller: Caller | None, address: str) -> list[Quota]:
        """Return how many calls each rate limit of this caller still allows."""
        return [self.allowances.quota(*one) for one in self._applied(caller, address)]

    def _applied(self, caller: Caller | None, address: str) -> list[tuple[str, str, Allowance]]:
        """Return the rate limits that apply to a caller: name, key and size."""
        by_address = ("address", f"requests from {address}", self.visitor)
        if caller is None:
            return [by_address]
        by_owner = ("owner", f"requests of {caller.owner_id}", self.owner)
        return [*([by_address] if caller.is_anonymous else []), *([] if caller.is_admin else [by_owner])]

    async def admit_visitor(self, address: str) -> None:
        """Count a new visitor towards the limit for this address.

        Called before an account is created for the visitor.
        """
        await self.allowances.take(f"visitors from {address}", self.new_visitors)

    async def admit_sign_up(self, address: str) -> None:
        """Count a sign-up towards the limit for this address. Called before the password is hashed, which is slow."""
        await self.allowances.take(f"sign-ups from {address}", self.sign_ups)

    async def admit_invitation(self, caller: Caller) -> None:
        """Count an invitation towards the limit of its account. Administrators are not limited.

        The limit exists because invitations can be mailed to anybody.
        """
        if not caller.is_admin:
            allowance = Allowance(INVITATIONS_PER_HOUR, HOUR)
            await self.allowances.take(f"invitations of {caller.owner_id}", allowance)


def make_limits(settings: Settings, database: Database, clock: Clock = time.monotonic) -> Limits:
    allowances, slots = Allowances(database, clock), Slots(database)
    return Limits(
        allowances,
        Allowance(settings.requests_per_minute),
        Allowance(settings.requests_per_minute_anonymous),
        Allowance(settings.visitors_per_minute),
        Allowance(settings.sign_ups_per_hour, HOUR),
        SignIns(allowances, settings),
        Transfers(slots),
        slots,
    )


def group_address(host: str | None) -> str:
    """Return the key for rate limits: an IPv4 address, or the first half of an IPv6 address.

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
    """Limits how many operations run in parallel, and how many run or wait in total.

    When the total is reached, `TooFast` (429) is raised.
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
