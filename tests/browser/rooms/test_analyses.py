"""Asking a whole document from a page: prompts are picked, the grid fills by itself, and citations show their page."""

from __future__ import annotations

import os

from playwright.sync_api import expect

from tests.browser.conftest import OpenBrowser
from tests.support.analyses import sentence, write_book
from tests.support.browser import PHONE, WORK_MS, Place, check_axe, no_sideways_scroll

ASKED = "What is the harbour fee of pier 117?"


def test_prompts_are_picked_and_answers_show_the_page_that_says_so(place: Place, open_browser: OpenBrowser) -> None:
    member = open_browser(place.sign_up())
    page = member.open("/analyses")
    check_axe(page)
    document = member.add("harbour.pdf", write_book(120))
    page = member.open(f"/analyses/new?document={document}")
    check_axe(page)
    for box in page.get_by_role("checkbox").all()[1:]:
        box.uncheck()
    page.get_by_label("Or ask something of your own").fill(ASKED)
    page.get_by_role("button", name="Start").click()
    # Nobody reloads anything.
    expect(page.locator("#an-status .chip", has_text="Complete")).to_be_visible(timeout=WORK_MS)
    expect(page.locator("#an-grid tbody tr")).to_have_count(2)
    expect(page.locator("#an-grid tbody .chip.ok")).to_have_count(4)
    answer = page.locator(".answer", has_text=ASKED)
    expect(answer.locator(".said")).to_contain_text(sentence(117))
    check_axe(page)
    answer.get_by_role("link", name="p. 117", exact=True).click()
    picture = page.get_by_role("img", name="Page 117 of the document")
    expect(picture).to_be_visible()
    page.wait_for_function("image => image.complete && image.naturalWidth > 100", arg=picture.element_handle())
    check_axe(page)
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/analysis.png", full_page=True)
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    no_sideways_scroll(page)
    if folder:
        page.screenshot(path=f"{folder}/analysis-phone.png", full_page=True)
