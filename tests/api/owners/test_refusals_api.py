"""Requests that cannot be meant are refused in plain words, and say what would be right."""

from __future__ import annotations

import httpx
import pytest

from tests.support.passwords import PASSWORD
from tests.support.visitors import House, OpenHouse, refused

PERSON = {"email": "ada@example.org", "password": PASSWORD}


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_a_path_for_posts_is_not_mistaken_for_an_id(house: House, method: str) -> None:
    answer = await (await house.browser()).request(method, "/api/v1/documents/bulk")
    refused(answer, 405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"] == "POST"


async def test_a_wrong_method_gets_all_allowed_methods(house: House) -> None:
    browser = await house.browser()
    for path, allowed in (
        ("/api/v1/session", "DELETE, GET, PATCH, POST"),
        ("/api/v1/documents", "GET, POST"),
        ("/api/v1/documents/01a1dfbc-be41-74f4-a5ee-65817d8e8af2", "DELETE, GET, PATCH"),
    ):
        answer = await browser.put(path)
        refused(answer, 405, "METHOD_NOT_ALLOWED")
        assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    "hosts", [["127.0.0.1:8400", "127.0.0.1:8400"], ["127.0.0.1:8400", "evil.example"], ["127.0.0.1, evil.example"]]
)
async def test_a_request_is_for_one_host(house: House, hosts: list[str]) -> None:
    browser = await house.browser()
    request = httpx.Request("GET", "http://127.0.0.1:8400/api/v1/session", headers=[("host", one) for one in hosts])
    assert request.headers.get_list("host") == hosts
    refused(await browser.send(request), 421, "WRONG_HOST")


async def test_true_is_not_a_number_of_days(house: House) -> None:
    person = await house.person("ada@example.org")
    for days in (True, 0, 1.5):
        answer = await person.post("/api/v1/keys", json={"name": "k", "expires_in_days": days})
        assert refused(answer, 422, "VALIDATION")["detail"].startswith("expires_in_days: ")


async def test_unreadable_bodies_are_refused_in_our_words(house: House) -> None:
    browser = await house.browser()
    broken = await browser.post("/api/v1/session", content=b"\xff\xfe{", headers={"content-type": "application/json"})
    body = broken.json()
    assert broken.status_code in {400, 422}
    assert "parsing the body" not in body["detail"]


# Signing up --------------------------------------------------------------------------------------------------------


async def test_where_signing_up_is_closed_nobody_does(open_house: OpenHouse) -> None:
    house = await open_house(sign_up=False)
    browser = await house.browser()
    assert (await browser.get("/api/v1/settings")).json()["sign_up"] is False
    refused(await browser.post("/api/v1/account", json=PERSON), 403, "SIGN_UP_CLOSED")
    assert await house.rows("SELECT FROM users") == []


async def test_the_sign_in_page_offers_sign_up_if_it_is_open(house: House) -> None:
    assert (await (await house.browser()).get("/api/v1/settings")).json()["sign_up"] is True
