"""Who you are here: signing up, in and out, and which owner your browser acts for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from octavo.database import Connection
from octavo.model.errors import NotAllowed, Unauthenticated, WrongCredentials
from octavo.owners import Caller, Role, Scope, accounts, read_session
from octavo.owners.accounts import Account, find_account, read_account
from octavo.owners.members import OwnerChoice, list_owners, switch_owner
from octavo.owners.passwords import hash_password, verify_password
from octavo.owners.sessions import end_session
from octavo.web.api import Email, problems
from octavo.web.parts import (
    Parts,
    PartsOf,
    Person,
    Reading,
    Recognised,
    address_of,
    forget_session,
    remember_session,
    session_secret,
)

router = APIRouter(prefix="/api/v1", tags=["account"])

ONLY_THIS_BROWSER = (
    "Only this browser holds the key to your documents. Sign up to reach them from elsewhere, and after its cookies "
    "were deleted."
)
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


@dataclass(frozen=True, slots=True)
class Me:
    """`owners`: whom you may act for. `note`: what an anonymous visitor has to know."""

    owner_id: UUID
    kind: str
    email: str | None
    role: Role
    scope: Scope
    admin: bool
    owners: list[OwnerChoice]
    note: str | None


@router.post("/account", status_code=201, responses=problems(401, 403, 409, 422))
async def sign_up(request: Request, parts: PartsOf, wanted: Credentials) -> Me:
    """Make an account; the documents of this browser become its own."""
    password_hash = await hash_password(wanted.password.get_secret_value())
    async with parts.database.transaction() as connection:
        secret = await accounts.sign_up(connection, wanted.email, password_hash, replacing=session_secret(request))
        me = await _who_has(connection, secret)
    remember_session(request, secret)
    return me


@router.post("/session", responses=problems(401, 403, 422))
async def sign_in(request: Request, parts: PartsOf, wanted: Credentials) -> Me:
    """Act as the person with this address; documents of an anonymous browser become theirs."""
    async with parts.database.connection() as connection:
        account = await find_account(connection, wanted.email)
    account, password_hash = await _prove(request, parts, wanted.email, account, wanted.password)
    async with parts.database.transaction() as connection:
        secret = await accounts.sign_in(connection, account, password_hash, replacing=session_secret(request))
        me = await _who_has(connection, secret)
    remember_session(request, secret)
    return me


@router.get("/session", responses=problems(401))
async def session(parts: PartsOf, caller: Reading) -> Me:
    """Who you are, and for whom you act."""
    async with parts.database.connection() as connection:
        return await _describe(connection, caller)


@router.delete("/session", status_code=204, responses=problems(401, 403))
async def sign_out(request: Request, parts: PartsOf, caller: Recognised) -> None:
    """End this browser's session. An anonymous visitor cannot come back to the documents after that."""
    if caller and caller.via == "key":
        raise NotAllowed("A key is revoked, not signed out.")
    async with parts.database.connection() as connection:
        await end_session(connection, session_secret(request))
    forget_session(request)


@router.put("/account/password", status_code=204, responses=problems(401, 403, 422))
async def change_password(request: Request, parts: PartsOf, person: Person, wanted: PasswordChange) -> None:
    """Everywhere else you are signed out."""
    async with parts.database.connection() as connection:
        account = await read_account(connection, person)
    email = account.email if account else ""
    account, _ = await _prove(request, parts, email, account, wanted.password)
    password_hash = await hash_password(wanted.new_password.get_secret_value())
    async with parts.database.transaction() as connection:
        await accounts.change_password(connection, account, password_hash, keeping=session_secret(request) or "")


@router.post("/session/owner", responses=problems(401, 403, 404, 422))
async def act_for(request: Request, parts: PartsOf, person: Person, wanted: OwnerWanted) -> Me:
    """Let this browser act for another owner that you are a member of."""
    secret = session_secret(request) or ""
    async with parts.database.transaction() as connection:
        await switch_owner(connection, person, secret, wanted.owner_id)
        return await _who_has(connection, secret)


async def _prove(
    request: Request, parts: Parts, email: str, account: Account | None, password: SecretStr
) -> tuple[Account, str]:
    """The account and the hash to keep, if the password is right; not too often wrong from one address."""
    tries = f"{email.lower()} {address_of(request)}"
    parts.limits.sign_ins.begin(tries)
    kept = account.password_hash if account else None
    password_hash = await verify_password(kept, password.get_secret_value())
    if account is None or password_hash is None:
        raise WrongCredentials
    parts.limits.sign_ins.succeed(tries)
    return account, password_hash


async def _who_has(connection: Connection, secret: str) -> Me:
    opened = await read_session(connection, secret)
    if opened is None:
        raise Unauthenticated
    return await _describe(connection, opened.caller)


async def _describe(connection: Connection, caller: Caller) -> Me:
    account = await read_account(connection, caller.user_id) if caller.user_id else None
    return Me(
        owner_id=caller.owner_id,
        kind=caller.kind,
        email=account.email if account else None,
        role=caller.role,
        scope=caller.scope,
        admin=caller.is_admin,
        owners=await list_owners(connection, caller.user_id) if caller.user_id else [],
        note=ONLY_THIS_BROWSER if caller.is_anonymous else None,
    )
