"""A document that was described offline during an outage: the mark, "Try now", and the improvement."""

from __future__ import annotations

from uuid import UUID

from playwright.sync_api import expect

from tests.browser.rooms.test_prompts import look_at
from tests.support.browser import Place, Visitor

# As after an attempt that a provider refused.
WAIT = """
    UPDATE jobs SET run_after = engine_now() + interval '15 minutes', admitted = false, attempt = 1, note =
        '{"error": {"code": "AI_UNAVAILABLE", "message": "The model provider is not available."}}' WHERE id = %s"""
MARK = "Summary made without a model; will be improved"


def test_a_document_described_offline_is_marked_and_can_be_improved_now(place: Place, member: Visitor) -> None:
    document = member.add("bog.txt", "A raised bog receives nothing but rain.\n\nIts moss keeps the water.")
    owner = place.database.one("SELECT owner_id FROM documents WHERE id = %s", UUID(document))
    with place.workers_held():
        (job,) = place.database.put(
            owner, "improve_document", input={"revision": 1}, document_id=UUID(document), priority=7
        )
        place.database.run(WAIT, job)
        page = member.open("/library")
        row = page.locator(f"#d-{document}")
        expect(row.locator(".chip")).to_have_text("Full text")
        expect(row.locator(".cause")).to_have_text(MARK)
        look_at(page, "described-offline")
        page = member.open(f"/documents/{document}?panel=about")
        expect(page.get_by_text(f"{MARK} when the model provider is available again")).to_be_visible()
        expect(page.locator("#about-document").get_by_role("button", name="Try now")).to_be_visible()
        look_at(page, "described-offline-reader")
        page = member.open("/library")
        row.get_by_role("button", name="Try now").click()
    expect(row.locator(".cause")).to_have_count(0)
    assert place.database.status(job) == "complete"
    assert not member.document(document)["will_be_improved"]


def test_a_document_that_waits_for_its_next_attempt_can_be_tried_now(place: Place, member: Visitor) -> None:
    with place.workers_held():
        document = member.upload("bog.txt", "A raised bog receives nothing but rain. Its moss keeps water.")
        place.database.run(WAIT, UUID(member.document(document)["process_id"]))
        page = member.open("/library")
        row = page.locator(f"#d-{document}")
        expect(row.locator(".cause")).to_contain_text("The model provider is not accepting requests, next attempt")
        expect(page.locator(".dock-item").get_by_role("button", name="Try bog.txt now")).to_be_visible()
        look_at(page, "waits-for-provider")
        row.get_by_role("button", name="Try now").click()
    expect(row.locator(".chip")).to_have_text("Full text")
