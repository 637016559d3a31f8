"""Every room and each of its states: readable for everyone, at any width, light and dark, nothing from outside."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenBrowser
from tests.browser.reader.test_connections import SAFE, UNSAFE
from tests.browser.rooms.work import fill_map, fill_rooms, make_dead_letters
from tests.support.browser import DESKTOP, PHONE, Place, Visitor, check_axe, no_sideways_scroll
from tests.support.conversions import invoice

SMALL, TOUCH = (320, 700), 44
# What a desktop of 1440 by 900 shows at a zoom of 200 %.
ZOOMED = (720, 450)
NOBODYS = [
    "/sign-in",
    "/sign-up",
    "/sign-in?token=guess",
    "/nowhere",
    "/settings/account",
    "/settings/keys",
    "/sign-out",
]
# Rooms that look different when there is something in them, and rooms that always look the same.
FILLABLE = [
    "/settings/account",
    "/settings/keys",
    "/settings/prompts",
    "/settings/webhooks",
    "/uploads",
    "/notifications",
    "/connections",
]
PLAIN = [
    "/settings/mappings",
    "/settings/weights",
    "/settings/models",
    "/settings/sources?kind=imap",
    "/share",
    "/share?url=https://example.org/ferries&title=Ferries",
    "/settings/retention",
    "/settings/export",
    "/settings/appearance",
    "/conversions",
    "/search",
]
EMPTY = [*FILLABLE, *PLAIN]


def look_at(page: Page, *read_at: tuple[int, int], dark_too: bool = True) -> None:
    """Nothing is too wide for a small phone or a zoomed window, and all can be read in light and dark at these sizes.

    No script of a room looks at the width when it is loaded, so each page is loaded once.
    """
    for size in (SMALL, ZOOMED):
        resize(page, size)
        no_sideways_scroll(page)
    for size in read_at:
        resize(page, size)
        check_axe(page, dark_too=dark_too)
        no_sideways_scroll(page)


def resize(page: Page, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})


def test_pages_for_somebody_new(open_browser: OpenBrowser) -> None:
    visitor = open_browser(size=PHONE)
    visitor.watch.expect("404", "403")
    visitor.open("/library")
    for path in NOBODYS:
        visitor.goto(path)
        look_at(visitor.page, PHONE)


def test_empty_rooms(member: Visitor) -> None:
    for path in FILLABLE:
        look_at(member.open(path), DESKTOP, dark_too=False)  # full ones are looked at in the dark
    for path in PLAIN:
        look_at(member.open(path), DESKTOP)


def test_full_rooms(member: Visitor) -> None:
    """On a phone; rooms that always look the same are looked at on one in the long form."""
    member.open("/settings/account")
    hook = fill_rooms(member)
    fill_map(member, 12)
    key = member.ask("GET", "/keys")["items"][0]["id"]
    more = ["/connections?view=list", f"/settings/webhooks/{hook}", f"/settings/keys/{key}/revoke"]
    for path in [*FILLABLE, *more]:
        look_at(member.open(path), PHONE)


def test_rooms_about_people(member: Visitor, open_browser: OpenBrowser) -> None:
    document = member.add("bog.md", "# The bog\n\nPeat keeps rain.")
    link = member.ask("POST", "/shares", json={"document_id": document})["link"]
    member.ask("POST", "/invitations", json={"email": "bob@example.org"})
    look_at(member.open("/settings/access"))
    group = member.ask("POST", "/groups", json={"name": "Accounting"})["id"]
    collection = member.ask("POST", "/collections", json={"name": "Invoices"})["id"]
    member.ask("POST", "/grants", json={"collection_id": collection, "group_id": group})
    pages = ("/settings/account", "/settings/account/second-factor", "/settings/access", "/settings/shares")
    for path in (*pages, "/settings/audit"):
        look_at(member.open(path))
    reader = open_browser(size=PHONE)
    reader.watch.expect("403")
    for path in (f"/shared/{link.rpartition('/')[2]}", "/reset-password", "/invitation?token=guess"):
        reader.goto(path)
        look_at(reader.page)


def test_operations(place: Place, admin: Visitor) -> None:
    (letter,) = make_dead_letters(place, 1)
    for path in ["/operations", "/operations/jobs", "/operations/jobs?status=complete", f"/operations/jobs/{letter}"]:
        look_at(admin.open(path), DESKTOP)


def test_pages_that_other_tests_do_not_look_at_are_readable_at_a_zoom_of_200_percent(member: Visitor) -> None:
    made = work_of(member)
    for path in ("/highlights", made["thread"], made["beside"]):
        look_at(member.open(path), ZOOMED)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_every_page_is_readable_in_light_and_dark_on_a_phone_and_at_a_zoom_of_200_percent(
    member: Visitor, admin: Visitor
) -> None:
    made = work_of(member)
    document = made["document"]
    fill_map(member, 12)
    hook = fill_rooms(member)
    paths = [
        *("/library", "/library?view=cards", "/trash", "/search?q=bridge", "/ask", made["thread"], "/highlights"),
        *("/connections?view=list", made["beside"], document, f"{document}?panel=highlights"),
        *(f"{document}?panel=connections", f"{document}/edit", f"{document}/history", f"{document}/link"),
        *("/analyses", made["analysis"], f"/analyses/new?document={document.rpartition('/')[2]}"),
        *(made["conversion"], f"/settings/webhooks/{hook}", "/api/docs"),
        *EMPTY,
    ]
    assert len(paths) >= 25
    for path in paths:
        look_at_all_sizes(member.open(path))
    for path in ("/settings/models", "/settings/users", "/operations", "/operations/jobs"):
        look_at_all_sizes(admin.open(path))


def look_at_all_sizes(page: Page) -> None:
    look_at(page, PHONE, DESKTOP)
    resize(page, ZOOMED)
    check_axe(page, dark_too=True)
    resize(page, DESKTOP)


def work_of(member: Visitor) -> dict[str, str]:
    """The addresses of two documents that contradict each other, a thread, an analysis and a conversion."""
    one, other = (member.add(f"{number}.md", f"# Bridge\n\n{text * 3}") for number, text in enumerate((SAFE, UNSAFE)))
    quote = {"quote": "Engineers consider the bridge safe.", "colour": "pink", "note": "Ask the engineers."}
    member.ask("POST", f"/documents/{one}/highlights", json=quote)
    member.api.post("/ask", data={"question": "Is the bridge safe?"})
    thread = member.ask("GET", "/threads")["items"][0]["id"]
    analysis = member.ask("POST", "/analyses", json={"document_id": one})["id"]
    pdf = {"x-upload-filename": "bill.pdf", "content-type": "application/pdf"}
    made = member.ask("POST", "/conversions?mapping=invoice_v1", content=invoice().write(), headers=pdf)["id"]
    return {
        "document": f"/documents/{one}",
        "beside": f"/documents/{one}/beside/{other}",
        "thread": f"/ask/{thread}",
        "analysis": f"/analyses/{analysis}",
        "conversion": f"/conversions/{made}",
    }


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_small_phone_has_every_place_in_its_bar_or_one_step_behind(
    place: Place, open_browser: OpenBrowser, *, scripts: bool
) -> None:
    admin = open_browser(place.admin(), size=SMALL, scripts=scripts)
    page = admin.open("/library")
    for one in page.locator(".rail :is(a, button):visible").all():
        box = one.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= SMALL[0]
        assert min(box["width"], box["height"]) >= TOUCH
    rail = page.locator(".rail")
    more, settings = rail.get_by_role("button", name="More"), rail.get_by_role("link", name="Settings")
    expect(settings).to_be_hidden()
    more.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Highlights")).to_be_focused()
    if scripts:
        check_axe(page)
    page.keyboard.press("Escape")
    expect(settings).to_be_hidden()
    expect(more).to_be_focused()
    more.click()
    settings.click()
    page.wait_for_url("**/settings/**")
    expect(more).to_have_attribute("aria-current", "true")
