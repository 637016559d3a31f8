"""The API for budgets and usage. Changed budgets apply immediately, and paused work resumes if they allow it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from octavo.ai.budgets import MAX_USD, Budgets, Scope, read_budgets, resume_paused_jobs, set_budgets
from octavo.ai.estimates import DocumentSize, estimate_document, estimate_size
from octavo.ai.ledger import read_usage
from octavo.library.changes import read_document_budget, set_document_budget
from octavo.library.documents import show_document
from octavo.owners import Caller
from octavo.records.account import BudgetsInForce, DocumentBudget, DocumentEstimate, Usage
from octavo.web.context.callers import AdminCaller, ReadCaller, WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import problems

router = APIRouter(prefix="/api/v1", tags=["budgets"])
MOST_WORDS = 1_000_000_000
Dollars = Annotated[float, Field(strict=True, ge=0, le=MAX_USD, allow_inf_nan=False)]


class BudgetsRequest(BaseModel):
    """Budgets in US dollars. Budgets that are not sent stay unchanged; null restores the default from the settings."""

    model_config = ConfigDict(extra="forbid")

    document: Dollars | None = None
    owner: Dollars | None = None
    month: Dollars | None = None

    @property
    def changes(self) -> dict[Scope, float | None]:
        given: dict[Scope, float | None] = {"document": self.document, "owner": self.owner, "month": self.month}
        return {scope: most for scope, most in given.items() if scope in self.model_fields_set}


class DocumentBudgetRequest(BaseModel):
    """The budget of one document in US dollars; null restores the default budget."""

    model_config = ConfigDict(extra="forbid")

    usd: Dollars | None


@router.get("/settings/budgets", responses=problems(401))
async def budgets(services: ServicesOf, caller: ReadCaller) -> BudgetsInForce:
    """Return the budgets per document and per account. Administrators also see the budget for all accounts together."""
    return await budgets_of(services, caller)


@router.put("/settings/budgets", responses=problems(400, 401, 403, 422))
async def change_budgets(services: ServicesOf, caller: AdminCaller, wanted: BudgetsRequest) -> BudgetsInForce:
    """Change the budgets for everybody, effective immediately. Paused jobs resume if the new budgets allow it."""
    await change(services, caller, wanted)
    return await budgets_of(services, caller)


@router.get("/documents/{document}/budget", responses=problems(401, 404, 422))
async def document_budget(services: ServicesOf, caller: ReadCaller, document: UUID) -> DocumentBudget:
    """Return the budget of a document, its costs, and the amount that its paused jobs need."""
    async with services.database.connection() as connection:
        return await read_document_budget(connection, caller.owner_id, document, Budgets.of(services.settings))


@router.get("/documents/{document}/estimate", responses=problems(401, 404, 422))
async def document_estimate(
    services: ServicesOf, caller: ReadCaller, document: UUID, prompts: Annotated[int, Query(ge=1, le=100)] = 1
) -> DocumentEstimate:
    """Estimate the cost of model calls for this document.

    There are separate estimates for generating the title, summary and tags, for cleaning up the text, for extracting it
    from page images, for finding connections, and for running the given number of prompts.
    """
    async with services.database.connection() as connection:
        found = await show_document(connection, caller.owner_id, document)
    return estimate_document(services.settings, caller, found, prompts)


@router.get("/estimate", responses=problems(401, 422))
async def estimate(
    services: ServicesOf,
    caller: ReadCaller,
    words: Annotated[int, Query(ge=0, le=MOST_WORDS)],
    pages: Annotated[int, Query(ge=0, le=MOST_WORDS)] = 0,
    prompts: Annotated[int, Query(ge=1, le=100)] = 1,
) -> DocumentEstimate:
    """Estimate the cost of model calls for a document of this size, before it is added."""
    return estimate_size(services.settings, caller, DocumentSize(words, pages), prompts)


@router.put("/documents/{document}/budget", responses=problems(400, 401, 403, 404, 409, 422))
async def change_document_budget(
    services: ServicesOf, caller: WriteCaller, document: UUID, wanted: DocumentBudgetRequest
) -> DocumentBudget:
    """Set the budget of a document, up to your monthly budget. Its paused jobs resume if the new budget allows it."""
    await change_of_document(services, caller, document, wanted.usd)
    return await document_budget(services, caller, document)


# Also for pages ----------------------------------------------------------------------------------------------------


async def budgets_of(services: Services, caller: Caller) -> BudgetsInForce:
    defaults = Budgets.of(services.settings)
    async with services.database.connection() as connection:
        return await read_budgets(connection, caller.owner_id, defaults, everybody=caller.is_admin)


async def change(services: Services, caller: Caller, wanted: BudgetsRequest) -> None:
    if not wanted.changes:
        return
    async with services.database.transaction() as connection:
        await set_budgets(connection, caller.owner_id, wanted.changes)
    await resume_paused_jobs(services.database, Budgets.of(services.settings))


async def change_of_document(services: Services, caller: Caller, document: UUID, usd: float | None) -> None:
    defaults = Budgets.of(services.settings)
    async with services.database.transaction() as connection:
        await set_document_budget(connection, caller.owner_id, document, usd, defaults)
    await resume_paused_jobs(services.database, defaults)


usage_router = APIRouter(prefix="/api/v1", tags=["usage"])

Month = Annotated[
    str | None,
    Query(pattern=r"^[12]\d{3}-(0[1-9]|1[0-2])$", description="A month such as 2026-11. Default: the current month."),
]


@usage_router.get("/usage", responses=problems(401, 422))
async def usage(services: ServicesOf, caller: ReadCaller, month: Month = None) -> Usage:
    """Return the cost of your model calls in a month, by purpose, and the savings from reused answers."""
    owner, everybody, defaults = caller.owner_id, caller.is_admin, Budgets.of(services.settings)
    async with services.database.connection() as connection:
        budgets = await read_budgets(connection, owner, defaults, everybody=everybody)
        return await read_usage(connection, owner, month, budget_usd=budgets.owner.usd, everybody=everybody)
