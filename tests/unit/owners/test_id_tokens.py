"""ID tokens: only a signature of the provider's own key counts, and claims decide about roles."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm

from octavo.core.settings import Settings
from octavo.owners.callers import ProviderRefused
from octavo.owners.identities import Expected, UnknownSigningKey, read_id_token, read_identity, role_from_claims

NOW = datetime(2026, 11, 18, tzinfo=UTC)
ISSUER = "https://login.example.org"
KEY, OTHER_KEY = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
PUBLIC = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
KEYS = {"keys": [{**json.loads(ECAlgorithm.to_jwk(KEY.public_key())), "kid": "one"}]}
EXPECTED = Expected(ISSUER, "octavo", "nonce", NOW, ("ES256", "HS256", "none"))
MOMENT = int(NOW.timestamp())
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "sub": "ada",
    "aud": "octavo",
    "nonce": "nonce",
    "exp": MOMENT + 300,
    "iat": MOMENT,
}


def signed(key: Any = KEY, algorithm: str = "ES256", kid: str | None = "one", **changes: Any) -> str:  # noqa: ANN401
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    return jwt.encode(claims, key, algorithm, headers={"kid": kid} if kid else None)


def test_a_token_of_the_provider_is_accepted() -> None:
    assert read_id_token(signed(), KEYS, EXPECTED) == CLAIMS
    assert read_id_token(signed(kid=None), KEYS, EXPECTED)["sub"] == "ada"
    assert read_id_token(signed(aud=["octavo"]), KEYS, EXPECTED)["sub"] == "ada"
    assert read_id_token(signed(aud=["octavo", "b"], azp="octavo"), KEYS, EXPECTED)["sub"] == "ada"


def with_public_key_as_secret() -> str:
    """The library refuses to make such a token, so that it is put together here."""

    head, body, _ = signed().split(".")
    head = urlsafe_b64encode(b'{"alg":"HS256","kid":"one"}').rstrip(b"=").decode()
    mark = hmac.digest(PUBLIC, f"{head}.{body}".encode(), "sha256")
    return f"{head}.{body}.{urlsafe_b64encode(mark).rstrip(b'=').decode()}"


FORGED: list[tuple[str, str, str]] = [
    ("no signature", signed(None, "none"), "not allowed"),
    ("the public key as a secret", with_public_key_as_secret(), "not allowed"),
    ("another key", signed(OTHER_KEY), "is invalid"),
    (
        "changed claims",
        ".".join([signed().split(".")[0], signed(sub="eve").split(".")[1], signed().split(".")[2]]),
        "is",
    ),
    ("another issuer", signed(iss="https://evil.example"), "another issuer"),
    ("the issuer with a slash", signed(iss=f"{ISSUER}/"), "another issuer"),
    ("another audience", signed(aud="other"), "another application"),
    ("several audiences", signed(aud=["octavo", "other"]), "another application"),
    ("another party", signed(azp="other"), "another application"),
    ("another nonce", signed(nonce="other"), "another sign-in"),
    ("expired", signed(exp=MOMENT - 61), "has expired"),
    ("issued later", signed(iat=MOMENT + 61), "not valid yet"),
    ("valid later", signed(nbf=MOMENT + 61), "not valid yet"),
    ("an empty subject", signed(sub=""), "is invalid"),
    ("a long subject", signed(sub="x" * 300), "is invalid"),
    ("not a token", "a.b.c", "is invalid"),
    ("nothing", "", "is invalid"),
    ("a long text", "x" * 60_000, "too long"),
    *((f"without {name}", signed(KEY, "ES256", "one", **{name: None}), "is") for name in CLAIMS),
]


@pytest.mark.parametrize(("token", "said"), [one[1:] for one in FORGED], ids=[one[0] for one in FORGED])
def test_a_forged_token_is_refused(token: str, said: str) -> None:
    with pytest.raises(ProviderRefused, match=said):
        read_id_token(token, KEYS, EXPECTED)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"keys": None},
        {"keys": [1]},
        {"keys": [{**KEYS["keys"][0], "use": "enc"}]},
        {"keys": [{**KEYS["keys"][0], "kid": "two"}]},
        {"keys": KEYS["keys"] * 2},
    ],
    ids=["nothing", "no list", "no keys", "for encryption", "another", "twice"],
)
def test_a_token_with_an_unknown_key_is_told_apart(keys: dict[str, Any]) -> None:
    with pytest.raises(UnknownSigningKey):
        read_id_token(signed(), keys, EXPECTED)


ROLES = Settings(
    oidc_roles_claim="access.roles",
    oidc_admin_values=("admins",),
    oidc_member_values=("staff",),
    oidc_reader_values=("guests",),
)


@pytest.mark.parametrize(
    ("roles", "role"),
    [
        (["guests", "admins", "staff"], "owner"),
        (["staff", "guests"], "member"),
        ("guests", "reader"),
        (["Admins", "admin", 1, None], None),
        ([], None),
        (None, None),
        ({"admins": True}, None),
    ],
    ids=str,
)
def test_the_highest_role_of_the_claims_counts(roles: object, role: str | None) -> None:
    assert role_from_claims({"access": {"roles": roles}}, ROLES) == role
    assert role_from_claims({"access.roles": roles, "access": roles}, ROLES) is None
    assert role_from_claims({"access": {"roles": roles}}, Settings()) is None


@pytest.mark.parametrize(
    ("claims", "email"),
    [
        ({"email": "Ada@Example.org", "email_verified": True}, "ada@example.org"),
        ({"email": "ada@example.org", "email_verified": "true"}, "ada@example.org"),
        ({"email": "ada@example.org", "email_verified": False}, None),
        ({"email": "ada@example.org"}, None),
        ({"email": "not an address", "email_verified": True}, None),
        ({"email": ["ada@example.org"], "email_verified": True}, None),
        ({"email_verified": True}, None),
    ],
    ids=str,
)
def test_only_a_verified_address_is_used(claims: dict[str, Any], email: str | None) -> None:
    assert read_identity({**CLAIMS, **claims}, Settings()).email == email
