"""What models cost."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from octavo.ai.usage import Usage, read_usage
from octavo.web.api import problems
from octavo.web.parts import PartsOf, Reading

router = APIRouter(prefix="/api/v1", tags=["usage"])

Month = Annotated[str | None, Query(pattern=r"^[12]\d{3}-(0[1-9]|1[0-2])$", description="As 2026-11. Else this one.")]


@router.get("/usage", responses=problems(401, 422))
async def usage(parts: PartsOf, caller: Reading, month: Month = None) -> Usage:
    """What models cost you in a month, for what, and what was saved by using answers again."""
    budget = parts.settings.owner_budget
    async with parts.database.connection() as connection:
        return await read_usage(connection, caller.owner_id, month, budget_usd=budget, everybody=caller.is_admin)
