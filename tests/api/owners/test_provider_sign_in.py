"""Signing in with a real OpenID Connect provider: the same person every time, with the role from the claims."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from octavo.core.settings import Settings
from octavo.owners.callers import ProviderRefused
from octavo.owners.identities import Expected, read_id_token
from tests.api.rooms.conftest import AS_PAGE, administrator, guest, heading, is_page, went_to, words
from tests.support.oidc import CALLBACK, OidcProvider, query_of, running_provider
from tests.support.passwords import PASSWORD
from tests.support.postgres import open_folder
from tests.support.visitors import House, OpenHouse, me, refused

ROLES = {"oidc_roles_claim": "groups", "oidc_admin_values": ("admins",), "oidc_reader_values": ("guests",)}


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    with open_folder() as folder, running_provider(folder) as provider:
        yield provider


@pytest.fixture
async def house(open_house: OpenHouse, provider: OidcProvider) -> House:
    return await open_house(**provider.settings)


async def begin(browser: httpx.AsyncClient, back: str = "/") -> str:
    """Returns the address at the provider to which the browser is sent."""
    answer = await browser.get("/sign-in/provider", params={"next": back})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def sign_in(house: House, provider: OidcProvider, name: str, **claims: object) -> httpx.AsyncClient:
    provider.set_claims(name, **claims)
    browser = await guest(house)
    went_to(await browser.get(await provider.visit(await begin(browser), name)), "/")
    return browser


async def test_a_person_signs_in_and_comes_back_to_where_they_were(house: House, provider: OidcProvider) -> None:
    provider.set_claims("ada")
    browser = await guest(house)
    page = await browser.get("/sign-in", params={"next": "/library?tag=a"})
    assert "Sign in with single sign-on" in words(page)
    assert 'href="/sign-in/provider?next=/library%3Ftag%3Da"' in page.text
    sent = query_of(await begin(browser, "/library?tag=a"))
    assert (sent["response_type"], sent["code_challenge_method"], sent["scope"]) == (
        "code",
        "S256",
        "openid email profile",
    )
    went_to(await browser.get(await provider.visit(await begin(browser, "/library?tag=a"), "ada")), "/library?tag=a")
    first = await me(browser)
    assert (first["email"], first["kind"], first["role"], first["admin"]) == ("ada@example.org", "user", "owner", False)
    assert await me(await sign_in(house, provider, "ada")) == first
    assert len(await house.rows("SELECT FROM users")) == 1


async def test_the_person_stays_the_same_when_the_address_changes(house: House, provider: OidcProvider) -> None:
    first = await me(await sign_in(house, provider, "ada"))
    again = await me(await sign_in(house, provider, "ada", email="other@example.org"))
    assert (again["owner_id"], again["email"]) == (first["owner_id"], "ada@example.org")


async def test_an_address_alone_never_opens_an_account(house: House, provider: OidcProvider) -> None:
    await house.person("ada@example.org")
    provider.set_claims("mallory", email="ada@example.org")
    browser = await guest(house)
    answer = await browser.get(await provider.visit(await begin(browser), "mallory"))
    is_page(answer, 403)
    assert "An account with your email address already exists." in words(answer)
    provider.set_claims("mallory", email="new@example.org", email_verified=False)
    answer = await browser.get(await provider.visit(await begin(browser), "mallory"))
    assert "The provider did not confirm your email address." in words(answer)
    assert "octavo_session" not in browser.cookies
    assert await house.rows("SELECT email FROM users") == [("ada@example.org",)]


async def test_roles_follow_the_claims_at_each_sign_in(open_house: OpenHouse, provider: OidcProvider) -> None:
    house = await open_house(**provider.settings, **ROLES)
    admin = await sign_in(house, provider, "grace", groups=["staff", "admins"])
    assert (await me(admin))["admin"] is True
    assert (await admin.get("/api/v1/admin/users")).status_code == 200
    reader = await sign_in(house, provider, "grace", groups=["guests"])
    seen = await me(reader)
    assert (seen["kind"], seen["role"], seen["scope"], seen["admin"]) == ("local", "reader", "read", False)
    # The role changed for the older session, too.
    refused(await admin.get("/api/v1/admin/users"), 403, "FORBIDDEN")
    key = await house.rows("SELECT granted_by FROM memberships WHERE role = 'reader'")
    assert key == [("claims",)]
    nobody = await sign_in(house, provider, "grace", groups=[])
    assert ((await me(nobody))["kind"], len((await me(nobody))["owners"])) == ("user", 1)
    refused(await admin.get("/api/v1/members"), 401, "UNAUTHENTICATED")


async def test_a_session_ends_at_its_time_even_if_it_is_used(open_house: OpenHouse, provider: OidcProvider) -> None:
    """So somebody whom the provider no longer knows does not stay signed in."""
    house = await open_house(**provider.settings, **ROLES, oidc_session_hours=2)
    browser = await sign_in(house, provider, "ada", groups=["admins"])
    left = "SELECT extract(epoch FROM expires_at - clock_timestamp())::float FROM sessions WHERE user_id IS NOT NULL"
    ((before,),) = await house.rows(left)
    assert before == pytest.approx(7200, abs=60)
    await house.rows("UPDATE sessions SET expires_at = clock_timestamp() + interval '60 seconds' RETURNING 1")
    assert (await me(browser))["admin"] is True
    ((after,),) = await house.rows(left)
    assert after < 61
    await house.rows("UPDATE sessions SET expires_at = clock_timestamp() RETURNING 1")
    refused(await browser.get("/api/v1/members"), 401, "UNAUTHENTICATED")
    assert (await me(await sign_in(house, provider, "ada", groups=["guests"])))["role"] == "reader"


async def test_a_role_that_a_person_granted_is_kept(open_house: OpenHouse, provider: OidcProvider) -> None:
    house = await open_house(**provider.settings, **ROLES)
    await sign_in(house, provider, "alan", groups=[])
    machine = await administrator(house)
    added = await machine.post("/api/v1/members", json={"email": "alan@example.org", "role": "member"})
    assert added.status_code == 201
    seen = await me(await sign_in(house, provider, "alan", groups=[]))
    assert (seen["kind"], seen["role"]) == ("local", "member")


async def test_signing_out_ends_the_session_and_offers_to_leave_the_provider(
    house: House, provider: OidcProvider
) -> None:
    browser = await sign_in(house, provider, "ada")
    went_to(await browser.post("/sign-out"), "/sign-in?left=true")
    assert "You may still be signed in with the provider." in words(await browser.get("/sign-in?left=true"))
    refused(await browser.get("/api/v1/members", headers={"accept": "*/*"}), 401, "UNAUTHENTICATED")
    left = await browser.get("/sign-out/provider")
    assert left.headers["location"].startswith(f"{provider.issuer}/session/end?")
    async with httpx.AsyncClient() as outside:
        answer = await outside.get(left.headers["location"])
    assert (answer.status_code, "error" in answer.text.lower()) == (200, False)


async def test_a_code_works_once_and_only_in_its_own_browser(house: House, provider: OidcProvider) -> None:
    provider.set_claims("ada")
    browser, thief = await guest(house), await guest(house)
    back = await provider.visit(await begin(browser), "ada")
    await begin(thief)
    for attempt in (thief, await guest(house)):
        answer = await attempt.get(back)
        is_page(answer, 403)
        assert "octavo_session" not in attempt.cookies
    went_to(await browser.get(back), "/")
    again = await browser.get(back)
    assert "This sign-in was not started in this browser, is already complete" in words(again)
    # With a state of its own, the provider refuses the used code.
    stolen = {**query_of(back), "state": query_of(await begin(browser))["state"]}
    answer = await browser.get(f"{CALLBACK}?{urlencode(stolen)}")
    assert "The provider rejected the code." in words(answer)
    assert answer.status_code == 403


CHANGED = [
    ({"iss": "https://evil.example"}, "The response is from another issuer."),
    ({"iss": ""}, "The response is from another issuer."),
    ({"error": "access_denied"}, "You cancelled the sign-in, or the provider does not allow it."),
    ({"code": "guessed"}, "The provider rejected the code."),
    ({"state": "guessed"}, "This sign-in was not started in this browser"),
]


async def test_a_changed_response_is_refused(house: House, provider: OidcProvider) -> None:
    provider.set_claims("ada")
    browser = await guest(house)
    for change, said in CHANGED:
        sent = query_of(await provider.visit(await begin(browser), "ada")) | change
        answer = await browser.get(f"{CALLBACK}?{urlencode(sent)}")
        is_page(answer, 403)
        assert heading(answer) == "Sign-in failed"
        assert said in words(answer)
    assert await house.rows("SELECT FROM sessions WHERE user_id IS NOT NULL") == []


async def test_tokens_of_the_provider_for_others_are_refused(house: House, provider: OidcProvider) -> None:
    """Their signature is real, but they are for another application, issuer, sign-in or time."""
    provider.set_claims("ada")
    query = {"client_id": "other", "response_type": "code", "redirect_uri": CALLBACK, "scope": "openid"}
    query |= {"nonce": "n", "state": "s", "code_challenge_method": "S256"}
    query["code_challenge"] = urlsafe_b64encode(sha256(b"v" * 43).digest()).rstrip(b"=").decode()
    back = query_of(await provider.visit(f"{provider.issuer}/auth?{urlencode(query)}", "ada"))
    form = {"grant_type": "authorization_code", "code": back["code"], "redirect_uri": CALLBACK}
    async with httpx.AsyncClient() as outside:
        auth = httpx.BasicAuth("other", "a+secret%3A+with%2Bsigns")
        tokens = await outside.post(f"{provider.issuer}/token", data={**form, "code_verifier": "v" * 43}, auth=auth)
        assert tokens.status_code == 200, tokens.text
        keys = (await outside.get(f"{provider.issuer}/jwks")).json()
    token = tokens.json()["id_token"]
    ((now,),) = await house.rows("SELECT now()")
    right: dict[str, Any] = {"issuer": provider.issuer, "client_id": "other", "nonce": "n", "now": now}
    assert read_id_token(token, keys, Expected(**right))["sub"] == "ada"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"client_id": "octavo"}, "another application"),
        ({"issuer": "https://evil.example"}, "another issuer"),
        ({"nonce": "m"}, "another sign-in"),
        ({"now": now.replace(year=now.year + 1)}, "has expired"),
        ({"now": now.replace(year=now.year - 1)}, "not valid yet"),
        ({"algorithms": ("ES256",)}, "not allowed"),
    ]
    for change, said in wrong:
        with pytest.raises(ProviderRefused, match=said):
            read_id_token(token, keys, Expected(**{**right, **change}))


async def test_a_signed_in_person_connects_the_provider_and_disconnects_it(
    house: House, provider: OidcProvider
) -> None:
    ada = await house.person("ada@example.org")
    ada.headers.update(AS_PAGE)
    provider.set_claims("a.lovelace", email="private@example.org")
    page = await ada.post("/settings/account/provider")
    (url,) = [
        part.split('"')[0].replace("&amp;", "&") for part in page.text.split('href="') if "code_challenge" in part
    ]
    back = await provider.visit(url, "a.lovelace")
    went_to(await ada.get(back), "/settings/account?said=connected#provider")
    assert await me(await sign_in(house, provider, "a.lovelace")) == await me(ada)
    went_to(await ada.post("/settings/account/provider/disconnect"), "/settings/account?said=disconnected#provider")
    assert await house.rows("SELECT FROM identities") == []
    kinds = await house.rows("SELECT kind, detail ->> 'change' FROM events WHERE kind = 'account.identity' ORDER BY id")
    assert kinds == [("account.identity", "connected"), ("account.identity", "disconnected")]


async def test_nobody_can_disconnect_their_only_way_to_sign_in(house: House, provider: OidcProvider) -> None:
    browser = await sign_in(house, provider, "ada")
    answer = await browser.post("/settings/account/provider/disconnect", headers={"accept": "*/*"})
    refused(answer, 409, "LAST_SIGN_IN")
    wrong = await browser.post("/api/v1/session", json={"email": "ada@example.org", "password": PASSWORD})
    refused(wrong, 401, "WRONG_CREDENTIALS")


async def test_strangers_of_the_provider_are_refused_if_the_settings_say_so(
    open_house: OpenHouse, provider: OidcProvider
) -> None:
    house = await open_house(**provider.settings, **ROLES, oidc_sign_up=False)
    provider.set_claims("eve", groups=["nothing"])
    browser = await guest(house)
    answer = await browser.get(await provider.visit(await begin(browser), "eve"))
    assert "You have no account here." in words(answer)
    await sign_in(house, provider, "grace", groups=["guests"])


async def test_a_provider_with_another_issuer_or_without_an_answer_is_reported(
    open_house: OpenHouse, provider: OidcProvider
) -> None:
    wrong = {**provider.settings, "oidc_issuer": provider.issuer.replace("127.0.0.1", "localhost")}
    answer = await (await guest(await open_house(**wrong))).get("/sign-in/provider")
    is_page(answer, 502)
    assert "The provider's issuer differs from OCTAVO_OIDC_ISSUER." in words(answer)


async def test_a_secret_can_be_sent_in_the_body(open_house: OpenHouse, provider: OidcProvider) -> None:
    await sign_in(await open_house(**{**provider.settings, "oidc_client_id": "posting"}), provider, "ada")


def test_the_settings_refuse_an_unsafe_provider(provider: OidcProvider) -> None:
    for issuer in ("http://login.example.org", "ftp://x", "https://a/?b"):
        with pytest.raises(ValueError, match="must look like"):
            Settings(oidc_issuer=issuer, oidc_client_id="octavo")
    with pytest.raises(ValueError, match="requires OCTAVO_OIDC_CLIENT_ID"):
        Settings(oidc_issuer=provider.issuer)


async def test_without_a_provider_there_is_no_such_page(open_house: OpenHouse) -> None:
    house = await open_house()
    browser = await guest(house)
    for path in ("/sign-in/provider", "/sign-in/provider/callback", "/sign-out/provider"):
        assert (await browser.get(path)).status_code in {403, 404}
    assert "single sign-on" not in words(await browser.get("/sign-in"))
