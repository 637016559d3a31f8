"""Conversions from a page: PDFs in, values beside their page, one put right, XML out, and mappings of one's own."""

from __future__ import annotations

import json
import os
from pathlib import Path

from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import OpenBrowser
from tests.support.browser import PHONE, Place, Visitor, check_axe, no_sideways_scroll, until
from tests.support.pdf import Pdf, Words

HOSTILE = "<img src=x onerror=alert(1)>.pdf"
NUMBER_LEFT, NUMBER_TOP = 72, 100
FIRST = ("Invoice no: A-17", "Date: 2024-08-15", "Item Quantity Price Amount")
SAID = {"name": "total", "value": "12.50", "quote": "Total: 12.50 EUR"}
MODEL = {
    "task": "extract_fields",
    "fields": ["total", "buyer"],
    "made_by": "gemini:gemini-2.5-flash",
    "said": [SAID],
    "error": None,
}
MINE = "name: mine_v1\nextends: invoice_v1\ntitle: Mine\n"


def two_pages() -> bytes:
    """The number stands on the first page, the total on the second."""
    first = [Words(line, NUMBER_LEFT, NUMBER_TOP + 20 * row) for row, line in enumerate(FIRST)]
    second = [Words("Total: 12.50 EUR", 72, 300), Words("Payable within thirty days without deduction", 72, 330)]
    return Pdf([first, second]).write()


def look(page: Page, name: str) -> None:
    """Pictures for whoever wants to see it."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def open_converted(visitor: Visitor) -> Page:
    """Upload two files, one of which is no PDF, and open the one that is converted; nobody reloads anything."""
    page = visitor.open("/conversions")
    expect(page.get_by_text("No conversions yet")).to_be_visible()
    page.get_by_label("Mapping").select_option("invoice_v1")
    files: list[FilePayload] = [
        {"name": HOSTILE, "mimeType": "application/pdf", "buffer": two_pages()},
        {"name": "notes.pdf", "mimeType": "application/pdf", "buffer": b"plain text"},
    ]
    page.get_by_label("PDFs").set_input_files(files)
    page.get_by_role("button", name="Convert").click()
    refused = page.locator(".conversion", has_text="notes.pdf")
    expect(refused.locator(".chip", has_text="Failed")).to_be_visible()
    expect(refused).to_contain_text("(NOT_PDF)")
    row = page.locator(".conversion", has_text=HOSTILE)
    expect(row.locator(".chip", has_text="Needs review")).to_be_visible()
    expect(row.locator(".sure")).to_contain_text("%")
    check_axe(page)
    look(page, "conversions")
    row.get_by_role("link", name=HOSTILE, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    return page


def test_a_pdf_becomes_values_on_its_pages_and_a_corrected_one_is_in_the_xml(
    place: Place, open_browser: OpenBrowser, tmp_path: Path
) -> None:
    member = open_browser(place.sign_up())
    member.watch.expect("415", "422")
    page = open_converted(member)
    page.wait_for_load_state()
    fields = page.locator(".cv-fields")
    fields.locator("a[data-field=invoice_number]").click()
    mark = page.locator(".boxes .current[data-mark=invoice_number]")
    expect(mark).to_be_visible()
    picture = page.get_by_role("img", name="Page 1")
    until(page, lambda: picture.evaluate("(image) => image.complete && image.naturalWidth > 100"), "it is drawn")
    sheet, box = picture.bounding_box(), mark.bounding_box()
    assert sheet
    assert box
    scale = sheet["width"] / 612
    # The words stand on a line 100 points below the edge, and the number behind its label.
    assert abs(box["y"] + box["height"] - sheet["y"] - (NUMBER_TOP + 2) * scale) < 8
    assert box["x"] > sheet["x"] + (NUMBER_LEFT + 40) * scale
    check_axe(page)
    look(page, "conversion")
    fields.locator("a[data-field=total]").click()
    expect(page.get_by_role("img", name="Page 2")).to_be_visible()
    expect(page.locator(".boxes .current[data-mark=total]")).to_be_visible()
    expect(page.locator("a[data-field=total]")).to_be_focused()
    page.keyboard.press("e")
    page.keyboard.type("a lot")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("is not a valid amount")
    page.get_by_label("Total").fill("99.00")
    page.keyboard.press("Enter")
    expect(page.locator("#cv-head")).to_contain_text("Revision 2")
    expect(page.locator("a[data-field=total]")).to_contain_text("99.00")
    with page.expect_download() as download:
        page.get_by_role("link", name="XML", exact=True).first.click()
    saved = tmp_path / "saved.xml"
    download.value.save_as(saved)
    assert b">99.00<" in saved.read_bytes()
    page.get_by_role("link", name="History").click()
    expect(page.locator(".cv-history li").first).to_contain_text("12.50 99.00")
    expect(page.locator(".cv-history li").first).to_contain_text("@")
    check_axe(page)
    page.locator(".tabs").get_by_role("link", name="XML").click()
    expect(page.locator(".cv-xml")).to_contain_text("99.00")
    address = f"{page.url.split('?')[0]}?field=total"
    told = "UPDATE revisions SET record = jsonb_set(record, '{model}', %s) WHERE conversion_id = %s"
    place.database.run(told, json.dumps(MODEL), page.url.split("?")[0].rsplit("/", 1)[1])
    member.open(address)
    asked = page.get_by_role("region", name="Model")
    expect(asked).to_contain_text("gemini:gemini-2.5-flash was asked for the values the rules missed: total, buyer.")
    expect(asked.get_by_role("listitem")).to_contain_text("Corrected")
    expect(asked).to_contain_text("No answer for buyer.")
    check_axe(page)
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    for path, name in ((address, "one"), ("/conversions", "queue")):
        member.open(path)
        no_sideways_scroll(page)
        look(page, f"phone-{name}")
    stranger = open_browser(place.sign_up())
    stranger.watch.expect("404")
    assert stranger.goto(address).status == 404


def test_a_mapping_is_tried_on_an_earlier_file_and_then_added(place: Place, open_browser: OpenBrowser) -> None:
    member = open_browser(place.sign_up())
    member.watch.expect("422")
    member.open("/conversions")
    headers = {"x-upload-filename": "bill.pdf", "content-type": "application/pdf"}
    member.ask("POST", "/conversions?mapping=receipt_v1", content=two_pages(), headers=headers)
    page = member.open("/settings/mappings")
    text = page.get_by_label("YAML")
    text.fill("name: mine_v1\nfields: {total: {type: money}}")
    page.get_by_label("Try it on").select_option(label="bill.pdf")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("alert")).to_contain_text("unknown type 'money'")
    expect(page.get_by_role("alert")).to_contain_text("BAD_MAPPING")
    text.fill(MINE)
    page.get_by_label("Try it on").select_option(label="bill.pdf")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("heading", name="Values found by mine_v1")).to_be_visible()
    expect(page.get_by_role("row", name="total")).to_contain_text("12.50")
    check_axe(page)
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("Mapping added.")).to_be_visible()
    expect(page.locator(".cv-xml")).to_contain_text("extends: invoice_v1")
    check_axe(page)
    look(page, "mapping")
    member.open("/conversions")
    expect(page.get_by_label("Mapping").locator("option", has_text="Mine")).to_have_count(1)
