"""The ledger of paid calls: money is set aside before a call and settled after it, and an answer is paid for once.

The rules are functions of the database, under one lock that is never held while a model answers. So any number of
workers keeps to one budget, one rate and one circuit for each provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.ai.budgets import Budgets, wake_paused
from octavo.ai.calls import Caller, FailedModel
from octavo.ai.faults import Usage
from octavo.ai.models import Model
from octavo.core.types import JSON
from octavo.database import Database, load_queries, retry_until_available

QUERIES = load_queries("ai")
# How long a call waits for its turn at a busy provider before the next model, or the job, is tried later.
PATIENCE_SECONDS = 20.0
# What an open call may take beyond its own time limit, before it counts as lost.
GRACE_SECONDS = 30.0
ANSWERS_KEPT_DAYS = 30


class Verdict(StrEnum):
    """What may happen with a call; the words are those of `reserve_call`."""

    GRANTED = "granted"
    ANSWERED = "answered"
    IN_FLIGHT = "in_flight"
    GONE = "gone"
    LOCAL_ONLY = "local_only"
    OVER_BUDGET = "over_budget"
    CIRCUIT_OPEN = "circuit_open"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class Rate:
    """Most in a minute, of all workers together."""

    requests: float
    tokens: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that somebody wants to make. `tokens` are those read and written, as far as one can guess.

    `patience`: how many seconds it may wait for its turn.
    """

    id: UUID
    digest: bytes
    caller: Caller
    purpose: str
    model: Model
    estimate_usd: Decimal
    tokens: int
    seconds: float
    patience: float = PATIENCE_SECONDS
    failed: Sequence[FailedModel] = ()


@dataclass(frozen=True, slots=True)
class Reservation:
    """`seconds`: when to send it, or when to ask again. The rest is about the budget that would be passed."""

    verdict: Verdict
    seconds: float | None
    scope: str | None
    taken_usd: Decimal | None
    limit_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Stored:
    provider: str
    model: str
    response: JSON


class Ledger:
    """`budgets` hold where nobody has set others. `rates` by provider; one without is limited by the provider alone."""

    def __init__(
        self, database: Database, budgets: Budgets, rates: Mapping[str, Rate], *, anonymous_too: bool = False
    ) -> None:
        self._database = database
        self._budgets = budgets
        self._rates = rates
        self._anonymous_too = anonymous_too

    async def reuse(self, digest: bytes, caller: Caller) -> Stored | None:
        """What was answered before to the same question; what that saves is written down."""
        values = {"hash": digest, "owner": caller.owner_id, "document": caller.document_id, "job": caller.job_id}
        async with self._database.connection() as open_one, open_one.cursor(row_factory=class_row(Stored)) as cursor:
            await cursor.execute(QUERIES.reuse, values)
            return await cursor.fetchone()

    async def reserve(self, wanted: Wanted) -> Reservation:
        caller, rate = wanted.caller, self._rates.get(wanted.model.provider)
        values: dict[str, Any] = {
            "call": wanted.id,
            "hash": wanted.digest,
            "owner": caller.owner_id,
            "document": caller.document_id,
            "job": caller.job_id,
            "token": caller.lease_token,
            "purpose": wanted.purpose,
            "provider": wanted.model.provider,
            "model": wanted.model.name,
            "estimate": wanted.estimate_usd,
            "tokens": wanted.tokens,
            "time_limit": wanted.seconds + GRACE_SECONDS,
            "request_rate": rate.requests if rate else None,
            "token_rate": rate.tokens if rate else None,
            "patience": wanted.patience,
            "limits": self._budgets.limits,
            "anonymous_too": self._anonymous_too,
            "failed": Jsonb([asdict(one) for one in wanted.failed]),
        }
        async with self._database.connection() as connection:
            row = await (await connection.execute(QUERIES.reserve, values)).fetchone()
        if row is None:
            raise AssertionError("a function answers")
        return Reservation(Verdict(row[0]), *row[1:])

    async def settle(self, call: UUID, usage: Usage, cost: Decimal, seconds: float, response: JSON) -> None:
        values = {"call": call, "cost": cost, "seconds": seconds, "response": Jsonb(response)}
        await self._write(QUERIES.settle, values | _tokens(usage))

    async def fail(
        self,
        call: UUID,
        fault: str,
        usage: Usage,
        cost: Decimal | None,
        seconds: float,
        *,
        hurts: bool | None,
        hold_seconds: float = 0.0,
    ) -> None:
        """A `cost` of None: nobody knows it. `hurts`: whether the provider is not well, None if nothing is known."""
        values = {"call": call, "fault": fault, "cost": cost, "seconds": seconds, "hurts": hurts, "hold": hold_seconds}
        await self._write(QUERIES.fail, values | _tokens(usage))

    async def tend(self) -> None:
        """End what nobody waits for any more, and let jobs go on that there is money for again."""
        async with self._database.connection() as connection:
            await connection.execute(QUERIES.tend, {"kept_days": ANSWERS_KEPT_DAYS})
        await wake_paused(self._database, self._budgets)

    async def _write(self, query: bytes, values: Mapping[str, Any]) -> None:
        """What was paid for is written down, however long the database is away."""

        async def write() -> None:
            async with self._database.connection() as connection:
                await connection.execute(query, values)

        await retry_until_available(write)


def _tokens(usage: Usage) -> dict[str, int]:
    return {"tokens_in": usage.read, "tokens_out": usage.written}
