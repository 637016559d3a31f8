"""Signing up and in, keys, looks and notifications as somebody with a browser does them."""

from __future__ import annotations

from uuid import uuid4

from playwright.sync_api import expect

from tests.browser.conftest import OpenBrowser
from tests.browser.rooms.work import tell
from tests.support.browser import Place, Visitor, come_back, until
from tests.support.conversions import invoice
from tests.support.passwords import PASSWORD


def test_a_visitor_signs_up_and_keeps_everything_then_signs_in_elsewhere(
    visitor: Visitor, open_browser: OpenBrowser
) -> None:
    page = visitor.open("/library")
    document = visitor.add("peat.txt", "A text about peat and moss.")
    page.goto("/sign-up?next=/settings/account")
    expect(page.get_by_text("Documents to be moved from this browser to your account: 1")).to_be_visible()
    email = f"{uuid4().hex}@example.org"
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name=email)).to_be_visible()
    other = open_browser()
    other.watch.expect("401")
    other.goto("/sign-in")
    elsewhere = other.page
    elsewhere.get_by_label("Email").fill(email)
    elsewhere.get_by_label("Password").fill("not this one")
    elsewhere.keyboard.press("Enter")
    expect(elsewhere.get_by_text("Wrong email address or password.")).to_be_visible()
    expect(elsewhere.get_by_label("Password")).to_be_focused()
    elsewhere.get_by_label("Password").fill(PASSWORD)
    elsewhere.keyboard.press("Enter")
    elsewhere.wait_for_url("**/library")
    expect(elsewhere.locator(f"#d-{document}")).to_be_visible()


def test_a_new_key_is_copied(member: Visitor) -> None:
    member.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = member.open("/settings/keys")
    page.get_by_label("Name").fill("Script")
    page.get_by_role("button", name="Create key").click()
    key = page.get_by_label("Key", exact=True).input_value()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == key
    with member.place.client() as program:
        assert program.get("/api/v1/jobs", headers={"authorization": f"Bearer {key}"}).status_code == 200


def test_the_theme_is_chosen_without_scripts_and_wins_over_the_system(place: Place, open_browser: OpenBrowser) -> None:
    page = open_browser(place.sign_up(), scripts=False, scheme="light").open("/settings/appearance")
    light = page.locator("body").evaluate("(body) => getComputedStyle(body).backgroundColor")
    page.get_by_label("Dark").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved in this browser.")).to_be_visible()
    assert page.locator("body").evaluate("(body) => getComputedStyle(body).backgroundColor") != light


def test_an_error_is_resolved_and_the_rest_marked_as_read(member: Visitor) -> None:
    member.open("/library")
    tell(member, None)
    tell(member, "CRASHED")
    page = member.open("/notifications")
    expect(page.get_by_text("2 unread")).to_be_visible()
    page.get_by_role("button", name="Resolve").click()
    expect(page.get_by_text("resolved by")).to_be_visible()
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_role("button", name="Mark as read")).to_have_count(0)


def test_jobs_that_end_in_the_background_are_announced_in_this_browser(member: Visitor) -> None:
    """The browser's own notifications are recorded by the page, because no screen shows them here."""
    member.context.grant_permissions(["notifications"])
    member.run_first(
        """
        window.told = [];
        window.Notification = class extends EventTarget {
          static permission = "default";
          static async requestPermission() { return (Notification.permission = "granted"); }
          constructor(title, options) { super(); told.push(options.body); }
        };
        """
    )
    page = member.open("/notifications")
    button = page.get_by_role("button", name="Enable browser notifications")
    button.click()
    expect(page.get_by_role("button", name="Browser notifications are on")).to_have_attribute("aria-pressed", "true")
    page.evaluate("Object.defineProperty(document, 'hidden', { get: () => true })")
    member.add("peat.txt", "A text about peat and moss.")
    # The stream rests while nothing is worked on; the window that is come back to hears of what it missed.
    until(page, lambda: come_back(page) and page.evaluate("told.length"), "it is told")
    assert page.evaluate("told") == ["“peat.txt” is ready."]
    member.ask("POST", "/conversions", files={"file": ("in.pdf", invoice().write())}, data={"mapping": "invoice_v1"})
    until(page, lambda: come_back(page) and page.evaluate("told.length > 1"), "the conversion is told")
    assert page.evaluate("told")[1].startswith("“in.pdf” was converted")
