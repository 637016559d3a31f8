"""Conversions from a page: PDFs in, values beside their page, one put right, XML out, and mappings of one's own."""

from __future__ import annotations

import json
import os
from pathlib import Path

from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import OpenBrowser
from tests.support.browser import PHONE, Place, Visitor, check_axe, no_sideways_scroll, until
from tests.support.pdf import Pdf, Words
from tests.support.processes import wait_until

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
    expect(asked).to_contain_text("A model was asked for the values that the rules did not find: total, buyer.")
    expect(asked).to_contain_text("Model: gemini:gemini-2.5-flash.")
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


def test_documents_of_the_library_are_converted_and_put_right_without_a_script(
    place: Place, open_browser: OpenBrowser
) -> None:
    member = open_browser(place.sign_up(), scripts=False)
    ids = [member.upload(f"bill-{number}.pdf", doubtful(number)) for number in range(3)]
    for document in ids:
        member.wait_for(document)
    page = member.open(f"/documents/{ids[0]}")
    page.locator("header").get_by_role("link", name="Convert").first.click()
    page.get_by_label("Mapping").select_option("invoice_v1")
    look(page, "choice")
    page.get_by_role("button", name="Convert").click()
    wait_until(lambda: bool(member.ask("GET", "/conversions?status=needs_review")["items"]), "it is converted")
    page.reload()
    failed = page.locator(".cv-checks li", has_text="net + tax")
    expect(failed.first).to_contain_text("Failed")
    failed.first.get_by_role("button", name="The values are correct").click()
    expect(page.locator(".cv-checks li", has_text="net + tax").first).to_contain_text("Failed, accepted by a person")
    page.get_by_text("Add a row").click()
    page.locator("#lines-description").fill("Tea")
    page.locator("#lines-amount").fill("140.00")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".cv-table tbody tr")).to_contain_text(["Tea"])
    page.get_by_text("Add a row").click()
    page.locator("#lines-description").fill("Cake")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Move row 1 down").click()
    expect(page.locator(".cv-table tbody tr")).to_contain_text(["Cake", "Tea"])
    page.get_by_role("button", name="Remove row 2").click()
    page.get_by_role("button", name="Remove row 1").click()
    expect(page.locator(".cv-table")).to_have_count(0)
    page.goto(f"{page.url.split('#')[0]}?field=invoice_number")
    page.get_by_label("Invoice number").fill("77-A")
    page.get_by_label("Page", exact=True).fill("1")
    page.locator(".correct .primary").click()
    expect(page.locator("#field")).to_contain_text("Confirmed by ")
    look(page, "confirmed")
    page.get_by_role("button", name="Restore 70").click()
    expect(page.get_by_label("Invoice number")).to_have_value("70")
    expect(page.locator("#field")).not_to_contain_text("Confirmed by ")
    member.open("/library")
    page.get_by_role("link", name="Convert all documents in this list").click()
    expect(page.locator(".page-head")).to_contain_text("3 documents")
    page.get_by_label("Mapping").select_option("invoice_v1")
    page.get_by_role("button", name="Convert").click()
    batch = page.url.rpartition("=")[2]
    done = f"/conversion-batches/{batch}"
    wait_until(lambda: member.ask("GET", done)["completed_at"] is not None, "the batch is done")
    page.reload()
    expect(page.locator(".cv-batch")).to_contain_text("2 of 2 converted · 2 need review · 1 already converted")
    doubtful_ones = page.get_by_role("region", name="Needs review")
    expect(doubtful_ones.locator(".conversion")).to_have_count(2)
    look(page, "batch")
    member.open("/conversions")
    expect(page.get_by_role("heading", name="Needs review")).to_be_visible()
    expect(page.locator(".conversion", has_text="bill-1.pdf").get_by_role("link").first).to_contain_text("Invoice 71")
    page.locator(".conversion", has_text="bill-1.pdf").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".conversion", has_text="bill-1.pdf")).to_have_count(0)
    assert {one["id"] for one in member.documents()} == set(ids)


def doubtful(number: int) -> bytes:
    """The amounts do not add up."""
    lines = (f"Invoice 7{number}", "Date 03/04/2021", "Net 100.00", "VAT 20.00", "Total 140.00", "Amount 190.00")
    return Pdf([[Words(line, 72, 100 + 20 * row) for row, line in enumerate(lines)]]).write()


def test_a_person_points_at_the_right_value(place: Place, open_browser: OpenBrowser) -> None:
    member = open_browser(place.sign_up())
    document = member.upload("bill.pdf", doubtful(8))
    member.wait_for(document)
    made = member.ask("POST", f"/documents/{document}/convert", json={"mapping": "invoice_v1"})["id"]
    path = f"/conversions/{made}"
    wait_until(lambda: member.ask("GET", path)["status"] == "needs_review", "it is converted")
    page = member.open(f"{path}?field=total")
    page.get_by_role("button", name="Select on page").click()
    sheet = page.locator(".cv-leaf img").bounding_box()
    assert sheet
    scale = sheet["width"] / 612
    page.mouse.click(sheet["x"] + 120 * scale, sheet["y"] + (100 + 20 * 5 - 4) * scale)
    expect(page.locator("#value")).to_have_value("190.00")
    expect(page.locator(".boxes .pointed")).to_be_visible()
    look(page, "pointed")
    page.get_by_role("button", name="Accept").click()
    expect(page.locator("#field")).to_contain_text("On page 1: 190.00")
    total = next(one for one in member.ask("GET", path)["values"] if one["name"] == "total")
    assert (total["value"], total["quote"], total["status"], total["page"]) == ("190.00", "190.00", "confirmed", 1)
    check_axe(page)
