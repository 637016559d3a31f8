"""Checks the ID tokens of an OpenID Connect provider, and reads identities and roles from their claims. Pure functions.

Only signatures with asymmetric keys are accepted. Otherwise, a forged token could be accepted: one without a signature,
or one signed with the public key as if it were a shared secret.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest
from typing import Any, cast

import jwt

from octavo.core.errors import BadInput
from octavo.core.settings import MAIL_ADDRESS, Settings
from octavo.owners.errors import ProviderRefused
from octavo.records.account import Role

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
    """The values that the token of a sign-in must contain.

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
    """Return the key that the header of the token names, for the algorithm of the token."""
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
    """Return the highest role that the claims give, or None. A claim name with dots refers to a nested claim."""
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
