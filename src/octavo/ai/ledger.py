"""The ledger of paid model calls, and the budgets that limit spending.

The cost of a call is reserved before the call and settled after it. No answer is paid for twice. Database functions
enforce this under one lock, which is never held during a call. All workers therefore share the budgets, and each
provider's rate limit and circuit breaker.

The settings define default budgets. An administrator can override them, and each account can override the budget per
document. The database reads the budgets, under the lock, before each reservation. A change therefore applies to every
worker's next call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self, get_args
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.ai.calls import Caller, FailedModel
from octavo.ai.faults import TokenUsage
from octavo.ai.models import Model
from octavo.core.settings import Settings
from octavo.core.types import JSON
from octavo.database import Connection, Database, Row, fetch_rows, load_queries, retry_until_available
from octavo.records.account import Budget, BudgetsInForce, DocumentUsage, MonthUsage, PurposeUsage, Usage
from octavo.records.account import BudgetScope as Scope

BUDGET_QUERIES = load_queries("budgets")
MAX_USD = 1_000_000
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits in US dollars: per document, per account and month, and per month for all accounts together."""

    document: Decimal
    owner: Decimal
    month: Decimal

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the default budgets from the settings."""
        defaults = (settings.document_budget, settings.owner_budget, settings.month_budget)
        return cls(*(Decimal(str(most)) for most in defaults))

    @property
    def limits(self) -> list[Decimal]:
        """The three limits in the order that the database function `budget_passed` expects."""
        return [self.document, self.owner, self.month]


async def read_budgets(connection: Connection, owner: UUID, defaults: Budgets, *, everybody: bool) -> BudgetsInForce:
    """Read the budgets that apply to an account.

    If `everybody` is true, the total budget and spending of all accounts are included.
    """
    (row,) = await fetch_rows(connection, BUDGET_QUERIES.read, {"owner": owner})
    found = {scope: _budget(row[f"{scope}_usd"], getattr(defaults, scope)) for scope in SCOPES}
    return BudgetsInForce(
        document=found["document"],
        owner=found["owner"],
        month=found["month"] if everybody else None,
        spent_usd=float(row["spent_usd"]),
        everybody_usd=float(row["everybody_usd"]) if everybody else None,
    )


async def set_budgets(connection: Connection, admin: UUID, changes: Mapping[Scope, float | None]) -> None:
    """Set the budgets in `changes`. A value of None restores the default."""
    await lock_ledger(connection)
    for scope, most in changes.items():
        await set_budget(connection, scope, None, most)
    await connection.execute(BUDGET_QUERIES.record_change, {"owner": admin, "detail": Jsonb(dict(changes))})


async def lock_ledger(connection: Connection) -> None:
    """Prevent new reservations of budget until the transaction ends.

    To avoid deadlocks, take this lock last, and do not wait for any other lock while holding it.
    """
    await connection.execute(BUDGET_QUERIES.lock_ledger)


async def set_budget(connection: Connection, scope: Scope, document: UUID | None, most: float | None) -> None:
    values: dict[str, Any] = {"scope": scope, "document": document}
    if most is None:
        await connection.execute(BUDGET_QUERIES.unset, values)
    else:
        await connection.execute(BUDGET_QUERIES.set, {**values, "most": Decimal(str(most))})


async def resume_paused_jobs(database: Database, defaults: Budgets) -> None:
    """Resume jobs that were paused because a budget was used up, if the budget now allows their calls.

    Call this after the transaction that changed a budget, not inside it. Otherwise it can deadlock with a transaction
    that holds a job's lock and waits for the ledger lock. If the process dies before this call, a worker resumes the
    jobs later.
    """
    async with database.connection() as connection:
        await connection.execute(BUDGET_QUERIES.resume, {"limits": defaults.limits})


def _budget(most: Decimal | None, default: Decimal) -> Budget:
    return Budget(float(default if most is None else most), float(default), is_set=most is not None)


QUERIES = load_queries("ai")
# How long a call waits for a rate-limited provider before the next model is tried or the job is retried later.
MAX_WAIT_SECONDS = 20.0
# How long an open call can exceed its time limit before it counts as abandoned.
GRACE_SECONDS = 30.0
# The maximum numbers of documents and months in a usage report.
MAX_DOCUMENTS = 50
MAX_MONTHS = 24
ANSWERS_KEPT_DAYS = 30


class Verdict(StrEnum):
    """Whether a call may be sent, as decided by the database function `reserve_call`."""

    GRANTED = "granted"
    ANSWERED = "answered"
    IN_FLIGHT = "in_flight"
    GONE = "gone"
    LOCAL_ONLY = "local_only"
    OVER_BUDGET = "over_budget"
    CIRCUIT_OPEN = "circuit_open"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Rate limits per minute that all workers share."""

    requests: float
    tokens: float


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A model call for which budget is to be reserved.

    `tokens` is the estimated total of input and output tokens. `max_wait` is the maximum number of seconds to wait for
    the rate limit.
    """

    id: UUID
    digest: bytes
    caller: Caller
    purpose: str
    model: Model
    estimate_usd: Decimal
    tokens: int
    seconds: float
    max_wait: float = MAX_WAIT_SECONDS
    failed: Sequence[FailedModel] = ()


@dataclass(frozen=True, slots=True)
class Reservation:
    """The result of a `CallRequest`.

    `seconds` is how long to wait before sending the call or, if no budget was reserved, before trying again. `scope`,
    `taken_usd` and `limit_usd` describe the budget that was exceeded, if any.
    """

    verdict: Verdict
    seconds: float | None
    scope: str | None
    taken_usd: Decimal | None
    limit_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    provider: str
    model: str
    response: JSON


class Ledger:
    """Records model calls: reserves the cost before each call, and settles it afterwards.

    `budgets` contains the default budgets. `rates` contains rate limits by provider. Providers without an entry are not
    limited.
    """

    def __init__(
        self, database: Database, budgets: Budgets, rates: Mapping[str, RateLimit], *, allow_anonymous: bool = False
    ) -> None:
        self._database = database
        self._budgets = budgets
        self._rates = rates
        self._allow_anonymous = allow_anonymous

    async def reuse(self, digest: bytes, caller: Caller) -> StoredAnswer | None:
        """Return the stored answer to an identical request, and record the reuse and the amount saved.

        Returns None if there is no stored answer.
        """
        values = {"hash": digest, "owner": caller.owner_id, "document": caller.document_id, "job": caller.job_id}
        async with (
            self._database.connection() as open_one,
            open_one.cursor(row_factory=class_row(StoredAnswer)) as cursor,
        ):
            await cursor.execute(QUERIES.reuse, values)
            return await cursor.fetchone()

    async def reserve(self, call: CallRequest) -> Reservation:
        caller, rate = call.caller, self._rates.get(call.model.provider)
        values: dict[str, Any] = {
            "call": call.id,
            "hash": call.digest,
            "owner": caller.owner_id,
            "document": caller.document_id,
            "job": caller.job_id,
            "token": caller.lease_token,
            "purpose": call.purpose,
            "provider": call.model.provider,
            "model": call.model.name,
            "estimate": call.estimate_usd,
            "tokens": call.tokens,
            "time_limit": call.seconds + GRACE_SECONDS,
            "request_rate": rate.requests if rate else None,
            "token_rate": rate.tokens if rate else None,
            "max_wait": call.max_wait,
            "limits": self._budgets.limits,
            "allow_anonymous": self._allow_anonymous,
            "failed": Jsonb([asdict(model) for model in call.failed]),
        }
        async with self._database.connection() as connection:
            row = await (await connection.execute(QUERIES.reserve, values)).fetchone()
        if row is None:
            raise AssertionError("reserve_call returns a row")
        return Reservation(Verdict(row[0]), *row[1:])

    async def settle(self, call: UUID, usage: TokenUsage, cost: Decimal, seconds: float, response: JSON) -> None:
        values = {"call": call, "cost": cost, "seconds": seconds, "response": Jsonb(response)}
        await self._write(QUERIES.settle, values | _tokens(usage))

    async def fail(
        self,
        call: UUID,
        fault: str,
        usage: TokenUsage,
        cost: Decimal | None,
        seconds: float,
        *,
        trips_circuit: bool | None,
        hold_seconds: float = 0.0,
    ) -> None:
        """Record a failed call. A `cost` of None means that the cost is unknown.

        If `trips_circuit` is True, the failure counts towards opening the provider's circuit breaker. If it is False,
        the count is reset. If it is None, the count does not change.
        """
        values = {
            "call": call,
            "fault": fault,
            "cost": cost,
            "seconds": seconds,
            "trips_circuit": trips_circuit,
            "hold": hold_seconds,
        }
        await self._write(QUERIES.fail, values | _tokens(usage))

    async def maintain(self) -> None:
        """Close abandoned calls, and resume jobs that were waiting for budget or for a provider to recover."""
        async with self._database.connection() as connection:
            await connection.execute(QUERIES.maintain, {"kept_days": ANSWERS_KEPT_DAYS})
            await connection.execute(QUERIES.wake_jobs)
        await resume_paused_jobs(self._database, self._budgets)

    async def _write(self, query: bytes, values: Mapping[str, Any]) -> None:
        """Write to the database. Retries until it is available, because a paid call must be recorded."""

        async def write() -> None:
            async with self._database.connection() as connection:
                await connection.execute(query, values)

        await retry_until_available(write)


def _tokens(usage: TokenUsage) -> dict[str, int]:
    return {"tokens_in": usage.input, "tokens_out": usage.output}


async def read_usage(
    connection: Connection, owner: UUID, month: str | None, *, budget_usd: float, everybody: bool
) -> Usage:
    """Return an account's model usage in `month`, by default the current month.

    If `everybody` is true, the spending of all accounts is included.
    """
    (total,) = await _rows(connection, QUERIES.usage_total, owner=owner, month=month)
    same = {"owner": owner, "month": total["month"]}
    purposes = await _rows(connection, QUERIES.usage_parts, **same)
    documents = await _rows(connection, QUERIES.usage_documents, **same, most=MAX_DOCUMENTS)
    months = await _rows(connection, QUERIES.usage_months, owner=owner, most=MAX_MONTHS)
    return Usage(
        **total,
        budget_usd=budget_usd,
        everybody_usd=await _spent_by_all(connection, total["month"]) if everybody else None,
        purposes=[PurposeUsage(**row) for row in purposes],
        documents=[DocumentUsage(**row) for row in documents],
        months=[MonthUsage(**row) for row in months],
    )


async def _spent_by_all(connection: Connection, month: str) -> float:
    row = await (await connection.execute(QUERIES.spent_by_all, {"month": month})).fetchone()
    return float(row[0]) if row else 0.0


async def _rows(connection: Connection, query: bytes, **values: Any) -> list[Row]:  # noqa: ANN401
    """Fetch rows. Amounts of money are converted to float for JSON."""
    rows = await fetch_rows(connection, query, values)
    return [{name: float(value) if name.endswith("_usd") else value for name, value in row.items()} for row in rows]
