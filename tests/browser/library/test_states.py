"""Every state of a document as the library shows it: its chip, its cause, its one verb. And the slim rail's dock."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import OpenBrowser
from tests.support.browser import PHONE, Place, Visitor, check_axe

STATES = {
    "needs.txt": ("needs_classification = true", "Needs classification", "Classify again", "attention"),
    "partial.txt": ("quality = 'partial'", "Partial text", "Read the rest", ""),
    "empty.txt": ("quality = 'empty'", "No text", None, ""),
    "unread.txt": (
        "quality = 'empty', metadata = '{\"pages_for_ocr\": \"1\"}'",
        *("No text", "Try OCR", "attention"),
    ),
    "ocr.txt": ("quality = 'ocr'", "OCR text", None, ""),
    "kept.bin": ("quality = 'stored_only'", "Stored only", "Download", ""),
    "fine.txt": ("quality = 'full'", "Full text", None, ""),
}


def test_each_state_has_its_chip_and_its_verb(place: Place, member: Visitor) -> None:
    documents = {name: member.upload(name, f"Words of {name}.") for name in STATES}
    member.wait_for_all(documents.values())
    for name, (change, *_) in STATES.items():
        place.database.run(f"UPDATE documents SET {change} WHERE id = %s", documents[name])
    page = member.open("/library")

    for name, (_, chip, verb, look) in STATES.items():
        row = page.locator(f"#d-{documents[name]}")
        expect(row.locator(".chip")).to_have_text(chip)
        expect(row.locator(".title")).to_have_text(name)  # the file's name, as long as there is no better one
        if verb:
            expect(row.locator(".verb :is(a, button)")).to_have_text(verb)
        else:
            expect(row.locator(".verb :is(a, button)")).to_have_count(0)
        assert not look or look in (row.get_attribute("class") or "").split()
    expect(page.locator('[data-tab="needs_you"] .count')).to_have_text("3")
    check_axe(page)
    page.locator('.tab[data-tab="needs_you"]').click()
    expect(page.locator("#documents > .row")).to_have_count(3)


def test_a_document_in_progress_shows_a_skeleton_and_no_chip(place: Place, member: Visitor) -> None:
    with place.workers_held():
        document = member.upload("long.txt", "Some words.")
        job = member.document(document)["process_id"]
        place.database.run(
            "UPDATE jobs SET status = 'processing', admitted = true, started_at = now(), attempt = 1, done = 148, "
            "total = 312, unit = 'pages', leased_by = gen_random_uuid(), lease_expires_at = now() + interval '1 hour', "
            "deadline_at = now() + interval '1 hour' WHERE id = %s",
            job,
        )
        page = member.open("/library")
        row = page.locator(f"#d-{document}")
        expect(row.locator(".skeleton")).to_be_visible()
        expect(row.locator(".chip")).to_have_count(0)
        expect(row.locator(".bar-line")).to_contain_text("148 of 312")
        bar = row.locator("progress")
        expect(bar).to_have_attribute("value", "148")

        # Progress makes no event; it is shown anyway, and the bar is not drawn anew for it.
        place.database.run("UPDATE jobs SET done = 200, progressed_at = now() WHERE id = %s", job)
        expect(row.locator(".bar-line")).to_contain_text("200 of 312")
        place.database.run("UPDATE jobs SET lease_expires_at = now() WHERE id = %s", job)
    member.wait_for(document)


def test_the_ring_of_a_slim_rail_opens_the_dock(place: Place, open_browser: OpenBrowser) -> None:
    member = open_browser(place.sign_up(), size=PHONE)
    with place.workers_held():
        for name in ("one", "two"):
            member.upload(f"{name}.txt", f"Words of {name}.")
        page = member.open("/library")
        ring = page.get_by_role("button", name="2 working now")
        items = page.locator("#dock .dock-item")
        expect(items.first).to_be_hidden()
        ring.click()
        expect(items).to_have_count(2)
        expect(items.first).to_be_visible()
        expect(ring).to_have_attribute("aria-expanded", "true")
        check_axe(page)
        page.keyboard.press("Escape")
        expect(items.first).to_be_hidden()
        ring.click()
        items.first.get_by_role("button", name="Cancel one.txt").click()
        expect(items.filter(has_text="one.txt")).to_contain_text("Cancelled")


def hold(place: Place, job: str, *, stale: bool) -> None:
    """A job that has made no progress for a quarter of an hour, or that waits for a higher budget."""
    running = (
        "status = 'processing', admitted = true, attempt = 1, started_at = now(), leased_by = gen_random_uuid(), "
        "lease_expires_at = now() + interval '1 hour', deadline_at = now() + interval '1 hour'"
    )
    long_ago = "now() - interval '15 minutes'"
    note = """status = 'paused', note = '{"error": {"code": "OVER_BUDGET", "message": "$1 of $1 spent"}}'"""
    place.database.run(f"UPDATE jobs SET {running} WHERE id = %s", job)
    if stale:
        times = ", ".join(f"{name} = {long_ago}" for name in ("created_at", "started_at", "progressed_at"))
        place.database.run(f"UPDATE jobs SET {times} WHERE id = %s", job)
    else:
        ended = "admitted = false, leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL"
        place.database.run(f"UPDATE jobs SET {note}, {ended}, lease_token = lease_token + 1 WHERE id = %s", job)


def test_stale_and_over_budget_documents_need_you(place: Place, member: Visitor) -> None:
    with place.workers_held():
        documents = {name: member.upload(f"{name}.txt", f"Words of {name}.") for name in ("stale", "poor", "waiting")}
        for name in ("stale", "poor"):
            hold(place, member.document(documents[name])["process_id"], stale=name == "stale")
        page = member.open("/library")
        expect(page.locator('[data-tab="needs_you"] .count')).to_have_text("2")
        expect(page.locator('[data-tab="working"] .count')).to_have_text("1")
        page.locator('.tab[data-tab="needs_you"]').click()
        expect(page.locator("#documents > .row")).to_have_count(2)
        stale = page.locator(f"#d-{documents['stale']}")
        expect(stale.locator(".chip")).to_have_text("Stale")
        expect(page.locator(f"#d-{documents['poor']} .chip")).to_have_text("Over budget")
        page.locator('.tab[data-tab="working"]').click()
        expect(page.locator("#documents > .row")).to_have_count(1)
        page.goto(f"/documents/{documents['stale']}")
        expect(page.locator(".absent .cause")).to_contain_text("No progress for 15 min")
        page.locator(".absent").get_by_role("button", name="Resume").click()
        expect(page.locator("#state")).to_contain_text("Waiting")
        place.database.cancel(member.document(documents["poor"])["process_id"])
    member.wait_for(documents["stale"])


def test_the_reader_of_an_amber_document_shows_the_cause_the_missing_parts_and_one_action(
    place: Place, member: Visitor
) -> None:
    document = member.upload("amber.txt", "Words that cannot be found by their meaning.")
    member.wait_for(document)
    place.database.run(
        "UPDATE documents SET needs_classification = true, embeddings_ready = false WHERE id = %s", document
    )
    page = member.open(f"/documents/{document}")
    note = page.locator(".about-text.warn")
    expect(page.locator("#state .chip")).to_have_text("Not indexed")
    expect(note).to_contain_text("Readable now.")
    expect(note).to_contain_text("Missing: search by meaning and connections.")
    expect(note.get_by_role("button")).to_have_count(1)
    check_axe(page)
    note.get_by_role("button", name="Index again").click()
    expect(page.locator("#state .chip")).to_have_text("Full text")
    expect(page.locator(".about-text")).to_have_count(0)
