"""What models may cost, in general and for one document. A change holds at once, and wakes what waited for it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from octavo.ai.budgets import MOST_USD, Budgets, BudgetsInForce, Scope, read_budgets, set_budgets, wake_paused
from octavo.library.budgets import DocumentBudget, read_document_budget, set_document_budget
from octavo.owners import Caller
from octavo.web.api import problems
from octavo.web.parts import Administering, Parts, PartsOf, Reading, Writing

router = APIRouter(prefix="/api/v1", tags=["budgets"])
Dollars = Annotated[float, Field(strict=True, ge=0, le=MOST_USD, allow_inf_nan=False)]


class BudgetsRequest(BaseModel):
    """US dollars. What is not given stays as it is; with null it is as the settings say again."""

    model_config = ConfigDict(extra="forbid")

    document: Dollars | None = None
    owner: Dollars | None = None
    month: Dollars | None = None

    @property
    def changes(self) -> dict[Scope, float | None]:
        given: dict[Scope, float | None] = {"document": self.document, "owner": self.owner, "month": self.month}
        return {scope: most for scope, most in given.items() if scope in self.model_fields_set}


class DocumentBudgetRequest(BaseModel):
    """US dollars; with null it is as for all documents again."""

    model_config = ConfigDict(extra="forbid")

    usd: Dollars | None


@router.get("/settings/budgets", responses=problems(401))
async def budgets(parts: PartsOf, caller: Reading) -> BudgetsInForce:
    """What holds for your documents and for you; what holds for everybody is told to administrators."""
    return await budgets_of(parts, caller)


@router.put("/settings/budgets", responses=problems(400, 401, 403, 422))
async def change_budgets(parts: PartsOf, caller: Administering, wanted: BudgetsRequest) -> BudgetsInForce:
    """For everybody, at once; paused jobs that there is money for now go on."""
    await change(parts, caller, wanted)
    return await budgets_of(parts, caller)


@router.get("/documents/{document}/budget", responses=problems(401, 404, 422))
async def document_budget(parts: PartsOf, caller: Reading, document: UUID) -> DocumentBudget:
    """What it may cost, what it did, and what its paused jobs wait for."""
    async with parts.database.connection() as connection:
        return await read_document_budget(connection, caller.owner_id, document, Budgets.of(parts.settings))


@router.put("/documents/{document}/budget", responses=problems(400, 401, 403, 404, 409, 422))
async def change_document_budget(
    parts: PartsOf, caller: Writing, document: UUID, wanted: DocumentBudgetRequest
) -> DocumentBudget:
    """Up to what you may spend in a month; its paused jobs go on if there is money for them now."""
    await change_of_document(parts, caller, document, wanted.usd)
    return await document_budget(parts, caller, document)


# For pages, too ----------------------------------------------------------------------------------------------------


async def budgets_of(parts: Parts, caller: Caller) -> BudgetsInForce:
    usual = Budgets.of(parts.settings)
    async with parts.database.connection() as connection:
        return await read_budgets(connection, caller.owner_id, usual, everybody=caller.is_admin)


async def change(parts: Parts, caller: Caller, wanted: BudgetsRequest) -> None:
    if not wanted.changes:
        return
    async with parts.database.transaction() as connection:
        await set_budgets(connection, caller.owner_id, wanted.changes)
    await wake_paused(parts.database, Budgets.of(parts.settings))


async def change_of_document(parts: Parts, caller: Caller, document: UUID, usd: float | None) -> None:
    usual = Budgets.of(parts.settings)
    async with parts.database.transaction() as connection:
        await set_document_budget(connection, caller.owner_id, document, usd, usual)
    await wake_paused(parts.database, usual)
