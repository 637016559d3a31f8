"""What models may cost, in general and for one document. A change holds at once, and wakes what waited for it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from octavo.ai.budgets import MAX_USD, Budgets, Scope, read_budgets, resume_paused_jobs, set_budgets
from octavo.ai.usage import read_usage
from octavo.library.budgets import read_document_budget, set_document_budget
from octavo.owners import Caller
from octavo.records.account import BudgetsInForce, DocumentBudget, Usage
from octavo.web.context.callers import AdminCaller, ReadCaller, WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import problems

router = APIRouter(prefix="/api/v1", tags=["budgets"])
Dollars = Annotated[float, Field(strict=True, ge=0, le=MAX_USD, allow_inf_nan=False)]


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
async def budgets(services: ServicesOf, caller: ReadCaller) -> BudgetsInForce:
    """What holds for your documents and for you; what holds for everybody is told to administrators."""
    return await budgets_of(services, caller)


@router.put("/settings/budgets", responses=problems(400, 401, 403, 422))
async def change_budgets(services: ServicesOf, caller: AdminCaller, wanted: BudgetsRequest) -> BudgetsInForce:
    """For everybody, at once; paused jobs that there is money for now go on."""
    await change(services, caller, wanted)
    return await budgets_of(services, caller)


@router.get("/documents/{document}/budget", responses=problems(401, 404, 422))
async def document_budget(services: ServicesOf, caller: ReadCaller, document: UUID) -> DocumentBudget:
    """What it may cost, what it did, and what its paused jobs wait for."""
    async with services.database.connection() as connection:
        return await read_document_budget(connection, caller.owner_id, document, Budgets.of(services.settings))


@router.put("/documents/{document}/budget", responses=problems(400, 401, 403, 404, 409, 422))
async def change_document_budget(
    services: ServicesOf, caller: WriteCaller, document: UUID, wanted: DocumentBudgetRequest
) -> DocumentBudget:
    """Up to what you may spend in a month; its paused jobs go on if there is money for them now."""
    await change_of_document(services, caller, document, wanted.usd)
    return await document_budget(services, caller, document)


# For pages, too ----------------------------------------------------------------------------------------------------


async def budgets_of(services: Services, caller: Caller) -> BudgetsInForce:
    usual = Budgets.of(services.settings)
    async with services.database.connection() as connection:
        return await read_budgets(connection, caller.owner_id, usual, everybody=caller.is_admin)


async def change(services: Services, caller: Caller, wanted: BudgetsRequest) -> None:
    if not wanted.changes:
        return
    async with services.database.transaction() as connection:
        await set_budgets(connection, caller.owner_id, wanted.changes)
    await resume_paused_jobs(services.database, Budgets.of(services.settings))


async def change_of_document(services: Services, caller: Caller, document: UUID, usd: float | None) -> None:
    usual = Budgets.of(services.settings)
    async with services.database.transaction() as connection:
        await set_document_budget(connection, caller.owner_id, document, usd, usual)
    await resume_paused_jobs(services.database, usual)


usage_router = APIRouter(prefix="/api/v1", tags=["usage"])

Month = Annotated[str | None, Query(pattern=r"^[12]\d{3}-(0[1-9]|1[0-2])$", description="As 2026-11. Else this one.")]


@usage_router.get("/usage", responses=problems(401, 422))
async def usage(services: ServicesOf, caller: ReadCaller, month: Month = None) -> Usage:
    """What models cost you in a month, for what, and what was saved by using answers again."""
    owner, everybody, usual = caller.owner_id, caller.is_admin, Budgets.of(services.settings)
    async with services.database.connection() as connection:
        budgets = await read_budgets(connection, owner, usual, everybody=everybody)
        return await read_usage(connection, owner, month, budget_usd=budgets.owner.usd, everybody=everybody)
