"""Signing up, in and out, for pages and programs alike; what they answer with is theirs."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from fastapi import Request
from pydantic import SecretStr

from octavo.core.errors import NotAllowed, SignUpClosed, Unauthenticated, WrongCredentials
from octavo.database import Connection
from octavo.owners import Caller, Role, Scope, accounts, read_session
from octavo.owners.accounts import Account, find_account, read_account
from octavo.owners.members import OwnerChoice, list_owners, switch_owner
from octavo.owners.passwords import hash_password, verify_password
from octavo.owners.sessions import end_session
from octavo.web.context.callers import address_of, forget_session, remember_session, session_secret
from octavo.web.context.services import Services

ONLY_THIS_BROWSER = (
    "Only this browser holds the key to your documents. Sign up to reach them from elsewhere, and after its cookies "
    "were deleted."
)


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


async def sign_up(request: Request, services: Services, caller: Caller | None, email: str, password: SecretStr) -> Me:
    """Make an account; the documents of this browser become its own."""
    if not services.settings.sign_up:
        raise SignUpClosed
    password_hash = await hash_password(password.get_secret_value())
    async with services.database.transaction() as connection:
        secret = await accounts.sign_up(connection, email, password_hash, replacing=session_secret(request))
        me = await _who_has(connection, secret)
    remember_session(request, secret)
    _doubt(services, caller)
    return me


async def sign_in(request: Request, services: Services, caller: Caller | None, email: str, password: SecretStr) -> Me:
    """Act as the person with this address; documents of an anonymous browser become theirs."""
    async with services.database.connection() as connection:
        account = await find_account(connection, email)
    account, password_hash = await _prove(request, services, email, account, password)
    async with services.database.transaction() as connection:
        secret = await accounts.sign_in(connection, account, password_hash, replacing=session_secret(request))
        me = await _who_has(connection, secret)
    remember_session(request, secret)
    _doubt(services, caller)
    return me


async def sign_out(request: Request, services: Services, caller: Caller | None) -> None:
    """End this browser's session. An anonymous visitor cannot come back to the documents after that."""
    if caller and caller.via == "key":
        raise NotAllowed("A key is revoked, not signed out.")
    async with services.database.connection() as connection:
        await end_session(connection, session_secret(request))
    forget_session(request)
    _doubt(services, caller)


async def change_password(
    request: Request, services: Services, person: UUID, password: SecretStr, new_password: SecretStr
) -> None:
    """Everywhere else the person is signed out."""
    async with services.database.connection() as connection:
        account = await read_account(connection, person)
    email = account.email if account else ""
    account, _ = await _prove(request, services, email, account, password)
    password_hash = await hash_password(new_password.get_secret_value())
    async with services.database.transaction() as connection:
        await accounts.change_password(connection, account, password_hash, keeping=session_secret(request) or "")


async def act_for(request: Request, services: Services, caller: Caller | None, person: UUID, owner_id: UUID) -> Me:
    """Let this browser act for another owner that the person is a member of."""
    secret = session_secret(request) or ""
    async with services.database.transaction() as connection:
        await switch_owner(connection, person, secret, owner_id)
        me = await _who_has(connection, secret)
    _doubt(services, caller)
    return me


async def describe(connection: Connection, caller: Caller) -> Me:
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


def _doubt(services: Services, caller: Caller | None) -> None:
    """What is open for whoever this browser was until now ends at once."""
    if caller:
        services.live.doubt(caller.owner_id)


async def _prove(
    request: Request, services: Services, email: str, account: Account | None, password: SecretStr
) -> tuple[Account, str]:
    """The account and the hash to keep, if the password is right; not too often wrong from one address."""
    tries = f"{email.lower()} {address_of(request)}"
    services.limits.sign_ins.begin(tries)
    kept = account.password_hash if account else None
    password_hash = await verify_password(kept, password.get_secret_value())
    if account is None or password_hash is None:
        raise WrongCredentials
    services.limits.sign_ins.succeed(tries)
    return account, password_hash


async def _who_has(connection: Connection, secret: str) -> Me:
    opened = await read_session(connection, secret)
    if opened is None:
        raise Unauthenticated
    return await describe(connection, opened.caller)
