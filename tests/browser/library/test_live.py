"""What happens is shown while it happens: in every tab and browser of an owner, and nothing moves under the pointer."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Request, expect

from tests.support.browser import Place, Visitor, until

STREAM = "/api/v1/events?after="
AT_ONCE_SECONDS = 2
WATCH_STATES = """() => {
  const live = document.querySelector("#live");
  window.states = [];
  new MutationObserver(() => window.states.push(live.dataset.state)).observe(live, { attributes: true });
}"""


def streams(visitor: Visitor) -> list[Request]:
    return [request for request in visitor.watch.requests if STREAM in request.url]


def dock(page: Page) -> list[tuple[str, str]]:
    items: list[Any] = page.locator("#dock .dock-item").evaluate_all(
        "(items) => items.map((item) => [item.id, item.innerText.replace(/\\s+/g, ' ').trim()])"
    )
    return sorted((str(one[0]), str(one[1])) for one in items)


def test_two_browsers_see_each_others_changes_immediately(
    place: Place, member: Visitor, record_property: Callable[[str, object], None]
) -> None:
    document = member.add("shared.txt", "Words for two.")
    twin = member.twin()
    taken: list[float] = []
    # A machine may be busy with something else for a while, but not each time.
    while len(taken) < 3 and not (taken and taken[-1] < AT_ONCE_SECONDS):
        taken.append(follow_each_other(place, member, twin, document))

    record_property("seconds until the other browser showed it", round(min(taken), 2))
    assert min(taken) < AT_ONCE_SECONDS


def follow_each_other(place: Place, member: Visitor, twin: Visitor, document: str) -> float:
    """Something is asked for in one browser; answers how long the other one took to show it."""
    with place.workers_held():
        member.upload("in line.txt", "This one waits, so both follow what happens.", duplicates="new")
        here, other = member.open("/library"), twin.open("/library")
        for page in (here, other):
            expect(page.locator("#live")).to_have_text("Live")

        here.locator(f"#d-{document} details.menu summary").click()
        here.locator(f"#d-{document} .menu button", has_text="Process again").click()
        chip = other.locator(f"#d-{document} .chip")
        taken = until(other, lambda: chip.inner_text() == "Waiting", "the other browser shows it")

    for page in (here, other):
        expect(page.locator(f"#d-{document} .chip")).to_have_text("Full text")
    return taken


def test_tabs_of_one_browser_share_a_stream(place: Place, member: Visitor) -> None:
    with place.workers_held():
        document = member.upload("one.txt", "Some words.")
        first = member.open("/library")
        expect(first.locator("#live")).to_have_text("Live")
        second = member.context.new_page()
        second.goto("/library")
        expect(second.locator(f"#d-{document} .chip")).to_have_text("Waiting")
        assert len(streams(member)) == 1

    expect(second.locator(f"#d-{document} .chip")).to_have_text("Full text")
    expect(first.locator(f"#d-{document} .chip")).to_have_text("Full text")
    assert len(streams(member)) == 1

    with place.workers_held():
        again = member.upload("two.txt", "Other words.")
        second.locator(f"#d-{document} details.menu summary").click()
        second.locator(f"#d-{document} .menu button", has_text="Process again").click()
        expect(first.locator(f"#d-{document} .chip")).to_have_text("Waiting")
        first.close()  # the other tab goes on alone
        expect(second.locator("#arrived")).to_have_text("1 new · Show")
    expect(second.locator(f"#d-{document} .chip")).to_have_text("Full text")
    second.locator("#arrived").click()
    expect(second.locator(f"#d-{again} .chip")).to_have_text("Full text")


def test_the_stream_is_closed_when_everything_is_over(member: Visitor) -> None:
    page = member.open("/library")
    expect(page.locator("#live")).to_have_text("Up to date")
    assert streams(member) == []

    page.set_input_files("#files", [{"name": "a.txt", "mimeType": "text/plain", "buffer": b"Some words."}])

    expect(page.locator("#live")).to_have_text("Live")
    expect(page.locator("#documents .chip.ok")).to_be_visible()
    expect(page.locator("#live")).to_have_text("Up to date")
    assert len(streams(member)) == 1
    page.wait_for_timeout(2500)
    assert len([one for one in member.watch.requests if "/api/v1/events" in one.url]) <= 2


def test_a_killed_stream_is_followed_by_polling(place: Place, member: Visitor) -> None:
    member.watch.expect("Failed to load resource", "ERR_", "/api/v1/events")
    with place.workers_held():
        document = member.upload("held.txt", "Some words.")
        page = member.open("/library")
        expect(page.locator("#live")).to_have_text("Live")
        page.evaluate(WATCH_STATES)
        # No new stream comes through, and the one that is open dies with its server.
        page.route(f"**{STREAM}*", lambda route: route.abort())
        web = place.instance.process_ids()["web"]
        assert web
        os.kill(web, signal.SIGKILL)
        expect(page.locator("#live")).to_have_text("Polling")
        assert page.evaluate("states[0]") == "reconnecting"

    member.wait_for(document)
    expect(page.locator(f"#d-{document} .chip")).to_have_text("Full text")


def test_after_a_reload_the_dock_is_the_same(place: Place, member: Visitor) -> None:
    page = member.open("/library")
    with place.workers_held():
        page.set_input_files(
            "#files",
            [{"name": f"{n}.txt", "mimeType": "text/plain", "buffer": f"Words {n}.".encode()} for n in range(3)],
        )
        expect(page.locator("#dock .dock-item a")).to_have_count(3)
        until(page, lambda: all("Waiting:" in line for _, line in dock(page)), "all of them say why they wait")
        before = dock(page)
        page.reload()
        assert dock(page) == before
        expect(page.locator("#documents .chip")).to_have_count(3)


def test_the_row_under_the_pointer_does_not_move_when_rows_arrive(place: Place, member: Visitor) -> None:
    for number in range(8):
        member.upload(f"there {number}.txt", f"Words {number}.")
    with place.workers_held():
        member.upload("busy.txt", "Something to follow.")
        page = member.open("/library")
        expect(page.locator("#live")).to_have_text("Live")
        row = page.locator("#documents > .row").nth(4)
        row.hover()
        box = row.bounding_box()
        assert box
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        under = "([x, y]) => document.elementFromPoint(x, y).closest('.row').id"
        before = page.evaluate(under, [x, y])

        for number in range(20):
            member.upload(f"new {number}.txt", f"New words {number}.")
            assert page.evaluate(under, [x, y]) == before

        expect(page.locator("#arrived")).to_have_text("20 new · Show")
        assert page.evaluate(under, [x, y]) == before
        after = row.bounding_box()
        assert after == box, (box, after)

        page.locator("#arrived").click()
        expect(page.locator("#documents > .row")).to_have_count(29)
        expect(page.locator("#documents .title").first).to_have_text("new 19.txt")


def test_the_selection_survives_a_hundred_events(place: Place, member: Visitor) -> None:
    documents = [member.upload(f"n{number}.txt", f"Words {number}.") for number in range(10)]
    member.wait_for_all(documents)
    with place.workers_held():
        member.upload("busy.txt", "Something to follow.")
        page = member.open("/library")
        expect(page.locator("#live")).to_have_text("Live")
        boxes = page.locator(".pick input")
        boxes.nth(2).check()
        boxes.nth(5).click(modifiers=["Shift"])
        expect(page.locator("#bulk .picked")).to_have_text("4 selected")
        chosen = page.locator(".pick input:checked").evaluate_all("(all) => all.map((one) => one.value)")

        for number in range(10):
            edit = {"ids": documents, "action": "edit", "edit": {"tags": [f"tag {number}"]}}
            member.ask("POST", "/documents/bulk", json=edit)

        expect(page.locator("#documents .tag", has_text="tag 9")).to_have_count(10)
        assert page.locator(".pick input:checked").evaluate_all("(all) => all.map((one) => one.value)") == chosen
        expect(page.locator("#bulk .picked")).to_have_text("4 selected")
        page.keyboard.press("Escape")
        expect(page.locator("#bulk")).to_be_hidden()


def test_what_leaves_a_tab_dims_in_its_place(place: Place, member: Visitor) -> None:
    with place.workers_held():
        documents = [member.upload(f"{name}.txt", f"Words of {name}.") for name in ("one", "two")]
        page = member.open("/library?status=working")
        expect(page.locator("#live")).to_have_text("Live")
        page.locator("#documents > .row").first.hover()

    for document in documents:
        row = page.locator(f"#d-{document}.leaving")
        expect(row.locator(".chip")).to_have_text("Full text")
    expect(page.locator('[data-tab="working"] .count')).to_have_text("0")


def test_the_end_of_reading_is_read_aloud_and_once(member: Visitor) -> None:
    page = member.open("/library")
    page.evaluate("""() => {
      window.said = [];
      const place = document.querySelector("#announcements");
      new MutationObserver(() => window.said.push(place.textContent)).observe(place, { childList: true });
    }""")

    for name in ("a.txt", "b.txt"):
        page.set_input_files("#files", [{"name": name, "mimeType": "text/plain", "buffer": name.encode()}])
        # Vectors and connections have ends of their own, which come before the second file's.
        expect(page.locator("#announcements")).to_have_text(f"{name} is ready.")

    assert page.evaluate("window.said") == ["a.txt is ready.", "b.txt is ready."]
