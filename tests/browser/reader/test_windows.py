"""A window that a test has used is given to the next one, and holds nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Route

from tests.support.browser import DESKTOP, PHONE, Place, Visitor, Windows

STORED = "[localStorage.length, document.cookie, matchMedia('(prefers-color-scheme: dark)').matches, innerWidth]"
CLIPBOARD = "navigator.permissions.query({ name: 'clipboard-read' }).then((answer) => answer.state)"


def refuse(route: Route) -> None:
    route.fulfill(status=500)


def test_a_window_that_is_used_again_is_as_new(place: Place, windows: Windows) -> None:
    first = Visitor(place, windows, place.sign_up(), size=PHONE, scheme="dark")
    first.open("/library")
    first.page.evaluate("localStorage.setItem('kept', 'yes')")
    first.page.evaluate("document.cookie = 'kept=yes'")
    first.context.grant_permissions(["clipboard-read"])
    first.page.route("**/library", refuse)
    first.context.new_page()
    first.end()
    second = Visitor(place, windows)
    assert second.page is first.page
    page = second.open("/library")
    assert page.evaluate(STORED) == [0, "", False, DESKTOP[0]]
    assert page.evaluate(CLIPBOARD) == "prompt"
    assert second.context.pages == [page]
    assert second.session != first.api.cookies["octavo_session"]
    second.end()


def test_a_window_with_a_script_or_a_clock_of_its_own_is_not_used_again(place: Place, windows: Windows) -> None:
    changes: list[Callable[[Visitor], None]] = [lambda one: one.run_first("window.mine = true"), Visitor.stop_clock]
    for change in changes:
        visitor = Visitor(place, windows)
        change(visitor)
        visitor.end()
        other = Visitor(place, windows)
        assert other.page is not visitor.page
        other.end()
    ways = ("." + "add_init_script(", "clock." + "install(")
    files = [path for path in Path(__file__).parents[1].rglob("*.py") if any(way in path.read_text() for way in ways)]
    assert files == [], "use run_first or stop_clock of the visitor"
