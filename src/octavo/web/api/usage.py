"""What models cost."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from octavo.ai.budgets import Budgets, read_budgets
from octavo.ai.usage import Usage, read_usage
from octavo.web.api import problems
from octavo.web.parts import PartsOf, Reading

router = APIRouter(prefix="/api/v1", tags=["usage"])

Month = Annotated[str | None, Query(pattern=r"^[12]\d{3}-(0[1-9]|1[0-2])$", description="As 2026-11. Else this one.")]


@router.get("/usage", responses=problems(401, 422))
async def usage(parts: PartsOf, caller: Reading, month: Month = None) -> Usage:
    """What models cost you in a month, for what, and what was saved by using answers again."""
    owner, everybody, usual = caller.owner_id, caller.is_admin, Budgets.of(parts.settings)
    async with parts.database.connection() as connection:
        budgets = await read_budgets(connection, owner, usual, everybody=everybody)
        return await read_usage(connection, owner, month, budget_usd=budgets.owner.usd, everybody=everybody)
