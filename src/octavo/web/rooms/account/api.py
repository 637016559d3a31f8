"""Who you are here: signing up, in and out, and which owner your browser acts for."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from octavo.core.pagination import Page
from octavo.owners import Role, Scope, keys, members
from octavo.owners.members import Member
from octavo.records.account import KeyView, NewKey
from octavo.web.context.callers import KnownCaller, OptionalCaller, PersonId, ReadCaller
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import WHOLE, Email, problems
from octavo.web.rooms.account import accounts
from octavo.web.rooms.account.accounts import Me

router = APIRouter(prefix="/api/v1", tags=["account"])

# For who is nobody yet, too. Added to what is declared for all routes.
NEEDS_NOBODY = {"security": [dict[str, list[str]]()]}
Password = Annotated[SecretStr, Field(max_length=1000)]


class Credentials(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    email: Email
    password: Password


class PasswordChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    password: Password
    new_password: Password


class OwnerWanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    owner_id: UUID


@router.post("/account", status_code=201, responses=problems(400, 401, 403, 409, 422), openapi_extra=NEEDS_NOBODY)
async def sign_up(request: Request, services: ServicesOf, caller: OptionalCaller, wanted: Credentials) -> Me:
    """Make an account; the documents of this browser become its own."""
    return await accounts.sign_up(request, services, caller, wanted.email, wanted.password)


@router.post("/session", responses=problems(400, 401, 403, 422), openapi_extra=NEEDS_NOBODY)
async def sign_in(request: Request, services: ServicesOf, caller: OptionalCaller, wanted: Credentials) -> Me:
    """Act as the person with this address; documents of an anonymous browser become theirs."""
    return await accounts.sign_in(request, services, caller, wanted.email, wanted.password)


@router.get("/session", responses=problems(401))
async def session(services: ServicesOf, caller: ReadCaller) -> Me:
    """Who you are, and for whom you act."""
    async with services.database.connection() as connection:
        return await accounts.describe(connection, caller)


@router.delete("/session", status_code=204, responses=problems(401, 403), openapi_extra=NEEDS_NOBODY)
async def sign_out(request: Request, services: ServicesOf, caller: OptionalCaller) -> None:
    """End this browser's session. An anonymous visitor cannot come back to the documents after that."""
    await accounts.sign_out(request, services, caller)


@router.put("/account/password", status_code=204, responses=problems(400, 401, 403, 422))
async def change_password(request: Request, services: ServicesOf, person: PersonId, wanted: PasswordChange) -> None:
    """Everywhere else you are signed out."""
    await accounts.change_password(request, services, person, wanted.password, wanted.new_password)


@router.post("/session/owner", responses=problems(400, 401, 403, 404, 422))
async def act_for(
    request: Request, services: ServicesOf, caller: OptionalCaller, person: PersonId, wanted: OwnerWanted
) -> Me:
    """Let this browser act for another owner that you are a member of."""
    return await accounts.act_for(request, services, caller, person, wanted.owner_id)


keys_router = APIRouter(prefix="/api/v1/keys", tags=["account"])


class KeyWanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")]
    scope: Scope = "write"
    expires_in_days: Annotated[int, Field(ge=1, le=3650), WHOLE] | None = None


@keys_router.get("", responses=problems(401, 403))
async def list_keys(services: ServicesOf, caller: KnownCaller) -> Page[KeyView]:
    """Your keys, newest first; whoever has the role owner sees everybody's."""
    async with services.database.connection() as connection:
        return Page(await keys.list_keys(connection, caller), None)


@keys_router.post("", status_code=201, responses=problems(400, 401, 403, 422))
async def make_key(services: ServicesOf, caller: KnownCaller, wanted: KeyWanted) -> NewKey:
    """Make a key. `key` is shown this once and never again."""
    async with services.database.transaction() as connection:
        return await keys.make_key(
            connection, caller, name=wanted.name, scope=wanted.scope, days=wanted.expires_in_days
        )


@keys_router.delete("/{key}", status_code=204, responses=problems(401, 403, 404, 422))
async def revoke_key(services: ServicesOf, caller: KnownCaller, key: UUID) -> None:
    """It stops working at once."""
    async with services.database.transaction() as connection:
        await keys.revoke_key(connection, caller, key)
    services.live.doubt(caller.owner_id)


members_router = APIRouter(prefix="/api/v1/members", tags=["account"])


class MemberWanted(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    email: Email
    role: Role = "member"


class RoleWanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Role


@members_router.get("", responses=problems(401))
async def list_members(services: ServicesOf, caller: KnownCaller) -> Page[Member]:
    """Everybody who may act for the owner that you act for."""
    async with services.database.connection() as connection:
        return Page(await members.list_members(connection, caller.owner_id), None)


@members_router.post("", status_code=201, responses=problems(400, 401, 403, 404, 409, 422))
async def add_member(services: ServicesOf, caller: KnownCaller, wanted: MemberWanted) -> Member:
    """Let somebody who has an account act for this owner too."""
    async with services.database.transaction() as connection:
        return await members.add_member(connection, caller, wanted.email, wanted.role)


@members_router.patch("/{user}", responses=problems(400, 401, 403, 404, 409, 422))
async def change_role(services: ServicesOf, caller: KnownCaller, user: UUID, wanted: RoleWanted) -> Member:
    """It holds from the person's next request on."""
    async with services.database.transaction() as connection:
        return await members.change_role(connection, caller, user, wanted.role)


@members_router.delete("/{user}", status_code=204, responses=problems(401, 403, 404, 409, 422))
async def remove_member(services: ServicesOf, caller: KnownCaller, user: UUID) -> None:
    """Their sessions and keys for this owner end with it."""
    async with services.database.transaction() as connection:
        await members.remove_member(connection, caller, user)
    services.live.doubt(caller.owner_id)
