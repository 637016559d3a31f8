"""A flood is answered with 429 and when to come back, and harms nobody else."""

from __future__ import annotations

import pytest

from octavo.web.http.assets import asset
from tests.support.passwords import PASSWORD
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
        assert 0 < int(answer.headers["retry-after"]) <= 10
    assert (await (await house.browser(address="192.0.2.1")).get("/api/v1/jobs")).status_code == 200
    await house.pass_time(10)
    assert (await first.get("/api/v1/jobs")).status_code == 200


async def test_a_person_has_a_separate_limit_from_visitors(open_house: OpenHouse) -> None:
    house = await open_house(requests_per_minute=5, requests_per_minute_anonymous=2)
    person, visitor = await house.person("ada@example.org"), await house.browser()
    await me(visitor)
    refused(await visitor.get("/api/v1/jobs"), 429, "RATE_LIMIT")
    for _ in range(5):
        await me(person)
    answer = await person.get("/api/v1/jobs")
    refused(answer, 429, "RATE_LIMIT")
    assert 0 < int(answer.headers["retry-after"]) <= 12


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


async def test_a_refused_request_creates_no_owner(open_house: OpenHouse) -> None:
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


# Floods ------------------------------------------------------------------------------------------------------------


async def test_a_flood_of_sign_ups_ends_at_the_limit_of_the_address_over_all_processes(open_house: OpenHouse) -> None:
    houses = [await open_house(sign_ups_per_hour=4) for _ in range(2)]
    accounts = [{"email": f"{number}@example.org", "password": PASSWORD} for number in range(12)]
    browsers = [await houses[number % 2].browser() for number in range(12)]
    answers = [
        await browser.post("/api/v1/account", json=account) for browser, account in zip(browsers, accounts, strict=True)
    ]
    assert [answer.status_code for answer in answers] == [201] * 4 + [429] * 8
    for answer in answers[4:]:
        refused(answer, 429, "RATE_LIMIT")
        assert 0 < int(answer.headers["retry-after"]) <= 900
        assert "set-cookie" not in answer.headers
    assert await houses[0].rows("SELECT count(*) FROM users") == [(4,)]
    page = await browsers[-1].post("/sign-up", data=accounts[-1], headers={"accept": "text/html"})
    assert (page.status_code, "Too many new accounts from your network." in page.text) == (429, True)
    elsewhere = await houses[0].browser(address="192.0.2.1")
    assert (await elsewhere.post("/api/v1/account", json=accounts[-1])).status_code == 201


async def test_a_refused_sign_up_hashes_no_password(open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house = await open_house(sign_ups_per_hour=1)
    await house.person("ada@example.org")
    monkeypatch.setattr("octavo.web.rooms.account.accounts.hash_password", None)
    account = {"email": "bob@example.org", "password": PASSWORD}
    refused(await (await house.browser()).post("/api/v1/account", json=account), 429, "RATE_LIMIT")


async def test_a_flood_of_visitors_without_cookies_makes_few_owners(open_house: OpenHouse) -> None:
    houses = [await open_house(visitors_per_minute=3) for _ in range(2)]
    first = await houses[0].browser()
    await me(first)
    statuses = [(await (await houses[number % 2].browser()).get("/api/v1/session")).status_code for number in range(8)]
    assert statuses == [200] * 2 + [429] * 6
    assert await houses[0].rows("SELECT count(*) FROM owners") == [(3,)]
    await me(first)  # who is known is not refused
    await houses[0].pass_time(21)
    houses[1].clock.now += 21
    assert (await (await houses[1].browser()).get("/api/v1/session")).status_code == 200


async def test_requests_and_wrong_passwords_count_over_all_processes(open_house: OpenHouse) -> None:
    houses = [await open_house(requests_per_minute=8, sign_in_tries=4) for _ in range(2)]
    person = await houses[0].person("ada@example.org")
    other = await houses[1].browser()
    other.cookies.update(person.cookies)
    answers = [await browser.get("/api/v1/session") for _ in range(6) for browser in (person, other)]
    assert sorted(answer.status_code for answer in answers) == [200] * 8 + [429] * 4
    wrong = {"email": "ada@example.org", "password": "not this one"}
    guesses = [await (await houses[number % 2].browser()).post("/api/v1/session", json=wrong) for number in range(6)]
    assert [guess.status_code for guess in guesses] == [401] * 4 + [429] * 2
