"""Accounts over HTTP: one answer for all that is wrong, a new session each time, and documents that come along."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.passwords import PASSWORD, hash_fast
from tests.support.visitors import House, me, refused, session_of

ADA = {"email": "ada@example.org", "password": PASSWORD}


async def with_session(house: House, secret: str) -> httpx.AsyncClient:
    browser = await house.browser()
    browser.cookies.set("octavo_session", secret, domain="127.0.0.1")
    return browser


async def add_document(house: House, owner_id: str, sha256: bytes, title: str) -> None:
    document = uuid4()
    await house.run(
        "INSERT INTO documents (id, owner_id, process_id, title, filename, content_type, source_type, sha256, bytes) "
        "VALUES (%s, %s, %s, %s, 'a.txt', 'text/plain', 'text', %s, 7)",
        *(document, owner_id, uuid4(), title, sha256),
    )
    await house.run(
        "INSERT INTO uploads (id, owner_id, document_id, process_id, state, is_canonical, duplicates, filename, "
        "content_type, source_type, sha256, bytes) "
        "VALUES (%s, %s, %s, %s, 'uploaded', true, 'reuse', 'a.txt', 'text/plain', 'text', %s, 7)",
        *(uuid4(), owner_id, document, uuid4(), sha256),
    )


# Signing up --------------------------------------------------------------------------------------------------------


async def test_signing_up_keeps_the_documents_and_changes_the_session(house: House) -> None:
    browser = await house.browser()
    visitor, old = await me(browser), session_of(browser)
    await add_document(house, visitor["owner_id"], b"1" * 32, "One")
    answer = await browser.post("/api/v1/account", json={"email": " Ada@Example.org ", "password": PASSWORD})
    assert answer.status_code == 201
    person = answer.json()
    assert (person["kind"], person["email"], person["role"], person["scope"], person["note"]) == (
        *("user", "ada@example.org", "owner", "admin"),
        None,
    )
    assert await me(browser) == person
    assert session_of(browser) != old
    assert (await me(await with_session(house, old)))["kind"] == "anonymous"
    assert await house.rows("SELECT title, owner_id::text FROM documents") == [("One", person["owner_id"])]


async def test_an_address_is_taken_once(house: House) -> None:
    await house.person("ada@example.org")
    browser = await house.browser()
    visitor = await me(browser)
    refused(await browser.post("/api/v1/account", json=ADA | {"email": "ADA@example.org"}), 409, "EMAIL_TAKEN")
    assert await me(browser) == visitor


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"password": "123456789"}, "WEAK_PASSWORD"),
        ({"password": ""}, "WEAK_PASSWORD"),
        ({"password": "x" * 1001}, "VALIDATION"),
        ({"password": 1234567890}, "VALIDATION"),
        ({"email": "nobody"}, "VALIDATION"),
        ({"email": "two words@example.org"}, "VALIDATION"),
        ({"email": "a@b@c"}, "VALIDATION"),
        ({"email": "a\u0000@example.org"}, "VALIDATION"),
        ({"email": "a" * 250 + "@example.org"}, "VALIDATION"),
        ({"role": "admin"}, "VALIDATION"),
    ],
)
async def test_what_makes_no_account_is_refused_and_not_repeated(house: House, body: dict[str, Any], code: str) -> None:
    browser = await house.browser()
    answer = await browser.post("/api/v1/account", json=ADA | body)
    refused(answer, 422, code)
    assert str(body.get("password") or PASSWORD) not in answer.text
    assert await house.rows("SELECT count(*) FROM users") == [(0,)]


# Signing in --------------------------------------------------------------------------------------------------------


async def test_signing_in_changes_the_session_and_brings_the_visitors_documents(house: House) -> None:
    person = await me(await house.person("ada@example.org"))
    await add_document(house, person["owner_id"], b"1" * 32, "Kept")
    browser = await house.browser()
    visitor, old = await me(browser), session_of(browser)
    await add_document(house, visitor["owner_id"], b"1" * 32, "Twin")
    await add_document(house, visitor["owner_id"], b"2" * 32, "Other")
    answer = await browser.post("/api/v1/session", json=ADA | {"email": "Ada@example.ORG"})
    assert (answer.status_code, answer.json()) == (200, person)
    assert session_of(browser) != old
    assert (await me(await with_session(house, old)))["owner_id"] not in {person["owner_id"], visitor["owner_id"]}
    twins = await house.rows(
        "SELECT d.title, d.owner_id::text, twin.title FROM documents d LEFT JOIN documents twin "
        "ON twin.id = d.duplicate_of ORDER BY d.title"
    )
    owner = person["owner_id"]
    assert twins == [("Kept", owner, None), ("Other", owner, None), ("Twin", owner, "Kept")]


async def test_an_unknown_address_and_a_wrong_password_are_answered_alike(house: House) -> None:
    await house.person("ada@example.org")
    browser = await house.browser()
    wrong = await browser.post("/api/v1/session", json=ADA | {"password": "wrong password"})
    unknown = await browser.post("/api/v1/session", json=ADA | {"email": "nobody@example.org"})
    refused(wrong, 401, "WRONG_CREDENTIALS")
    assert wrong.content == unknown.content
    for answer in (wrong, unknown):
        del answer.headers["ratelimit"]  # the caller's own limit: one less with each request
    assert dict(wrong.headers) == dict(unknown.headers)
    assert "set-cookie" not in wrong.headers


async def test_a_hash_with_old_parameters_is_replaced_at_sign_in(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = await house.person("ada@example.org")
    before = await house.rows("SELECT password_hash FROM users")
    hash_fast(monkeypatch, time_cost=2)
    assert (await browser.post("/api/v1/session", json=ADA)).status_code == 200
    after = await house.rows("SELECT password_hash FROM users")
    assert after != before
    assert (await browser.post("/api/v1/session", json=ADA)).status_code == 200
    assert await house.rows("SELECT password_hash FROM users") == after


async def test_ten_wrong_passwords_and_then_one_now_and_then(house: House) -> None:
    await house.person("ada@example.org")
    browser, elsewhere = await house.browser(), await house.browser(address="192.0.2.1")
    for _ in range(10):
        refused(await browser.post("/api/v1/session", json=ADA | {"password": "wrong"}), 401, "WRONG_CREDENTIALS")
    for password in ("wrong", PASSWORD):
        answer = await browser.post("/api/v1/session", json={"email": "ADA@example.org", "password": password})
        refused(answer, 429, "RATE_LIMIT")
        assert 0 < int(answer.headers["retry-after"]) <= 90
    assert (await elsewhere.post("/api/v1/session", json=ADA)).status_code == 200
    other = await browser.post("/api/v1/session", json={"email": "bob@example.org", "password": "wrong"})
    refused(other, 401, "WRONG_CREDENTIALS")
    await house.pass_time(90)
    assert (await browser.post("/api/v1/session", json=ADA)).status_code == 200


async def test_right_passwords_do_not_count(house: House) -> None:
    browser = await house.person("ada@example.org")
    for _ in range(15):
        assert (await browser.post("/api/v1/session", json=ADA)).status_code == 200


# Signed in ---------------------------------------------------------------------------------------------------------


async def test_signing_out_ends_the_session_and_takes_the_cookie_away(house: House) -> None:
    browser = await house.person("ada@example.org")
    old = session_of(browser)
    answer = await browser.delete("/api/v1/session")
    assert answer.status_code == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert "octavo_session" not in browser.cookies
    assert (await me(await with_session(house, old)))["kind"] == "anonymous"
    assert (await (await house.browser()).delete("/api/v1/session")).status_code == 204


async def test_a_new_password_replaces_the_old_and_signs_out_elsewhere(house: House) -> None:
    here, elsewhere = await house.person("ada@example.org"), await house.browser()
    await elsewhere.post("/api/v1/session", json=ADA)
    change = {"password": PASSWORD, "new_password": "another password"}
    wrong = await here.put("/api/v1/account/password", json=change | {"password": "wrong"})
    refused(wrong, 401, "WRONG_CREDENTIALS")
    weak = await here.put("/api/v1/account/password", json=change | {"new_password": "short"})
    refused(weak, 422, "WEAK_PASSWORD")
    assert (await me(elsewhere))["kind"] == "user"
    assert (await here.put("/api/v1/account/password", json=change)).status_code == 204
    assert (await me(here))["email"] == "ada@example.org"
    assert (await me(elsewhere))["kind"] == "anonymous"
    refused(await elsewhere.post("/api/v1/session", json=ADA), 401, "WRONG_CREDENTIALS")
    answer = await elsewhere.post("/api/v1/session", json=ADA | {"password": "another password"})
    assert answer.status_code == 200


async def test_guessing_the_old_password_in_a_stolen_session_is_stopped_too(house: House) -> None:
    browser = await house.person("ada@example.org")
    change = {"password": "wrong", "new_password": "another password"}
    for _ in range(10):
        refused(await browser.put("/api/v1/account/password", json=change), 401, "WRONG_CREDENTIALS")
    refused(await browser.put("/api/v1/account/password", json=change), 429, "RATE_LIMIT")


async def test_only_people_with_a_password_change_it(house: House) -> None:
    change = {"password": PASSWORD, "new_password": "another password"}
    visitor = await house.browser()
    refused(await visitor.put("/api/v1/account/password", json=change), 401, "UNAUTHENTICATED")
    await me(visitor)
    refused(await visitor.put("/api/v1/account/password", json=change), 403, "NOT_ALLOWED")
    person = await house.person("ada@example.org")
    key = (await person.post("/api/v1/keys", json={"name": "k", "scope": "admin"})).json()["key"]
    program = await house.program(key)
    refused(await program.put("/api/v1/account/password", json=change), 403, "NOT_ALLOWED")
    refused(await program.delete("/api/v1/session"), 403, "NOT_ALLOWED")


async def test_a_browser_acts_for_another_owner_of_its_person(house: House) -> None:
    ada, bob = await house.person("ada@example.org"), await house.person("bob@example.org")
    shared, own = (await me(ada))["owner_id"], (await me(bob))["owner_id"]
    foreign = await bob.post("/api/v1/session/owner", json={"owner_id": shared})
    missing = await bob.post("/api/v1/session/owner", json={"owner_id": str(uuid4())})
    assert refused(foreign, 404, "NOT_FOUND") == refused(missing, 404, "NOT_FOUND")
    await ada.post("/api/v1/members", json={"email": "bob@example.org", "role": "reader"})
    answer = await bob.post("/api/v1/session/owner", json={"owner_id": shared})
    assert answer.status_code == 200
    acting = answer.json()
    assert (acting["owner_id"], acting["role"], acting["scope"], acting["email"]) == (
        *(shared, "reader", "read"),
        "bob@example.org",
    )
    assert {one["owner_id"]: one["role"] for one in acting["owners"]} == {own: "owner", shared: "reader"}
    refused(await bob.post(f"/api/v1/jobs/{uuid4()}/cancel"), 403, "NOT_ALLOWED")
    assert (await bob.post("/api/v1/session/owner", json={"owner_id": own})).json()["role"] == "owner"
    refused(await bob.post(f"/api/v1/jobs/{uuid4()}/cancel"), 404, "NOT_FOUND")


async def test_openapi_describes_credentials_and_every_error(house: House) -> None:
    described = (await (await house.browser()).get("/api/openapi.json")).json()
    assert set(described["components"]["securitySchemes"]) == {"key", "session"}
    routes = [
        operation
        for path, operations in described["paths"].items()
        if path.startswith(("/api/v1/account", "/api/v1/session", "/api/v1/keys", "/api/v1/members"))
        for operation in operations.values()
    ]
    assert len(routes) == 16
    assert len([route for route in routes if {} in route["security"]]) == 3  # signing up, in and out
    for route in routes:
        assert route["security"][:2] == [{"key": []}, {"session": []}]
        refusals = {status: answer for status, answer in route["responses"].items() if not status.startswith("2")}
        assert {"401", "429"} <= set(refusals)
        assert all(list(answer["content"]) == ["application/problem+json"] for answer in refusals.values())
