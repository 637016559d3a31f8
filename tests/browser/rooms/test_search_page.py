"""The search page behind its first hits, and in older versions."""

from __future__ import annotations

import os
import re

from playwright.sync_api import expect

from tests.browser.rooms.work import fill_map
from tests.support.browser import PHONE, Visitor, check_axe, no_sideways_scroll


def test_more_is_shown_behind_the_first_hits_and_older_versions_where_they_are_wanted(member: Visitor) -> None:
    fill_map(member, 70)
    page = member.open("/search?q=board&mode=text")
    titles = page.locator(".group h2 a")
    first = set(titles.all_inner_texts())
    page.get_by_role("link", name="Show more").click()
    expect(page.get_by_text("30 passages in 30 documents on this page")).to_be_visible()
    second = set(titles.all_inner_texts())
    assert (len(first), len(second)) == (30, 30)
    assert not first & second
    check_axe(page)
    old = member.add("tides.txt", "The tide table of the lighthouse says four metres.")
    member.add("tides.txt", "The tide table of the lighthouse says five metres.", version_of=old)
    page.goto("/search?q=lighthouse&mode=text")
    expect(titles).to_have_count(1)
    page.get_by_text("Filters").click()
    page.get_by_label("Include older versions").check()
    page.get_by_role("button", name="Search", exact=True).click()
    expect(titles).to_have_count(2)
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    no_sideways_scroll(page)
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/search-phone.png")


def test_a_misspelled_search_leads_to_the_sentence_by_its_suggestion(member: Visitor) -> None:
    member.add("lease.txt", "The notice period of the lease is ninety days. The deposit is returned later.")
    picture = member.add("zanzibar_ledger_0042.zip", b"PK\x05\x06" + bytes(18))
    page = member.open("/search?q=notce+peroid")
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    check_axe(page)
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/search-nothing.png")
    page.get_by_role("link", name="notice period").click()
    expect(page.locator(".hit .snippet")).to_contain_text("The notice period of the lease is ninety days.")
    expect(page.locator(".hit .why")).to_have_text(re.compile("Matches by words"))
    check_axe(page)
    if folder:
        page.screenshot(path=f"{folder}/search-found.png")
    page.goto("/search?q=zanzibar+ledger")
    expect(page.locator(".hit .why")).to_have_text("Matches the file name “zanzibar_ledger_0042.zip”")
    if folder:
        page.screenshot(path=f"{folder}/search-name.png")
    page.locator(".hit").click()
    page.wait_for_url(f"**/documents/{picture}")
