"""Highlights in a browser: select, mark, note, find the passage again; by keyboard, on a phone, without scripts."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenBrowser
from tests.support.browser import PHONE, Place, Program, check_axe, no_sideways_scroll

QUOTE = "Either party may end the lease with a notice of ninety days."
TEXT = f"""# Crane lease

The lease of the **tower crane** at [Quarry Lane](https://example.org) begins in April. {QUOTE}

The fee is due.

The deposit is 12,500 EUR. The fee is due.
"""
SELECT = """([first, last, nth]) => {
  const walker = document.createTreeWalker(document.querySelector("#leaves"), NodeFilter.SHOW_TEXT);
  const places = (words) => {
    const found = [];
    walker.currentNode = walker.root;
    while (walker.nextNode()) {
      const at = walker.currentNode.data.indexOf(words);
      if (at >= 0) found.push([walker.currentNode, at]);
    }
    return found;
  };
  const [from, begin] = places(first).at(nth);
  const [to, end] = places(last).at(nth);
  getSelection().setBaseAndExtent(from, begin, to, end + last.length);
}"""


def add(place: Place) -> tuple[str, str]:
    session = place.sign_up()
    owner = Program(place, session)
    document = owner.add("lease.md", TEXT)
    owner.end()
    return session, document


def select(page: Page, first: str, last: str, nth: int = 0) -> None:
    page.evaluate(SELECT, [first, last, nth])
    expect(page.get_by_role("toolbar")).to_be_visible()


def test_selected_text_is_highlighted_noted_and_still_marked_after_a_reload(
    place: Place, open_browser: OpenBrowser
) -> None:
    session, document = add(place)
    page = open_browser(session).open(f"/documents/{document}")
    select(page, "tower crane", "begins in April.")
    page.get_by_role("button", name="Highlight in green").click()
    marks = page.locator("#leaves mark.green")
    expect(marks).to_have_text(["tower crane", "at", "Quarry Lane", "begins in April."])
    expect(page.get_by_role("toolbar")).to_be_hidden()
    select(page, "Either party", "ninety days.")
    page.keyboard.press("Shift+H")
    note = page.locator("#highlights textarea:focus")
    expect(note).to_be_visible()
    note.fill("ask Tomas")
    page.locator("details[open]").get_by_role("button", name="Save").click()
    expect(page.locator("#leaves mark.noted")).to_have_text(QUOTE)
    expect(page.locator("#leaves mark.noted")).to_have_attribute("title", "ask Tomas")
    select(page, "The fee is due.", "The fee is due.", -1)
    page.keyboard.press("h")
    expect(page.locator("[data-highlight-count]")).to_have_text("3")
    page.reload()
    expect(page.locator("#leaves mark[data-mark]")).to_have_count(6)
    expect(page.locator("p", has_text="12,500").locator("mark")).to_have_text("The fee is due.")
    expect(page.locator("[data-highlight-count]")).to_have_text("3")
    page.locator("#leaves mark.noted").click()
    expect(page.locator("#highlights")).to_be_visible()
    check_axe(page)
    page.locator("[data-highlight]", has_text="ask Tomas").get_by_text("Edit note").click()
    page.locator("details[open]").get_by_role("button", name="Delete").click()
    expect(page.locator("#leaves mark.noted")).to_have_count(0)
    expect(page.locator("#leaves")).to_contain_text(QUOTE)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#leaves mark.noted")).to_have_attribute("title", "ask Tomas")


def test_highlights_are_added_changed_and_deleted_without_scripts(place: Place, open_browser: OpenBrowser) -> None:
    session, document = add(place)
    page = open_browser(session, scripts=False).open(f"/documents/{document}?panel=highlights")
    page.get_by_text("Add a highlight").click()
    page.get_by_label("Quote").fill(QUOTE)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page).to_have_url(re.compile(r"panel=highlights#c-"))
    expect(page.locator("#highlights blockquote")).to_have_text(QUOTE)
    page.get_by_text("Add note").click()
    page.locator("[data-highlight] textarea").fill("ask Tomas")
    page.locator("[data-highlight]").get_by_role("button", name="Save").click()
    expect(page.locator("#highlights .why")).to_have_text("ask Tomas")
    page.get_by_text("Edit note").click()
    page.locator("[data-highlight]").get_by_role("button", name="Delete").click()
    expect(page.locator("#highlights")).to_contain_text("No highlights yet.")


def test_a_highlight_deleted_on_the_page_of_all_highlights_is_restored(place: Place, open_browser: OpenBrowser) -> None:
    session, document = add(place)
    member = open_browser(session)
    made = {"quote": QUOTE, "colour": "green", "note": "ask Tomas"}
    member.ask("POST", f"/documents/{document}/highlights", json=made)
    page = member.open("/highlights")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text(QUOTE)).to_be_hidden()
    assert member.ask("GET", "/highlights")["items"] == []
    page.keyboard.press("u")
    expect(page.get_by_text(QUOTE)).to_be_visible()
    (restored,) = member.ask("GET", "/highlights")["items"]
    assert {name: restored[name] for name in made} == made
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text(QUOTE)).to_be_hidden()
    assert member.ask("GET", "/highlights")["items"] == []


def test_the_toolbar_and_the_panel_fit_on_a_phone(place: Place, open_browser: OpenBrowser) -> None:
    session, document = add(place)
    page = open_browser(session, size=PHONE).open(f"/documents/{document}")
    select(page, "Either party", "ninety days.")
    box = page.get_by_role("toolbar").bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE[0]
    page.get_by_role("button", name="Note").click()
    expect(page.locator("#highlights textarea:focus")).to_be_visible()
    no_sideways_scroll(page)
    check_axe(page)


def test_the_toolbar_is_used_by_keyboard_and_copies_with_the_source(place: Place, open_browser: OpenBrowser) -> None:
    session, document = add(place)
    member = open_browser(session)
    page = member.open(f"/documents/{document}")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    select(page, "Either party", "ninety days.")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Highlight in yellow")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("Copied with its source.")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert re.fullmatch(rf"“{re.escape(QUOTE)}”\nCrane lease\. http://\S+/documents/{document}\?c=\S+#c-\S+", copied)


def test_a_lost_highlight_is_shown_with_its_quote(place: Place, open_browser: OpenBrowser) -> None:
    session, document = add(place)
    with place.client(session) as api:
        api.post(f"/api/v1/documents/{document}/highlights", json={"quote": QUOTE}).raise_for_status()
        made = api.get(f"/api/v1/documents/{document}/highlights").json()["items"][0]["id"]
    lose = "UPDATE highlights SET lost = true, char_start = NULL, char_end = NULL WHERE id = %s"
    place.database.run(lose, made)
    page = open_browser(session).open(f"/documents/{document}?panel=highlights")
    expect(page.locator("#highlights blockquote")).to_have_text(QUOTE)
    expect(page.locator("#highlights .warn")).to_contain_text("Lost")
    expect(page.locator("#leaves mark")).to_have_count(0)
    page.goto(f"{place.address}/highlights")
    expect(page.locator(".highlight")).to_contain_text("Lost")
    check_axe(page)
