"""Buttons: asked once, shown at once, undone where that can be; with a keyboard only, and without scripts."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from playwright.sync_api import Locator, Page, expect

from octavo.core.types import JobStatus
from tests.browser.conftest import OpenBrowser
from tests.support.browser import Place, Visitor

FAIL = """
    UPDATE jobs SET status = 'failed', failed_at = now(), error_code = %s, error_message = %s, admitted = false,
                    leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL WHERE id = %s"""


def fail(place: Place, member: Visitor, document: str, code: str = "IO_ERROR", message: str = "It broke.") -> UUID:
    """Nothing real fails in just this way when it is wanted; with the workers held, nobody touches it."""
    job = UUID(member.document(document)["process_id"])
    place.database.force(job, JobStatus.PROCESSING)
    place.database.run(FAIL, code, message, job)
    return job


def row(page: Page, document: str) -> Locator:
    return page.locator(f"#d-{document}")


def test_a_double_click_on_try_again_creates_one_job_and_shows_the_skeleton_immediately(
    place: Place, member: Visitor
) -> None:
    with place.workers_held():
        document = member.upload("broken once.txt", "Some words.")
        job = fail(place, member, document)
        page = member.open("/library")
        expect(row(page, document).locator(".chip")).to_have_text("Failed")

        row(page, document).get_by_role("button", name="Try again").dblclick()

        expect(row(page, document).locator(".skeleton")).to_be_visible()
        expect(row(page, document).locator(".chip")).to_have_text("Waiting")
        expect(row(page, document).get_by_role("button", name="Cancel")).to_be_visible()
        assert place.database.one("SELECT count(*) FROM jobs WHERE document_id = %s", document) == 1
        assert [one["kind"] for one in place.database.events(job)].count("retry") == 1
    expect(row(page, document).locator(".chip")).to_have_text("Full text")


def test_a_double_click_without_scripts_makes_one_job(place: Place, open_browser: OpenBrowser) -> None:
    member = open_browser(place.sign_up(), scripts=False)
    with place.workers_held():
        document = member.upload("broken once.txt", "Some words.")
        fail(place, member, document)
        page = member.open("/library")

        row(page, document).get_by_role("button", name="Try again").dblclick()

        expect(row(page, document).locator(".chip")).to_have_text("Waiting")
        assert place.database.one("SELECT count(*) FROM jobs WHERE document_id = %s", document) == 1
    assert member.wait_for(document)["status"] == "completed"


def test_cancel_stops_and_start_again_goes_on(place: Place, member: Visitor) -> None:
    with place.workers_held():
        document = member.upload("stopped.txt", "Some words.")
        page = member.open("/library")
        row(page, document).get_by_role("button", name="Cancel").click()
        expect(row(page, document).locator(".chip")).to_have_text("Cancelled")
        row(page, document).get_by_role("button", name="Start again").click()
    expect(row(page, document).locator(".chip")).to_have_text("Full text")


def test_resume_takes_a_stale_job_from_its_worker_and_keeps_finished_stages(place: Place, member: Visitor) -> None:
    with place.workers_held():
        document = member.upload("stuck.txt", "Some words.")
        job = UUID(member.document(document)["process_id"])
        place.database.force(job, JobStatus.PROCESSING)
        place.database.run(
            "UPDATE jobs SET started_at = now() - interval '14 minutes', progressed_at = NULL, "
            "created_at = now() - interval '15 minutes', lease_expires_at = now() + interval '1 hour' WHERE id = %s",
            job,
        )
        token = place.database.job(job)["lease_token"]
        page = member.open("/library")
        expect(row(page, document).locator(".chip")).to_have_text("Stale")
        expect(row(page, document).locator(".cause")).to_have_text("No progress for 14 min at “Reading pages”")

        row(page, document).get_by_role("button", name="Resume").click()

        expect(row(page, document).locator(".chip")).to_have_text("Waiting")
        expect(row(page, document).get_by_role("button", name="Cancel")).to_be_visible()
        assert place.database.job(job)["lease_token"] > token
    expect(row(page, document).locator(".chip")).to_have_text("Full text")


def test_a_failed_job_can_be_resumed_restarted_or_discarded(place: Place, member: Visitor) -> None:
    with place.workers_held():
        document = member.upload("given up.txt", "Some words.")
        job = UUID(member.document(document)["process_id"])
        place.database.force(job, JobStatus.PROCESSING)
        place.database.force(job, JobStatus.DEAD_LETTER)
        page = member.open("/library")
        expect(row(page, document).locator(".chip")).to_have_text("Failed for good")
        expect(row(page, document).locator(".verb")).to_contain_text("Resume from Reading pages")
        expect(row(page, document).get_by_role("button", name="Start over")).to_be_visible()

        row(page, document).get_by_role("button", name="Discard").click()
        question = page.get_by_role("dialog")
        expect(question).to_contain_text("given up.txt")
        question.get_by_role("button", name="Keep").click()
        expect(question).to_be_hidden()
        expect(row(page, document).get_by_role("button", name="Discard")).to_be_focused()
        assert place.database.status(job) == JobStatus.DEAD_LETTER
        row(page, document).get_by_role("button", name="Discard").click()
        question.get_by_role("button", name="Discard").click()

        expect(row(page, document).locator(".chip")).to_have_text("Cancelled")


def test_move_to_trash_can_be_undone(member: Visitor) -> None:
    keep = member.add("stays.txt", "These stay.")
    document = member.add("goes.txt", "These go.")
    page = member.open("/library")

    row(page, document).locator("details.menu summary").click()
    row(page, document).get_by_role("button", name="Move to trash").click()

    expect(row(page, document)).to_have_count(0)
    undo = page.locator(".toast", has_text="goes.txt").get_by_role("button", name="Undo")
    undo.hover()  # it stays for whoever is about to use it
    expect(row(page, keep)).to_be_visible()
    expect(page.locator('[data-tab="everything"] .count')).to_have_text("1")
    undo.click()
    expect(page.locator("#documents > .row").first).to_have_attribute("id", f"d-{document}")
    expect(page.locator('[data-tab="everything"] .count')).to_have_text("2")
    assert member.document(document)["status"] == "completed"


def test_many_are_tagged_and_deleted_together(member: Visitor) -> None:
    documents = [member.add(f"{name}.txt", f"Words of {name}.") for name in ("one", "two", "three")]
    page = member.open("/library")

    page.locator(".pick input").nth(0).check()
    page.locator(".pick input").nth(2).click(modifiers=["Shift"])
    page.locator("#bulk-tag").fill("bog")
    page.get_by_role("button", name="Tag", exact=True).click()
    expect(page.locator("#documents .tag", has_text="bog")).to_have_count(3)
    expect(page.locator("#bulk")).to_be_hidden()

    for number in range(2):
        page.locator(".pick input").nth(number).check()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#documents > .row")).to_have_count(1)
    page.locator(".toast", has_text="moved to the trash").get_by_role("button", name="Undo").click()
    expect(page.locator("#documents > .row")).to_have_count(3)
    order = page.locator("#documents > .row").evaluate_all("(rows) => rows.map((row) => row.dataset.document)")
    assert order == documents[::-1]


def test_a_file_that_cannot_be_read_is_replaced_and_never_tried_again(place: Place, member: Visitor) -> None:
    with place.workers_held():
        document = member.upload("locked.txt", "Words behind a lock.")
        fail(place, member, document, "ENCRYPTED", "Protected by a password.")
    page = member.open("/library")
    expect(row(page, document).locator(".chip")).to_have_text("Failed")
    expect(row(page, document).locator(".cause")).to_have_text("Protected by a password (ENCRYPTED)")
    expect(row(page, document).get_by_role("button", name="Try again")).to_have_count(0)

    row(page, document).get_by_role("link", name="Replace file").click()
    page.set_input_files("#file", [{"name": "whole.txt", "mimeType": "text/plain", "buffer": b"Whole words."}])
    page.get_by_role("button", name="Replace").click()

    expect(page.locator("#documents .chip.ok")).to_be_visible()
    assert [one["filename"] for one in member.documents()] == ["whole.txt"]


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_deleting_for_good_asks_first(place: Place, open_browser: OpenBrowser, scripts: bool) -> None:
    member = open_browser(place.sign_up(), scripts=scripts)
    for name in ("one", "two"):
        member.ask("DELETE", f"/documents/{member.add(f'{name}.txt', f'Words of {name}.')}")
    page = member.open("/trash")

    page.get_by_role("row", name="one.txt").get_by_role("button", name="Delete permanently").click()
    expect(page.get_by_text("one.txt").last).to_be_visible()
    page.get_by_role("button", name="Delete permanently").last.click()
    expect(page.get_by_role("row", name="one.txt")).to_have_count(0)
    expect(page.get_by_role("row", name="two.txt")).to_be_visible()

    page.get_by_role("button", name="Empty trash").click()
    page.get_by_role("button", name=re.compile("Empty trash|Delete permanently")).last.click()
    expect(page.get_by_role("heading", name="The trash is empty")).to_be_visible()


def test_without_scripts_the_library_takes_files_links_and_texts(place: Place, open_browser: OpenBrowser) -> None:
    member = open_browser(place.sign_up(), scripts=False)
    page = member.open("/library")

    page.set_input_files("#files", [{"name": "plain.txt", "mimeType": "text/plain", "buffer": b"Plain words."}])
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#documents .title")).to_have_text("plain.txt")
    page.locator("#paste").fill("Rain is what a bog is made of.")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("#documents > .row")).to_have_count(2)
    member.wait_for_all(one["id"] for one in member.documents())
    page.reload()
    expect(page.locator("#documents .chip.ok")).to_have_count(2)
    page.get_by_role("link", name="plain.txt").first.click()
    expect(page.locator("main")).to_contain_text("Plain words.")


def test_with_a_keyboard_only(member: Visitor) -> None:
    page = member.open("/library")

    page.keyboard.press("n")
    page.keyboard.type("Rain is what a bog is made of.")
    page.keyboard.press("Enter")
    expect(page.locator("#documents .chip.ok")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.locator("#documents .row.current .title")).to_be_focused()
    page.keyboard.press("x")
    expect(page.locator("#bulk")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#bulk")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.type("j?")  # a field takes letters as they are
    expect(page.locator("#find")).to_have_value("j?")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/documents/*")
    expect(page.locator("main")).to_contain_text("Rain is what a bog is made of.")
    page.keyboard.press("g")
    page.keyboard.press("l")
    page.wait_for_url("**/library")


def test_the_palette_finds_documents_and_pages(member: Visitor) -> None:
    document = member.add("Water table.txt", "Nine centimetres.")
    page = member.open("/library")

    page.keyboard.press("Control+k")
    page.keyboard.type("water")
    expect(page.locator("dialog").get_by_role("option")).to_have_text(re.compile("Water table"))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/documents/{document}")

    page.keyboard.press("Control+k")
    page.keyboard.type("settings")
    page.keyboard.press("Enter")
    page.wait_for_url("**/settings**")


def test_single_letters_can_be_switched_off(place: Place, member: Visitor) -> None:
    member.context.add_cookies([{"name": "octavo_keys", "value": "off", "url": place.address}])
    page = member.open("/library")

    page.keyboard.press("?")
    page.wait_for_timeout(200)
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_reader_sees_no_way_to_change_anything(place: Place, member: Visitor, open_browser: OpenBrowser) -> None:
    document = member.add("shared.txt", "Words to read.")
    reader = open_browser(place.sign_up())
    owner = member.ask("GET", "/session")["owner_id"]
    person = "(SELECT id FROM users WHERE email = %s)"
    place.database.run(
        f"INSERT INTO memberships (owner_id, user_id, role) VALUES (%s, {person}, 'reader')",
        owner,
        reader.ask("GET", "/session")["email"],
    )
    reader.ask("POST", "/session/owner", json={"owner_id": owner})
    page = reader.open("/library")

    expect(row(page, document)).to_be_visible()
    expect(page.locator("#add")).to_have_count(0)
    expect(row(page, document).locator("form")).to_have_count(0)
    page.keyboard.press("n")
    page.wait_for_timeout(200)
    expect(page.get_by_role("dialog")).to_have_count(0)
