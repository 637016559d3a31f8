"""Every way in: dropped, chosen and pasted; each has its row at once, and nothing that is there moves."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenBrowser
from tests.support.browser import Place, Visitor, check_axe, slow_line

# What a browser hands to a page when files and folders are dropped on it; only the page's own part of it is played.
DROP = """(entries) => {
  const decode = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const asFile = ({ name, content }) =>
    new File([typeof content === "number" ? new Uint8Array(content) : decode(content)], name);
  const asEntry = (given) => ({
    name: given.name, isFile: !given.files, isDirectory: Boolean(given.files),
    file: (found) => found(asFile(given)),
    createReader: () => {
      const rest = [given.files.map(asEntry), []];
      return { readEntries: (found) => found(rest.shift()) };
    },
  });
  const transfer = new DataTransfer();
  for (const entry of entries) if (!entry.files) transfer.items.add(asFile(entry));
  const event = new DragEvent("drop", { bubbles: true, cancelable: true });
  Object.defineProperty(event, "dataTransfer", { value: {
    types: ["Files"],
    files: transfer.files,
    items: entries.map((entry) => ({ webkitGetAsEntry: () => asEntry(entry) })),
  } });
  document.body.dispatchEvent(event);
}"""
DRAG = """(kind) => {
  const transfer = new DataTransfer();
  if (kind === "Files") transfer.items.add(new File(["x"], "x.txt")); else transfer.setData("text/plain", "words");
  document.body.dispatchEvent(new DragEvent("dragenter", { bubbles: true, dataTransfer: transfer }));
}"""
PASTE = """({ text, file, at }) => {
  const transfer = new DataTransfer();
  if (text) transfer.setData("text/plain", text);
  if (file) transfer.items.add(new File([file.content], file.name, { type: "text/plain" }));
  const event = new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: transfer });
  document.querySelector(at ?? "body").dispatchEvent(event);
}"""
# Shifts right after somebody did something are theirs, as browsers count it.
WATCH_SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const moved = entry.sources.map(({ node, previousRect, currentRect }) =>
        [node?.className ?? node?.textContent, previousRect.x, previousRect.y, currentRect.x, currentRect.y].join(" "));
      if (!entry.hadRecentInput) window.shifts.push([entry.value, ...moved]);
    }
  }).observe({ type: "layout-shift" });
}"""


def text_file(name: str, content: str) -> dict[str, Any]:
    return {"name": name, "content": b64encode(content.encode()).decode()}


def choose(page: Page, *files: tuple[str, str]) -> None:
    page.set_input_files(
        "#files", [{"name": name, "mimeType": "text/plain", "buffer": text.encode()} for name, text in files]
    )


def row_named(page: Page, name: str) -> Locator:
    return page.locator("#documents > .row", has_text=name)


def test_dropped_files_and_folders_each_get_a_row_and_one_refusal_stops_nothing(member: Visitor) -> None:
    page = member.open("/library")

    page.evaluate(
        DROP,
        [
            text_file("first.txt", "The first words."),
            {"name": "huge.txt", "content": 5_000_001},
            {"name": "folder", "files": [text_file(f"inner {n}.txt", f"Inner words {n}.") for n in range(3)]},
        ],
    )

    expect(page.locator("#documents > .row")).to_have_count(5)
    expect(page.locator("#documents .chip.ok")).to_have_count(4)
    refused = row_named(page, "huge.txt")
    expect(refused.locator(".chip")).to_have_text("Not added")
    expect(refused.locator(".cause")).to_contain_text("TOO_LARGE")
    expect(refused.get_by_role("button")).to_have_text("Choose another")
    assert len(member.documents()) == 4


def test_the_overlay_is_for_files_only_and_goes_with_escape(member: Visitor) -> None:
    page = member.open("/library")

    page.evaluate(DRAG, "text")
    expect(page.locator(".dropping")).to_have_count(0)
    page.evaluate(DRAG, "Files")
    expect(page.locator(".dropping")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".dropping")).to_have_count(0)
    page.evaluate(DRAG, "Files")
    page.evaluate("window.dispatchEvent(new Event('blur'))")
    expect(page.locator(".dropping")).to_have_count(0)


@pytest.mark.parametrize("many", [9, pytest.param(50, marks=pytest.mark.long)])
def test_nothing_moves_while_many_uploads_finish(
    member: Visitor, record_property: Callable[[str, object], None], many: int
) -> None:
    """With the six that are there, nine are more than a window shows; the long form has fifty."""
    there = [member.upload(f"there already {number}.txt", f"Words that were there, {number}.") for number in range(6)]
    member.wait_for_all(there)
    page = member.open("/library")
    choose(page, *[(f"note {number:02}.txt", f"Some words about rain, {number}.") for number in range(many)])
    expect(page.locator("#documents > .row")).to_have_count(6 + many)
    page.evaluate(WATCH_SHIFTS)

    expect(page.locator("#documents .chip.ok")).to_have_count(6 + many)
    expect(page.locator("#dock .dock-item")).to_have_count(0)

    shifts: list[list[Any]] = page.evaluate("window.shifts")
    total = sum(value for value, *_ in shifts)
    record_property("layout shift", round(total, 4))
    assert total <= 0.01, "\n".join(map(str, shifts))
    assert page.locator("#arrived").is_hidden()


def test_an_upload_can_be_cancelled_and_started_again(member: Visitor) -> None:
    page = member.open("/library")
    row = row_named(page, "long.txt")
    with slow_line(page, 400):
        page.set_input_files("#files", [{"name": "long.txt", "mimeType": "text/plain", "buffer": b"word " * 1_000}])
        row.get_by_role("button", name="Cancel").click()
        expect(row.locator(".chip")).to_have_text("Cancelled")
    assert member.documents() == []

    row.get_by_role("button", name="Start again").click()

    expect(row.locator(".chip")).to_have_text("Full text")


def test_a_file_that_is_there_is_not_taken_twice_unless_somebody_wants_both(member: Visitor) -> None:
    there = member.add("first name.txt", "The very same words.")
    page = member.open("/library")

    choose(page, ("second name.txt", "The very same words."))

    # The message first, in one look: it is gone after some seconds.
    link = page.locator(".toast", has_text="Already here").locator(f'a[href="/documents/{there}"]')
    expect(link).to_be_visible()
    row = row_named(page, "second name.txt")
    expect(row.locator(".chip")).to_have_text("Already here")
    expect(row.get_by_role("link", name="Open it")).to_have_attribute("href", f"/documents/{there}")
    assert len(member.documents()) == 1

    row.get_by_role("button", name="Keep both").click()

    expect(row.locator(".chip")).to_have_text("Full text")
    assert len(member.documents()) == 2


def test_a_pasted_link_waits_for_enter(place: Place, member: Visitor) -> None:
    page = member.open("/library")
    sent_before = len(posts(member))

    page.evaluate(PASTE, {"text": "https://www.youtube.com/watch?v=dQw4w9WgXcQ"})
    box = page.get_by_role("textbox", name="Web link, YouTube link or text")
    expect(box).to_have_value("https://www.youtube.com/watch?v=dQw4w9WgXcQ")
    expect(box).to_be_focused()
    page.keyboard.press("Shift+Enter")
    page.wait_for_timeout(400)
    assert posts(member)[sent_before:] == []

    with place.workers_held():
        page.keyboard.press("Enter")
        expect(row_named(page, "youtube.com - dQw4w9WgXcQ").locator(".chip")).to_have_text("Waiting")
        expect(box).to_have_value("")
        assert len(posts(member)[sent_before:]) == 1
        row_named(page, "youtube.com - dQw4w9WgXcQ").get_by_role("button", name="Cancel").click()
        expect(row_named(page, "youtube.com - dQw4w9WgXcQ").locator(".chip")).to_have_text("Cancelled")


def posts(member: Visitor) -> list[str]:
    return [request.url for request in member.watch.requests if request.method == "POST"]


def test_pasted_text_and_files_become_documents(member: Visitor) -> None:
    page = member.open("/library")

    page.evaluate(PASTE, {"text": "Rain is what a bog is made of.\nAnd moss."})
    page.keyboard.press("Enter")
    expect(row_named(page, "Rain is what a bog is made of").locator(".chip.ok")).to_be_visible()

    page.evaluate(PASTE, {"file": {"name": "pasted.txt", "content": "From the clipboard."}})
    expect(row_named(page, "pasted.txt").locator(".chip.ok")).to_be_visible()


def test_pasting_on_another_page_offers_the_same_options(member: Visitor) -> None:
    page = member.open("/ask")
    page.evaluate(PASTE, {"text": "Rain is what a bog is made of."})
    dialog = page.get_by_role("dialog", name="Add a link or text")
    expect(dialog.get_by_role("textbox", name="Web link, YouTube link or text")).to_have_value(
        "Rain is what a bog is made of."
    )
    dialog.get_by_text("Options", exact=True).click()
    dialog.get_by_label("Title", exact=True).fill("From a dialog")
    dialog.get_by_label("Source", exact=True).fill("A talk in Rome")
    check_axe(page)
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog).to_be_hidden()
    (document,) = member.documents()
    assert (document["title"], document["metadata"]["source"]) == ("From a dialog", "A talk in Rome")


def test_paste_into_a_field_stays_there(member: Visitor) -> None:
    page = member.open("/library")

    page.evaluate(PASTE, {"text": "words", "at": "#find"})

    expect(page.locator("#paste")).to_have_value("")


def test_a_refused_link_says_why_and_stays_in_the_box(member: Visitor) -> None:
    member.watch.expect("status of 4")
    page = member.open("/library")
    box = page.locator("#paste")

    box.fill("http://127.0.0.1:1/secret")
    box.press("Enter")

    expect(page.locator(".toast.bad")).to_contain_text(re.compile(r"\([A-Z_]+\)"))
    expect(box).to_have_value("http://127.0.0.1:1/secret")
    assert member.documents() == []


def test_finished_jobs_leave_the_dock_and_failed_ones_stay(member: Visitor) -> None:
    page = member.open("/library")

    page.evaluate(DROP, [text_file("fine.txt", "Fine words."), {"name": "huge.txt", "content": 5_000_001}])

    expect(page.locator("#dock .dock-item")).to_have_count(2)
    expect(page.locator("#dock .dock-item", has_text="fine.txt")).to_contain_text("Done")
    expect(page.locator("#dock .dock-item", has_text="fine.txt")).to_have_count(0)
    left = page.locator("#dock .dock-item")
    expect(left).to_have_count(1)
    expect(left).to_contain_text("TOO_LARGE")
    left.get_by_role("button", name="Remove huge.txt").click()
    expect(page.locator("#dock .dock-item")).to_have_count(0)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_the_options_of_the_box_hold_for_files_and_texts(
    place: Place, open_browser: OpenBrowser, scripts: bool
) -> None:
    member = open_browser(place.sign_up(), scripts=scripts)
    page = member.open("/library")

    def choose_options(title: str) -> None:
        page.get_by_text("Options", exact=True).click()
        page.get_by_label("Title", exact=True).fill(title)
        page.get_by_label("Source", exact=True).fill("A talk in Rome")
        page.get_by_label("If the document already exists").select_option("Keep both")

    choose_options("From the box")
    page.locator("#paste").fill("Rain is what a bog is made of.")
    if scripts:
        check_axe(page)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(row_named(page, "From the box")).to_be_visible()
    if not scripts:
        choose_options("From a file")
    else:
        expect(page.get_by_label("Title", exact=True)).to_have_value("")  # it was for the text
        page.get_by_label("Title", exact=True).fill("From a file")
        page.get_by_label("Source", exact=True).fill("A talk in Rome")
    choose(page, ("a.txt", "Moss grows on the bog."))
    if not scripts:
        page.get_by_role("button", name="Send").click()
    expect(row_named(page, "From a file")).to_be_visible()
    assert [one["metadata"]["source"] for one in member.documents()] == ["A talk in Rome"] * 2
    member.wait_for_all([one["id"] for one in member.documents()])
    page.goto(f"/documents/{member.documents()[0]['id']}?panel=about")
    expect(page.locator("#about-document")).to_contain_text("A talk in Rome")
