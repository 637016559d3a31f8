"""Operations with a mouse, with the keyboard alone and without scripts; numbers change while nobody loads the page."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenBrowser
from tests.browser.rooms.work import is_dead, make_dead_letters
from tests.support.browser import Place, Visitor

ASKED_EVERY_MS = 10_000


@pytest.fixture
def letters(place: Place) -> Iterator[list[UUID]]:
    """Two of this test's own; whatever others left is cleared away first."""
    place.database.run("DELETE FROM jobs WHERE status = 'dead_letter'")
    yield make_dead_letters(place, 2)
    place.database.run("DELETE FROM jobs WHERE status = 'dead_letter'")


def test_a_dead_letter_is_requeued_by_keyboard_alone(place: Place, admin: Visitor, letters: list[UUID]) -> None:
    page = admin.open("/operations")
    engine, job = place.database, letters[0]
    before = len(engine.events(job))
    press_until(page, f'input[value="{job}"]')
    page.keyboard.press("Space")
    expect(page.get_by_text("1 selected")).to_be_visible()
    press_until(page, "button[value=resume]", key="Shift+Tab")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    kinds = [event["kind"] for event in engine.events(job)[before:]]
    assert "retry" in kinds
    assert is_dead(engine, letters[1])


def press_until(page: Page, selector: str, key: str = "Tab") -> None:
    for _ in range(60):
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{selector} is not reached by {key}")


def test_discarding_asks_in_a_dialog_that_names_the_number(place: Place, admin: Visitor, letters: list[UUID]) -> None:
    page = admin.open("/operations")
    expect(page.get_by_role("button", name="Discard…")).to_be_disabled()
    page.get_by_label("All", exact=True).check()
    page.get_by_role("button", name="Discard…").click()
    dialog = page.get_by_role("dialog", name="Discard 2 failed jobs?")
    dialog.get_by_role("button", name="Keep").click()
    expect(dialog).to_be_hidden()
    assert all(is_dead(place.database, job) for job in letters)
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.get_by_role("button", name="Discard…").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Discard 2").click()
    assert [place.database.status(job) for job in letters] == ["cancelled", "cancelled"]
    expect(page.get_by_text("No failed jobs.")).to_be_visible()


def test_discarding_asks_on_a_page_without_scripts(
    place: Place, open_browser: OpenBrowser, letters: list[UUID]
) -> None:
    page = open_browser(place.admin(), scripts=False).open("/operations")
    page.locator(f'input[value="{letters[0]}"]').check()
    page.get_by_role("button", name="Discard…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Discard 1 failed job?")
    page.get_by_role("button", name="Discard 1").click()
    assert [place.database.status(job) for job in letters] == ["cancelled", "dead_letter"]


def test_numbers_and_letters_come_by_themselves(place: Place, admin: Visitor, letters: list[UUID]) -> None:
    admin.stop_clock()
    page = admin.open("/operations")
    number = page.locator("#op-count-dead_letter")
    expect(number).to_have_text("2")
    (third,) = make_dead_letters(place, 1)
    page.clock.fast_forward(ASKED_EVERY_MS)
    expect(number).to_have_text("3")
    expect(page.locator(f"#l-{third}")).to_be_visible()


def test_selection_and_focus_stay_during_live_updates(place: Place, admin: Visitor, letters: list[UUID]) -> None:
    admin.stop_clock()
    page = admin.open("/operations")
    box = page.locator(f'input[value="{letters[0]}"]')
    box.focus()
    box.check()
    order = page.locator("#op-letters > li").evaluate_all("(rows) => rows.map((row) => row.id)")
    make_dead_letters(place, 1)
    place.database.requeue(letters[1])
    page.clock.fast_forward(ASKED_EVERY_MS)
    expect(page.get_by_role("button", name="1 new · Show")).to_be_visible()
    assert page.locator("#op-letters > li").evaluate_all("(rows) => rows.map((row) => row.id)") == order
    assert box.is_checked()
    assert box.evaluate("(box) => box === document.activeElement")


def test_a_job_is_looked_at_and_tried_again(place: Place, admin: Visitor, letters: list[UUID]) -> None:
    page = admin.open("/operations")
    page.locator(f"#l-{letters[0]}").get_by_role("link", name="Timeline").click()
    expect(page.get_by_text("The demo job fails as requested.")).to_be_visible()
    expect(page.locator(".timeline").get_by_text("Failed for good", exact=True)).to_be_visible()
    before = len(place.database.events(letters[0]))
    with page.expect_navigation():
        page.get_by_role("button", name="Try again").click()
    assert len(place.database.events(letters[0])) > before


def test_counts_lead_to_their_jobs(admin: Visitor, letters: list[UUID]) -> None:
    page = admin.open("/operations")
    page.get_by_role("link", name="Failed for good 2").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(page.locator("tbody tr")).to_have_count(2)
