"""Acting on many documents: on the selected ones, or on all that match; with undo, and without scripts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenBrowser
from tests.support.browser import PHONE, SESSION_COOKIE, Place, Program, Visitor, check_axe, no_sideways_scroll

MANY = 55


@pytest.fixture(scope="module")
def shelf(place: Place) -> str:
    """The session of somebody with more documents than one page shows, and one that matches no filter.

    What a test changes it undoes, or no other test looks at it.
    """
    owner = Program(place, place.sign_up())
    with place.workers_held():
        for name in ("apart", *(f"note {number}" for number in range(MANY))):
            owner.upload(f"{name}.txt", f"Some words of {name}.")
        session = owner.api.cookies[SESSION_COOKIE]
        owner.end()
    return session


@pytest.fixture
def holder(shelf: str, open_browser: OpenBrowser) -> Visitor:
    return open_browser(shelf)


def in_collection(member: Visitor, name: str) -> int:
    first = member.ask("GET", f"/documents?collection={name}&limit=100")
    return len(first["items"])


def test_all_that_match_are_changed_and_the_change_is_undone(holder: Visitor) -> None:
    page = holder.open("/library?q=note")
    expect(page.locator(".page-head")).to_contain_text(f"{MANY} of {MANY + 1} documents")

    page.locator(".pick input").first.check()
    page.get_by_label(f"All {MANY} that match").check()
    expect(page.locator("#bulk .picked")).to_have_text(f"{MANY} selected")
    page.locator("#bulk summary", has_text="Edit").click()
    page.get_by_label("Collection", exact=True).last.fill("Quay")
    check_axe(page, "#bulk", dark_too=True)
    page.get_by_role("button", name="Apply").click()

    note = page.locator(".toast", has_text=f"{MANY} documents changed.")
    expect(note).to_be_visible()
    expect(page.locator("#bulk")).to_be_hidden()
    assert in_collection(holder, "Quay") == MANY
    note.get_by_role("button", name="Undo").click()
    expect(note).to_have_count(0)
    expect(page.locator("#documents > .row")).to_have_count(50)
    holder.open("/library")
    assert in_collection(holder, "Quay") == 0


def test_after_the_only_match_is_deleted_the_page_says_so(holder: Visitor) -> None:
    page = holder.open("/library?q=apart")
    page.locator(".pick input").check()
    page.get_by_role("button", name="Delete").click()

    expect(page.get_by_role("heading", name="No match")).to_be_visible()
    expect(page.locator(".page-head")).to_contain_text("0 of")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="No match")).to_be_hidden()
    expect(page.locator("#documents > .row")).to_have_count(1)
    expect(page.locator(".page-head")).to_contain_text("1 of")


def test_the_bar_works_without_scripts(shelf: str, open_browser: OpenBrowser) -> None:
    plain = open_browser(shelf, scripts=False)
    page = plain.open("/library?q=note")
    expect(page.locator("#bulk")).to_be_hidden()
    page.locator(".pick input").first.check()
    page.get_by_label(f"All {MANY} that match").check()
    page.locator("#bulk-tag").fill("bog")
    page.get_by_role("button", name="Tag", exact=True).click()
    page.wait_for_url("**/library?q=note")
    assert len(plain.ask("GET", "/documents?tag=bog&limit=100")["items"]) == MANY

    page.locator(".pick input").first.check()
    page.locator("#bulk summary", has_text="More").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as ZIP").click()
    assert download.value.suggested_filename == "documents.zip"


def test_selected_documents_are_analysed_together(member: Visitor) -> None:
    for name in ("one", "two"):
        member.add(f"{name}.txt", f"The {name} boat was moored at berth {name} before the tide turned.")
    page = member.open("/library")
    for box in page.locator(".pick input").all():
        box.check()
    page.locator("#bulk summary", has_text="More").click()
    page.get_by_role("button", name="Analyse").click()
    expect(page.locator("form.new-analysis")).to_contain_text("2 documents")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/analyses")
    assert len(member.ask("GET", "/analyses")["items"]) == 2


def test_a_card_shows_the_page_or_the_beginning_of_the_text(member: Visitor) -> None:
    member.add("Peat and rain.md", "# How a bog keeps its rain\n\nIt fell on it as rain.")
    page = member.open("/library?view=grid")

    card = page.locator(".cards > .row")
    expect(card.locator(".preview")).to_contain_text("It fell on it as rain.")
    box = card.locator(".picture").bounding_box()
    assert box
    assert (box["width"] > 150, box["height"] > 180) == (True, True)
    check_axe(page, dark_too=True)
    card.click(position={"x": 60, "y": 100})
    page.wait_for_url(re.compile(r"/documents/"))
    member.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    no_sideways_scroll(member.open("/library?view=grid"))


def test_views_and_collections_are_in_the_rail(member: Visitor) -> None:
    document = member.add("note.txt", "Some words.")
    member.ask("PATCH", f"/documents/{document}", json={"collection": "Quay & sons"})
    page = member.open("/library?size_max=5+KB")
    expect(page.locator(".page-head")).to_contain_text("1 of 1 document")
    page.locator(".by-facts summary").click()
    page.get_by_placeholder("Save as a view").fill("Small files")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/library?size_max=5120*")
    expect(page.locator(".by-facts summary")).to_contain_text("< 5.0 KB")
    expect(page.locator(".rail").get_by_role("link", name="Small files")).to_be_visible()
    page.locator(".rail").get_by_role("link", name="Quay & sons").click()
    expect(page.locator("#documents > .row")).to_have_count(1)
