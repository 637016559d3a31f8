"""The map of connections: documents as dots, by mouse, by keyboard and as a list, also where there are many."""

from __future__ import annotations

import os

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenBrowser
from tests.browser.rooms.work import fill_map
from tests.support.browser import DESKTOP, PHONE, Place, check_axe, no_sideways_scroll, until

SAFE = "The harbour bridge carries forty thousand cars. Engineers consider the bridge safe. " * 3
UNSAFE = "The harbour bridge carries forty thousand cars. Engineers do not consider the bridge safe. " * 3


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


def test_two_documents_that_contradict_each_other_are_dots_with_a_line_that_shows_both_quotes(
    place: Place, open_browser: OpenBrowser
) -> None:
    member = open_browser(place.sign_up())
    page = member.open("/connections")
    expect(page.get_by_role("heading", name="No connections yet")).to_be_visible()
    check_axe(page)
    first, _ = member.add("report.md", SAFE), member.add("note.md", UNSAFE)
    until(page, lambda: member.ask("GET", f"/documents/{first}/connections")["items"], "the two were compared")
    page.reload()
    dots = page.locator("#map .dot")
    expect(dots).to_have_count(2)
    page.locator("#map .edge.contra").click(force=True)
    pair = page.get_by_role("complementary", name="Connections between the two documents")
    expect(pair.locator("blockquote", has_text="Engineers do not consider the bridge safe")).to_be_visible()
    expect(pair.locator("blockquote", has_text="Engineers consider the bridge safe")).to_be_visible()
    check_axe(page)
    page.keyboard.press("Escape")
    expect(pair).to_have_count(0)
    page.get_by_role("link", name="Bridges").click()
    expect(page.get_by_role("heading", name="No matching connections")).to_be_visible()
    page.goto(f"/documents/{first}?panel=connections")
    page.get_by_role("link", name="Show on the map").click()
    page.wait_for_url(f"**/connections?focus={first}")
    expect(dots).to_have_count(2)


def test_of_five_hundred_documents_the_strongest_sixty_are_shown_and_reached_by_keyboard(
    place: Place, open_browser: OpenBrowser
) -> None:
    member = open_browser(place.sign_up())
    fill_map(member, 500)
    page = member.open("/connections")
    dots = page.locator("#map .dot")
    expect(dots).to_have_count(60)
    expect(page.get_by_text("Only the most strongly connected documents are shown (60).")).to_be_visible()
    check_axe(page)
    picture(page, "map")
    dots.first.focus()
    names = {page.evaluate("document.activeElement.getAttribute('aria-label')")}
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        names.add(page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert len(names) > 1
    page.get_by_role("link", name="List").click()
    page.wait_for_url("**view=list**")
    expect(page.locator("tbody tr").first.get_by_role("link", name="Quotes from")).to_be_visible()
    least = page.locator("#least")
    least.fill("0.5")
    page.wait_for_url("**min=0.5#least")
    expect(least).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**min=0.55#least")
    rows = page.locator("tbody tr").count()
    assert 0 < rows < 60
    for width, height in (PHONE, DESKTOP):
        page.set_viewport_size({"width": width, "height": height})
        for form in ("", "?view=list"):
            page.goto(f"/connections{form}")
            no_sideways_scroll(page)
            picture(page, f"map{form[-4:]}-{width}")
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.goto("/connections")
    dots.first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/documents/*")
