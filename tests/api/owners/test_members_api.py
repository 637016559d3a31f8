"""Members over HTTP: who may do what to whom."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.visitors import House, me, refused

CALLERS = ["nobody", "visitor", "stranger", "reader", "member", "owner", "writing key", "admin key"]
# A route with its body, and what each caller is answered.
ROUTES: list[tuple[str, str, dict[str, Any] | None, list[int]]] = [
    ("GET", "/api/v1/members", None, [401, 200, 200, 200, 200, 200, 200, 200]),
    (
        *("POST", "/api/v1/members", {"email": "new@example.org", "role": "reader"}),
        [401, 403, 201, 403, 403, 201, 403, 201],
    ),
    ("PATCH", "/api/v1/members/{bob}", {"role": "reader"}, [401, 403, 404, 403, 403, 200, 403, 200]),
    ("DELETE", "/api/v1/members/{bob}", None, [401, 403, 404, 403, 403, 204, 403, 204]),
]
CASES = [
    pytest.param(*route[:3], caller, status, id=f"{route[0]} {route[1]} {caller}")
    for route in ROUTES
    for caller, status in zip(CALLERS, route[3], strict=True)
]
CODES = {401: "UNAUTHENTICATED", 403: "NOT_ALLOWED", 404: "NOT_FOUND"}


async def caller_of(house: House, ada: httpx.AsyncClient, who: str) -> httpx.AsyncClient:
    """Somebody who wants to change the members of Ada's owner."""
    if who.endswith("key"):
        scope = who.removesuffix(" key").replace("writing", "write")
        return await house.program((await ada.post("/api/v1/keys", json={"name": who, "scope": scope})).json()["key"])
    if who in {"nobody", "visitor"}:
        browser = await house.browser()
        if who == "visitor":
            await me(browser)
        return browser
    browser = await house.person(f"{who}@example.org")
    if who != "stranger":
        await ada.post("/api/v1/members", json={"email": f"{who}@example.org", "role": who})
        await browser.post("/api/v1/session/owner", json={"owner_id": (await me(ada))["owner_id"]})
    return browser


@pytest.mark.parametrize(("method", "path", "body", "who", "status"), CASES)
async def test_every_route_and_every_caller(
    house: House, method: str, path: str, body: dict[str, Any] | None, who: str, status: int
) -> None:
    ada = await house.person("ada@example.org")
    for email in ("bob@example.org", "new@example.org"):
        await house.person(email)
    bob = (await ada.post("/api/v1/members", json={"email": "bob@example.org"})).json()
    assert bob["role"] == "member"
    caller = await caller_of(house, ada, who)
    before = (await ada.get("/api/v1/members")).json()
    answer = await caller.request(method, path.format(bob=bob["user_id"]), json=body)
    assert answer.status_code == status, answer.text
    if status in CODES:
        refused(answer, status, CODES[status])
    if status in CODES or who == "stranger":
        assert (await ada.get("/api/v1/members")).json() == before


async def test_every_member_sees_the_other_members(house: House) -> None:
    ada, bob = await house.person("ada@example.org"), await house.person("bob@example.org")
    await ada.post("/api/v1/members", json={"email": "BOB@example.org", "role": "reader"})
    await bob.post("/api/v1/session/owner", json={"owner_id": (await me(ada))["owner_id"]})
    seen = (await bob.get("/api/v1/members")).json()["items"]
    assert [(one["email"], one["role"]) for one in seen] == [
        ("ada@example.org", "owner"),
        ("bob@example.org", "reader"),
    ]


async def test_the_last_owner_can_neither_go_nor_be_less(house: House) -> None:
    ada = await house.person("ada@example.org")
    (herself,) = (await ada.get("/api/v1/members")).json()["items"]
    path = f"/api/v1/members/{herself['user_id']}"
    refused(await ada.delete(path), 409, "LAST_OWNER")
    refused(await ada.patch(path, json={"role": "member"}), 409, "LAST_OWNER")
    assert (await ada.patch(path, json={"role": "owner"})).status_code == 200


async def test_a_removed_member_loses_access_immediately(house: House) -> None:
    ada, bob = await house.person("ada@example.org"), await house.person("bob@example.org")
    added = (await ada.post("/api/v1/members", json={"email": "bob@example.org"})).json()
    shared = (await me(ada))["owner_id"]
    await bob.post("/api/v1/session/owner", json={"owner_id": shared})
    key = (await bob.post("/api/v1/keys", json={"name": "his", "scope": "write"})).json()["key"]
    program = await house.program(key)
    assert (await me(program))["owner_id"] == shared
    assert (await ada.delete(f"/api/v1/members/{added['user_id']}")).status_code == 204
    refused(await program.get("/api/v1/jobs"), 401, "UNAUTHENTICATED")
    assert (await me(bob))["owner_id"] != shared


async def test_what_cannot_be_a_member_is_refused(house: House) -> None:
    ada = await house.person("ada@example.org")
    add = {"email": "ada@example.org", "role": "owner"}
    refused(await ada.post("/api/v1/members", json=add), 409, "ALREADY_MEMBER")
    refused(await ada.post("/api/v1/members", json=add | {"email": "nobody@example.org"}), 404, "NOT_FOUND")
    refused(await ada.post("/api/v1/members", json=add | {"role": "king"}), 422, "VALIDATION")
    refused(await ada.patch(f"/api/v1/members/{uuid4()}", json={"role": "owner"}), 404, "NOT_FOUND")
    refused(await ada.patch("/api/v1/members/1", json={"role": "owner"}), 404, "NOT_FOUND")
