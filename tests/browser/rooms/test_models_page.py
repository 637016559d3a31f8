"""The Models page and other pages for people: readable for everyone, and they work without scripts."""

from __future__ import annotations

import os

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenBrowser
from tests.browser.rooms.test_prompts import look_at as look_at_in_light
from tests.support.browser import Place, Visitor

SERVER = "http://127.0.0.1:11434/v1"  # nobody listens there


def look_at(page: Page, name: str) -> None:
    """In light, on a phone, and in dark."""
    look_at_in_light(page, name, dark_too=True)
    if folder := os.environ.get("SCREENSHOTS"):
        page.emulate_media(color_scheme="dark")
        page.screenshot(path=f"{folder}/{name}-dark.png", full_page=True)
        page.emulate_media(color_scheme="light")


def test_a_member_sees_which_models_read_their_documents(member: Visitor) -> None:
    page = member.open("/settings/models")
    expect(page.get_by_text("No model is set up.")).to_be_visible()
    expect(page.get_by_role("button", name="Test and save")).to_have_count(0)
    look_at(page, "models-member")


def test_an_administrator_sets_up_a_provider_without_scripts(place: Place, open_browser: OpenBrowser) -> None:
    admin = open_browser(place.admin(), scripts=False)
    admin.watch.expect("502", "503", "504")
    page = admin.open("/settings/models")
    try:
        set_up(page)
    finally:
        admin.api.delete("/api/v1/models/compatible")


def set_up(page: Page) -> None:
    page.get_by_role("button", name="Look for servers").click()
    expect(page.get_by_text("No model server was found on this machine.")).to_be_visible()
    provider = page.locator("#compatible")
    provider.locator("summary").click()
    provider.get_by_label("Model").fill("qwen3:8b")
    provider.get_by_label("URL").fill(SERVER)
    provider.get_by_role("button", name="Test and save").click()
    expect(provider.get_by_role("alert")).to_contain_text("Nothing was changed.")
    expect(provider.get_by_label("Model")).to_have_value("qwen3:8b")
    provider.get_by_role("button", name="Save without testing").click()
    expect(page.locator(".note.ok")).to_contain_text("Saved.")
    expect(provider.locator(".chip")).to_have_text("Tried first")
    page.get_by_label("Analyses").select_option(label="Offline, without a model")
    page.locator("form[action='/settings/models/tasks']").get_by_role("button", name="Save").click()
    expect(page.get_by_label("Analyses")).to_have_value("local")
    provider.get_by_role("link", name="Remove").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.locator(".note.ok")).to_contain_text("Provider removed.")


def test_the_models_page_is_readable_in_all_its_states(place: Place, admin: Visitor) -> None:
    page = admin.open("/settings/models")
    look_at(page, "models-empty")
    try:
        admin.ask("PUT", "/models/compatible", json={"url": SERVER, "model": "qwen3:8b", "key": "sk-0123456789abcdef"})
        page = admin.open("/settings/models")
        expect(page.get_by_text("ends with cdef")).to_be_visible()
        look_at(page, "models-set")
        admin.watch.expect("502", "503", "504")
        page.locator("#compatible").get_by_role("button", name="Test", exact=True).click()
        expect(page.locator("#compatible").get_by_role("alert")).to_be_visible()
        look_at(page, "models-failed")
    finally:
        admin.api.delete("/api/v1/models/compatible")
    look_at(admin.open("/settings/users"), "users")


def test_an_analysis_offers_its_prompts_a_link_and_deletion(place: Place, open_browser: OpenBrowser) -> None:
    member = open_browser(place.sign_up())
    document = member.add("lease.md", "# Lease\n\nThe lessee must pay a rent of 4,250 EUR per month.\n")
    page = member.open(f"/analyses/new?document={document}")
    look_at(page, "analysis-new")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#an-status .chip", has_text="Offline: passages only")).to_be_visible()
    look_at(page, "analysis-offline")
    page.get_by_role("link", name="Change prompts").click()
    look_at(page, "analysis-prompts")
    for box in page.get_by_role("checkbox").all()[1:]:
        box.uncheck()
    page.get_by_role("button", name="Save and run new prompts").click()
    expect(page.locator("#an-answers .answer")).to_have_count(1)
    page = member.open("/analyses")
    look_at(page, "analyses")
    page.get_by_role("link", name="Delete the analysis of").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Analyse a whole document")).to_be_visible()
    page = member.open(f"/documents/{document}/link")
    page.get_by_role("button", name="Create link").click()
    expect(page.get_by_role("textbox", name="Link")).not_to_have_value("")
    look_at(page, "link")


def test_a_recipient_is_edited_in_the_settings(place: Place, open_browser: OpenBrowser) -> None:
    member = open_browser(place.sign_up())
    hook = member.ask("POST", "/webhooks", json={"address": "https://example.org/hook"})["id"]
    page = member.open(f"/settings/webhooks/{hook}")
    page.locator(".folding summary").click()
    look_at(page, "webhook-edit")
    page.get_by_label("Address").fill("https://example.org/other")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="https://example.org/other")).to_be_visible()
