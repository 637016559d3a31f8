"""Pages in other languages: no clipped text, nothing too wide, readable for everyone, also from right to left."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from octavo.web.http.languages import LANGUAGE_COOKIE
from tests.browser.conftest import OpenBrowser
from tests.browser.rooms.test_every_room import EMPTY, NOBODYS, SMALL, resize, work_of
from tests.browser.rooms.work import fill_map, fill_rooms
from tests.support.browser import DESKTOP, PHONE, Place, Visitor, check_axe, no_sideways_scroll, picture

# Labels whose words do not fit. Titles and other content have `dir="auto"` and may be cut.
CLIPPED = """() => [...document.body.querySelectorAll("*")]
  .filter((one) => [...one.childNodes].some((part) => part.nodeType === 3 && part.data.trim()))
  .filter((one) => !one.closest("[dir=auto], .hush, .skip, .mono, .dock, .rail-foot"))
  .filter((one) => !one.closest("pre, code, textarea, select, option"))
  .filter((one) => one.offsetParent && one.clientWidth && one.scrollWidth > one.clientWidth + 1)
  .filter((one) => getComputedStyle(one).overflowX !== "visible" && getComputedStyle(one).clipPath === "none")
  .map((one) => `${one.className}: ${one.textContent.trim().slice(0, 60)}`)"""

# Tables that hide what does not fit, instead of scrolling.
CLIPPED_TABLES = """() => [...document.querySelectorAll(".records")]
  .filter((one) => one.offsetParent && one.scrollWidth > one.clientWidth + 1)
  .filter((one) => getComputedStyle(one).overflowX === "hidden")
  .map((one) => one.textContent.trim().slice(0, 60))"""

# Choices of which the chosen one does not fit. Names of collections, mappings and fields may be cut.
CLIPPED_CHOICES = """() => [...document.querySelectorAll("select")]
  .filter((one) => one.checkVisibility() && one.clientWidth && one.selectedOptions.length)
  .filter((one) => !["collection", "mapping", "source", "when_field", "then_field"].includes(one.name))
  .filter((one) => {
    const style = getComputedStyle(one);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = style.font;
    const arrow = 20;
    const room = one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - arrow;
    return pen.measureText(one.selectedOptions[0].text).width > room + 1;
  })
  .map((one) => `${one.name}: ${one.selectedOptions[0].text}`)"""

# Words in tables that are broken in the middle, because the column is too narrow. Long names may be broken.
BROKEN_WORDS = """() => [...document.querySelectorAll(".records :is(th, td, a, span)")]
  .filter((one) => one.offsetParent && !one.closest(".mono"))
  .flatMap((one) => [...one.childNodes].filter((part) => part.nodeType === 3))
  .flatMap((part) => [...part.data.matchAll(/(?<!\\S)[\\p{Script=Latin}\\d]{2,14}(?![^\\s,.;:])/gu)].map((word) => {
    const range = document.createRange();
    range.setStart(part, word.index);
    range.setEnd(part, word.index + word[0].length);
    return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1 ? word[0] : "";
  })).filter(Boolean)"""

# Hints in empty fields that do not fit. Their width is measured with the font of the field.
CLIPPED_HINTS = """() => [...document.querySelectorAll("input[placeholder], textarea[placeholder]")]
  .filter((one) => one.offsetParent && one.clientWidth && !one.value && !one.closest("dialog:not([open])"))
  .filter((one) => {
    const style = getComputedStyle(one);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = style.font;
    const room = one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return pen.measureText(one.placeholder).width > room + 1;
  })
  .map((one) => `${one.name}: ${one.placeholder}`)"""


def speak(visitor: Visitor, language: str) -> None:
    visitor.context.add_cookies([{"name": LANGUAGE_COOKIE, "value": language, "url": visitor.place.address}])


def look_at(page: Page, name: str, language: str, *, from_right: bool = False) -> None:
    expect(page.locator("html")).to_have_attribute("lang", language)
    if from_right:
        page.evaluate("document.documentElement.dir = 'rtl'")
    for size in (SMALL, PHONE, DESKTOP):
        resize(page, size)
        no_sideways_scroll(page)
        assert page.evaluate(CLIPPED) == [], f"{page.url} in {language} at {size}"
        assert page.evaluate(CLIPPED_TABLES) == [], f"{page.url} in {language} at {size}"
        assert page.evaluate(BROKEN_WORDS) == [], f"{page.url} in {language} at {size}"
        assert page.evaluate(CLIPPED_CHOICES) == [], f"{page.url} in {language} at {size}"
        if size != SMALL:
            assert page.evaluate(CLIPPED_HINTS) == [], f"{page.url} in {language} at {size}"
        picture(page, f"{language}{'-rtl' if from_right else ''}-{name}-{size[0]}")
    check_axe(page)


def test_scripts_speak_the_language_of_the_page(member: Visitor) -> None:
    speak(member, "de")
    page = member.open("/library")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Tastenkürzel")).to_be_visible()


@pytest.mark.parametrize("language", ["de", "fr", "zh"])
def test_groups_and_access_fit_in_another_language(member: Visitor, place: Place, language: str) -> None:
    speak(member, language)
    look_at(member.open("/settings/access"), "access-empty", language)
    email = f"a.colleague.with.a.long.name.{language}@accounting.example.org"
    place.sign_up(email)
    user = member.ask("POST", "/members", json={"email": email, "role": "member", "limited": True})["user_id"]
    group = member.ask("POST", "/groups", json={"name": "Accounting"})["id"]
    member.ask("PUT", f"/groups/{group}/members/{user}")
    for name, access in (("Invoices", "read"), ("Contracts with suppliers", "write")):
        collection = member.ask("POST", "/collections", json={"name": name})["id"]
        member.ask("POST", "/grants", json={"collection_id": collection, "group_id": group, "access": access})
    member.ask("POST", "/grants", json={"collection_id": collection, "user_id": user})
    look_at(member.open("/settings/access"), "access", language)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("language", "from_right"), [("de", False), ("fr", False), ("es", False), ("zh", False), ("de", True)]
)
def test_every_page_fits_in_another_language(
    member: Visitor, admin: Visitor, open_browser: OpenBrowser, language: str, *, from_right: bool
) -> None:
    made = work_of(member)
    document = made["document"]
    fill_map(member, 12)
    hook = fill_rooms(member)
    stranger = open_browser()
    stranger.watch.expect("404", "403")
    name = "Cost centre of the department"
    member.ask("POST", "/fields", json={"name": name, "type": "choice", "choices": ["Coast", "Inland waterways"]})
    when, then = {"field": {name: "Coast"}, "amount": {"min": 1000.5}}, {"tags": ["coast"], "retention": {"days": 3650}}
    rule = member.ask("POST", "/rules", json={"name": "Ferries and bridges", "when": when, "then": then})["id"]
    for one in (member, admin, stranger):
        speak(one, language)
    paths = [
        *("/library", "/library?view=cards", "/trash", "/search?q=bridge", "/ask", made["thread"], "/highlights"),
        *("/connections?view=list", made["beside"], document, f"{document}?panel=highlights", f"{document}/edit"),
        *(f"{document}?panel=connections", f"{document}/history", f"{document}/link", "/analyses", made["analysis"]),
        *(f"/analyses/new?document={document.rpartition('/')[2]}", made["conversion"], f"/settings/webhooks/{hook}"),
        *("/settings/budgets", "/settings/fields", "/settings/rules", "/settings/shares", "/settings/audit"),
        *(f"/settings/rules/{rule}", f"/settings/rules/{rule}/edit"),
        *EMPTY,
    ]
    for path in paths:
        look_at(member.open(path), name_of(path), language, from_right=from_right)
    sources = [f"/settings/sources?kind={kind}" for kind in ("folder", "imap", "s3", "lmtp")]
    for path in ("/settings/models", "/settings/users", "/operations", "/operations/jobs", *sources):
        look_at(admin.open(path), name_of(path), language, from_right=from_right)
    for path in NOBODYS:
        stranger.goto(path)
        look_at(stranger.page, name_of(path), language, from_right=from_right)


def name_of(path: str) -> str:
    """Return a name for the picture of a page, without ids."""
    parts = [part for part in path.partition("?")[0].split("/") if part and not part.count("-") >= 4]
    return "-".join([*parts, *(["view"] if "view=" in path or "panel=" in path else [])])
