"""What anybody sees first, and what every page keeps to: nothing from outside, readable for everyone, any width."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from urllib.parse import urljoin

from playwright.sync_api import expect

from tests.support.browser import DESKTOP, PHONE, Place, Visitor, check_axe, no_sideways_scroll
from tests.support.tree import SOURCE

LONG = "A very long name that nobody would choose but somebody has " * 3
WEB = SOURCE / "octavo/web"


def fill(member: Visitor) -> None:
    """A little of everything that a list can hold."""
    text = member.upload("Peat and rain.md", "# How a bog keeps its rain\n\nIt fell on it as rain.")
    member.ask("PATCH", f"/documents/{text}", json={"tags": ["hydrology", "peatland"], "author": "E. Harrow"})
    member.upload(f"{LONG}.txt", "Some words.")
    member.upload("survey.bin", b"\x00\x01\x02" * 50)
    with member.place.workers_held():
        stopped = member.upload("stopped.txt", "Words that were stopped.")
        member.ask("POST", f"/jobs/{member.document(stopped)['process_id']}/cancel")
    with_trash = member.upload("old.txt", "This one goes.")
    member.ask("DELETE", f"/documents/{with_trash}")
    member.wait_for_all(one["id"] for one in member.documents())


def test_a_stranger_gets_an_empty_library_with_every_way_in(visitor: Visitor) -> None:
    page = visitor.open("/")

    assert page.url.endswith("/library")
    assert page.get_by_role("heading", level=1).inner_text() == "Library"
    assert page.get_by_role("heading", name="Nothing here yet").is_visible()
    assert page.get_by_role("textbox", name="Web link, YouTube link or text").is_visible()
    assert page.get_by_text("Drop files anywhere").is_visible()
    assert page.get_by_role("button", name="Try with samples").is_visible()


def test_samples_are_three_texts_that_can_be_read(visitor: Visitor) -> None:
    page = visitor.open("/library")

    page.get_by_role("button", name="Try with samples").click()

    expect(page.locator("#documents .chip.ok")).to_have_count(3)
    expect(page.locator("#documents .title", has_text="How a bog keeps its rain")).to_be_visible()
    expect(page.locator("#documents .title")).to_have_count(3)


def test_everybody_can_use_the_library(member: Visitor) -> None:
    check_axe(member.open("/library"), dark_too=True)
    fill(member)
    member.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    for path in ("/library?view=cards", "/trash", "/library"):
        check_axe(member.open(path), dark_too=True)
    member.page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    page = member.open("/library")
    page.locator("#documents details.menu summary").first.click()
    page.locator(".pick input").first.check()
    check_axe(page)
    for keys in ("?", "Control+k"):
        page.keyboard.press(keys)
        page.get_by_role("dialog").wait_for()
        check_axe(page, "dialog[open]", dark_too=True)
        page.keyboard.press("Escape")


def test_nothing_is_wider_than_the_window(member: Visitor) -> None:
    fill(member)
    failed = next(one for one in member.documents() if one["status"] == "failed")
    for path in (
        "/library",
        "/library?view=cards",
        "/trash",
        f"/documents/{failed['id']}/replace",
        f"/library?sender={LONG}",
    ):
        for width in (320, 390, 768, 1024, 1440):
            member.page.set_viewport_size({"width": width, "height": 800})
            no_sideways_scroll(member.open(path) if width == 320 else member.page)


def test_the_filters_are_inside_the_window_at_every_width(member: Visitor) -> None:
    fill(member)
    page = member.open(f"/library?sender={LONG}&kind=invoice")
    page.locator(".by-facts summary").click()
    for width in (320, 390, 768, 1024, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        for part in page.locator(".by-facts .items, .by-facts .input, .by-facts .items .button").all():
            box = part.bounding_box()
            assert box is not None
            assert (box["x"] >= 0, box["x"] + box["width"] <= width) == (True, True), (width, part.inner_html())
    assert page.locator(".by-facts select[name=kind]").input_value() == "invoice"  # though there is none


def test_pages_are_small(place: Place, member: Visitor) -> None:
    with place.workers_held():
        for number in range(50):
            member.upload(f"note {number}.txt", f"Some words, {number} of them.")
        page = member.api.get("/library", headers={"accept-encoding": "identity"})
        place.drop_work(member.session)

    def packed(content: bytes) -> int:
        return len(gzip.compress(content, 9))

    assert packed(page.content) <= 30_000
    sheets = re.findall(r"(?:shell|rooms)/\w+/\w+\.css", page.text)
    assert sum(packed((WEB / sheet).read_bytes()) for sheet in sheets) <= 12_000
    assert sum(packed(path.read_bytes()) for path in modules_of(WEB / "shell/js/main.js")) <= 30_000


def modules_of(first: Path) -> set[Path]:
    """A module and all that it imports."""
    found: set[Path] = set()
    todo = [first]
    while todo:
        path = todo.pop()
        if path in found:
            continue
        found.add(path)
        lines = [line for line in path.read_text().splitlines() if line.startswith("import ")]
        todo += [Path(urljoin(str(path), line.rsplit('"', 2)[1])) for line in lines]
    return found
