"""A flood is answered with 429 and when to come back, and harms nobody else."""

from __future__ import annotations

import pytest

from octavo.web.http.assets import asset
from tests.support.visitors import OpenHouse, me, refused


async def test_visitors_share_the_limit_of_their_address(open_house: OpenHouse) -> None:
    house = await open_house(requests_per_minute_anonymous=6)
    first, second = await house.browser(), await house.browser()
    for _ in range(3):
        await me(first)
        await me(second)
    for browser in (first, second, await house.browser()):
        answer = await browser.get("/api/v1/jobs")
        refused(answer, 429, "RATE_LIMIT")
        assert answer.headers["retry-after"] == "10"
    assert (await (await house.browser(address="192.0.2.1")).get("/api/v1/jobs")).status_code == 200
    house.clock.now += 10
    assert (await first.get("/api/v1/jobs")).status_code == 200


async def test_a_person_has_a_limit_of_their_own_whatever_visitors_do(open_house: OpenHouse) -> None:
    house = await open_house(requests_per_minute=5, requests_per_minute_anonymous=2)
    person, visitor = await house.person("ada@example.org"), await house.browser()
    await me(visitor)
    refused(await visitor.get("/api/v1/jobs"), 429, "RATE_LIMIT")
    for _ in range(5):
        await me(person)
    answer = await person.get("/api/v1/jobs")
    refused(answer, 429, "RATE_LIMIT")
    assert answer.headers["retry-after"] == "12"


async def test_programs_and_browsers_of_one_owner_share_its_limit(open_house: OpenHouse) -> None:
    house = await open_house(requests_per_minute=4)
    person = await house.person("ada@example.org")
    key = (await person.post("/api/v1/keys", json={"name": "k", "scope": "read"})).json()["key"]
    program = await house.program(key)
    for browser in (person, program, program):
        await me(browser)
    refused(await person.get("/api/v1/jobs"), 429, "RATE_LIMIT")
    refused(await program.get("/api/v1/jobs"), 429, "RATE_LIMIT")


async def test_guessing_keys_and_sessions_uses_up_the_limit_of_the_address(open_house: OpenHouse) -> None:
    house = await open_house(requests_per_minute_anonymous=4)
    for number in range(2):
        refused(await (await house.program(f"octavo_{number}")).get("/api/v1/jobs"), 401, "UNAUTHENTICATED")
        browser = await house.browser()
        browser.cookies.set("octavo_session", f"guess {number}", domain="127.0.0.1")
        refused(await browser.get("/api/v1/admin/health"), 401, "UNAUTHENTICATED")
    refused(await (await house.program("octavo_9")).get("/api/v1/jobs"), 429, "RATE_LIMIT")
    refused(await (await house.browser()).get("/sign-in?token=guess"), 429, "RATE_LIMIT")


async def test_what_is_refused_makes_no_owner(open_house: OpenHouse) -> None:
    house = await open_house(requests_per_minute_anonymous=1)
    for _ in range(5):
        await (await house.browser()).get("/api/v1/jobs")
    assert await house.rows("SELECT count(*) FROM owners") == [(1,)]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", asset("shell/mark.svg")], ids=["alive", "ready", "a picture"])
async def test_machines_that_watch_are_not_counted(open_house: OpenHouse, path: str) -> None:
    house = await open_house(requests_per_minute_anonymous=1)
    browser = await house.browser()
    await me(browser)
    assert [(await browser.get(path)).status_code for _ in range(5)] == [200] * 5
