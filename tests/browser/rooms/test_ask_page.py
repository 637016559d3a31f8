"""The ask page is a conversation: questions and answers stay on it, and follow-up questions are understood."""

from __future__ import annotations

import os
import re

from playwright.sync_api import Locator, Page, expect

from octavo.search.ask import NOTHING
from tests.support.browser import PHONE, Visitor, check_axe, no_sideways_scroll
from tests.support.pdf import Pdf, Words

WAREHOUSE = (
    "The warehouse in Tallinn stood empty for nine years. Several firms looked at the warehouse in Tallinn and asked "
    "what it would cost. In May 2021 Maarja Kask bought it for 2,400,000 euros. It is a bakery now."
)
LEASES = {
    "draft.txt": "This draft covers the crane. Either party may end the lease with a notice period of 30 days.",
    "mail.txt": "I read the lease of the crane. Either party may end the lease with a notice period of 90 days.",
}


def last_turn(page: Page) -> Locator:
    return page.locator(".turn").last


def ask(page: Page, question: str, name: str) -> Locator:
    page.locator("#question").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()
    turn = last_turn(page)
    expect(turn.locator(".asked")).to_have_text(question)
    expect(turn).to_have_attribute("data-turn", re.compile(".+"))
    check_axe(page)
    picture(page, name)
    return turn


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/ask-{name}.png", full_page=True)


def test_the_answer_is_shown_first_and_marked_in_its_quote(member: Visitor) -> None:
    member.add("warehouse.txt", WAREHOUSE)
    for name, text in LEASES.items():
        member.add(name, text)
    page = member.open("/ask")
    picture(page, "empty")
    turn = ask(page, "Who bought the warehouse in Tallinn?", "answer")
    expect(turn.locator(".said .short")).to_have_text("Maarja Kask")
    expect(turn.locator(".said p")).to_have_count(1)
    expect(turn.locator(".sources li").first).to_contain_text("In May 2021 Maarja Kask bought it for 2,400,000 euros.")
    expect(turn.locator(".sources mark").first).to_have_text("Maarja Kask")
    expect(turn).to_contain_text("Quotes found offline. Set up a model for written answers.")
    turn = ask(page, "What is the notice period of the crane lease?", "conflict")
    expect(turn.locator(".said p").nth(1)).to_contain_text("Your documents disagree: “")
    expect(turn.locator(".sources li")).to_have_count(2)
    turn = ask(page, "Which documents mention the crane?", "list")
    expect(turn.locator(".said p")).to_have_text(["2 documents contain these words:"])
    expect(turn.locator(".sources li")).to_have_count(2)
    turn = ask(page, "What is the capital of Mongolia?", "nothing")
    expect(turn.locator(".said")).to_have_text(NOTHING)
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    ask(page, "Who bought the warehouse in Tallinn?", "phone")
    no_sideways_scroll(page)


def test_a_thread_has_an_address_and_goes_on_after_a_reload(member: Visitor) -> None:
    contract = "The lease of the tower crane begins on 1 April 2024. The deposit for the crane is 12,500 EUR."
    member.add("crane.pdf", Pdf([[Words("Crane lease", top=100, size=20), Words(contract, top=140, size=9)]]).write())
    page = member.open("/ask")
    ask(page, "When does the crane lease begin?", "first")
    expect(page).to_have_url(re.compile(r"/ask/[0-9a-f-]{36}$"))
    expect(page.locator(".past")).to_have_text("When does the crane lease begin?")
    expect(page.get_by_role("link", name="New thread")).to_be_visible()
    address = page.url
    page.reload()
    expect(page.locator(".turn .short")).to_have_text("1 April 2024")
    turn = ask(page, "And how much is the deposit?", "follow-up")
    assert page.url == address
    expect(turn.locator(".understood")).to_have_text("Understood as: How much is the deposit of the crane lease?")
    expect(turn.locator(".short")).to_have_text("12,500 EUR")
    leaf = turn.locator("img.leaf").first
    assert leaf.evaluate("img => img.decode().then(() => img.naturalWidth)") > 0
    expect(page.locator("form[data-again]")).to_have_count(1)
    page.get_by_role("button", name="Answer again").click()
    expect(last_turn(page).locator(".short")).to_have_text("12,500 EUR")
    expect(page.locator(".turn")).to_have_count(2)
    page.emulate_media(color_scheme="dark")
    page.reload()
    check_axe(page)
    picture(page, "dark")
    page.goto("/ask")
    page.get_by_role("button", name="Delete thread When does the crane lease begin?").click()
    check_axe(page)
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".past")).to_have_count(0)
    member.watch.expect("404")
    page.goto(address)
    expect(page.locator("h1")).not_to_have_text("Ask")


def test_a_question_in_the_address_is_asked(member: Visitor) -> None:
    member.add("warehouse.txt", WAREHOUSE)
    page = member.open("/ask?q=Who+bought+the+warehouse+in+Tallinn%3F")
    expect(last_turn(page).locator(".short")).to_have_text("Maarja Kask")
    expect(page).to_have_url(re.compile(r"/ask/[0-9a-f-]{36}$"))


def test_an_answer_can_be_stopped(member: Visitor) -> None:
    member.add("warehouse.txt", WAREHOUSE)
    page = member.open("/ask")
    page.route("**/api/v1/ask", lambda _route: None)
    page.locator("#question").fill("Who bought the warehouse?")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(last_turn(page)).to_have_attribute("aria-busy", "true")
    page.get_by_role("button", name="Stop").click()
    expect(last_turn(page)).to_contain_text("Stopped. Ask again.")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    page.unroute("**/api/v1/ask")
    ask(page, "Who bought the warehouse in Tallinn?", "after-stop")
    expect(last_turn(page).locator(".short")).to_have_text("Maarja Kask")


def test_the_models_page_says_how_to_set_up_a_model(member: Visitor) -> None:
    page = member.open("/settings/models")
    expect(page.locator("#content")).to_contain_text("No model is set up.")
    check_axe(page)
    picture(page, "models")
