"""What programs could do is also in the pages: prompts and deletion of analyses, links, recipients and users."""

from __future__ import annotations

import html
import re
from uuid import uuid4

import httpx
import pytest

from tests.api.rooms.conftest import administrator, guest, is_page, person, went_to, words
from tests.support.visitors import House, OpenHouse, refused

PLANNED = """
    WITH planned AS (UPDATE analyses SET status = 'analyzing', phase = 'processing', unit = 'passages', units = 1
                     WHERE id = %(analysis)s RETURNING id),
    segment AS (INSERT INTO segments (id, analysis_id, first, last, context_first, tokens, ready)
                SELECT %(segment)s, id, 1, 1, 1, 10, true FROM planned RETURNING id)
    INSERT INTO analysis_items (id, analysis_id, segment_id, prompt_id, status, answer, made_by, done_at)
    SELECT gen_random_uuid(), r.analysis_id, segment.id, r.prompt_id, 'done', '{}', %(made_by)s, now()
    FROM analysis_results r, segment WHERE r.analysis_id = %(analysis)s"""
ANSWERED = """
    UPDATE analysis_results SET status = 'completed', answer = 'Four crowns.', made_by = %(made_by)s,
                                completed_at = now() WHERE analysis_id = %(analysis)s"""
COMPLETED = """
    UPDATE analyses SET status = 'completed', phase = 'completed', completed_at = now() WHERE id = %(analysis)s"""


async def add_document(house: House, owner: httpx.AsyncClient, text: str = "The rent is four crowns.") -> str:
    document = (await owner.post("/api/v1/documents", json={"text": text})).json()["document_id"]
    await house.run("UPDATE documents SET status = 'completed', text_ready = true WHERE id = %s", document)
    return document


async def add_analysis(house: House, owner: httpx.AsyncClient, made_by: str = "local") -> str:
    """A complete one, by a model or without one."""
    document = await add_document(house, owner, f"The rent is four crowns. {made_by}")
    analysis = (await owner.post("/api/v1/analyses", json={"document_id": document})).json()["id"]
    values = {"analysis": analysis, "segment": str(uuid4()), "made_by": made_by}
    for statement in (PLANNED, ANSWERED, COMPLETED):
        await house.database.execute(statement.encode(), values)
    return analysis


async def test_an_analysis_without_a_model_does_not_look_complete(house: House) -> None:
    owner, admin = await person(house, "ada@example.org"), await administrator(house)
    offline, whole = await add_analysis(house, owner), await add_analysis(house, owner, "gemini:gemini-2.5-flash")
    page = await owner.get(f"/analyses/{offline}")
    is_page(page)
    assert "Offline: passages only" in words(page)
    assert "An administrator can set up a model for written answers." in words(page)
    assert not re.search(r'class="cell ok"', page.text)
    other = await owner.get(f"/analyses/{whole}")
    assert "Offline: passages only" not in words(other)
    assert re.search(r'class="chip ok">.*?Complete', other.text, re.DOTALL)
    assert (await owner.get(f"/api/v1/analyses/{offline}")).json()["offline"] is True
    listed = words(await owner.get("/analyses"))
    assert listed.count("Offline: passages only") == 1
    own = await add_analysis(house, admin)
    assert 'href="/settings/models">Set up a model</a>' in (await admin.get(f"/analyses/{own}")).text
    assert "Offline: passages only" in words(await owner.get("/analyses/new"))


async def test_an_offline_analysis_can_be_run_again_once_there_is_a_model(open_house: OpenHouse) -> None:
    house = await open_house(secret_key="of this installation, long enough")
    admin = await administrator(house)
    analysis = await add_analysis(house, admin)
    wanted = {"url": "http://127.0.0.1:11434/v1", "model": "qwen3:8b"}
    assert (await admin.put("/api/v1/models/compatible", json=wanted)).status_code == 200
    assert "Run all again to get written answers." in words(await admin.get(f"/analyses/{analysis}"))
    assert "Offline: passages only" not in words(await admin.get("/analyses/new"))


async def test_prompts_of_an_analysis_are_changed_in_the_page(house: House) -> None:
    owner, stranger = await person(house, "ada@example.org"), await person(house, "eve@example.org")
    analysis = await add_analysis(house, owner)
    page = await owner.get(f"/analyses/{analysis}/prompts")
    is_page(page)
    ticked = re.findall(r'name="prompt" value="([0-9a-f-]+)" checked', page.text)
    assert len(ticked) == 5
    went_to(
        await owner.post(f"/analyses/{analysis}/prompts", data={}),
        f"/analyses/{analysis}/prompts?wrong=Choose+at+least+one+prompt.",
    )
    went_to(await owner.post(f"/analyses/{analysis}/prompts", data={"prompt": ticked[:2]}), f"/analyses/{analysis}")
    kept = (await owner.get(f"/api/v1/analyses/{analysis}/results")).json()["items"]
    assert sorted(one["prompt_id"] for one in kept) == sorted(ticked[:2])
    assert (await stranger.get(f"/analyses/{analysis}/prompts")).status_code == 404


async def test_an_analysis_is_deleted_after_a_question(house: House) -> None:
    owner, stranger = await person(house, "ada@example.org"), await person(house, "eve@example.org")
    analysis = await add_analysis(house, owner)
    assert f'href="/analyses/{analysis}/delete"' in (await owner.get("/analyses")).text
    question = await owner.get(f"/analyses/{analysis}/delete")
    assert "5 answers will be deleted permanently. The document is kept." in words(question)
    assert (await stranger.post(f"/analyses/{analysis}/delete")).status_code == 404
    went_to(await owner.post(f"/analyses/{analysis}/delete"), "/analyses")
    assert (await owner.get(f"/api/v1/analyses/{analysis}")).status_code == 404


async def test_a_temporary_link_downloads_without_signing_in(house: House) -> None:
    owner, stranger = await person(house, "ada@example.org"), await guest(house)
    document = await add_document(house, owner)
    is_page(await owner.get(f"/documents/{document}/link"))
    made = await owner.post(f"/documents/{document}/link", data={"kind": "source"})
    is_page(made)
    assert "works for 5 minutes" in words(made)
    (link,) = re.findall(r'id="signed-link" value="([^"]+)"', made.text)
    assert (await stranger.get(html.unescape(link))).text == "The rent is four crowns."
    assert (await stranger.post(f"/documents/{document}/link")).status_code == 404
    assert f"/documents/{document}/link" in (await owner.get(f"/documents/{document}")).text


async def test_a_recipient_is_edited_and_keeps_what_the_form_does_not_show(house: House) -> None:
    owner = await person(house, "ada@example.org")
    wanted = {"channel": "slack", "address": "https://chat.example.org/services/T0/B0/secret-0123456789",
              "events": ["document.completed", "document.edited"]}  # fmt: skip
    made = await owner.post("/api/v1/webhooks", json=wanted)
    assert made.status_code == 201, made.text
    page = f"/settings/webhooks/{made.json()['id']}"
    form = await owner.get(page)
    assert 'type="hidden" name="events" value="document.edited"' in form.text
    shown = made.json()["address"]
    changed = {"address": shown, "events": ["document.failed", "document.edited"]}
    went_to(await owner.post(page, data=changed), f"{page}?said=edited")
    rows = await house.rows("SELECT address, events FROM subscribers WHERE channel = 'slack'")
    assert [(address, sorted(events)) for address, events in rows] == [
        (wanted["address"], ["document.edited", "document.failed"])
    ]
    went_to(await owner.post(page, data=changed | {"address": "https://other.example.org/x"}), f"{page}?said=edited")
    assert await house.rows("SELECT address FROM subscribers") == [("https://other.example.org/x",)]
    stranger = await person(house, "eve@example.org")
    assert (await stranger.post(page, data=changed)).status_code == 404


@pytest.mark.parametrize("path", ["", "/{hook}"])
async def test_a_recipient_in_the_local_network_is_refused_with_the_setting_that_allows_it(
    house: House, path: str
) -> None:
    owner = await person(house, "ada@example.org")
    hook = (await owner.post("/api/v1/webhooks", json={"address": "https://example.org/x"})).json()["id"]
    form = {"address": "http://192.168.1.20:9000/hook", "events": ["document.failed"]}
    answer = await owner.post("/settings/webhooks" + path.format(hook=hook), data=form)
    is_page(answer, 422)
    assert "add its host and port to OCTAVO_FETCH_ALLOW. Host and port: 192.168.1.20:9000." in words(answer)


async def test_administrators_see_users_and_their_storage(house: House) -> None:
    admin, owner, visitor = await administrator(house), await person(house, "ada@example.org"), await guest(house)
    await add_document(house, owner)
    await add_document(house, visitor, "From a visitor.")
    page = await admin.get("/settings/users")
    is_page(page)
    assert "ada@example.org 1 24 bytes $0.00" in words(page)
    assert "Visitors without an account: 1, with 1 documents and 15 bytes." in words(page)
    listed = (await admin.get("/api/v1/admin/users?limit=1")).json()
    assert (listed["items"][0]["members"], listed["items"][0]["bytes"]) == (["ada@example.org"], 24)
    rest = (await admin.get(f"/api/v1/admin/users?cursor={listed['next_cursor']}")).json()["items"]
    assert [one["kind"] for one in rest] == ["local"]
    assert "/settings/users" in (await admin.get("/settings/account")).text
    assert "/settings/users" not in (await owner.get("/settings/account")).text
    refused(await owner.get("/api/v1/admin/users"), 403, "FORBIDDEN")
    assert (await owner.get("/settings/users")).status_code == 403
