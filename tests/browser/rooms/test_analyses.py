"""Asking a whole document from a page: prompts are picked, the grid fills by itself, and citations show their page."""

from __future__ import annotations

import os

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenBrowser
from tests.support.analyses import sentence, write_book
from tests.support.browser import DESKTOP, PHONE, Late, Place, Visitor, check_axe, no_sideways_scroll, until

ASKED = "What is the harbour fee of pier 117?"
HOLD = """
    INSERT INTO caps (key, most, taken) VALUES (%s, 1, 1000)
    ON CONFLICT (key) DO UPDATE SET taken = caps.taken + 1000"""


def test_prompts_are_picked_and_answers_show_the_page_that_says_so(place: Place, open_browser: OpenBrowser) -> None:
    member = open_browser(place.sign_up())
    page = member.open("/analyses")
    check_axe(page)
    document = member.add("harbour.pdf", write_book(120))
    page = member.open(f"/analyses/new?document={document}")
    check_axe(page)
    for box in page.get_by_role("checkbox").all()[1:]:
        box.uncheck()
    page.get_by_label("Your own prompt").fill(ASKED)
    page.get_by_role("button", name="Start").click()
    # Nobody reloads anything.
    expect(page.locator("#an-status .chip", has_text="Offline: passages only")).to_be_visible()
    expect(page.locator("#an-grid tbody tr")).to_have_count(2)
    expect(page.locator("#an-grid tbody .cell", has_text="Passages only")).to_have_count(4)
    answer = page.locator(".answer", has_text=ASKED)
    expect(answer.locator(".said")).to_contain_text(sentence(117))
    check_axe(page)
    answer.get_by_role("link", name="p. 117", exact=True).click()
    picture = page.get_by_role("img", name="Page 117 of the document")
    expect(picture).to_be_visible()
    until(page, lambda: picture.evaluate("(image) => image.complete && image.naturalWidth > 100"), "it is drawn")
    check_axe(page)
    # The sentence is the first line of its page.
    box = page.locator(".quote-boxes rect").bounding_box()
    around = picture.bounding_box()
    assert box
    assert around
    assert around["width"] * 0.2 < box["width"] < around["width"] * 0.9
    assert around["y"] < box["y"] < around["y"] + around["height"] / 3
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/analysis.png", full_page=True)
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    no_sideways_scroll(page)
    if folder:
        page.screenshot(path=f"{folder}/analysis-phone.png", full_page=True)
    page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    walk_the_grid(page, member, document)


def walk_the_grid(page: Page, member: Visitor, document: str) -> None:
    """By keyboard alone: to another cell, into it, out of it, and asking it again."""
    cells = page.locator("#an-grid .cell")
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(cells.nth(3)).to_be_focused()
    page.keyboard.press("Enter")
    side = page.get_by_role("complementary", name=ASKED)
    expect(side).to_be_focused()
    expect(side).to_contain_text(sentence(117))
    check_axe(page)
    page.keyboard.press("Escape")
    expect(side).to_have_count(0)
    expect(cells.nth(3)).to_be_focused()
    open_two_at_once(page)
    with page.expect_response(lambda answer: answer.url.endswith("/rerun")) as sent:
        page.keyboard.press("r")
    assert sent.value.ok
    # It is filled again while the focus stays where it is.
    listed = {"document_id": document}
    until(page, lambda: member.ask("GET", "/analyses", params=listed)["items"][0]["status"] == "completed", "again")
    expect(page.locator("#an-status .chip", has_text="Offline: passages only")).to_be_visible()
    expect(page.locator("#an-grid .cell", has_text="Passages only")).to_have_count(4)
    expect(cells.nth(3)).to_be_focused()


def open_two_at_once(page: Page) -> None:
    """The second one is what is shown, also where the first one's answer comes last; then back to where one was."""
    cells = page.locator("#an-grid .cell")
    late = Late(page, "**?item=*")
    page.keyboard.press("Enter")
    late.wait()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    side, wanted = page.locator("#side"), cells.nth(1).get_attribute("data-item")
    assert wanted
    expect(side).to_have_attribute("data-item", wanted)
    with page.expect_event("requestfinished"):
        late.arrive()
    expect(side).to_have_attribute("data-item", wanted)
    page.keyboard.press("Escape")
    cells.nth(3).focus()


CONTRACT = """# Lease of a tower crane

This contract is made on 14 March 2024 between Brenner Hoists GmbH, represented by Ada Brenner, and a
builder.

The lessee must pay a rent of 4,250 EUR per month. The lessor shall inspect the crane every 90 days.
"""


def test_a_contract_is_answered_offline_with_quotes_and_downloads(place: Place, open_browser: OpenBrowser) -> None:
    member = open_browser(place.sign_up())
    document = member.add("lease.md", CONTRACT)
    page = member.open(f"/analyses/new?document={document}")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#an-status .chip", has_text="Offline: passages only")).to_be_visible()
    for title, words in (
        ("People and organisations", "Ada Brenner"),
        ("Money", "4,250 EUR"),
        ("Dates", "14 March 2024"),
    ):
        answer = page.locator(".answer", has=page.get_by_role("heading", name=title))
        expect(answer.locator(".said")).to_contain_text(words)
        expect(answer).to_contain_text("Answered by offline rules, without a model")
    check_axe(page)
    picture(page, "analysis-contract")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert "4,250 EUR" in download.value.path().read_text(encoding="utf-8-sig")


def test_a_running_analysis_shows_how_it_is_going_and_stops_without_alarm(
    place: Place, open_browser: OpenBrowser
) -> None:
    member = open_browser(place.sign_up())
    document = member.add("harbour.pdf", write_book(120))
    analysis = member.ask("POST", "/analyses", json={"document_id": document})["id"]
    # No further item gets a slot, so that it runs until it is stopped. Some may have started already.
    place.database.run(HOLD, f"analysis:{analysis}")
    page = member.open(f"/analyses/{analysis}")
    run = page.locator("#an-run")
    expect(run).to_contain_text("Answering")
    for word in ("Running for", "Last heartbeat", "Time left", "Retries", "Errors"):
        expect(run).to_contain_text(word)
    check_axe(page)
    picture(page, "analysis-running")
    item = page.locator("#dock .dock-item", has_text="harbour")
    expect(item).to_contain_text("Answering")
    expect(item).to_contain_text("last heartbeat")
    page.locator("#an-status").get_by_role("button", name="Stop").click()
    expect(page.locator("#an-status .chip", has_text="Stopped by you")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert page.locator(".cell.bad").count() == 0
    picture(page, "analysis-stopped")
    place.database.run("UPDATE caps SET taken = taken - 1000 WHERE key = %s", f"analysis:{analysis}")
    member.open("/notifications")
    expect(member.page.get_by_text("failed")).to_have_count(0)


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
