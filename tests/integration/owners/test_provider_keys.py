"""Keys of the sign-in provider: a withdrawn key is no longer accepted, and a new one is read when it is needed."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from octavo.core.settings import Settings
from octavo.owners.callers import ProviderRefused
from octavo.owners.identities import ReturnedSignIn
from octavo.web.rooms.account.provider_pages import CONFIGURATION_SECONDS, KEYS_SECONDS, Provider
from tests.support.sites import Answer, Site, running_site

NOW = datetime(2026, 11, 18, tzinfo=UTC)
RETURNED = ReturnedSignIn("nonce", "verifier", "/", None, NOW)
KEYS = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("old", "new")}


def publish(site: Site, *names: str) -> None:
    keys = [{**json.loads(ECAlgorithm.to_jwk(KEYS[name].public_key())), "kid": name} for name in names]
    site.routes["/keys"] = Answer(body=json.dumps({"keys": keys}).encode())


def sign_with(site: Site, name: str) -> None:
    moment = int(NOW.timestamp())
    claims = {"iss": site.url, "sub": "ada", "aud": "octavo", "nonce": "nonce", "exp": moment + 300, "iat": moment}
    token = jwt.encode(claims, KEYS[name], "ES256", headers={"kid": name})
    site.routes["/token"] = Answer(body=json.dumps({"id_token": token}).encode())


async def test_a_withdrawn_key_is_not_accepted_for_longer_than_the_configuration_is_kept() -> None:
    clock = [1000.0]
    with running_site() as site:
        addresses = {"authorization_endpoint": "/begin", "token_endpoint": "/token", "jwks_uri": "/keys"}
        about = {"issuer": site.url, "id_token_signing_alg_values_supported": ["ES256"]}
        about |= {name: f"{site.url}{path}" for name, path in addresses.items()}
        site.routes["/.well-known/openid-configuration"] = Answer(body=json.dumps(about).encode())
        provider = Provider(Settings(oidc_client_id="octavo", oidc_issuer=site.url), lambda: clock[0])
        publish(site, "old")
        sign_with(site, "old")
        assert (await provider.read_claims("code", RETURNED, "/"))["sub"] == "ada"
        publish(site, "new")
        sign_with(site, "new")
        clock[0] += KEYS_SECONDS + 1
        assert (await provider.read_claims("code", RETURNED, "/"))["sub"] == "ada"
        publish(site)
        clock[0] += CONFIGURATION_SECONDS + 1
        with pytest.raises(ProviderRefused):
            await provider.read_claims("code", RETURNED, "/")
