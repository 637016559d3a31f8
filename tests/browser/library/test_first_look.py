"""What anybody sees first, and what every page keeps to: nothing from outside, readable for everyone, any width."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.browser.conftest import OpenBrowser
from tests.support.browser import DESKTOP, PHONE, Place, Visitor, check_axe, no_sideways_scroll
from tests.support.tree import SOURCE

LONG = "A very long name that nobody would choose but somebody has " * 3
STATIC = SOURCE / "octavo/web/static"


def fill(member: Visitor) -> None:
    """A little of everything that a list can hold."""
    text = member.add("Peat and rain.md", "# How a bog keeps its rain\n\nIt fell on it as rain.")
    member.ask("PATCH", f"/documents/{text}", json={"tags": ["hydrology", "peatland"], "author": "E. Harrow"})
    member.add(f"{LONG}.txt", "Some words.")
    member.add("survey.bin", b"\x00\x01\x02" * 50)
    stopped = member.upload("stopped.txt", "Words that were stopped. " * 50_000)
    member.ask("POST", f"/jobs/{member.document(stopped)['process_id']}/cancel")
    with_trash = member.add("old.txt", "This one goes.")
    member.ask("DELETE", f"/documents/{with_trash}")


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

    page.locator("#documents .chip.ok").nth(2).wait_for()
    titles = page.locator("#documents .title").all_inner_texts()
    assert len(titles) == 3
    assert "How a bog keeps its rain" in titles


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_everybody_can_use_the_library(
    place: Place, open_browser: OpenBrowser, scheme: str, size: tuple[int, int]
) -> None:
    member = open_browser(place.sign_up(), scheme=scheme, size=size)
    check_axe(member.open("/library"))
    fill(member)
    for path in ("/library", "/library?view=cards", "/library?status=failed", "/trash"):
        check_axe(member.open(path))
    page = member.open("/library")
    page.locator("#documents details.menu summary").first.click()
    check_axe(page)
    page.keyboard.press("Escape")
    if size == DESKTOP:
        page.locator(".pick input").first.check()
        check_axe(page)
        page.keyboard.press("Escape")
    page.keyboard.press("?")
    check_axe(page)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.get_by_role("option", name="Peat").or_(page.get_by_role("option").first).first.wait_for()
    check_axe(page)


@pytest.mark.parametrize("width", [320, 390, 768, 1024, 1440])
def test_nothing_is_wider_than_the_window(place: Place, open_browser: OpenBrowser, width: int) -> None:
    member = open_browser(place.sign_up(), size=(width, 800))
    no_sideways_scroll(member.open("/library"))
    fill(member)
    for path in ("/library", "/library?view=cards", "/trash"):
        no_sideways_scroll(member.open(path))
    failed = next(one for one in member.documents() if one["status"] == "failed")
    no_sideways_scroll(member.open(f"/documents/{failed['id']}/replace"))


def test_pages_are_small(place: Place, member: Visitor) -> None:
    for number in range(50):
        member.upload(f"note {number}.txt", f"Some words, {number} of them.")
    page = member.api.get("/library", headers={"accept-encoding": "identity"})

    def packed(content: bytes) -> int:
        return len(gzip.compress(content, 9))

    assert packed(page.content) <= 30_000
    sheets = re.findall(r"css/\w+\.css", page.text)
    assert sum(packed((STATIC / sheet).read_bytes()) for sheet in sheets) <= 12_000
    assert sum(packed(path.read_bytes()) for path in modules_of(STATIC / "js/main.js")) <= 30_000


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
