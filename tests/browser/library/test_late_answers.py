"""Answers that come late: what happened meanwhile is shown all the same, and nothing is told or taken away twice."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.support.browser import Late, Place, Visitor, until
from tests.support.conversions import invoice

LISTEN = """async () => {
  const { onEvent } = await import(new URL("live.js", document.querySelector("script[src$='/main.js']").src));
  window.told = [];
  onEvent((event) => window.told.push(event.id));
}"""
REFRESH = """async (document) => {
  const { refresh } = await import(new URL("patch.js", window.document.querySelector("script[src$='/main.js']").src));
  refresh(document);
}"""
# Whether it was ever about to leave.
WATCH_LEAVING = """(row) => {
  window.left = false;
  new MutationObserver(() => (window.left ||= row.classList.contains("leaving"))).observe(row, { attributes: true });
}"""


def test_a_restored_row_stays_when_an_older_response_lacks_it(member: Visitor) -> None:
    document = member.add("goes.txt", "These go.")
    page = member.open("/library")
    row = page.locator(f"#d-{document}")
    late = Late(page, "**/fragments/rows?*")
    row.locator("details.menu summary").click()
    row.get_by_role("button", name="Move to trash").click()
    page.get_by_role("button", name="Undo").wait_for()
    page.evaluate(REFRESH, document)  # as an event does that names a document which is no longer shown
    late.wait()
    page.get_by_role("button", name="Undo").click()
    expect(row).to_be_visible()
    row.evaluate(WATCH_LEAVING)

    with page.expect_request("**/fragments/rows?*"):  # the next one
        late.arrive()

    assert page.evaluate("left") is False
    expect(row).to_be_visible()


def test_a_restored_row_stays_although_rows_were_requested_before_its_deletion(member: Visitor) -> None:
    """The event of a deletion may come before the answer to the button, and then its row is still there."""
    document = member.add("goes.txt", "These go.")
    page = member.open("/library")
    row = page.locator(f"#d-{document}")
    late = Late(page, "**/fragments/rows?*", answered=False)
    page.evaluate(REFRESH, document)
    late.wait()
    row.locator("details.menu summary").click()
    row.get_by_role("button", name="Move to trash").click()
    page.get_by_role("button", name="Undo").click()
    expect(row).to_be_visible()
    row.evaluate(WATCH_LEAVING)

    with page.expect_request("**/fragments/rows?*"):
        late.arrive_empty()

    assert page.evaluate("left") is False
    expect(row).to_be_visible()


def test_what_happens_while_the_queue_is_asked_for_is_shown(place: Place, member: Visitor) -> None:
    with place.workers_held():
        first, second = (
            str(
                member.ask(
                    "POST",
                    "/conversions?mapping=invoice_v1",
                    content=invoice(number).write(),
                    headers={"x-upload-filename": f"{number}.pdf", "content-type": "application/pdf"},
                )["id"]
            )
            for number in ("A-1", "A-2")
        )
        page = member.open("/conversions")
        expect(page.locator("#live")).to_have_text("Live")
        late = Late(page, "**/conversions/rows")
        member.ask("POST", f"/jobs/{first}/cancel")
        late.wait()
        member.ask("POST", f"/jobs/{second}/cancel")
        expect(page.locator(f"#dock-{second}")).to_contain_text("Cancelled")

        late.arrive()

        for conversion in (first, second):
            expect(page.locator(f"#c-{conversion} .chip")).to_have_text("Cancelled")


def test_an_event_from_stream_and_polling_is_shown_once(place: Place, member: Visitor) -> None:
    page = member.open("/library")
    page.evaluate(LISTEN)
    with place.workers_held():
        late = Late(page, "**/api/v1/events?format=json*", answered=False)
        page.evaluate("dispatchEvent(new Event('focus'))")
        late.wait()
        page.set_input_files("#files", [{"name": "a.txt", "mimeType": "text/plain", "buffer": b"Some words."}])
        until(page, lambda: page.evaluate("told.length"), "the stream tells of it")

        with page.expect_response("**/api/v1/events?format=json*") as answer:
            late.arrive()
        assert answer.value.json()["items"]

        page.evaluate("new Promise((done) => setTimeout(done, 50))")
        told = page.evaluate("told")
    assert len(told) == len(set(told))


def test_what_somebody_went_to_in_the_palette_stays_when_documents_are_found(member: Visitor) -> None:
    member.upload("seas.txt", "Some words.")
    page = member.open("/library")
    late = Late(page, "**/api/v1/documents?q=*")
    page.keyboard.press("Control+k")
    page.keyboard.type("se")
    late.wait()
    page.keyboard.press("ArrowDown")
    chosen = page.locator("[role=option][aria-selected=true]")
    before = chosen.inner_text()

    late.arrive()

    expect(page.get_by_role("option", name="seas.txt")).to_be_visible()
    assert chosen.inner_text() == before
