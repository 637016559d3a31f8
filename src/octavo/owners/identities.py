"""Signs people in by the identity that an OpenID Connect provider has confirmed.

A person is identified by the issuer and the subject of the ID token. An email address alone never gives access to an
existing account, because it is not certain that the account belongs to the same person.

Also verifies the provider's ID tokens, and reads identities and roles from their claims. Only signatures with
asymmetric keys are accepted. Otherwise, a forged token could be accepted: one without a signature, or one signed with
the public key as if it were a shared secret.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest
from typing import Any, cast
from uuid import UUID

import jwt

from octavo.core.errors import BadInput, EmailTaken, NotAllowed
from octavo.core.settings import MAIL_ADDRESS, Settings
from octavo.core.types import hash_token, new_token
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.accounts import first_owner, insert_user
from octavo.owners.audit import record
from octavo.owners.callers import IdentityTaken, LastSignIn, ProviderRefused
from octavo.owners.members import switch_owner
from octavo.owners.sessions import local_owner, open_session
from octavo.records.account import ConnectedIdentity, Role

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
# Clocks of servers differ by a few seconds.
LEEWAY_SECONDS = 60
MOST_CHARACTERS = 255
MOST_TOKEN_CHARACTERS = 50_000
Claims = Mapping[str, Any]


class UnknownSigningKey(BadInput):
    """The token is signed with an unknown key."""

    code = "UNKNOWN_SIGNING_KEY"


@dataclass(frozen=True, slots=True)
class Expected:
    """The values that an ID token must contain, the current time, and the signature algorithms that are accepted.

    `algorithms` are the signature algorithms that the provider's configuration lists.
    """

    issuer: str
    client_id: str
    nonce: str
    now: datetime
    algorithms: Collection[str] = ("RS256",)


@dataclass(frozen=True, slots=True)
class Identity:
    """A person's identity at the provider. `email` is None if there is no verified address."""

    issuer: str
    subject: str
    email: str | None
    role: Role | None


def read_id_token(token: str, keys: Mapping[str, Any], expected: Expected) -> Claims:
    """Verify an ID token with the provider's key set (JWKS), and return its claims.

    Raises `UnknownSigningKey` if the key set does not contain the key; the provider may have replaced its keys.
    """
    if len(token) > MOST_TOKEN_CHARACTERS:
        raise ProviderRefused("The token is too long.")
    try:
        key = _find_key(jwt.get_unverified_header(token), keys, ALGORITHMS & set(expected.algorithms))
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=expected.client_id,
            issuer=expected.issuer,
            # The times are checked below, against the clock of the database.
            options={
                "require": ["iss", "sub", "aud", "exp", "iat", "nonce"],
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            },
        )
    except jwt.InvalidIssuerError:
        raise ProviderRefused("The token is from another issuer.") from None
    except jwt.InvalidAudienceError:
        raise ProviderRefused("The token is for another application.") from None
    except jwt.PyJWTError:
        raise ProviderRefused("The token is invalid.") from None
    _check_times(claims, expected.now)
    _check_party(claims, expected)
    return claims


def _find_key(header: Mapping[str, Any], keys: Mapping[str, Any], algorithms: Collection[str]) -> jwt.PyJWK:
    """Return the signing key named in the token's header. Raises `UnknownSigningKey` if it is missing or ambiguous."""
    algorithm, wanted = header.get("alg"), header.get("kid")
    if algorithm not in algorithms:
        raise ProviderRefused("The token is signed with an algorithm that is not allowed.")
    listed: object = keys.get("keys")
    found = cast("list[object]", listed) if isinstance(listed, list) else []
    suitable = [cast("dict[str, Any]", one) for one in found if isinstance(one, dict)]
    suitable = [one for one in suitable if one.get("use", "sig") == "sig" and one.get("alg", algorithm) == algorithm]
    suitable = [one for one in suitable if wanted is None or one.get("kid") == wanted]
    if len(suitable) != 1:
        raise UnknownSigningKey
    return jwt.PyJWK(suitable[0], algorithm)


def _check_times(claims: Claims, now: datetime) -> None:
    moment = now.timestamp()
    expires, issued, begins = (claims.get(name, moment) for name in ("exp", "iat", "nbf"))
    if not all(isinstance(one, int | float) for one in (expires, issued, begins)):
        raise ProviderRefused("The token is invalid.")
    if expires + LEEWAY_SECONDS <= moment:
        raise ProviderRefused("The token has expired.")
    if max(issued, begins) - LEEWAY_SECONDS > moment:
        raise ProviderRefused("The token is not valid yet.")


def _check_party(claims: Claims, expected: Expected) -> None:
    """Check that the token was issued for this sign-in and for this application only."""
    nonce, subject = claims["nonce"], claims["sub"]
    if not isinstance(nonce, str) or not compare_digest(nonce.encode(), expected.nonce.encode()):
        raise ProviderRefused("The token belongs to another sign-in.")
    party = claims.get("azp", expected.client_id if isinstance(claims["aud"], str) or len(claims["aud"]) == 1 else None)
    if party != expected.client_id:
        raise ProviderRefused("The token is for another application.")
    if not isinstance(subject, str) or not 0 < len(subject) <= MOST_CHARACTERS:
        raise ProviderRefused("The token is invalid.")


def read_identity(claims: Claims, settings: Settings) -> Identity:
    """Read the identity and the role from verified claims."""
    email, verified = claims.get("email"), claims.get("email_verified")
    trusted = settings.oidc_trust_email or verified is True or verified == "true"
    usable = isinstance(email, str) and len(email) <= MOST_CHARACTERS - 1 and bool(MAIL_ADDRESS.fullmatch(email))
    return Identity(
        str(claims["iss"]),
        str(claims["sub"]),
        str(email).lower() if usable and trusted else None,
        role_from_claims(claims, settings),
    )


def role_from_claims(claims: Claims, settings: Settings) -> Role | None:
    """Return the highest role that the claims grant. Returns None if they grant no role.

    A claim name with dots refers to a nested claim.
    """
    if not settings.oidc_roles_claim:
        return None
    found: object = claims
    for name in settings.oidc_roles_claim.split("."):
        found = cast("dict[str, object]", found).get(name) if isinstance(found, dict) else None
    values = cast("list[object]", found) if isinstance(found, list) else [found]
    given = {one for one in values if isinstance(one, str)}
    roles: tuple[tuple[Role, Collection[str]], ...] = (
        ("owner", settings.oidc_admin_values),
        ("member", settings.oidc_member_values),
        ("reader", settings.oidc_reader_values),
    )
    return next((role for role, wanted in roles if given & set(wanted)), None)


QUERIES = load_queries("identities")
MEMBERS = load_queries("members")
# How long a person has to sign in at the provider.
SECONDS_AT_PROVIDER = 600


@dataclass(frozen=True, slots=True)
class ProviderSignIn:
    """A sign-in that has started: the browser is sent to the provider.

    `state` is part of the provider's URL, and `browser` is stored in a cookie. Both are needed to complete the sign-in.
    """

    state: str
    browser: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class ReturnedSignIn:
    """A sign-in after the browser has returned from the provider.

    If a signed-in person wants to connect an identity to their account, `user_id` is the id of this person. For an
    ordinary sign-in, it is None.
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
    connection: Connection,
    identity: Identity,
    *,
    may_create: bool,
    claims_roles: bool,
    replacing: str | None,
    seconds: float,
) -> str:
    """Open a session for the person with this identity. Returns the secret of the session, which ends after `seconds`.

    If `may_create` is true, an account is created for a person who has none. If `claims_roles` is true, the provider
    decides which role people have in the local owner (the account of this installation). An account is then also
    created for every person to whom the provider grants a role.
    """
    user_id = await _find_person(connection, identity) or await _new_person(connection, identity, may_create=may_create)
    shared = await apply_role(connection, user_id, identity) if claims_roles else None
    home = await first_owner(connection, user_id)
    secret = await open_session(connection, home, user_id, replacing=replacing, fixed_seconds=seconds)
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
    """Delete the identities of a person. Raises `LastSignIn` if the person has no password to sign in with."""
    if not await list_identities(connection, user_id):
        return
    cursor = await connection.execute(QUERIES.delete_identities, {"user": user_id})
    if cursor.rowcount == 0:
        raise LastSignIn
    await record(connection, owner_id, "account.identity", user_id, change="disconnected")


async def apply_role(connection: Connection, user_id: UUID, identity: Identity) -> UUID | None:
    """Make the person's role in the local owner (the account of this installation) match the claims.

    Returns the id of the local owner if the person has a role in it. A role that another person granted is kept if the
    claims grant none.
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
