"""The page beside the text: it follows who reads, shows where a passage stands, and opens large, at any width."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenBrowser
from tests.support.browser import DESKTOP, PHONE, Place, Program, Visitor, check_axe, until
from tests.support.pdf import HEIGHT, WIDTH, Pdf, Words, paragraph

LINES = [
    "A raised bog receives nothing but rain, and what it does with that",
    "water decides whether it grows or dies. Nobody has seen it drink.",
]
TOP = 120


def book(pages: int) -> bytes:
    made = [
        [Words(f"Chapter {n}", top=90, size=18, font="bold"), *paragraph([f"Page {n}.", *LINES * 12], TOP)]
        for n in range(1, pages + 1)
    ]
    return Pdf(made).write()


@dataclass(frozen=True)
class Shelf:
    """A book of three pages that nobody changes."""

    session: str
    document: str

    @property
    def address(self) -> str:
        """The beginning: without it, the reader opens where the person stopped."""
        return f"/documents/{self.document}?at=0"


@pytest.fixture(scope="module")
def shelf(place: Place) -> Iterator[Shelf]:
    session = place.sign_up()
    owner = Program(place, session)
    yield Shelf(session, owner.add("book.pdf", book(3)))
    owner.end()


@pytest.fixture
def reader(shelf: Shelf, open_browser: OpenBrowser) -> Visitor:
    return open_browser(shelf.session)


def beside(page: Page) -> Locator:
    return page.locator(".where .page-picture img")


def expect_page(picture: Locator, number: int) -> None:
    expect(picture).to_have_attribute("src", re.compile(rf"/pages/{number}\.png"))
    until(picture.page, lambda: picture.evaluate("(one) => one.complete && one.naturalWidth > 0"), "it is loaded")


def test_the_page_follows_who_reads(shelf: Shelf, reader: Visitor) -> None:
    page = reader.open(shelf.address)
    expect_page(beside(page), 1)
    page.keyboard.press("]")
    expect_page(beside(page), 2)
    page.locator(".where").get_by_label("Next page").click()
    expect_page(beside(page), 3)
    expect(page.locator("#p-3")).to_be_in_viewport()
    expect(page.locator(".where [data-page-now]")).to_have_text("3")


def test_a_passage_is_marked_within_four_pixels_of_its_position(shelf: Shelf, reader: Visitor) -> None:
    page = reader.open(shelf.address)
    page.locator("#p-2").scroll_into_view_if_needed()
    page.locator(".passage", has_text="Page 2.").last.click(position={"x": 200, "y": 60})
    expect_page(beside(page), 2)
    mark = page.locator(".where .boxes rect").first
    expect(mark).to_be_visible()
    picture, found = beside(page).bounding_box(), mark.bounding_box()
    assert picture
    assert found
    scale = picture["width"] / WIDTH
    (box,) = [one["box"] for one in chunk_on(reader, shelf.document, 2)["boxes"] if one["page"] == 2]
    wanted = (box[0] * scale + picture["x"], box[1] * scale + picture["y"], (box[2] - box[0]) * scale)
    for one, other in zip((found["x"], found["y"], found["width"]), wanted, strict=True):
        assert abs(one - other) < 4
    assert abs(box[1] - (90 - 18)) < 18, "it begins with the heading of its page"


def test_a_click_on_the_page_goes_to_its_passage(shelf: Shelf, reader: Visitor) -> None:
    page = reader.open(shelf.address)
    expect_page(beside(page), 1)
    picture = page.locator(".where .page-picture")
    dialog = page.get_by_role("dialog", name="Page picture")
    page.keyboard.press("]")
    expect_page(beside(page), 2)
    box = picture.bounding_box()
    assert box
    picture.click(position={"x": box["width"] * 0.4, "y": box["height"] * (TOP + 40) / HEIGHT})
    expect(page.locator(".passage.current")).to_contain_text("Page 2.")
    expect(dialog).to_be_hidden()
    # A click outside of all passages enlarges the picture. The large picture leads to passages too.
    picture.click(position={"x": 3, "y": 3})
    page.keyboard.press("ArrowLeft")
    expect_page(dialog.locator("img"), 1)
    large = dialog.locator(".page-picture").bounding_box()
    assert large
    page.mouse.click(large["x"] + large["width"] * 0.4, large["y"] + large["height"] * (TOP + 20) / HEIGHT)
    expect(dialog).to_be_hidden()
    expect(page.locator(".passage.current")).to_contain_text("Page 1.")


def chunk_on(reader: Visitor, document: str, number: int) -> dict[str, Any]:
    chunks = reader.ask("GET", f"/documents/{document}/chunks")["items"]
    return next(one for one in chunks if one["page_to"] == number)


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_page_opens_large_and_is_turned_by_keys(
    shelf: Shelf, open_browser: OpenBrowser, size: tuple[int, int]
) -> None:
    page = open_browser(shelf.session, size=size, scheme="dark" if size == PHONE else "light").open(shelf.address)
    opener = page.locator("#p-2 a")
    opener.click()
    dialog = page.get_by_role("dialog", name="Page picture")
    expect_page(dialog.locator("img"), 2)
    page.keyboard.press("ArrowRight")
    expect_page(dialog.locator("img"), 3)
    page.keyboard.press("ArrowRight")
    expect(dialog.get_by_label("Page", exact=True)).to_have_value("3")
    check_axe(page)
    dialog.get_by_role("button", name="Read").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#p-3")).to_be_in_viewport()
    page.keyboard.press("p")
    expect_page(dialog.locator("img"), 3)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    check_axe(page)


def test_nothing_moves_while_pictures_come(shelf: Shelf, reader: Visitor) -> None:
    page = reader.open(shelf.address)
    expect_page(beside(page), 1)
    shifts = """() => new Promise((done) => new PerformanceObserver((list) => done(list.getEntries()
      .reduce((sum, one) => sum + one.value, 0))).observe({ type: "layout-shift", buffered: true })
      || setTimeout(done, 300, 0))"""
    assert page.evaluate(shifts) <= 0.01
    frame = page.locator(".where .page-picture").bounding_box()
    assert frame
    assert abs(frame["height"] / frame["width"] - HEIGHT / WIDTH) < 0.01


def test_without_scripts_a_page_is_a_link(shelf: Shelf, open_browser: OpenBrowser) -> None:
    reader = open_browser(shelf.session, scripts=False)
    reader.watch.expect("favicon.ico")  # of a picture that is opened by itself; its policy lets nothing else in
    page = reader.open(f"/documents/{shelf.document}?p=2")
    expect(beside(page)).to_have_attribute("src", re.compile(r"/pages/2\.png"))
    page.locator("#p-2 a").click()
    assert page.url.endswith("/pages/2.png")


def test_the_library_shows_first_pages(member: Visitor) -> None:
    document = member.add("book.pdf", book(1))
    member.add("notes.md", "# Notes")
    page = member.open("/library")
    picture = page.locator(".row .picture img")
    expect(picture).to_have_count(1)
    expect_page(picture, 1)
    assert document in (picture.get_attribute("src") or "")
