"""Who you are here: signing up, in and out, and which owner your browser acts for."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from octavo.web import accounts
from octavo.web.accounts import Me
from octavo.web.api import Email, problems
from octavo.web.parts import PartsOf, Person, Reading, Recognised

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
async def sign_up(request: Request, parts: PartsOf, caller: Recognised, wanted: Credentials) -> Me:
    """Make an account; the documents of this browser become its own."""
    return await accounts.sign_up(request, parts, caller, wanted.email, wanted.password)


@router.post("/session", responses=problems(400, 401, 403, 422), openapi_extra=NEEDS_NOBODY)
async def sign_in(request: Request, parts: PartsOf, caller: Recognised, wanted: Credentials) -> Me:
    """Act as the person with this address; documents of an anonymous browser become theirs."""
    return await accounts.sign_in(request, parts, caller, wanted.email, wanted.password)


@router.get("/session", responses=problems(401))
async def session(parts: PartsOf, caller: Reading) -> Me:
    """Who you are, and for whom you act."""
    async with parts.database.connection() as connection:
        return await accounts.describe(connection, caller)


@router.delete("/session", status_code=204, responses=problems(401, 403), openapi_extra=NEEDS_NOBODY)
async def sign_out(request: Request, parts: PartsOf, caller: Recognised) -> None:
    """End this browser's session. An anonymous visitor cannot come back to the documents after that."""
    await accounts.sign_out(request, parts, caller)


@router.put("/account/password", status_code=204, responses=problems(400, 401, 403, 422))
async def change_password(request: Request, parts: PartsOf, person: Person, wanted: PasswordChange) -> None:
    """Everywhere else you are signed out."""
    await accounts.change_password(request, parts, person, wanted.password, wanted.new_password)


@router.post("/session/owner", responses=problems(400, 401, 403, 404, 422))
async def act_for(request: Request, parts: PartsOf, caller: Recognised, person: Person, wanted: OwnerWanted) -> Me:
    """Let this browser act for another owner that you are a member of."""
    return await accounts.act_for(request, parts, caller, person, wanted.owner_id)
