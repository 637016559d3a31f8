"""Whatever goes wrong on a page is a page that names its cause, its code and one thing to do; programs get problems."""

from __future__ import annotations

from uuid import UUID

import httpx
import pytest
from fastapi import Request

from octavo.core.errors import StorageFailed
from tests.api.rooms.conftest import AS_PAGE, guest, heading, is_page, person, words
from tests.support.visitors import House, OpenHouse, me

MISSING = UUID(int=7)


async def test_a_page_that_does_not_exist_leads_back(house: House) -> None:
    answer = await (await guest(house)).get("/nowhere")
    is_page(answer, 404)
    assert heading(answer) == "Page not found"
    assert "NOT_FOUND" in answer.text
    assert 'href="/library"' in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", f"/settings/webhooks/{MISSING}", 404, "NOT_FOUND"),
        ("GET", f"/settings/keys/{MISSING}/revoke", 404, "NOT_FOUND"),
        ("POST", f"/settings/keys/{MISSING}/revoke", 404, "NOT_FOUND"),
        ("GET", "/settings/webhooks/none", 404, "NOT_FOUND"),
        ("POST", "/library", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/notifications?cursor=none", 422, "VALIDATION"),
    ],
)
async def test_problems_of_people_are_shown_inside_their_frame(
    house: House, method: str, path: str, status: int, code: str
) -> None:
    browser = await person(house, "ada@example.org")
    answer = await browser.request(method, path)
    is_page(answer, status)
    assert code in answer.text
    assert 'class="button primary"' in answer.text
    if status != 405:
        assert 'class="rail"' in answer.text
    same = await browser.request(method, path, headers={"accept": "application/json"})
    assert (same.status_code, same.headers["content-type"]) == (status, "application/problem+json")


async def test_programs_get_errors_as_problem_json(house: House) -> None:
    browser = await guest(house)
    for path in ("/api/v1/nothing", f"/api/v1/jobs/{MISSING}", "/objects/nothing", "/static/nothing"):
        answer = await browser.get(path)
        assert answer.headers["content-type"] == "application/problem+json", path


async def test_a_rate_limited_caller_gets_retry_after(open_house: OpenHouse) -> None:
    browser = await guest(await open_house(requests_per_minute_anonymous=1))
    await me(browser)
    answer = await browser.get("/library?q=a")
    is_page(answer, 429)
    assert heading(answer) == "Too many requests"
    assert int(answer.headers["retry-after"]) > 0
    assert 'href="/library?q=a"' in answer.text
    assert "Try again" in words(answer)


@pytest.mark.parametrize(
    ("error", "status", "code"), [(StorageFailed(), 503, "IO_ERROR"), (RuntimeError("canary"), 500, "UNKNOWN")]
)
async def test_our_own_failures_are_pages_that_tell_nothing_of_our_insides(
    house: House, error: Exception, status: int, code: str
) -> None:
    async def fail(request: Request) -> None:
        raise error

    house.app.add_api_route("/fails", fail)
    transport = httpx.ASGITransport(house.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8400") as browser:
        answer = await browser.get("/fails", headers=AS_PAGE)
    is_page(answer, status)
    assert code in answer.text
    assert "canary" not in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
