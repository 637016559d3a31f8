"""Sign-up, sign-in and sign-out, for the pages and the API."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from fastapi import Request
from pydantic import SecretStr

from octavo.ai.model_settings import KeySeal, SealedKey
from octavo.core.errors import NotAllowed, SignUpClosed, Unauthenticated, WrongCredentials
from octavo.core.texts import gettext as _
from octavo.core.texts import mark
from octavo.database import Connection
from octavo.owners import Caller, accounts, read_session
from octavo.owners.account_links import find_person, make_code_token, use_code_token
from octavo.owners.accounts import Account, find_account, hash_password, read_account, verify_password
from octavo.owners.audit import record
from octavo.owners.callers import CodeRequired
from octavo.owners.members import list_owners, switch_owner
from octavo.owners.sessions import end_session, is_required, use_any_code
from octavo.records.account import Me
from octavo.web.context.callers import address_of, forget_session, remember_session, session_secret
from octavo.web.context.services import Services

ONLY_THIS_BROWSER = mark(
    "Your documents are tied to this browser. Create an account to reach them from other devices, and to keep them if "
    "this browser's cookies are deleted."
)


async def sign_up(request: Request, services: Services, caller: Caller | None, email: str, password: SecretStr) -> Me:
    """Create an account. Documents that were added anonymously in this browser are moved to it."""
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


async def sign_in(
    request: Request,
    services: Services,
    caller: Caller | None,
    email: str,
    password: SecretStr,
    code: str | None = None,
) -> Me:
    """Sign in. Documents that were added anonymously in this browser are moved to the account.

    Raises `CodeRequired` if the person has a second factor and no code was given.
    """
    account, password_hash = await _verify_email(request, services, email, password)
    if await needs_code(services, account.id):
        if code is None:
            raise CodeRequired
        await use_code(request, services, account.id, account.email, code)
    async with services.database.transaction() as connection:
        secret = await accounts.sign_in(connection, account, password_hash, replacing=session_secret(request))
        me = await _describe_session(connection, secret)
    remember_session(request, secret)
    _recheck_streams(services, caller)
    return me


async def begin_sign_in(
    request: Request, services: Services, caller: Caller | None, email: str, password: SecretStr
) -> str | None:
    """Sign in with a password. Returns None if the sign-in is complete.

    If the person has a second factor, returns a token for `complete_sign_in` instead.
    """
    account, password_hash = await _verify_email(request, services, email, password)
    async with services.database.transaction() as connection:
        if await is_required(connection, account.id):
            return await make_code_token(connection, account.id)
        secret = await accounts.sign_in(connection, account, password_hash, replacing=session_secret(request))
    remember_session(request, secret)
    _recheck_streams(services, caller)
    return None


async def complete_sign_in(request: Request, services: Services, caller: Caller | None, token: str, code: str) -> None:
    """Complete a sign-in by checking a second-factor code. The token shows that the password was correct."""
    async with services.database.connection() as connection:
        person = await find_person(connection, "code", token)
    await use_code(request, services, person.user_id, person.email, code)
    async with services.database.transaction() as connection:
        user_id = await use_code_token(connection, token)
        secret = await accounts.open_for(connection, user_id, by="code", replacing=session_secret(request))
    remember_session(request, secret)
    _recheck_streams(services, caller)


async def needs_code(services: Services, user_id: UUID) -> bool:
    async with services.database.connection() as connection:
        return await is_required(connection, user_id)


async def use_code(request: Request, services: Services, user_id: UUID, email: str, code: str) -> None:
    """Check a second-factor code. Wrong codes are limited in the same way as wrong passwords."""
    address, name = address_of(request), f"second factor of {email}"
    await services.limits.sign_ins.begin(name, address)
    async with services.database.transaction() as connection:
        await use_any_code(connection, user_id, code, reveal_with(services))
    await services.limits.sign_ins.succeed(name, address)


def reveal_with(services: Services) -> Callable[[str], str | None]:
    """Return a function that decrypts the secrets of authenticator apps."""
    seal = KeySeal(services.own_settings)
    return lambda sealed: seal.open(SealedKey(sealed, ""))


async def _verify_email(request: Request, services: Services, email: str, password: SecretStr) -> tuple[Account, str]:
    async with services.database.connection() as connection:
        account = await find_account(connection, email)
    return await _verify(request, services, email, account, password)


async def sign_out(request: Request, services: Services, caller: Caller | None) -> None:
    """End the session of this browser. A visitor without an account loses access to their documents."""
    if caller and caller.via == "key":
        raise NotAllowed(_("API keys cannot sign out. Revoke the key instead."))
    async with services.database.transaction() as connection:
        await end_session(connection, session_secret(request))
        if caller and not caller.is_anonymous:
            await record(connection, caller.owner_id, "account.sign_out", caller.user_id or caller.owner_id)
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


async def check_password(request: Request, services: Services, person: UUID, password: SecretStr) -> None:
    """Check the password of a signed-in person again.

    Raises `WrongCredentials`, or `TooFast` after too many wrong passwords. Does nothing if the person has no password
    because they sign in only with a provider.
    """
    async with services.database.connection() as connection:
        account = await read_account(connection, person)
    if account is None or account.password_hash is not None:
        await _verify(request, services, account.email if account else "", account, password)


async def act_for(request: Request, services: Services, caller: Caller | None, person: UUID, owner_id: UUID) -> Me:
    """Switch this browser to another account (owner) that the person is a member of."""
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
        note=_(ONLY_THIS_BROWSER) if caller.is_anonymous else None,
        limited=caller.limited,
        language=caller.language or (account.language if account else None),
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
