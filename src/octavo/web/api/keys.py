"""Keys by which programs act for you."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from octavo.core.pages import Page
from octavo.owners import Scope, keys
from octavo.owners.keys import KeyView, NewKey
from octavo.web.api import WHOLE, problems
from octavo.web.parts import Known, PartsOf

router = APIRouter(prefix="/api/v1/keys", tags=["account"])


class KeyWanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")]
    scope: Scope = "write"
    expires_in_days: Annotated[int, Field(ge=1, le=3650), WHOLE] | None = None


@router.get("", responses=problems(401, 403))
async def list_keys(parts: PartsOf, caller: Known) -> Page[KeyView]:
    """Your keys, newest first; whoever has the role owner sees everybody's."""
    async with parts.database.connection() as connection:
        return Page(await keys.list_keys(connection, caller), None)


@router.post("", status_code=201, responses=problems(400, 401, 403, 422))
async def make_key(parts: PartsOf, caller: Known, wanted: KeyWanted) -> NewKey:
    """Make a key. `key` is shown this once and never again."""
    async with parts.database.transaction() as connection:
        return await keys.make_key(
            connection, caller, name=wanted.name, scope=wanted.scope, days=wanted.expires_in_days
        )


@router.delete("/{key}", status_code=204, responses=problems(401, 403, 404, 422))
async def revoke_key(parts: PartsOf, caller: Known, key: UUID) -> None:
    """It stops working at once."""
    async with parts.database.transaction() as connection:
        await keys.revoke_key(connection, caller, key)
    parts.live.doubt(caller.owner_id)
