"""A day with Octavo in a browser: add files, read, mark, ask, convert, correct, undo.

Parts of it are done by keyboard alone, on a phone and without scripts. All parts share one account and its documents.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenBrowser
from tests.browser.library.test_uploading import DROP
from tests.browser.reader.test_highlights import SELECT
from tests.support.browser import PHONE, Place, Stage, Visitor, check_axe, no_sideways_scroll, picture
from tests.support.office import samples
from tests.support.pdf import Pdf, Words
from tests.support.scans import saved

PASSWORD = "a password of some length"
SAFE = "The harbour bridge carries forty thousand cars. Engineers consider the bridge safe. "
UNSAFE = "The harbour bridge carries forty thousand cars. Engineers do not consider the bridge safe. "
NOTICE = "Either party may end the lease with a notice of ninety days."
LEASE = (
    "Crane lease",
    "The lease of the tower crane begins on 1 April 2024.",
    "The deposit for the crane is 12,500 EUR.",
    NOTICE,
)
BILL = ("Invoice no: A-17", "Date: 2024-08-15", "Net: 10.00 EUR", "VAT 25%: 2.50 EUR", "Total: 12.50 EUR")
# One is damaged, one has a password, and one is of an unknown type.
UNREAD = 3


def typeset(text: tuple[str, ...]) -> bytes:
    return Pdf([[Words(line, 72, 100 + 24 * row) for row, line in enumerate(text)]]).write()


@dataclass(frozen=True, slots=True)
class Home:
    """The session of an account, and the number of its documents."""

    session: str
    files: int


def mixed_files(number: int) -> dict[str, bytes]:
    """So many files of fourteen types."""
    made = {f"lighthouse.{kind.value}": content for kind, content in samples().items()}
    made |= {
        "lease.pdf": typeset(LEASE),
        "bill.pdf": typeset(BILL),
        "report.md": f"# Report\n\n{SAFE * 3}".encode(),
        "objection.md": f"# Objection\n\n{UNSAFE * 3}".encode(),
        "tides.html": b"<title>Tides</title><h1>Tides</h1><p>High water is at noon.</p>",
        "photo.png": saved(Image.new("RGB", (300, 200), "skyblue"), "PNG"),
        "damaged.pdf": b"%PDF-1.7\nno page follows",
        "locked.pdf": Pdf([[Words("Signed by both")]]).write("secret"),
        "survey.bin": b"\x00\x01\x02" * 50,
    }
    notes = {f"note {number:02}.txt": f"Berth {number} was swept.".encode() for number in range(number - len(made))}
    return made | notes


@pytest.fixture(scope="module", params=[20, pytest.param(40, marks=pytest.mark.long)])
def home(place: Place, stage: Stage, request: pytest.FixtureRequest) -> Home:
    """Somebody creates an account, signs in with it and drops so many files."""
    files: int = request.param
    email = f"reed{files}@example.org"
    with stage.shown() as windows:
        person = Visitor(place, windows)
        page = person.page
        page.goto("/sign-up")
        fill_in(page, email, "Create account")
        page.goto("/sign-out")
        page.get_by_role("button", name="Sign out").click()
        page.goto("/sign-in")
        fill_in(page, email, "Sign in")
        page.wait_for_url("**/library")
        dropped = [{"name": name, "content": b64encode(file).decode()} for name, file in mixed_files(files).items()]
        page.evaluate(DROP, dropped)
        expect(page.locator("#documents > .row")).to_have_count(files)
        picture(page, "journey-adding")
        expect(page.locator("#documents .chip.ok, #documents .chip:text-is('Picture')")).to_have_count(files - UNREAD)
        picture(page, "journey-library")
        expect(page.locator('[data-tab="failed"] .count')).to_have_text("2")
        expect(page.locator("#dock .dock-item")).to_have_count(0)
        made = Home(person.session, files)
        person.end()
    return made


def fill_in(page: Page, email: str, verb: str) -> None:
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("form").get_by_role("button", name=verb).click()


def document_named(page: Page, name: str) -> Locator:
    return page.locator("#documents > .row", has_text=name).locator(".title")


def open_document(person: Visitor, words: str, title: str) -> Page:
    page = person.open(f"/library?q={words}")
    document_named(page, title).click()
    page.wait_for_url("**/documents/*")
    return page


def ask(page: Page, question: str) -> Locator:
    page.locator("#question").fill(question)
    page.keyboard.press("Enter")
    turn = page.locator(".turn").last
    expect(turn.locator(".asked")).to_have_text(question)
    expect(turn).to_have_attribute("data-turn", re.compile(".+"))
    return turn


def test_a_person_reads_marks_asks_converts_and_undoes(home: Home, open_browser: OpenBrowser) -> None:
    person = open_browser(home.session)
    page = open_document(person, "lease", "Crane lease")
    page.keyboard.press("Control+f")
    page.get_by_role("searchbox", name="Find in this document").fill("ninety days")
    expect(page.locator("#find-count")).to_have_text("1 of 1")
    page.keyboard.press("Escape")
    page.evaluate(SELECT, ["Either party", "ninety days.", 0])
    page.get_by_role("button", name="Highlight in green").click()
    expect(page.locator("#leaves mark.green")).to_have_text(NOTICE)
    page.locator("#leaves mark.green").click()
    page.get_by_text("Add note").click()
    page.locator("[data-highlight] textarea").fill("Ask Tomas")
    page.locator("[data-highlight]").get_by_role("button", name="Save").click()
    expect(page.locator("#leaves mark.noted")).to_have_attribute("title", "Ask Tomas")
    picture(page, "journey-reader")
    compare(person)
    ask_with_follow_ups(person)
    convert_and_correct(person)
    delete_and_undo(person)


def compare(person: Visitor) -> None:
    page = open_document(person, "report", "Report")
    page.locator('#about [data-tab-of="connections"]').click()
    contradiction = page.locator(".connection", has_text="Contradiction")
    contradiction.get_by_role("link", name="Open beside").click()
    for title, quote in (("Report", "consider the bridge safe"), ("Objection", "do not consider the bridge safe")):
        expect(page.get_by_role("group", name=f"Text of {title}").get_by_text(quote).first).to_be_in_viewport()
    picture(page, "journey-beside")


def ask_with_follow_ups(person: Visitor) -> None:
    page = person.open("/ask")
    expect(ask(page, "When does the crane lease begin?").locator(".short")).to_have_text("1 April 2024")
    expect(ask(page, "And how much is the deposit?").locator(".short")).to_have_text("12,500 EUR")
    turn = ask(page, "What about the notice?")
    expect(turn.locator(".sources")).to_contain_text("ninety days")
    expect(page.locator(".turn")).to_have_count(3)
    picture(page, "journey-ask")


def convert_and_correct(person: Visitor) -> None:
    page = open_document(person, "A-17", "A-17")
    page.locator("header").get_by_role("link", name="Convert").first.click()
    page.get_by_label("Mapping").select_option("invoice_v1")
    page.get_by_role("button", name="Convert").click()
    page.locator("a[data-field=total]").click()
    page.get_by_label("Total").fill("12.75")
    picture(page, "journey-conversion")
    page.keyboard.press("Enter")
    expect(page.locator("#cv-head")).to_contain_text("Revision 2")
    expect(page.locator("a[data-field=total]")).to_contain_text("12.75")


def delete_and_undo(person: Visitor) -> None:
    page = person.open("/library?q=note")
    notes = page.locator("#documents > .row")
    number = notes.count()
    for row in range(number):
        page.locator(".pick input").nth(row).check()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No match")).to_be_visible()
    picture(page, "journey-deleted")
    page.get_by_role("button", name="Undo").click()
    expect(notes).to_have_count(number)


def test_a_keyboard_is_enough(home: Home, open_browser: OpenBrowser) -> None:
    person = open_browser(home.session)
    page = person.open("/library")
    page.keyboard.press("/")
    page.keyboard.type("lease")
    page.keyboard.press("Enter")
    page.wait_for_url("**/library?q=lease*")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/documents/*")
    page.keyboard.press("/")
    page.keyboard.type("deposit for the crane")
    expect(page.locator("#find-count")).to_have_text("1 of 1")
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+H")
    expect(page.locator("#highlights textarea:focus")).to_be_visible()
    page.keyboard.type("Paid in March")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#leaves mark.noted[title='Paid in March']")).to_have_text("deposit for the crane")
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url("**/ask")
    page.keyboard.type("How much is the deposit of the crane?")
    page.keyboard.press("Enter")
    expect(page.locator(".turn .short")).to_have_text("12,500 EUR")
    delete_by_keyboard(page, home.files)


def delete_by_keyboard(page: Page, files: int) -> None:
    page.locator("body").press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("l")
    page.wait_for_url("**/library")
    rows = page.locator("#documents > .row")
    expect(rows).to_have_count(files)
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("Delete")
    expect(rows).to_have_count(files - 1)
    picture(page, "journey-keyboard")
    page.keyboard.press("u")
    expect(rows).to_have_count(files)


def test_a_phone_is_enough(home: Home, open_browser: OpenBrowser) -> None:
    person = open_browser(home.session, size=PHONE, has_touch=True)
    page = person.open("/library")
    fits(page, "phone-library")
    page = open_document(person, "lease", "Crane lease")
    page.evaluate(SELECT, ["The lease", "1 April 2024.", 0])
    page.get_by_role("button", name="Highlight in blue").tap()
    expect(page.locator("#leaves mark.blue")).to_have_text("The lease of the tower crane begins on 1 April 2024.")
    fits(page, "phone-reader")
    page.locator(".reader-dock").get_by_role("link", name="Highlights").tap()
    expect(page.locator("#highlights")).to_be_visible()
    fits(page, "phone-highlights")
    page = person.open("/ask")
    expect(ask(page, "When does the crane lease begin?").locator(".short")).to_have_text("1 April 2024")
    fits(page, "phone-ask")
    fits(person.open("/highlights"), "phone-all-highlights")


def fits(page: Page, name: str) -> None:
    no_sideways_scroll(page)
    check_axe(page)
    picture(page, f"journey-{name}")


def test_most_is_possible_without_scripts(home: Home, open_browser: OpenBrowser) -> None:
    person = open_browser(home.session, scripts=False)
    page = person.open("/library")
    page.get_by_role("textbox", name="Web link, YouTube link or text").fill("The pilot boat leaves at seven.")
    page.get_by_role("button", name="Add", exact=True).click()
    page = open_document(person, "lease", "Crane lease")
    page.get_by_role("link", name="Find in this document").click()
    page.get_by_role("searchbox", name="Find in this document").fill("deposit")
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.locator("#found .hit")).to_have_count(1)
    picture(page, "journey-plain-reader")
    page = person.open("/ask")
    page.locator("#question").fill("When does the crane lease begin?")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".turn .short")).to_have_text("1 April 2024")
    page = person.open("/library?q=tides")
    page.locator(".pick input").first.check()
    page.get_by_role("button", name="Delete").click()
    page = person.open("/trash")
    picture(page, "journey-plain-trash")
    page.get_by_role("button", name="Restore").first.click()
    expect(document_named(person.open("/library?q=tides"), "Tides")).to_be_visible()
