"""Prompts and weights in the settings: written, rewritten, brought back, retired; and the new order at once."""

from __future__ import annotations

import os

from playwright.sync_api import Page, expect

from tests.support.browser import PHONE, Visitor, check_axe, no_sideways_scroll, until


def look_at(page: Page, name: str, *, dark_too: bool = False) -> None:
    """As everybody sees it, also on a phone."""
    check_axe(page, dark_too=dark_too)
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
    size = page.viewport_size
    assert size
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    no_sideways_scroll(page)
    if folder:
        page.screenshot(path=f"{folder}/{name}-phone.png", full_page=True)
    page.set_viewport_size(size)


def test_a_prompt_is_written_rewritten_brought_back_and_retired(member: Visitor) -> None:
    page = member.open("/settings/prompts")
    page.get_by_role("link", name="New prompt").click()
    page.get_by_label("Title").fill("Payments")
    page.get_by_label("Prompt", exact=True).fill("Who pays what?")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("version 1")).to_be_visible()
    page.get_by_label("Prompt", exact=True).fill("Who pays what, and until when?")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("version 2")).to_be_visible()
    page.get_by_text("Version 1", exact=True).click()
    look_at(page, "prompt")
    page.get_by_role("button", name="Use version 1 again").click()
    expect(page.get_by_label("Prompt", exact=True)).to_have_value("Who pays what?")
    expect(page.get_by_text("version 3")).to_be_visible()
    member.add("contract.txt", "The tenant pays the rent until the third of each month.")
    page.goto("/analyses/new")
    expect(page.get_by_role("checkbox", name="Payments")).to_be_checked()
    page.goto("/settings/prompts")
    page.get_by_role("button", name="Retire Payments").click()
    expect(page.get_by_role("heading", name="Retired and one-time prompts")).to_be_visible()
    look_at(page, "prompts")
    page.goto("/analyses/new")
    page.get_by_text("Retired and one-time prompts").click()
    expect(page.get_by_role("checkbox", name="Payments")).not_to_be_checked()


def test_releasing_a_slider_reorders_the_connections(member: Visitor) -> None:
    page = member.open("/settings/weights")
    slider = page.get_by_label("Bridges")
    slider.focus()
    page.keyboard.press("End")
    until(page, lambda: member.ask("GET", "/connections/weights")["thematic_bridge"] == 100, "it is kept")
    expect(page.locator("output[for=thematic_bridge]")).to_have_text("100")
    page.reload()
    expect(slider).to_have_value("100")
    look_at(page, "weights")
    page.get_by_role("button", name="Reset to defaults").click()
    expect(slider).to_have_value("40")
