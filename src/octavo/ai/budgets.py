"""What models may cost: as the settings say, unless an administrator or the owner of a document has set something else.

The database looks budgets up in the turn in which it sets money aside, so a change holds for every worker's next call.
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
MOST_USD = 1_000_000
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Budgets:
    """Most US dollars for a document, and for an owner and for everybody in a month."""

    document: Decimal
    owner: Decimal
    month: Decimal

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """What holds where nobody has set anything."""
        usual = (settings.document_budget, settings.owner_budget, settings.month_budget)
        return cls(*(Decimal(str(most)) for most in usual))

    @property
    def limits(self) -> list[Decimal]:
        """In the order of `budget_passed`."""
        return [self.document, self.owner, self.month]


async def read_budgets(connection: Connection, owner: UUID, usual: Budgets, *, everybody: bool) -> BudgetsInForce:
    (row,) = await fetch_rows(connection, QUERIES.read, {"owner": owner})
    found = {scope: _budget(row[f"{scope}_usd"], getattr(usual, scope)) for scope in SCOPES}
    return BudgetsInForce(
        document=found["document"],
        owner=found["owner"],
        month=found["month"] if everybody else None,
        spent_usd=float(row["spent_usd"]),
        everybody_usd=float(row["everybody_usd"]) if everybody else None,
    )


async def set_budgets(connection: Connection, admin: UUID, changes: Mapping[Scope, float | None]) -> None:
    """Those that are given; with None one is as the settings say again."""
    await take_turn(connection)
    for scope, most in changes.items():
        await set_budget(connection, scope, None, most)
    await connection.execute(QUERIES.tell, {"owner": admin, "detail": Jsonb(dict(changes))})


async def take_turn(connection: Connection) -> None:
    """Nobody sets money aside until the transaction ends. The last lock of all: who has it waits for nobody."""
    await connection.execute(QUERIES.take_turn)


async def set_budget(connection: Connection, scope: Scope, document: UUID | None, most: float | None) -> None:
    values: dict[str, Any] = {"scope": scope, "document": document}
    if most is None:
        await connection.execute(QUERIES.unset, values)
    else:
        await connection.execute(QUERIES.set, {**values, "most": Decimal(str(most))})


async def wake_paused(database: Database, usual: Budgets) -> None:
    """Let jobs go on that there is money for now.

    Apart from what changed a budget, because who holds a job or its cap may be waiting for a turn. What is left asleep
    when somebody is killed in between is woken by a worker.
    """
    async with database.connection() as connection:
        await connection.execute(QUERIES.resume, {"limits": usual.limits})


def _budget(most: Decimal | None, usual: Decimal) -> Budget:
    return Budget(float(usual if most is None else most), float(usual), is_set=most is not None)
