"""Signs people in by the identity that an OpenID Connect provider has confirmed.

A person is found by issuer and subject. An email address alone never gives access to an existing account, because it
is not certain that the account belongs to the same person.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from octavo.core.errors import EmailTaken, NotAllowed
from octavo.core.ids import hash_token, new_token
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.accounts import first_owner, insert_user
from octavo.owners.audit import record
from octavo.owners.errors import IdentityTaken, LastSignIn, ProviderRefused
from octavo.owners.id_tokens import Identity
from octavo.owners.members import switch_owner
from octavo.owners.sessions import local_owner, open_session
from octavo.records.account import ConnectedIdentity

QUERIES = load_queries("identities")
MEMBERS = load_queries("members")
# How long a person has time to sign in at the provider.
SECONDS_AT_PROVIDER = 600


@dataclass(frozen=True, slots=True)
class ProviderSignIn:
    """A sign-in that has started: the browser is sent to the provider.

    `state` is part of the address of the provider, and `browser` is stored in a cookie. Both are needed to complete the
    sign-in.
    """

    state: str
    browser: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class ReturnedSignIn:
    """A sign-in for which the browser has returned from the provider.

    If a signed-in person wants to connect an identity to their account, `user_id` is that person. For an ordinary
    sign-in, it is None.
    """

    nonce: str
    verifier: str
    back: str
    user_id: UUID | None
    now: datetime


async def begin_sign_in(connection: Connection, back: str, user_id: UUID | None = None) -> ProviderSignIn:
    begun = ProviderSignIn(new_token(), new_token(), new_token(), new_token())
    values = {"state_hash": hash_token(begun.state), "browser_hash": hash_token(begun.browser), "nonce": begun.nonce}
    values |= {"verifier": begun.verifier, "back": back, "user": user_id, "seconds": SECONDS_AT_PROVIDER}
    await connection.execute(QUERIES.insert_provider_sign_in, values)
    return begun


async def take_sign_in(connection: Connection, state: str, browser: str) -> ReturnedSignIn:
    """Return the sign-in with this state, and delete it, so that it can be used only once.

    Only the browser that started a sign-in can use it.
    """
    values = {"state_hash": hash_token(state), "browser_hash": hash_token(browser)}
    rows = await fetch_rows(connection, QUERIES.take_provider_sign_in, values)
    if not rows:
        raise ProviderRefused("This sign-in was not started in this browser, is already complete or took too long.")
    return ReturnedSignIn(**rows[0])


async def sign_in_with_identity(
    connection: Connection, identity: Identity, *, may_create: bool, claims_roles: bool, replacing: str | None
) -> str:
    """Open a session for the person with this identity, and return its secret.

    `may_create`: whether an account is created for a person who has none. `claims_roles`: whether the provider decides
    which role people have in the account of this installation. A person with such a role gets an account in any case.
    """
    user_id = await _find_person(connection, identity) or await _new_person(connection, identity, may_create=may_create)
    shared = await apply_role(connection, user_id, identity) if claims_roles else None
    home = await first_owner(connection, user_id)
    secret = await open_session(connection, home, user_id, replacing=replacing)
    if shared:
        # A visitor's documents stay in the personal account; a reader must not add to the shared one.
        await switch_owner(connection, user_id, secret, shared)
    await record(connection, shared or home, "account.sign_in", user_id, actor=user_id, by="provider")
    return secret


async def _find_person(connection: Connection, identity: Identity) -> UUID | None:
    values = {"issuer": identity.issuer, "subject": identity.subject}
    rows = await fetch_rows(connection, QUERIES.use_identity, values)
    return rows[0]["user_id"] if rows else None


async def _new_person(connection: Connection, identity: Identity, *, may_create: bool) -> UUID:
    if not may_create and identity.role is None:
        raise ProviderRefused("You have no account here. Ask the administrator for one.")
    if identity.email is None:
        raise ProviderRefused("The provider did not confirm your email address.")
    try:
        user_id = await insert_user(connection, identity.email, None)
    except EmailTaken:
        raise ProviderRefused(
            "An account with your email address already exists. Sign in with its password, and connect the provider "
            "in Settings, Account."
        ) from None
    await _insert_identity(connection, identity, user_id)
    return user_id


async def _insert_identity(connection: Connection, identity: Identity, user_id: UUID) -> None:
    values = {"issuer": identity.issuer, "subject": identity.subject, "user": user_id}
    if not await fetch_rows(connection, QUERIES.insert_identity, values):
        raise IdentityTaken


async def connect_identity(connection: Connection, user_id: UUID, owner_id: UUID, identity: Identity) -> None:
    """Let a signed-in person sign in with this identity from now on."""
    if await _find_person(connection, identity) == user_id:
        return
    await _insert_identity(connection, identity, user_id)
    await record(connection, owner_id, "account.identity", user_id, change="connected")


async def list_identities(connection: Connection, user_id: UUID) -> list[ConnectedIdentity]:
    return [
        ConnectedIdentity(**row) for row in await fetch_rows(connection, QUERIES.list_identities, {"user": user_id})
    ]


async def disconnect_identities(connection: Connection, user_id: UUID, owner_id: UUID) -> None:
    """Delete the identities of a person. The person must have a password to sign in with."""
    if not await list_identities(connection, user_id):
        return
    cursor = await connection.execute(QUERIES.delete_identities, {"user": user_id})
    if cursor.rowcount == 0:
        raise LastSignIn
    await record(connection, owner_id, "account.identity", user_id, change="disconnected")


async def apply_role(connection: Connection, user_id: UUID, identity: Identity) -> UUID | None:
    """Grant or revoke the person's role in the account of this installation, as the claims define it.

    Returns this account if the person has a role in it. Roles that people granted are kept if the claims grant none.
    """
    owner_id = await local_owner(connection)
    values = {"owner": owner_id, "user": user_id}
    await connection.execute(MEMBERS.lock_owner, {"owner": owner_id})
    rows = await fetch_rows(connection, QUERIES.claimed_role, values)
    role, by_claims = (rows[0]["role"], rows[0]["granted_by"] == "claims") if rows else (None, False)
    if identity.role is None and by_claims:
        await connection.execute(MEMBERS.remove_member, values)
        await record(connection, owner_id, "member.remove", user_id, actor=user_id, by="claims")
        return None
    if identity.role and (identity.role != role or not by_claims):
        await connection.execute(QUERIES.grant_by_claims, {**values, "role": identity.role})
        await record(connection, owner_id, "member.role", user_id, actor=user_id, by="claims", role=identity.role)
    return owner_id if identity.role or role else None


def require_same_person(returned: ReturnedSignIn, user_id: UUID | None) -> None:
    """Refuse to connect an identity if another person has signed in with this browser in the meantime."""
    if returned.user_id != user_id:
        raise NotAllowed("Sign in again, and connect the provider again.")
