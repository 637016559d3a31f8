"""Other sites cannot use a browser's session, other names are not answered, and extensions come with a key."""

from __future__ import annotations

from uuid import uuid4

import httpx
import pytest

from octavo.web.http.assets import asset
from tests.support.visitors import ADDRESS, House, OpenHouse, me, refused

EXTENSION = "chrome-extension://abc"
CANCEL = f"/api/v1/jobs/{uuid4()}/cancel"


async def make_key(browser: httpx.AsyncClient) -> str:
    return (await browser.post("/api/v1/keys", json={"name": "k", "scope": "write"})).json()["key"]


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"sec-fetch-site": "same-origin", "origin": ADDRESS}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"origin": ADDRESS}, True),
        ({"sec-fetch-site": "same-origin", "origin": "null"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "https://evil.example"}, False),
        ({"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:9000"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"origin": "https://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://127.0.0.1:9000"}, False),
        ({"origin": EXTENSION}, False),
        ({"sec-fetch-site": "none", "origin": EXTENSION}, False),
        ({"sec-fetch-site": "cross-site", "authorization": "Basic dXNlcjpwYXNz"}, False),
    ],
)
async def test_another_site_cannot_change_anything_by_the_cookie(
    open_house: OpenHouse, headers: dict[str, str], allowed: bool
) -> None:
    house = await open_house(origins=(EXTENSION,))
    browser = await house.person("ada@example.org")
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = await browser.request(method, "/api/v1/session", headers=headers)
        if allowed:
            assert answer.status_code in {204, 405, 422}
        else:
            refused(answer, 403, "CROSS_SITE")
            assert answer.headers["x-content-type-options"] == "nosniff"
    assert await house.rows("SELECT count(*) FROM sessions") == [(0 if allowed else 1,)]


async def test_another_site_cannot_even_sign_a_browser_in_or_up(house: House) -> None:
    await house.person("ada@example.org")
    browser = await house.browser()
    for path in ("/api/v1/session", "/api/v1/account"):
        answer = await browser.post(path, json={}, headers={"sec-fetch-site": "cross-site"})
        refused(answer, 403, "CROSS_SITE")
    assert "octavo_session" not in browser.cookies


async def test_looking_is_not_changing(house: House) -> None:
    browser = await house.person("ada@example.org")
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
        answer = await browser.get("/api/v1/session", headers=headers)
        assert answer.status_code == 200
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_browser_never_adds_an_api_key_automatically(house: House) -> None:
    key = await make_key(await house.person("ada@example.org"))
    program = await house.program(key)
    answer = await program.post(CANCEL, headers={"sec-fetch-site": "cross-site", "origin": "https://evil.example"})
    refused(answer, 404, "NOT_FOUND")
    assert "access-control-allow-origin" not in answer.headers


# Names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8400", 200),
        ("localhost:1234", 200),
        ("[::1]", 200),
        ("docs.example.org", 200),
        ("evil.example", 421),
        ("evil.example:8400", 421),
        ("192.0.2.1", 421),
        ("localhost.evil.example", 421),
    ],
)
async def test_only_its_own_names_are_answered(open_house: OpenHouse, host: str, status: int) -> None:
    house = await open_house(hosts=("docs.example.org",))
    browser = await house.browser()
    for path in ("/library", "/api/v1/session", "/readyz", asset("shell/mark.svg"), "/api/openapi.json"):
        answer = await browser.get(path, headers={"host": host})
        assert answer.status_code == status
        if status == 421:
            refused(answer, 421, "WRONG_HOST")
            assert "OCTAVO_HOSTS" in answer.json()["title"]
            assert "set-cookie" not in answer.headers
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")


async def test_a_server_for_all_addresses_answers_to_addresses_and_not_to_names(open_house: OpenHouse) -> None:
    house = await open_house(host="0.0.0.0", anonymous=True)
    browser = await house.browser()
    assert (await browser.get("/library", headers={"host": "192.0.2.1:8400"})).status_code == 200
    refused(await browser.get("/", headers={"host": "evil.example"}), 421, "WRONG_HOST")


# Extensions --------------------------------------------------------------------------------------------------------


async def test_an_extension_on_the_list_calls_with_a_key(open_house: OpenHouse) -> None:
    house = await open_house(origins=(EXTENSION,))
    program = await house.program(await make_key(await house.person("ada@example.org")))
    headers = {"origin": EXTENSION, "sec-fetch-site": "cross-site"}
    for answer in (await program.get("/api/v1/jobs", headers=headers), await program.post(CANCEL, headers=headers)):
        assert answer.status_code in {200, 404}
        assert answer.headers["access-control-allow-origin"] == EXTENSION
        assert "access-control-allow-credentials" not in answer.headers
        assert "origin" in answer.headers["vary"].lower()
    wrong = await program.get("/api/v1/jobs", headers=headers | {"authorization": "Bearer x"})
    refused(wrong, 401, "UNAUTHENTICATED")
    assert wrong.headers["access-control-allow-origin"] == EXTENSION


@pytest.mark.parametrize("origin", ["chrome-extension://other", "https://evil.example", "null"])
async def test_where_there_is_a_list_of_origins_a_key_from_another_one_is_refused(
    open_house: OpenHouse, origin: str
) -> None:
    house = await open_house(origins=(EXTENSION,))
    program = await house.program(await make_key(await house.person("ada@example.org")))
    for method, path in (("GET", "/api/v1/jobs"), ("POST", CANCEL)):
        refused(await program.request(method, path, headers={"origin": origin}), 403, "CROSS_SITE")
    assert (await program.get("/api/v1/jobs")).status_code == 200
    assert (await program.get("/api/v1/jobs", headers={"origin": ADDRESS})).status_code == 200


async def test_an_extension_without_a_key_changes_nothing(open_house: OpenHouse) -> None:
    house = await open_house(origins=(EXTENSION,))
    browser = await house.person("ada@example.org")
    for site in ("cross-site", "none"):
        headers = {"origin": EXTENSION, "sec-fetch-site": site}
        refused(await browser.delete("/api/v1/session", headers=headers), 403, "CROSS_SITE")
    assert (await me(browser))["email"] == "ada@example.org"


async def test_a_preflight_request_returns_the_permissions_of_an_extension(open_house: OpenHouse) -> None:
    house = await open_house(origins=(EXTENSION,))
    browser = await house.browser()
    asked = {
        "origin": EXTENSION,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,x-upload-filename",
    }
    answer = await browser.options("/api/v1/documents", headers=asked)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == EXTENSION
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-headers"] == "authorization,x-upload-filename"
    assert "access-control-allow-credentials" not in answer.headers
    assert "set-cookie" not in answer.headers
    other = await browser.options("/api/v1/documents", headers=asked | {"origin": "chrome-extension://other"})
    assert other.status_code == 405
    assert not [name for name in other.headers if name.startswith("access-control")]
    renamed = await browser.options("/api/v1/documents", headers=asked | {"host": "evil.example"})
    refused(renamed, 421, "WRONG_HOST")
