"""Signing in, up and out by plain forms: what is wrong stands beside its field, and one comes back to where one was."""

from __future__ import annotations

import httpx
import pytest

from octavo.owners import make_sign_in_link
from tests.api.rooms.conftest import guest, heading, is_page, person, went_to, words
from tests.support.passwords import PASSWORD
from tests.support.visitors import House, OpenHouse, me, session_of

ADA = {"email": "ada@example.org", "password": PASSWORD}
ELSEWHERE = [
    "//evil.example",
    "https://evil.example/",
    "/\\evil.example",
    "javascript:alert(1)",
    "",
    "library",
    "/a\r\nb: c",
]


@pytest.mark.parametrize("path", ["/sign-in", "/sign-up"])
async def test_the_forms_are_there_for_everybody_and_make_no_visitor(house: House, path: str) -> None:
    answer = await (await guest(house)).get(path)
    is_page(answer)
    assert answer.text.count("<label for=") == 2
    assert "set-cookie" not in answer.headers
    assert await house.rows("SELECT count(*) FROM owners") == [(0,)]


async def test_a_visitor_signs_up_with_their_documents_and_signs_in_from_elsewhere(house: House) -> None:
    browser = await guest(house)
    visitor = await me(browser)
    went_to(await browser.post("/sign-up", data=ADA), "/")
    assert (await me(browser))["owner_id"] == visitor["owner_id"]
    other = await guest(house)
    went_to(await other.post("/sign-in", data={**ADA, "back": "/library?tag=a&q=b"}), "/library?tag=a&q=b")
    assert (await me(other))["email"] == "ada@example.org"


async def test_signing_up_shows_the_documents_that_will_be_moved(house: House) -> None:
    browser = await guest(house)
    assert "Documents from this browser will be moved to your account" in words(await browser.get("/sign-up"))
    headers = {"x-upload-filename": "a.txt"}
    assert (await browser.post("/api/v1/documents", content=b"A text", headers=headers)).status_code == 202
    assert "Documents to be moved from this browser to your account: 1" in words(await browser.get("/sign-up"))


@pytest.mark.parametrize(
    ("given", "status", "said", "field"),
    [
        ({"email": "ada", "password": PASSWORD}, 422, "Enter a valid email address.", "email"),
        (
            {"email": "new@example.org", "password": "short"},
            422,
            "This password is too short. Use at least 10",
            "password",
        ),
        (ADA, 409, "An account with this address already exists. Sign in instead.", "email"),
        ({"email": "a@b", "password": "x" * 1500}, 422, "This password is too long.", "password"),
        ({}, 422, "Enter a valid email address.", "email"),
    ],
    ids=["no address", "short", "taken", "long", "nothing"],
)
async def test_an_error_in_a_new_account_is_shown_next_to_its_field(
    house: House, given: dict[str, str], status: int, said: str, field: str
) -> None:
    await house.person("ada@example.org")
    browser = await guest(house)
    answer = await browser.post("/sign-up", data=given)
    is_page(answer, status)
    assert said in words(answer)
    assert f'aria-describedby="{field}-wrong"' in answer.text
    assert PASSWORD not in answer.text
    assert "octavo_session" not in browser.cookies


async def test_a_wrong_password_is_answered_like_an_unknown_address(house: House) -> None:
    await house.person("ada@example.org")
    browser = await guest(house)
    wrong = await browser.post("/sign-in", data={**ADA, "password": "not this one"})
    unknown = await browser.post("/sign-in", data={"email": "bob@example.org", "password": "not this one"})
    for answer in (wrong, unknown):
        is_page(answer, 401)
        assert "Wrong email address or password." in words(answer)
    assert wrong.text.replace("ada@", "bob@") == unknown.text


async def test_guessing_passwords_is_slowed_down_and_reported(house: House) -> None:
    await house.person("ada@example.org")
    browser = await guest(house)
    for _ in range(10):
        assert (await browser.post("/sign-in", data={**ADA, "password": "guess"})).status_code == 401
    answer = await browser.post("/sign-in", data=ADA)
    is_page(answer, 429)
    assert "Too many wrong passwords. Try again in" in words(answer)
    assert 0 < int(answer.headers["retry-after"]) <= 90


@pytest.mark.parametrize("back", ELSEWHERE)
async def test_nobody_is_sent_to_another_site(house: House, back: str) -> None:
    await house.person("ada@example.org")
    browser = await guest(house)
    page = await browser.get("/sign-in", params={"next": back})
    assert 'name="back" value="/"' in page.text
    went_to(await browser.post("/sign-in", data={**ADA, "back": back}), "/")


async def test_an_invalid_sign_in_link_is_refused_with_advice(house: House) -> None:
    browser = await guest(house)
    token = await make_sign_in_link(house.database)
    went_to(await browser.post("/sign-in", data={"token": token}), "/")
    other = await guest(house)
    opened = [await other.get("/sign-in", params={"token": used}) for used in (token, "guess", "")]
    clicked = [await other.post("/sign-in", data={"token": used}) for used in (token, "guess")]
    for answer in (*opened, *clicked):
        is_page(answer, 403)
        assert heading(answer) == "Sign-in link not valid"
        assert "SIGN_IN_REFUSED" in answer.text
        assert 'href="/sign-in"' in answer.text
        assert "set-cookie" not in answer.headers


async def test_opening_a_link_changes_nothing_and_its_form_spends_it(house: House) -> None:
    token = await make_sign_in_link(house.database)
    before = await house.rows("SELECT * FROM sign_in_links")
    browser = await guest(house)
    for scanner in (await guest(house), await guest(house), browser):
        answer = await scanner.get("/sign-in", params={"token": token})
        is_page(answer)
        assert "set-cookie" not in answer.headers
        assert answer.headers["cache-control"] == "no-store"
    assert await house.rows("SELECT * FROM sign_in_links") == before
    assert answer.text.count("<form") == 1
    assert '<form method="post" action="/sign-in"' in answer.text
    assert f'<input type="hidden" name="token" value="{token}">' in answer.text
    went_to(await browser.post("/sign-in", data={"token": token}), "/")
    assert (await me(browser))["kind"] == "local"


async def test_another_site_cannot_sign_a_browser_in_with_its_link(house: House) -> None:
    token = await make_sign_in_link(house.database)
    browser = await guest(house)
    crossing = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}
    answer = await browser.post("/sign-in", data={"token": token}, headers=crossing)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    went_to(await browser.post("/sign-in", data={"token": token}), "/")


async def test_signing_out_ends_the_session_and_keeps_the_account(house: House) -> None:
    browser = await person(house, "ada@example.org")
    secret = session_of(browser)
    assert heading(await browser.get("/sign-out")) == "Sign out?"
    went_to(await browser.post("/sign-out"), "/sign-in")
    assert "octavo_session" not in browser.cookies
    browser.cookies.set("octavo_session", secret, domain="127.0.0.1")
    assert (await me(browser))["kind"] == "anonymous"


async def test_a_visitor_is_warned_before_the_only_key_is_thrown_away(house: House) -> None:
    browser = await guest(house)
    mine = await me(browser)
    for answer in (await browser.get("/sign-out"), await browser.post("/sign-out")):
        is_page(answer)
        assert "your documents are tied to this browser" in words(answer)
        assert 'href="/sign-up"' in answer.text
    assert await me(browser) == mine
    went_to(await browser.post("/sign-out", data={"confirmed": "true"}), "/sign-in")
    assert (await me(browser))["owner_id"] != mine["owner_id"]


async def test_where_signing_up_is_closed_no_page_offers_it(open_house: OpenHouse) -> None:
    house = await open_house(sign_up=False)
    browser = await guest(house)
    for answer in (await browser.get("/sign-up"), await browser.post("/sign-up", data=ADA)):
        is_page(answer, 403)
        assert "Sign-up is disabled." in words(answer)
        assert 'href="/sign-in"' in answer.text
    for path in ("/sign-in", "/settings/account", "/sign-out"):
        assert "/sign-up" not in (await browser.get(path)).text
    assert await house.rows("SELECT FROM users") == []


async def test_a_request_without_a_session_is_redirected_to_sign_in(house: House) -> None:
    went_to(await (await guest(house)).get("/sign-out"), "/sign-in")


@pytest.mark.parametrize(
    ("path", "back"),
    [
        ("/library?tag=a&sort=title", "/sign-in?next=%2Flibrary%3Ftag%3Da%26sort%3Dtitle"),
        ("/", "/sign-in"),
        ("/settings/keys", "/sign-in?next=%2Fsettings%2Fkeys"),
        ("/notifications", "/sign-in?next=%2Fnotifications"),
        ("/operations", "/sign-in?next=%2Foperations"),
    ],
)
async def test_where_visitors_are_not_allowed_every_page_leads_to_sign_in(
    open_house: OpenHouse, path: str, back: str
) -> None:
    house = await open_house(anonymous=False)
    browser = await guest(house)
    went_to(await browser.get(path), back)
    assert await house.rows("SELECT count(*) FROM owners") == [(0,)]
    api: httpx.Response = await browser.get("/api/v1/jobs")
    assert (api.status_code, api.json()["code"]) == (401, "UNAUTHENTICATED")
