"""Reading in a browser: find in the whole text, continue where one stopped and two documents."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenBrowser
from tests.support.browser import DESKTOP, PHONE, Place, Program, check_axe, no_sideways_scroll

PAGES = 45
BOOK = "\f".join(
    f"Chapter {number}\n=========\n\nThe señor of page {number} counts. " + "It goes on and on. " * 20
    for number in range(1, PAGES + 1)
)
TABLE = "The water table fell to 31 centimetres in the dry summer of 2022."
LETTER = "The newsletter gives nine centimetres for the water table of that summer."
FILLER = "\n\n".join(f"Paragraph {number} says little. " * 12 for number in range(15))


@dataclass(frozen=True)
class Shelf:
    """Texts of one owner that many tests read and none changes; the browsers are each test's own."""

    session: str
    documents: list[str]


def fill_shelf(place: Place, *files: tuple[str, str]) -> Shelf:
    session = place.sign_up()
    owner = Program(place, session)
    documents = [owner.add(name, text) for name, text in files]
    owner.end()
    return Shelf(session, documents)


@pytest.fixture(scope="module")
def book(place: Place) -> Shelf:
    return fill_shelf(place, ("book.txt", BOOK))


@pytest.fixture(scope="module")
def quotes(place: Place) -> Shelf:
    bog, letter = f"# Bog\n\n{FILLER}\n\n{TABLE}\n\n{FILLER}", f"# Letter\n\n{FILLER}\n\n{LETTER}"
    return fill_shelf(place, ("bog.md", bog), ("letter.md", letter))


def test_find_leads_through_the_whole_text(book: Shelf, open_browser: OpenBrowser) -> None:
    page = open_browser(book.session).open(f"/documents/{book.documents[0]}?at=0")
    page.keyboard.press("Control+f")
    field = page.get_by_role("searchbox", name="Find in this document")
    expect(field).to_be_focused()
    count = page.locator("#find-count")
    field.fill("SENOR of  page")
    expect(count).to_have_text(f"1 of {PAGES}")
    check_axe(page)
    page.keyboard.press("Enter")
    expect(count).to_have_text(f"2 of {PAGES}")
    field.press("Shift+Enter")
    expect(count).to_have_text(f"1 of {PAGES}")
    field.press("Shift+Enter")  # the last match is on a page that is not loaded
    expect(page.locator("#p-45")).to_be_visible()
    expect(count).to_have_text(f"{PAGES} of {PAGES}")
    expect(field).to_be_focused()
    # A second Ctrl F belongs to the browser.
    assert page.evaluate(
        """() => document.activeElement.dispatchEvent(
             new KeyboardEvent("keydown", {key: "f", ctrlKey: true, bubbles: true, cancelable: true}))"""
    )
    field.press("Escape")
    expect(page.locator("#find-bar")).to_be_hidden()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    field.fill("ospreys")
    expect(count).to_have_text("No matches")


def test_find_works_without_scripts(book: Shelf, open_browser: OpenBrowser) -> None:
    page = open_browser(book.session, scripts=False).open(f"/documents/{book.documents[0]}?at=0")
    page.get_by_role("link", name="Find in this document").click()
    page.get_by_role("searchbox", name="Find in this document").fill("page 41")
    page.get_by_role("button", name="Find", exact=True).click()
    page.locator("#found .hit", has_text="p. 41").click()
    expect(page.locator("#p-41")).to_be_in_viewport()


def test_the_reader_continues_where_the_person_stopped(book: Shelf, open_browser: OpenBrowser) -> None:
    page = open_browser(book.session).open(f"/documents/{book.documents[0]}?p=30#p-30")
    with page.expect_request(lambda request: request.method == "PUT" and "/position" in request.url):
        page.locator("#p-31").scroll_into_view_if_needed()
        page.locator("#text").hover()
        page.mouse.wheel(0, 900)
    other = open_browser(book.session).open(f"/documents/{book.documents[0]}")  # another device
    expect(other.locator("#toasts")).to_contain_text("Continued on page 3")
    expect(other.locator("#p-1")).to_have_count(0)
    other.get_by_role("link", name="Go to the beginning").last.click()
    expect(other.locator("#p-1")).to_be_in_viewport()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_open_beside_shows_both_quotes_at_their_places(
    place: Place, quotes: Shelf, open_browser: OpenBrowser, size: tuple[int, int]
) -> None:
    chunks: list[str] = []
    with place.client(quotes.session) as api:
        for document, quote in zip(quotes.documents, (TABLE, LETTER), strict=True):
            found = api.get(f"/api/v1/documents/{document}/find", params={"q": quote}).json()["items"]
            chunks.append(found[0]["chunk_id"])
    one, other = quotes.documents
    address = f"/documents/{one}/beside/{other}?left={chunks[0]}&right={chunks[1]}"
    for scripts in (True, False):
        page = open_browser(quotes.session, size=size, scripts=scripts).open(address)
        for title, chunk in (("Bog", chunks[0]), ("Letter", chunks[1])):
            text = page.get_by_role("group", name=f"Text of {title}")
            expect(text.locator(f"[id='c-{chunk}']")).to_be_in_viewport()
        if scripts:
            check_axe(page, dark_too=size == DESKTOP)
            no_sideways_scroll(page)


def test_help_lists_the_keys_of_the_reader(quotes: Shelf, open_browser: OpenBrowser) -> None:
    page = open_browser(quotes.session).open(f"/documents/{quotes.documents[1]}?at=0")
    page.keyboard.press("?")
    help_text = page.get_by_role("dialog")
    for words in ("Next or previous passage", "Find in this document", "Highlight the selected text", "Ask"):
        expect(help_text).to_contain_text(words)
    expect(help_text).not_to_contain_text("Next or previous document")
