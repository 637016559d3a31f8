"""A document that waits for money says so, and goes on when its budget is raised; all budgets stand in the settings."""

from __future__ import annotations

from uuid import UUID, uuid4

from playwright.sync_api import expect

from tests.browser.rooms.test_prompts import look_at
from tests.support.browser import Place, Visitor

REFUSED = """
    INSERT INTO ai_calls (id, owner_id, document_id, job_id, purpose, provider, model, state, fault, estimate_usd,
                          created_at, expires_at, ended_at)
    SELECT %s, owner_id, document_id, id, 'classify_document', 'gemini', 'gemini-2.5-flash', 'failed', 'over_budget',
           4.25, now(), now(), now() FROM jobs WHERE id = %s"""


def test_a_document_over_its_budget_goes_on_when_it_is_raised(place: Place, member: Visitor) -> None:
    with place.workers_held():
        document = member.upload("report.txt", "A long report about bogs.")
        job = UUID(member.document(document)["process_id"])
        place.database.run(REFUSED, uuid4(), job)
        place.database.pause(job)
        page = member.open("/library")
        row = page.locator(f"#d-{document}")
        expect(row.locator(".chip")).to_have_text("Over budget")
        row.get_by_role("link", name="Raise budget").click()
        expect(page.get_by_label("Spend up to")).to_have_value("5")
        look_at(page, "budget")
        page.get_by_role("button", name="Raise budget").click()
        expect(page.locator("#state .chip")).to_have_text("Waiting")


def test_an_administrator_sets_budgets_in_the_settings(admin: Visitor) -> None:
    page = admin.open("/settings/budgets")
    field = page.get_by_label("Per document")
    field.fill("7.50")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Budgets saved")).to_be_visible()
    expect(field).to_have_value("7.5")
    look_at(page, "budgets")
    field.fill("")
    page.get_by_role("button", name="Save").click()
    expect(field).to_have_value("")
