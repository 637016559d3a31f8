"""Connections beside the text: found while one looks, judged by keyboard, and where they lead."""

from __future__ import annotations

import os

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenBrowser
from tests.support.browser import PHONE, Place, check_axe, no_sideways_scroll, until

SAFE = "The harbour bridge carries forty thousand cars. Engineers consider the bridge safe. " * 3
BREAD = "Feed the starter with flour and water, let the dough rest overnight, and bake the loaf with steam. " * 3
FAILED = """
    UPDATE jobs SET status = 'failed', admitted = false, failed_at = clock_timestamp(), error_code = 'TIMED_OUT',
                    error_message = 'Timed out.'
    WHERE document_id = %s AND kind = 'detect_connections' AND status = 'queued'"""
UNSAFE = "The harbour bridge carries forty thousand cars. Engineers do not consider the bridge safe. " * 3


def test_a_contradiction_is_shown_with_both_quotes_dismissed_by_keyboard_and_brought_back(
    place: Place, open_browser: OpenBrowser
) -> None:
    member = open_browser(place.sign_up())
    first, second = member.add("report.md", SAFE), member.add("note.md", UNSAFE)
    page = member.open(f"/documents/{first}?panel=connections")
    until(page, lambda: member.ask("GET", f"/documents/{first}/connections")["items"], "the two were compared")
    page.reload()
    contradiction = page.locator(".connection", has_text="Contradiction")
    expect(contradiction).to_have_count(1)
    expect(contradiction).to_contain_text("Possible")
    expect(contradiction.locator("blockquote")).to_contain_text("do not consider the bridge safe")
    expect(contradiction.locator(".here")).to_contain_text("Engineers consider the bridge safe")
    check_axe(page)
    no_sideways_scroll(page)
    # The margin beside the passage says how many, and shows just these.
    page.get_by_role("link", name="1 contradiction in other documents").click()
    expect(page.locator(".of-passage")).to_contain_text("for this passage")
    expect(contradiction).to_have_count(1)
    check_axe(page)
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/margin.png")
    page.get_by_role("link", name="Whole document", exact=True).click()
    expect(page.locator(".of-passage")).to_have_count(0)
    contradiction.get_by_role("button", name="Not a contradiction").focus()
    page.keyboard.press("Enter")
    expect(contradiction).to_have_count(0)
    expect(page.locator("#connections :focus")).to_have_count(1)  # a keyboard goes on where it was
    page.get_by_text("Dismissed, 1").click()
    page.locator(".dismissed").get_by_role("button", name="Undo").click()
    expect(contradiction).to_have_count(1)
    contradiction.locator("h3 a").click()
    page.wait_for_url(f"**/documents/{second}?c=*")


def test_no_connections_is_shown_only_after_the_comparison_and_a_failed_one_can_be_retried(
    place: Place, open_browser: OpenBrowser
) -> None:
    member = open_browser(place.sign_up())
    document = member.add("bread.md", BREAD)
    page = member.open(f"/documents/{document}?panel=connections")
    panel = page.locator("#connections")
    expect(panel).to_contain_text("No connections. No other document in your library")
    with place.workers_held():
        member.ask("POST", "/connections/rebuild", json={"document_ids": [document]})
        page.reload()
        expect(panel).to_contain_text("This document is waiting to be compared with your other documents")
        expect(panel).not_to_contain_text("No connections")
        expect(page.locator(".dock-item a")).to_have_attribute("href", f"/documents/{document}?panel=connections")
        check_axe(page)
        picture(page, "comparison-waits")
        place.database.run(FAILED, document)
        expect(panel).to_contain_text("The comparison failed: Timed out (TIMED_OUT).")
        check_axe(page)
        no_sideways_scroll(page)
        picture(page, "comparison-failed")
        panel.get_by_role("button", name="Try again").focus()
        page.keyboard.press("Enter")
        expect(panel).to_contain_text("waiting to be compared")
        history = member.open(f"/documents/{document}/history")
        expect(history.get_by_role("cell", name="Comparison failed", exact=True)).to_be_visible()
        expect(history.get_by_role("cell", name="Comparison", exact=True)).to_have_count(3)
        picture(history, "comparison-history")
        member.open("/connections")
        expect(page.get_by_role("heading", name="Documents are being compared")).to_be_visible()
        check_axe(page)
        picture(page, "comparison-map")
        member.open(f"/documents/{document}?panel=connections")
        expect(panel).to_contain_text("waiting to be compared")
    expect(panel).to_contain_text("No connections. No other document in your library")


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


def test_the_description_of_a_passage_and_related_documents_are_next_to_the_text(
    place: Place, open_browser: OpenBrowser
) -> None:
    member = open_browser(place.sign_up())
    bog = "# How a bog keeps its rain\n\nSphagnum moss holds much water. Drained bogs lose their carbon."
    first = member.add("bog.md", bog)
    member.add("mire.md", bog.replace("How a bog keeps its rain", "Rain in the mire"))
    page = member.open(f"/documents/{first}")
    page.get_by_role("link", name="About this passage").click()
    passage = page.get_by_role("region", name="This passage")
    for word in ("Themes", "Concepts", "Tone", "Importance"):
        expect(passage).to_contain_text(word)
    check_axe(page)
    no_sideways_scroll(page)
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/passage.png")
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    no_sideways_scroll(page)
    if folder:
        page.screenshot(path=f"{folder}/passage-phone.png")
    page.get_by_role("link", name="Rain in the mire").first.click()
    expect(page.get_by_role("heading", name="Rain in the mire", level=1)).to_be_visible()
