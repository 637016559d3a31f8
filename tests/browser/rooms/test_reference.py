"""The API reference in a browser: with and without scripts, in the dark and on a phone; and the secret of a webhook."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenBrowser
from tests.browser.rooms.test_prompts import look_at
from tests.support.browser import Place, Visitor, check_axe, no_sideways_scroll

PHONE = (390, 844)
ATTEMPT = """
    INSERT INTO deliveries (id, subscriber_id, job_id, attempt, event_id, process_id, type, status, answer, seconds)
    SELECT %s, %s, process_id, 1, id, process_id, 'document.completed', 'delivered', 200, 0.1 FROM events LIMIT 1"""


def read(visitor: Visitor, place: str = "") -> Page:
    """Without a session: none is opened for readers."""
    assert visitor.goto(f"/api/docs{place}").ok
    return visitor.page


def test_the_filter_leaves_what_matches(open_browser: OpenBrowser) -> None:
    page = read(open_browser())
    expect(page.get_by_role("heading", name="API reference")).to_be_visible()
    page.get_by_label("Filter the operations").fill("post finalize_upload")
    expect(page.locator("#finalize_upload")).to_be_visible()
    expect(page.locator("#list_documents")).to_be_hidden()
    expect(page.locator("#group-webhooks")).to_be_hidden()
    expect(page.locator("#api-found")).to_have_text("1 found")
    page.get_by_label("Filter the operations").fill("")
    expect(page.locator("#list_documents")).to_be_visible()


def test_a_link_opens_its_entry(open_browser: OpenBrowser) -> None:
    page = read(open_browser(), "#add_prompt")
    expect(page.locator("#add_prompt").get_by_text("List the departures.", exact=False).first).to_be_attached()
    expect(page.locator("#add_prompt").get_by_role("heading", name="Answers")).to_be_visible()
    page.locator("#add_prompt").get_by_role("link", name="Prompt", exact=True).click()
    expect(page.locator("#type-Prompt").get_by_text("execution_order")).to_be_visible()


def test_everybody_can_read_it(open_browser: OpenBrowser) -> None:
    page = read(open_browser(size=PHONE), "#add_document")
    no_sideways_scroll(page)
    page = read(open_browser(scripts=False))
    expect(page.get_by_label("Filter the operations")).to_be_hidden()
    page.locator("#add_prompt summary").first.click()
    expect(page.locator("#add_prompt").get_by_role("heading", name="Body")).to_be_visible()


# The kinds of entries and of types are all in these; axe takes half a minute for the 28,000 elements of all groups.
KEEP_SOME = """() => {
  const kept = new Set(["group-prompts"]);
  for (const one of document.querySelectorAll("[id^=group-]")) if (!kept.has(one.id)) one.remove();
  [...document.querySelectorAll("[id^=type-]")].slice(10).forEach((one) => one.remove());
}"""


def test_it_is_accessible(open_browser: OpenBrowser) -> None:
    page = read(open_browser(), "#add_prompt")
    page.evaluate(KEEP_SOME)
    check_axe(page, dark_too=True)


@pytest.mark.long
def test_all_of_it_is_accessible(open_browser: OpenBrowser) -> None:
    check_axe(read(open_browser(), "#add_prompt"), dark_too=True)


def test_a_new_secret_is_shown_once(place: Place, member: Visitor) -> None:
    hook = member.ask("POST", "/webhooks", json={"address": "https://example.org/hook"})["id"]
    place.database.run(ATTEMPT, uuid4(), hook)
    page = member.open(f"/settings/webhooks/{hook}")
    page.get_by_role("button", name="New secret").click()
    expect(page.get_by_label("Secret", exact=True)).to_have_value(re.compile("^whsec_"))
    look_at(page, "webhook")
    page.goto(f"/settings/webhooks/{hook}")
    expect(page.locator("#new-secret")).to_have_count(0)
    page.get_by_role("button", name="Send this event again").click()
    expect(page.get_by_role("status").filter(has_text="Sent again")).to_be_visible()
