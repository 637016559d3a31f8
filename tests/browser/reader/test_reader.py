"""Reading in a real browser: long texts, where one is, panels, keys, what happens meanwhile; at any width."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenBrowser
from tests.support.browser import (
    DESKTOP,
    PHONE,
    Place,
    Program,
    Visitor,
    check_axe,
    come_back,
    no_sideways_scroll,
    until,
)

PARAGRAPH = (
    "A raised bog receives nothing but rain, and what it does with that water decides whether it grows or dies. "
)
EVERYTHING = f"""---
title: Restoring Blanket Bog
author: M. Lind
lang: en
---

# Restoring Blanket Bog

See the [handbook](https://example.org/handbook). {PARAGRAPH}

## What you need

1. Boots
   - two of them

> A reserve that is easy to draw on is no reserve at all.

| Site | Summer | Winter, in centimetres below the surface of the bog | A note |
|:-----|-------:|:---------------------------------------------------:|--------|
| Lind | -9 | 2 | measuredbyhandandwithoutanyspaceforthelinetobreakwhichmustnotwidenthepage |

![The transect](https://example.org/transect.png)

```python
{"x = 1  # a long line " * 20}
```

AWordThatIsLongerThanAnyPhoneIsWide{"AndGoesOn" * 20}

## The end

{PARAGRAPH}
"""
# The end of the text was far away, and is near before anybody was told.
REPORT_TOGETHER = """
const Usual = IntersectionObserver;
window.IntersectionObserver = class extends Usual {
  constructor(tell, options) { super((changes) => tell([{ isIntersecting: false }, ...changes]), options); }
};
"""


def book(pages: int) -> str:
    return "\f".join(f"Chapter {n}\n=========\n\nPage {n}. {PARAGRAPH * 4}" for n in range(1, pages + 1))


@dataclass(frozen=True)
class Shelf:
    """Texts that many tests read and none changes; the browsers are each test's own."""

    session: str
    text: str
    book: str


@pytest.fixture(scope="module")
def shelf(place: Place) -> Iterator[Shelf]:
    session = place.sign_up()
    owner = Program(place, session)
    yield Shelf(session, owner.add(f"{'long name ' * 15}.md", EVERYTHING), owner.add("book.txt", book(45)))
    owner.end()


@pytest.fixture
def reader(shelf: Shelf, open_browser: OpenBrowser) -> Visitor:
    return open_browser(shelf.session)


def scroll_to_end(page: Page) -> None:
    page.evaluate("""() => { const text = document.querySelector("#text");
      (text.scrollHeight > text.clientHeight + 1 ? text : document.scrollingElement).scrollTo(0, 1e7) }""")


def windows(page: Page) -> Locator:
    return page.locator(".window")


# Long texts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_scrolling_loads_the_next_pages(shelf: Shelf, open_browser: OpenBrowser, size: tuple[int, int]) -> None:
    page = open_browser(shelf.session, size=size).open(f"/documents/{shelf.book}?at=0")
    assert windows(page).count() == 1

    def read_on() -> bool:
        scroll_to_end(page)
        return page.locator("#p-45").count() == 1

    until(page, read_on, "the last page is there")
    assert [int(one[2:]) for one in page.locator(".turn").evaluate_all("all => all.map((one) => one.id)")] == list(
        range(1, 46)
    )
    expect(page.locator("[rel=next]")).to_have_count(0)


def test_a_busy_browser_that_reports_changes_together_loads_the_next_pages(shelf: Shelf, reader: Visitor) -> None:
    reader.run_first(REPORT_TOGETHER)
    page = reader.open(f"/documents/{shelf.book}?at=0")
    scroll_to_end(page)
    expect(windows(page)).to_have_count(2)


def test_loading_earlier_pages_keeps_the_reading_position(shelf: Shelf, reader: Visitor) -> None:
    page = reader.open(f"/documents/{shelf.book}?p=21#p-21")
    mark = page.locator("#p-21")
    before = mark.bounding_box()
    assert before
    assert before["y"] > 52, "it is below the bar"
    page.locator("[rel=prev]").evaluate("(link) => link.click()")
    expect(windows(page)).to_have_count(2)
    until(page, lambda: abs((mark.bounding_box() or {"y": 0})["y"] - before["y"]) < 3, "it is where it was")
    page.wait_for_timeout(300)
    assert abs((mark.bounding_box() or {"y": 0})["y"] - before["y"]) < 3


def test_without_scripts_everything_is_a_link_or_a_form(place: Place, shelf: Shelf, open_browser: OpenBrowser) -> None:
    page = open_browser(shelf.session, scripts=False).open(f"/documents/{shelf.book}?at=0")
    page.locator("[rel=next]").click()
    expect(page.locator("#p-21")).to_be_visible()
    page.locator("[rel=prev]").click()
    expect(page.locator("#p-1")).to_be_visible()
    page.locator("#page-menu").click()
    page.locator("#page-number").fill("44")
    page.get_by_role("button", name="Go").click()
    expect(page.locator("#p-44")).to_be_in_viewport()
    page.get_by_label("Text size").click()
    page.get_by_role("button", name="24 px").click()
    assert "size-24" in (page.locator("body").get_attribute("class") or "")
    member = open_browser(place.sign_up(), scripts=False)
    page = member.open(f"/documents/{member.add('a.md', '# Words')}")
    page.get_by_label("More", exact=True).click()
    page.get_by_role("button", name="Move to trash").click()
    assert page.url.endswith("/library")


def test_the_outline_marks_where_one_is_and_leads_on(shelf: Shelf, reader: Visitor) -> None:
    page = reader.open(f"/documents/{shelf.book}?at=0")
    outline = page.get_by_role("complementary", name="Outline")
    outline.get_by_role("link", name="Chapter 7").click()
    expect(page.get_by_role("heading", name="Chapter 7")).to_be_in_viewport()
    expect(outline.locator("[aria-current]")).to_contain_text("Chapter 7")
    expect(page.locator("#page-menu [data-page-now]")).to_have_text("7")
    assert windows(page).count() == 1
    outline.get_by_role("link", name="Chapter 30").click()
    expect(page.get_by_role("heading", name="Chapter 30")).to_be_in_viewport()
    expect(outline.locator("[aria-current]")).to_contain_text("Chapter 30")


def test_a_link_to_a_passage_finds_it_wherever_it_is(shelf: Shelf, reader: Visitor) -> None:
    chunks = reader.ask("GET", f"/documents/{shelf.book}/chunks", params={"limit": 500})["items"]
    page = reader.open(f"/documents/{shelf.book}#c-{chunks[-1]['id']}")
    passage = page.locator(f"#c-{chunks[-1]['id']}")
    expect(passage).to_be_in_viewport()
    expect(passage).to_have_class(re.compile("cited"))


# Keys and panels ---------------------------------------------------------------------------------------------------


def test_keys_move_through_the_text(shelf: Shelf, reader: Visitor) -> None:
    page = reader.open(f"/documents/{shelf.book}?at=0")
    number = page.locator("#page-menu [data-page-now]")
    page.keyboard.press("]")
    page.keyboard.press("]")
    expect(page.locator("#p-3")).to_be_in_viewport()
    expect(number).to_have_text("3")
    page.keyboard.press("[")
    expect(number).to_have_text("2")
    page.keyboard.press("j")
    first = page.locator(".passage.current").get_attribute("id")
    page.keyboard.press("j")
    assert page.locator(".passage.current").get_attribute("id") != first
    page.keyboard.press("k")
    assert page.locator(".passage.current").get_attribute("id") == first
    page.keyboard.press("+")
    assert "size-20" in (page.locator("body").get_attribute("class") or "")
    page.keyboard.press("o")
    expect(page.locator("#outline")).to_be_hidden()
    page.reload()
    assert "size-20" in (page.locator("body").get_attribute("class") or "")
    expect(page.locator("#outline")).to_be_hidden()
    page.keyboard.press("o")
    expect(page.locator("#outline")).to_be_visible()


def test_letters_in_a_field_are_letters(shelf: Shelf, reader: Visitor) -> None:
    page = reader.open(f"/documents/{shelf.book}?at=0")
    page.locator("#page-menu").click()
    page.locator("#page-number").press("-")
    assert "size-18" in (page.locator("body").get_attribute("class") or "")


@pytest.mark.parametrize("width", [1100, 800, 390])
def test_panels_are_drawers_on_narrow_screens(shelf: Shelf, open_browser: OpenBrowser, width: int) -> None:
    page = open_browser(shelf.session, size=(width, 800)).open(f"/documents/{shelf.text}?at=0")
    expect(page.locator("#outline")).to_be_hidden()
    opener = page.locator("[data-open=outline]").locator("visible=true")
    opener.click()
    expect(page.locator("#outline")).to_be_visible()
    expect(page.get_by_label("Close outline")).to_be_focused()
    check_axe(page, "#outline")
    page.keyboard.press("Escape")
    expect(page.locator("#outline")).to_be_hidden()
    expect(opener).to_be_focused()
    opener.click()
    page.get_by_role("link", name="The end").click()
    expect(page.locator("#outline")).to_be_hidden()
    expect(page.get_by_role("heading", name="The end")).to_be_in_viewport()
    if width < 960:
        expect(page.locator("#about")).to_be_hidden()
        page.locator("[data-open=about]").locator("visible=true").last.click()
        expect(page.locator("#about")).to_be_visible()
        check_axe(page, "#about")
    if width < 720:
        page.keyboard.press("Escape")
        page.get_by_role("navigation", name="Reader").get_by_role("link", name="Connections").click()
        expect(page.locator("#connections")).to_be_visible()


def test_a_closed_panel_stays_closed(shelf: Shelf, reader: Visitor) -> None:
    page = reader.open(f"/documents/{shelf.text}?at=0")
    page.get_by_label("Close About").click()
    expect(page.locator("#about")).to_be_hidden()
    page.reload()
    expect(page.locator("#about")).to_be_hidden()
    page = reader.open(f"/documents/{shelf.text}?at=0&panel=about")
    expect(page.locator("#about")).to_be_visible()


# What happens meanwhile --------------------------------------------------------------------------------------------


def test_a_waiting_reader_is_notified_when_the_text_is_ready(place: Place, member: Visitor) -> None:
    with place.workers_held():
        document = member.upload("a.md", EVERYTHING)
        page = member.open(f"/documents/{document}")
        expect(page.locator("#going")).to_contain_text(re.compile("queue|Waiting|Reading", re.IGNORECASE))
        check_axe(page)
    expect(page.locator("#ready")).to_be_visible()
    assert windows(page).count() == 0
    page.locator("#ready [data-show]").click()
    expect(page.get_by_role("heading", name="What you need")).to_be_visible()


def test_a_newer_text_is_offered_without_interrupting_the_reader(member: Visitor) -> None:
    document = member.add("a.md", EVERYTHING)
    page = member.open(f"/documents/{document}")
    page.evaluate("document.querySelector('.window').dataset.mine = 'yes'")
    member.ask("POST", f"/documents/{document}/retry")
    until(page, lambda: come_back(page) and page.locator("#newer").is_visible(), "it is told")
    assert page.locator(".window[data-mine]").count() == 1
    page.locator("#newer [data-show]").click()
    expect(page.locator("#leaves[data-revision='2']")).to_be_visible()


# States ------------------------------------------------------------------------------------------------------------


def test_every_state_says_what_to_do(member: Visitor) -> None:
    kept = member.add("a.bin", b"\x00\x01\x02")
    page = member.open(f"/documents/{kept}")
    expect(page.get_by_role("heading", name="Stored only")).to_be_visible()
    expect(page.locator("#going").get_by_role("link", name="Download")).to_be_visible()
    check_axe(page)
    failed = member.add("a.md", "  \n")
    page = member.open(f"/documents/{failed}")
    expect(page.locator("#going")).to_contain_text("(EMPTY)")
    check_axe(page)
    trashed = member.add("b.md", "# Words")
    member.ask("DELETE", f"/documents/{trashed}")
    page = member.open(f"/documents/{trashed}")
    check_axe(page)
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("heading", name="Words", level=2)).to_be_visible()


def test_a_missing_document_is_a_page_too(member: Visitor) -> None:
    member.watch.expect("404")
    assert member.goto("/documents/00000000-0000-7000-8000-000000000000").status == 404
    expect(member.page.get_by_role("heading", level=1)).to_be_visible()
    expect(member.page.get_by_role("link", name="Go to the library")).to_be_visible()


def test_editing_shows_errors_and_keeps_the_input(member: Visitor) -> None:
    member.watch.expect("422")
    document = member.add("a.md", "# Words")
    page = member.open(f"/documents/{document}/edit")
    page.get_by_label("Title").fill("A better title")
    page.get_by_label("Tags").fill("t" * 300)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#tags-wrong")).to_be_visible()
    expect(page.get_by_label("Title")).to_have_value("A better title")
    check_axe(page)
    page.get_by_label("Tags").fill("peat, moss")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A better title")
    expect(page.locator("#about .tag")).to_have_text(["moss", "peat"])


# For everyone ------------------------------------------------------------------------------------------------------


PAGES = ("", "?panel=about", "?panel=outline", "/edit", "/history")


@pytest.mark.parametrize(
    ("size", "paths"),
    [(PHONE, PAGES), (DESKTOP, PAGES[:1]), pytest.param(DESKTOP, PAGES[1:], marks=pytest.mark.long)],
    ids=["phone", "desktop", "desktop, other pages"],
)
def test_everybody_can_read(
    shelf: Shelf, open_browser: OpenBrowser, size: tuple[int, int], paths: tuple[str, ...]
) -> None:
    """Each page is loaded at its width: its script sets it up for a phone or a desktop."""
    reader = open_browser(shelf.session, size=size)
    for path in paths:
        page = reader.open(f"/documents/{shelf.text}{path}")
        check_axe(page, dark_too=True)
        assert page.get_by_role("heading", level=1).count() == 1
    if paths != PAGES[:1]:
        check_axe(reader.open(f"/documents/{shelf.book}?p=2"), dark_too=True)


def test_nothing_is_wider_than_the_window(shelf: Shelf, reader: Visitor) -> None:
    overflows = "() => { const t = document.querySelector('#text'); return t.scrollWidth - t.clientWidth }"
    for path in PAGES:
        page = reader.open(f"/documents/{shelf.text}{path}")
        for width in (320, 390, 721, 800, 960, 1100, 1200, 1680):
            page.set_viewport_size({"width": width, "height": 700})
            no_sideways_scroll(page)
            if "/" not in path:
                assert page.evaluate(overflows) <= 0
