"""Budgets by the API and by forms: administrators set them for everybody, and an owner raises that of a document."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.api.rooms.conftest import administrator, is_page, person, went_to, words
from tests.support.visitors import House, OpenHouse, me, refused

GENERAL = "/api/v1/settings/budgets"
REFUSED = """
    INSERT INTO ai_calls (id, owner_id, document_id, job_id, purpose, provider, model, state, fault, estimate_usd,
                          created_at, expires_at, ended_at)
    VALUES (%s, %s, %s, %s, 'classify_document', 'gemini', 'gemini-2.5-flash', 'failed', 'over_budget', 4.25,
            now(), now(), now())"""


async def add_paused(house: House, browser: httpx.AsyncClient) -> tuple[str, str]:
    """A document whose job was refused money; and its job."""
    answer = await browser.post("/api/v1/documents", json={"text": "A report."}, headers={"accept": "application/json"})
    document, job = answer.json()["document_id"], answer.json()["process_id"]
    await house.run(REFUSED, uuid4(), (await me(browser))["owner_id"], document, job)
    await house.rows("SELECT pause_job(%s, NULL, 'OVER_BUDGET', 'Nothing left.')", job)
    return document, job


async def status_of(browser: httpx.AsyncClient, job: str) -> str:
    return (await browser.get(f"/api/v1/jobs/{job}")).json()["status"]


async def test_an_administrator_sets_what_holds_for_everybody(house: House) -> None:
    admin, owner = await administrator(house), await person(house, "ada@example.org")
    usual: dict[str, Any] = {"usd": 3.0, "usual_usd": 3.0, "is_set": False}
    before = (await owner.get(GENERAL)).json()
    assert (before["document"], before["month"], before["everybody_usd"]) == (usual, None, None)
    _, job = await add_paused(house, owner)
    refused(await owner.put(GENERAL, json={"owner": 1000}), 403, "FORBIDDEN")
    answer = await admin.put(GENERAL, json={"document": 5, "month": 250.5})
    assert answer.json()["document"] == {"usd": 5.0, "usual_usd": 3.0, "is_set": True}
    assert answer.json()["month"]["usd"] == 250.5
    assert await status_of(owner, job) == "queued"
    assert (await owner.get(GENERAL)).json()["document"]["usd"] == 5.0
    await admin.put(GENERAL, json={"owner": 7})
    assert (await owner.get("/api/v1/usage")).json()["budget_usd"] == 7.0
    after = (await admin.put(GENERAL, json={"document": None, "month": None, "owner": None})).json()
    assert not any(after[scope]["is_set"] for scope in ("document", "owner", "month"))
    told = await house.rows("SELECT detail FROM events WHERE kind = 'budgets' ORDER BY id LIMIT 1")
    assert told == [({"document": 5.0, "month": 250.5},)]


@pytest.mark.parametrize("wrong", [{"document": -1}, {"owner": 1e7}, {"month": True}, {"owner": "5"}, {"year": 1}])
async def test_an_invalid_budget_is_refused(house: House, wrong: dict[str, Any]) -> None:
    refused(await (await administrator(house)).put(GENERAL, json=wrong), 422, "VALIDATION")


async def test_an_owner_can_raise_a_document_budget_up_to_the_owner_budget(house: House) -> None:
    owner = await person(house, "ada@example.org")
    document, job = await add_paused(house, owner)
    path = f"/api/v1/documents/{document}/budget"
    waits = {"usd": 3.0, "is_set": False, "most_usd": 20.0, "paused": 1, "needed_usd": 4.25, "over": "document"}
    assert waits.items() <= (await owner.get(path)).json().items()
    assert "20.00 USD" in refused(await owner.put(path, json={"usd": 20.5}), 409, "BUDGET_TOO_HIGH")["detail"]
    assert (await owner.put(path, json={"usd": 4})).json()["over"] == "document"
    assert await status_of(owner, job) == "paused"
    raised = (await owner.put(path, json={"usd": 4.5})).json()
    assert (raised["usd"], raised["usual_usd"], raised["paused"], raised["over"]) == (4.5, 3.0, 0, None)
    assert await status_of(owner, job) == "queued"
    happened = (await owner.get(f"/api/v1/documents/{document}/events")).json()["items"]
    assert [one["detail"] for one in happened if one["kind"] == "edited"][-1] == {
        "fields": ["budget"],
        "budget_usd": 4.5,
    }
    assert (await owner.put(path, json={"usd": None})).json()["usd"] == 3.0


async def test_forms_do_the_same(house: House) -> None:
    admin, owner = await administrator(house), await person(house, "ada@example.org")
    document, job = await add_paused(house, owner)
    page = await owner.get(f"/documents/{document}")
    assert f'href="/documents/{document}/budget">Raise budget</a>' in page.text
    is_page(form := await owner.get(f"/documents/{document}/budget"))
    assert "may cost $4.25," in words(form)
    assert 'value="5"' in form.text
    for wrong in ("a lot", "21", "inf"):
        is_page(again := await owner.post(f"/documents/{document}/budget", data={"usd": wrong}), 422)
        assert 'id="usd-wrong"' in again.text
    went_to(await owner.post(f"/documents/{document}/budget", data={"usd": "5"}), f"/documents/{document}")
    assert await status_of(owner, job) == "queued"
    is_page(mine := await owner.get("/settings/budgets"))
    assert "Your monthly budget $20.00" in words(mine)
    assert 'action="/settings/budgets"' not in mine.text
    is_page(wrong := await admin.post("/settings/budgets", data={"document": "much"}), 422)
    assert 'id="document-wrong"' in wrong.text
    went_to(await admin.post("/settings/budgets", data={"document": "2.5"}), "/settings/budgets?said=budgets")
    assert 'value="2.5"' in (await admin.get("/settings/budgets")).text


async def test_an_analysis_that_waits_for_money_leads_there(house: House) -> None:
    owner = await person(house, "ada@example.org")
    document, _ = await add_paused(house, owner)
    await house.run("UPDATE documents SET text_ready = true, revision = 1 WHERE id = %s", document)
    analysis = (await owner.post("/api/v1/analyses", json={"document_id": document})).json()["id"]
    link = f'href="/documents/{document}/budget">Raise budget</a>'
    assert link not in (await owner.get(f"/analyses/{analysis}")).text
    await house.rows("SELECT pause_job(%s, NULL, 'OVER_BUDGET', 'Nothing left.')", analysis)
    assert link in (await owner.get(f"/analyses/{analysis}")).text


async def test_the_add_box_shows_what_models_cost_where_they_are_paid_for(open_house: OpenHouse) -> None:
    paid = await open_house(providers="gemini,local", gemini_key="key")
    member, visitor = await paid.person("payer@example.org"), await paid.browser()
    for path in ("/library", "/search"):  # the box, and the dialog of the other pages
        shown = (await member.get(path)).text.partition("data-prices>")[2].partition("</p>")[0]
        assert re.match(
            r"Approximate model costs for 100 pages\. Description: \$0\.\d\d\.\s+"
            r"Extra cost to clean up the text: \$0\.\d\d\.",
            shown,
        )
        assert "data-prices" not in (await visitor.get(path)).text, "visitors are served offline"
