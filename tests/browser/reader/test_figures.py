"""Figures in the text and pages that are unsure, as people see them."""

from __future__ import annotations

from uuid import UUID

from PIL import Image, ImageDraw
from playwright.sync_api import expect

from tests.browser.rooms.test_prompts import look_at
from tests.support.browser import Place, Visitor, until
from tests.support.office import epub, page
from tests.support.pdf import Pdf, paragraph
from tests.support.scans import saved

REASON = "Some letters could not be read."


def chart() -> bytes:
    picture = Image.new("RGB", (640, 400), "white")
    pen = ImageDraw.Draw(picture)
    for number, height in enumerate((120, 210, 160, 300, 250)):
        pen.rectangle((60 + 110 * number, 360 - height, 130 + 110 * number, 360), fill="#3b6ea8")
    pen.line((40, 360, 620, 360), fill="black", width=3)
    return saved(picture, "PNG")


def book() -> bytes:
    text = "<h1>Tides</h1><p>The gauge was read every morning.</p><p><img src='gauge.png' alt='Five bars'/></p>"
    text += "<p>Figure 1: Height of the tide on five days</p><p>It rose until Thursday.</p>"
    return epub({"one.xhtml": page(text)}, more={"OEBPS/gauge.png": chart()})


def test_a_figure_is_shown_in_the_text_and_enlarged_on_click(member: Visitor) -> None:
    document = member.add("tides.epub", book())
    shown = member.open(f"/documents/{document}")
    figure = shown.locator("#text .figure img")
    expect(figure).to_have_attribute("alt", "Five bars")
    figure.scroll_into_view_if_needed()
    until(shown, lambda: figure.evaluate("(one) => one.complete && one.naturalWidth > 0"), "it is loaded")
    look_at(shown, "figure")
    figure.click()
    dialog = shown.locator("#figure-dialog")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("img", name="Five bars")).to_be_visible()
    shown.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    row = member.open("/library").locator(f"#d-{document} .picture img")
    until(row.page, lambda: row.evaluate("(one) => one.complete && one.naturalWidth > 0"), "the card shows the figure")
    look_at(row.page, "figure-library")


def test_a_page_that_is_unsure_shows_its_picture_first(member: Visitor, place: Place) -> None:
    document = member.add(
        "unsure.pdf", Pdf([paragraph(["The gauge was read.", "It rose until Thursday."], 120)]).write()
    )
    place.database.run("UPDATE pages SET unsure = %s WHERE document_id = %s", REASON, UUID(document))
    place.database.run("UPDATE documents SET quality = 'partial' WHERE id = %s", UUID(document))
    shown = member.open(f"/documents/{document}")
    expect(shown.locator(".unsure")).to_contain_text(f"The text of this page may be wrong: {REASON}")
    picture, text = shown.locator(".leaf > .page-picture"), shown.locator(".passage").first
    above, below = picture.bounding_box(), text.bounding_box()
    assert above
    assert below
    assert above["y"] < below["y"]
    look_at(shown, "unsure")
    expect(member.open("/library").locator(f"#d-{document}")).to_contain_text(f"Page 1: {REASON}")
    look_at(member.open("/library"), "unsure-library")
