"""Spending limits.

The settings define defaults. An administrator can override them, and each account can override the limit of a document.
The database reads the limits, under a lock, each time it reserves budget. A change therefore applies to every worker's
next call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self, get_args
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.core.settings import Settings
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.records.account import Budget, BudgetsInForce
from octavo.records.account import BudgetScope as Scope

QUERIES = load_queries("budgets")
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
    (row,) = await fetch_rows(connection, QUERIES.read, {"owner": owner})
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
    await connection.execute(QUERIES.record_change, {"owner": admin, "detail": Jsonb(dict(changes))})


async def lock_ledger(connection: Connection) -> None:
    """Prevent new reservations of budget until the transaction ends.

    To avoid deadlocks, take this lock last, and do not wait for any other lock while holding it.
    """
    await connection.execute(QUERIES.lock_ledger)


async def set_budget(connection: Connection, scope: Scope, document: UUID | None, most: float | None) -> None:
    values: dict[str, Any] = {"scope": scope, "document": document}
    if most is None:
        await connection.execute(QUERIES.unset, values)
    else:
        await connection.execute(QUERIES.set, {**values, "most": Decimal(str(most))})


async def resume_paused_jobs(database: Database, defaults: Budgets) -> None:
    """Resume jobs that were paused because of a budget and now fit into it.

    Call this after the transaction that changed a budget, not inside it. Otherwise it can deadlock with a transaction
    that holds a job's lock and waits for the ledger lock. If the process dies before this call, a worker resumes the
    jobs later.
    """
    async with database.connection() as connection:
        await connection.execute(QUERIES.resume, {"limits": defaults.limits})


def _budget(most: Decimal | None, default: Decimal) -> Budget:
    return Budget(float(default if most is None else most), float(default), is_set=most is not None)
