"""The people who share your owner with you."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict

from octavo.core.pages import Page
from octavo.owners import Role, members
from octavo.owners.members import Member
from octavo.web.api import Email, problems
from octavo.web.parts import Known, PartsOf

router = APIRouter(prefix="/api/v1/members", tags=["account"])


class MemberWanted(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    email: Email
    role: Role = "member"


class RoleWanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Role


@router.get("", responses=problems(401))
async def list_members(parts: PartsOf, caller: Known) -> Page[Member]:
    """Everybody who may act for the owner that you act for."""
    async with parts.database.connection() as connection:
        return Page(await members.list_members(connection, caller.owner_id), None)


@router.post("", status_code=201, responses=problems(400, 401, 403, 404, 409, 422))
async def add_member(parts: PartsOf, caller: Known, wanted: MemberWanted) -> Member:
    """Let somebody who has an account act for this owner too."""
    async with parts.database.transaction() as connection:
        return await members.add_member(connection, caller, wanted.email, wanted.role)


@router.patch("/{user}", responses=problems(400, 401, 403, 404, 409, 422))
async def change_role(parts: PartsOf, caller: Known, user: UUID, wanted: RoleWanted) -> Member:
    """It holds from the person's next request on."""
    async with parts.database.transaction() as connection:
        return await members.change_role(connection, caller, user, wanted.role)


@router.delete("/{user}", status_code=204, responses=problems(401, 403, 404, 409, 422))
async def remove_member(parts: PartsOf, caller: Known, user: UUID) -> None:
    """Their sessions and keys for this owner end with it."""
    async with parts.database.transaction() as connection:
        await members.remove_member(connection, caller, user)
    parts.live.doubt(caller.owner_id)
