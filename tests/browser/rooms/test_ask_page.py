"""The ask page shows the answer in a few words, marks it in its quote, and says when there is none."""

from __future__ import annotations

import os

from playwright.sync_api import Page, expect

from octavo.search.ask import NOTHING
from tests.support.browser import PHONE, Visitor, check_axe, no_sideways_scroll

WAREHOUSE = (
    "The warehouse in Tallinn stood empty for nine years. Several firms looked at the warehouse in Tallinn and asked "
    "what it would cost. In May 2021 Maarja Kask bought it for 2,400,000 euros. It is a bakery now."
)
LEASES = {
    "draft.txt": "This draft covers the crane. Either party may end the lease with a notice period of 30 days.",
    "mail.txt": "I read the lease of the crane. Either party may end the lease with a notice period of 90 days.",
}


def ask(page: Page, question: str, name: str) -> None:
    page.get_by_label("Ask your documents").fill(question)
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("#answer")).not_to_have_attribute("aria-busy", "true")
    check_axe(page)
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/ask-{name}.png")


def test_the_answer_is_shown_first_and_marked_in_its_quote(member: Visitor) -> None:
    member.add("warehouse.txt", WAREHOUSE)
    for name, text in LEASES.items():
        member.add(name, text)
    page = member.open("/ask")
    ask(page, "Who bought the warehouse in Tallinn?", "answer")
    expect(page.locator(".said .short")).to_have_text("Maarja Kask")
    expect(page.locator(".said p")).to_have_count(1)
    expect(page.locator(".sources li").first).to_contain_text("In May 2021 Maarja Kask bought it for 2,400,000 euros.")
    expect(page.locator(".sources mark").first).to_have_text("Maarja Kask")
    ask(page, "What is the notice period of the crane lease?", "conflict")
    expect(page.locator(".said p").nth(1)).to_contain_text("Your documents disagree: “")
    expect(page.locator(".sources li")).to_have_count(2)
    ask(page, "Which documents mention the crane?", "list")
    expect(page.locator(".said p").first).to_have_text("2 documents contain these words:")
    ask(page, "What is the capital of Mongolia?", "nothing")
    expect(page.locator(".said")).to_have_text(NOTHING)
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    ask(page, "Who bought the warehouse in Tallinn?", "phone")
    no_sideways_scroll(page)
