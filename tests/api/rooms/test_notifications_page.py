"""What an owner is told: newest first, read one by one or all at once, errors resolved by somebody at some time."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import httpx

from tests.api.rooms.conftest import guest, heading, is_page, person, went_to, words
from tests.support.visitors import House, me

INSERT = (
    "INSERT INTO notifications (id, owner_id, event_id, process_id, type, level, error_code, created_at)"
    " VALUES (%s, %s, %s, gen_random_uuid(), %s, %s, %s, now() - make_interval(mins => %s))"
)


async def tell(house: House, browser: httpx.AsyncClient, number: int = 1, *, error: str | None = None) -> UUID:
    kind, level = ("job.failed", "error") if error else ("document.completed", "news")
    made, owner = uuid4(), (await me(browser))["owner_id"]
    assert await house.run(INSERT, made, owner, number, kind, level, error, number) == 1
    return made


def badge_on(page: httpx.Response) -> str:
    (number,) = re.findall(r'data-badge-of="notifications".*?(\d+)', page.text, re.DOTALL)
    return number


async def test_who_was_told_nothing_is_done(house: House) -> None:
    answer = await (await guest(house)).get("/notifications")
    is_page(answer)
    assert heading(answer) == "Notifications"
    assert "All done" in words(answer)


async def test_the_newest_is_first_and_unread_ones_are_counted(house: House) -> None:
    browser = await person(house, "ada@example.org")
    old, new = await tell(house, browser, 5), await tell(house, browser, 1, error="CRASHED")
    page = await browser.get("/notifications")
    assert re.findall(r'id="n-([^"]+)"', page.text) == [str(new), str(old)]
    assert "A job failed (CRASHED)." in words(page)
    assert "2 unread" in words(page)
    assert badge_on(page) == "1"  # only what went wrong waits for somebody
    back = "/notifications?show=unread"
    went_to(await browser.post(f"/notifications/{old}/read", data={"back": back}), back)
    unread = await browser.get("/notifications?show=unread")
    assert re.findall(r'id="n-([^"]+)"', unread.text) == [str(new)]
    went_to(await browser.post("/notifications/read", data={"back": "//evil.example"}), "/notifications")
    assert "You have no unread notifications." in words(await browser.get("/notifications?show=unread"))
    assert badge_on(await browser.get("/notifications")) == "0"


async def test_the_first_user_and_time_of_a_resolved_error_are_kept(house: House) -> None:
    browser = await person(house, "ada@example.org")
    failed = await tell(house, browser, error="CRASHED")
    went_to(await browser.post(f"/notifications/{failed}/resolve"), "/notifications")
    page = words(await browser.get("/notifications"))
    assert "resolved by ada@example.org, just now" in page
    assert "Mark as read" not in page
    news = await tell(house, browser, 2)
    is_page(await browser.post(f"/notifications/{news}/resolve"), 409)


async def test_long_lists_come_in_pages(house: House) -> None:
    browser = await person(house, "ada@example.org")
    told = [await tell(house, browser, number) for number in range(1, 61)]
    first = await browser.get("/notifications")
    (more,) = re.findall(r'href="(/notifications\?cursor=[^"]+)" rel="next"', first.text)
    second = await browser.get(more)
    shown = re.findall(r'id="n-([^"]+)"', first.text + second.text)
    assert shown == [str(one) for one in told]


async def test_nobody_sees_or_resolves_notifications_of_others(house: House) -> None:
    owner, stranger = await person(house, "ada@example.org"), await person(house, "bob@example.org")
    failed = await tell(house, owner, error="CRASHED")
    assert str(failed) not in (await stranger.get("/notifications")).text
    for verb in ("read", "resolve"):
        is_page(await stranger.post(f"/notifications/{failed}/{verb}"), 404)
    went_to(await stranger.post("/notifications/read"), "/notifications")
    assert await house.rows("SELECT read_at, resolved_at FROM notifications") == [(None, None)]


async def test_a_reader_looks_and_changes_nothing(house: House) -> None:
    owner, reader = await person(house, "ada@example.org"), await person(house, "carol@example.org")
    failed = await tell(house, owner, error="CRASHED")
    await owner.post("/api/v1/members", json={"email": "carol@example.org", "role": "reader"})
    await reader.post("/api/v1/session/owner", json={"owner_id": (await me(owner))["owner_id"]})
    page = await reader.get("/notifications")
    assert str(failed) in page.text
    assert "Resolve" not in page.text
    for path in ("/notifications/read", f"/notifications/{failed}/read", f"/notifications/{failed}/resolve"):
        is_page(await reader.post(path), 403)
