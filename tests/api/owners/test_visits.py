"""Whoever comes for the first time gets an owner of their own, and is known again by a cookie."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.support.visitors import House, OpenHouse, me, refused, session_of


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 303),
        ("/library", 200),
        ("/api/v1/jobs", 200),
        ("/api/v1/session", 200),
        (f"/api/v1/jobs/{UUID(int=1)}", 404),
    ],
)
async def test_the_first_response_sets_the_cookie_with_any_status(house: House, path: str, status: int) -> None:
    browser = await house.browser()
    answer = await browser.get(path)
    assert answer.status_code == status
    (cookie,) = answer.headers.get_list("set-cookie")
    value, *attributes = cookie.split("; ")
    assert value == f"octavo_session={session_of(browser)}"
    assert sorted(attributes) == ["HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=lax"]
    assert answer.headers["cache-control"] == "no-store"
    assert "set-cookie" not in (await browser.get(path)).headers
    assert await house.rows("SELECT count(*) FROM owners") == [(1,)]


async def test_a_visitor_keeps_their_owner_and_gets_a_note_about_the_browser(house: House) -> None:
    one, other = await house.browser(), await house.browser()
    first = await me(one)
    assert (first["kind"], first["email"], first["admin"]) == ("anonymous", None, False)
    assert "Your documents are tied to this browser" in first["note"]
    assert await me(one) == first
    assert (await me(other))["owner_id"] != first["owner_id"]


async def test_the_cookie_is_for_https_alone_where_there_is_https(house: House) -> None:
    answer = await (await house.browser("https://localhost:8400")).get("/")
    assert "Secure" in answer.headers["set-cookie"]
    answer = await (await house.browser("http://localhost:8400")).get("/")
    assert "Secure" not in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/static/any/shell/css/base.css", "/api/openapi.json", "/nowhere"]
)
async def test_what_needs_no_owner_makes_none(house: House, path: str) -> None:
    answer = await (await house.browser()).get(path)
    assert "set-cookie" not in answer.headers
    assert await house.rows("SELECT count(*) FROM owners") == [(0,)]


async def test_an_unknown_or_ended_session_is_nobody_and_gets_a_new_one(house: House) -> None:
    browser = await house.browser()
    browser.cookies.set("octavo_session", "guess", domain="127.0.0.1")
    first = await me(browser)
    assert session_of(browser) != "guess"
    old = session_of(browser)
    await house.run("UPDATE sessions SET expires_at = now()")
    assert (await me(browser))["owner_id"] != first["owner_id"]
    assert session_of(browser) != old


async def test_a_session_that_is_used_does_not_end(house: House) -> None:
    browser = await house.browser()
    await me(browser)
    await house.run("UPDATE sessions SET expires_at = now() + interval '1 day'")
    answer = await browser.get("/api/v1/session")
    assert f"octavo_session={session_of(browser)}" in answer.headers["set-cookie"]
    assert await house.rows("SELECT expires_at > now() + interval '29 days' FROM sessions") == [(True,)]
    assert "set-cookie" not in (await browser.get("/api/v1/session")).headers


async def test_where_visitors_are_not_allowed_nobody_gets_in_without_an_account(open_house: OpenHouse) -> None:
    house = await open_house(anonymous=False)
    browser = await house.browser()
    for method, path in (
        ("GET", "/api/v1/jobs"),
        ("GET", "/api/v1/session"),
        ("POST", f"/api/v1/jobs/{UUID(int=1)}/cancel"),
    ):
        answer = await browser.request(method, path)
        refused(answer, 401, "UNAUTHENTICATED")
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "set-cookie" not in answer.headers
    assert (await browser.get("/", headers={"accept": "text/html"})).headers["location"] == "/sign-in"
    assert await house.rows("SELECT count(*) FROM owners") == [(0,)]
    person = await house.person("ada@example.org")
    assert (await person.get("/api/v1/jobs")).status_code == 200
