"""Keys over HTTP: shown once, good for what they were made for, and dead when they should be."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest

from octavo.owners import make_sign_in_link
from tests.support.visitors import House, me, refused, session_of


async def make_key(browser: httpx.AsyncClient, scope: str = "write", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await browser.post("/api/v1/keys", json={"name": "A program", "scope": scope, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def owner_of_the_machine(house: House) -> httpx.AsyncClient:
    browser = await house.browser()
    token = await make_sign_in_link(house.database)
    assert (await browser.post("/sign-in", data={"token": token})).status_code == 303
    return browser


async def test_a_key_is_shown_once(house: House) -> None:
    browser = await house.person("ada@example.org")
    made = await make_key(browser, expires_in_days=30)
    assert made["key"].startswith(made["start"])
    assert (len(made["start"]), made["scope"], made["name"]) == (12, "write", "A program")
    (listed,) = (await browser.get("/api/v1/keys")).json()["items"]
    assert listed == {name: value for name, value in made.items() if name != "key"}


async def test_a_program_acts_for_the_owner_of_its_key(house: House) -> None:
    browser = await house.person("ada@example.org")
    program = await house.program((await make_key(browser))["key"])
    person, seen = await me(browser), await me(program)
    assert (seen["owner_id"], seen["email"], seen["scope"]) == (person["owner_id"], "ada@example.org", "write")
    assert "octavo_session" not in program.cookies


@pytest.mark.parametrize(("scope", "status"), [("read", 403), ("write", 404), ("admin", 404)])
async def test_a_key_for_reading_does_not_write(house: House, scope: str, status: int) -> None:
    program = await house.program((await make_key(await house.person("ada@example.org"), scope))["key"])
    assert (await program.get("/api/v1/jobs")).status_code == 200
    assert (await program.post(f"/api/v1/jobs/{uuid4()}/cancel")).status_code == status


@pytest.mark.parametrize("key", ["", "octavo_", "octavo_" + "x" * 43, "ä", "x" * 5000])
async def test_a_wrong_key_is_refused_and_makes_nobody(house: House, key: str) -> None:
    browser = await house.browser()
    for path in ("/api/v1/jobs", "/api/v1/session", "/", "/api/v1/admin/health"):
        answer = await browser.get(path, headers={b"authorization": f"Bearer {key}".encode("latin-1")})
        refused(answer, 401, "UNAUTHENTICATED")
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "set-cookie" not in answer.headers
    assert await house.rows("SELECT count(*) FROM owners") == [(0,)]


async def test_a_key_that_was_revoked_or_is_over_is_like_a_wrong_one(house: House) -> None:
    browser = await house.person("ada@example.org")
    revoked, over = await make_key(browser), await make_key(browser, expires_in_days=1)
    assert (await browser.delete(f"/api/v1/keys/{revoked['id']}")).status_code == 204
    await house.run("UPDATE api_keys SET expires_at = now() WHERE id = %s", over["id"])
    answers = [await (await house.program(key)).get("/api/v1/jobs") for key in (revoked["key"], over["key"], "x")]
    assert [answer.status_code for answer in answers] == [401, 401, 401]
    assert len({answer.content for answer in answers}) == 1
    assert [one["id"] for one in (await browser.get("/api/v1/keys")).json()["items"]] == [over["id"]]


async def test_a_wrong_key_is_not_made_good_by_a_cookie(house: House) -> None:
    browser = await house.person("ada@example.org")
    answer = await browser.get("/api/v1/jobs", headers={"authorization": "Bearer octavo_wrong"})
    refused(answer, 401, "UNAUTHENTICATED")


async def test_a_key_counts_and_not_the_cookie_beside_it(house: House) -> None:
    ada, bob = await house.person("ada@example.org"), await house.person("bob@example.org")
    key = (await make_key(ada, "read"))["key"]
    bob.headers["authorization"] = f"Bearer {key}"
    assert (await me(bob))["email"] == "ada@example.org"


async def test_the_password_of_a_proxy_is_not_a_key(house: House) -> None:
    browser = await house.person("ada@example.org")
    browser.headers["authorization"] = "Basic dXNlcjpwYXNz"
    assert (await me(browser))["email"] == "ada@example.org"


@pytest.mark.parametrize(
    ("who", "status"), [("stranger", 401), ("visitor", 403), ("read key", 403), ("write key", 403)]
)
async def test_a_caller_who_cannot_create_keys_cannot_see_or_revoke_any(house: House, who: str, status: int) -> None:
    person, caller = await house.person("ada@example.org"), await house.browser()
    made = await make_key(person)
    if who == "visitor":
        await me(caller)
    elif who != "stranger":
        caller = await house.program((await make_key(person, who.removesuffix(" key")))["key"])
    code = "UNAUTHENTICATED" if status == 401 else "NOT_ALLOWED"
    refused(await caller.get("/api/v1/keys"), status, code)
    refused(await caller.post("/api/v1/keys", json={"name": "k", "scope": "read"}), status, code)
    refused(await caller.delete(f"/api/v1/keys/{made['id']}"), status, code)


async def test_a_foreign_key_is_answered_like_a_missing_one(house: House) -> None:
    ada, bob = await house.person("ada@example.org"), await house.person("bob@example.org")
    made = await make_key(ada)
    foreign = refused(await bob.delete(f"/api/v1/keys/{made['id']}"), 404, "NOT_FOUND")
    assert refused(await bob.delete(f"/api/v1/keys/{uuid4()}"), 404, "NOT_FOUND") == foreign
    assert (await (await house.program(made["key"])).get("/api/v1/jobs")).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"name": ""},
        {"name": "x" * 101},
        {"name": "a\u0000"},
        {"name": "k", "scope": "root"},
        {"name": "k", "expires_in_days": 0},
        {"name": "k", "expires_in_days": 100_000},
        {"name": "k", "key": "octavo_mine"},
        {},
    ],
)
async def test_a_key_that_cannot_be_is_refused(house: House, body: dict[str, Any]) -> None:
    browser = await house.person("ada@example.org")
    refused(await browser.post("/api/v1/keys", json=body), 422, "VALIDATION")


@pytest.mark.parametrize(("scope", "status"), [("read", 403), ("write", 403), ("admin", 200)])
async def test_the_machines_owner_administers_also_by_a_key_made_for_it(house: House, scope: str, status: int) -> None:
    machine = await owner_of_the_machine(house)
    assert (await me(machine))["admin"] is True
    program = await house.program((await make_key(machine, scope))["key"])
    answer = await program.get("/api/v1/admin/workers")
    assert answer.status_code == status
    assert (await me(program))["admin"] is (status == 200)


async def test_an_admin_key_of_somebody_else_does_not_administer(house: House) -> None:
    person = await house.person("ada@example.org")
    program = await house.program((await make_key(person, "admin"))["key"])
    for caller in (person, program):
        refused(await caller.get("/api/v1/admin/workers"), 403, "FORBIDDEN")


async def test_the_link_of_the_machine_ends_the_old_session_and_opens_a_new_one(house: House) -> None:
    browser = await house.browser()
    await me(browser)
    old = session_of(browser)
    token = await make_sign_in_link(house.database)
    await browser.post("/sign-in", data={"token": token})
    assert session_of(browser) != old
    stale = await house.browser()
    stale.cookies.set("octavo_session", old, domain="127.0.0.1")
    assert (await me(stale))["kind"] == "anonymous"
    assert (await me(browser))["kind"] == "local"
