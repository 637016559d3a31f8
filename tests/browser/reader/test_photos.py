"""A photo without text in the reader: the picture itself, neutral, with its JPEG copy and without actions on text."""

from __future__ import annotations

from PIL import Image
from playwright.sync_api import expect

from tests.browser.rooms.test_prompts import look_at
from tests.support.browser import Visitor
from tests.support.scans import saved


def test_a_photo_is_shown_as_a_picture_and_can_be_downloaded_as_jpeg(member: Visitor) -> None:
    photo = member.add("IMG_0001.png", saved(Image.new("RGB", (900, 600), "skyblue"), "PNG"))
    page = member.open("/library")
    row = page.locator(f"#d-{photo}")
    expect(row.locator(".chip")).to_have_text("Picture")
    expect(row.locator(".verb :is(a, button)")).to_have_count(0)
    expect(page.locator('[data-tab="needs_you"] .count')).to_have_text("0")
    page = member.open(f"/documents/{photo}")
    expect(page.locator("#text").get_by_role("img", name="Page 1")).to_be_visible()
    expect(page.get_by_text("Summary made offline")).to_have_count(0)
    expect(page.get_by_role("link", name="Analyse", exact=True)).to_have_count(0)
    page.locator("details.downloads summary").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="JPEG copy").click()
    assert download.value.suggested_filename == "IMG_0001.jpg"
    page.keyboard.press("Escape")
    look_at(page, "photo")
