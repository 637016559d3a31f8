"""Sign-up, sign-in and sign-out, for the pages and the API."""

from __future__ import annotations

from uuid import UUID

from fastapi import Request
from pydantic import SecretStr

from octavo.core.errors import NotAllowed, SignUpClosed, Unauthenticated, WrongCredentials
from octavo.database import Connection
from octavo.owners import Caller, accounts, read_session
from octavo.owners.accounts import Account, find_account, hash_password, read_account, verify_password
from octavo.owners.members import list_owners, switch_owner
from octavo.owners.sessions import end_session
from octavo.records.account import Me
from octavo.web.context.callers import address_of, forget_session, remember_session, session_secret
from octavo.web.context.services import Services

ONLY_THIS_BROWSER = (
    "Your documents are tied to this browser. Create an account to reach them from other devices, and to keep them "
    "if this browser's cookies are deleted."
)


async def sign_up(request: Request, services: Services, caller: Caller | None, email: str, password: SecretStr) -> Me:
    """Create an account and move the documents of this browser to it."""
    if not services.settings.sign_up:
        raise SignUpClosed
    await services.limits.admit_sign_up(address_of(request))
    password_hash = await hash_password(password.get_secret_value())
    async with services.database.transaction() as connection:
        secret = await accounts.sign_up(connection, email, password_hash, replacing=session_secret(request))
        me = await _describe_session(connection, secret)
    remember_session(request, secret)
    _recheck_streams(services, caller)
    return me


async def sign_in(request: Request, services: Services, caller: Caller | None, email: str, password: SecretStr) -> Me:
    """Sign in, and move the documents of an anonymous browser to the account."""
    async with services.database.connection() as connection:
        account = await find_account(connection, email)
    account, password_hash = await _verify(request, services, email, account, password)
    async with services.database.transaction() as connection:
        secret = await accounts.sign_in(connection, account, password_hash, replacing=session_secret(request))
        me = await _describe_session(connection, secret)
    remember_session(request, secret)
    _recheck_streams(services, caller)
    return me


async def sign_out(request: Request, services: Services, caller: Caller | None) -> None:
    """End the session of this browser. An anonymous visitor loses access to their documents."""
    if caller and caller.via == "key":
        raise NotAllowed("API keys cannot sign out. Revoke the key instead.")
    async with services.database.connection() as connection:
        await end_session(connection, session_secret(request))
    forget_session(request)
    _recheck_streams(services, caller)


async def change_password(
    request: Request, services: Services, person: UUID, password: SecretStr, new_password: SecretStr
) -> None:
    """Change the password and sign out all other sessions."""
    async with services.database.connection() as connection:
        account = await read_account(connection, person)
    email = account.email if account else ""
    account, _ = await _verify(request, services, email, account, password)
    password_hash = await hash_password(new_password.get_secret_value())
    async with services.database.transaction() as connection:
        await accounts.change_password(connection, account, password_hash, keeping=session_secret(request) or "")


async def act_for(request: Request, services: Services, caller: Caller | None, person: UUID, owner_id: UUID) -> Me:
    """Switch this browser to another account (owner) of which the person is a member."""
    secret = session_secret(request) or ""
    async with services.database.transaction() as connection:
        await switch_owner(connection, person, secret, owner_id)
        me = await _describe_session(connection, secret)
    _recheck_streams(services, caller)
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


def _recheck_streams(services: Services, caller: Caller | None) -> None:
    """Make the open event streams of the caller's account check their access again.

    This ends the streams of the browser's old session.
    """
    if caller:
        services.live.recheck(caller.owner_id)


async def _verify(
    request: Request, services: Services, email: str, account: Account | None, password: SecretStr
) -> tuple[Account, str]:
    """Check the password. Returns the account and the password hash to store.

    Raises `WrongCredentials`, or `TooFast` after too many wrong passwords.
    """
    address = address_of(request)
    await services.limits.sign_ins.begin(email, address)
    kept = account.password_hash if account else None
    password_hash = await verify_password(kept, password.get_secret_value())
    if account is None or password_hash is None:
        raise WrongCredentials
    await services.limits.sign_ins.succeed(email, address)
    return account, password_hash


async def _describe_session(connection: Connection, secret: str) -> Me:
    opened = await read_session(connection, secret)
    if opened is None:
        raise Unauthenticated
    return await describe(connection, opened.caller)
