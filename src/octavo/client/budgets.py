"""What models may cost, as the API has it, and the calls for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from octavo.client.reading import read_record
from octavo.client.wire import Ask, Wire


@dataclass(frozen=True, slots=True)
class Budget:
    """`usual_usd` is what holds when nothing is set for it."""

    usd: float
    usual_usd: float
    is_set: bool


@dataclass(frozen=True, slots=True)
class Budgets:
    """For any document, and for an owner and for all of them in a month; only administrators are told the last."""

    document: Budget
    owner: Budget
    month: Budget | None
    spent_usd: float
    everybody_usd: float | None


@dataclass(frozen=True, slots=True)
class DocumentBudget:
    """It can be raised to `most_usd`. `paused` jobs wait for about `needed_usd`; `over`: whose budget is too small."""

    document_id: UUID
    usd: float
    usual_usd: float
    is_set: bool
    most_usd: float
    spent_usd: float
    paused: int
    needed_usd: float
    over: str | None


class BudgetCalls:
    """US dollars everywhere; None is what is usual."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def show(self) -> Budgets:
        return read_record(Budgets, await self._wire.call(Ask("GET", "/settings/budgets", repeatable=True)))

    async def set(self, changes: Mapping[str, float | None]) -> Budgets:
        """Of `document`, `owner` and `month` those that are given; for administrators."""
        ask = Ask("PUT", "/settings/budgets", repeatable=True, json=dict(changes))
        return read_record(Budgets, await self._wire.call(ask))

    async def show_document(self, document: UUID) -> DocumentBudget:
        ask = Ask("GET", f"/documents/{document}/budget", repeatable=True)
        return read_record(DocumentBudget, await self._wire.call(ask))

    async def set_document(self, document: UUID, usd: float | None) -> DocumentBudget:
        ask = Ask("PUT", f"/documents/{document}/budget", repeatable=True, json={"usd": usd})
        return read_record(DocumentBudget, await self._wire.call(ask))
