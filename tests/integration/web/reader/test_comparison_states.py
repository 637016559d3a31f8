"""“No connections” is said when the comparison is done; until then its state is shown, with a way on."""

from __future__ import annotations

import asyncio
import re
from uuid import UUID, uuid4

import pytest

from octavo.choreography import Cause, job_after
from octavo.jobs.queue import enqueue
from tests.integration.web.reader.conftest import Room
from tests.support.processes import PATIENCE_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOTHING = "No connections. No other document in your library"
NOTE = "# Sourdough\n\nFeed the starter with flour and water and let the dough rest overnight."
GERMAN = "# Brot\n\nDer Sauerteig wird am Abend mit Mehl und Wasser angesetzt und ruht dann bis zum nächsten Morgen."

BUSY_WORKER = """INSERT INTO workers (id, host, pid, kinds, slots, started_at, heartbeat_at, expires_at)
VALUES (%s, 'here', 1, '{detect_connections}', 1, engine_now(), engine_now(), engine_now() + interval '1 hour')"""
BACKED_OFF = """UPDATE jobs SET run_after = engine_now() + interval '15 minutes', admitted = false, attempt = 1,
    note = '{"error": {"code": "AI_UNAVAILABLE", "message": "The model provider is not available."}}'
WHERE document_id = %s AND kind = 'detect_connections' AND status = 'queued'"""


async def add_and_compare(room: Room, text: str = NOTE) -> str:
    document = await room.upload("note.md", text)
    async with room.working():
        await room.until_done()
        await until_compared(room)
    return document


async def until_compared(room: Room) -> None:
    open_jobs = "SELECT FROM jobs WHERE kind = 'detect_connections' AND status IN ('queued', 'processing')"
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await room.house.rows(open_jobs):  # noqa: ASYNC110 - another task makes it true
            await asyncio.sleep(0.02)


async def panel(room: Room, document: str) -> str:
    html = await room.read(f"/documents/{document}/connections")
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


async def comparison(room: Room, document: str) -> dict[str, str]:
    return (await room.owner.get(f"/api/v1/documents/{document}/connections")).json()["comparison"]


async def let_it_fail(room: Room, document: str) -> None:
    """The waiting comparison ends as if a worker had given it up."""
    failed = await room.house.run(
        "UPDATE jobs SET status = 'failed', admitted = false, failed_at = clock_timestamp(), error_code = 'TIMED_OUT', "
        "error_message = 'Timed out.' WHERE document_id = %s AND kind = 'detect_connections' AND status = 'queued'",
        UUID(document),
    )
    assert failed == 1


async def test_a_text_that_is_not_indexed_yet_promises_connections(room: Room) -> None:
    document = await room.upload("note.md", NOTE)
    assert (await comparison(room, document))["state"] == "not_indexed"
    assert "once the text is indexed" in await panel(room, document)
    async with room.working():
        await room.until_done()


async def test_a_finished_comparison_without_a_result_says_so(room: Room) -> None:
    document = await add_and_compare(room)
    assert (await comparison(room, document))["state"] == "done"
    assert NOTHING in await panel(room, document)
    assert "No connections yet" in await room.read("/connections")


async def test_languages_without_contradictions_and_missing_bridges_are_named(room: Room) -> None:
    english = await add_and_compare(room)
    german = await add_and_compare(room, GERMAN)
    coverage = [
        (await room.owner.get(f"/api/v1/documents/{document}/connections")).json()["coverage"]
        for document in (english, german)
    ]
    assert coverage == [
        {"contradiction_languages": ["en"], "contradictions": covered, "bridges": False} for covered in (True, False)
    ]
    limited = "Contradictions are found in English documents only."
    assert limited not in await panel(room, english)
    assert limited in await panel(room, german)
    assert "Bridges between different subjects need a configured model." in await room.read(
        "/connections?engine=thematic_bridge"
    )


async def test_a_waiting_comparison_is_shown_in_the_panel_the_map_the_dock_and_the_history(room: Room) -> None:
    document = await add_and_compare(room)
    answer = await room.owner.post("/actions/connections/compare", data={"document": document, "back": "/library"})
    assert answer.status_code == 303
    shown = await comparison(room, document)
    assert (shown["state"], bool(shown["detail"])) == ("waiting", True)
    text = await panel(room, document)
    assert "waiting to be compared" in text
    assert NOTHING not in text
    assert "Documents are being compared" in await room.read("/connections")
    library = await room.read("/library")
    assert f'href="/documents/{document}?panel=connections"' in library
    history = await room.read(f"/documents/{document}/history")
    assert "Comparison queued" in history
    assert "Comparison finished" in history
    assert history.count(">Comparison</td>") == 2
    async with room.working():
        await until_compared(room)
    assert (await comparison(room, document))["state"] == "done"


async def test_a_failed_comparison_says_why_and_can_be_retried(room: Room) -> None:
    document = await add_and_compare(room)
    await room.owner.post("/actions/connections/compare", data={"document": document})
    await let_it_fail(room, document)
    shown = await comparison(room, document)
    assert (shown["state"], shown["detail"]) == ("failed", "Timed out (TIMED_OUT)")
    text = await panel(room, document)
    assert "The comparison failed: Timed out (TIMED_OUT)." in text
    assert "Try again" in text
    assert NOTHING not in text
    assert "Comparisons failed" in await room.read("/connections")
    # Without a document, what failed is compared again.
    await room.owner.post("/actions/connections/compare", data={})
    assert (await comparison(room, document))["state"] == "waiting"
    async with room.working():
        await until_compared(room)
    assert NOTHING in await panel(room, document)


async def test_a_comparison_that_waits_for_its_next_attempt_can_be_tried_now(room: Room) -> None:
    document = await add_and_compare(room)
    await room.owner.post("/actions/connections/compare", data={"document": document})
    assert (await comparison(room, document))["may_try_now"] is False
    assert "Try now" not in await panel(room, document)
    await room.house.run(BUSY_WORKER, worker := uuid4())
    backed_off = await room.house.run(BACKED_OFF, UUID(document))
    assert backed_off == 1
    shown = await comparison(room, document)
    assert (shown["state"], shown["may_try_now"]) == ("waiting", True)
    action = f'action="/actions/jobs/{shown["job_id"]}/retry"'
    assert action in await room.read(f"/documents/{document}/connections")
    dock = (await room.read("/library")).partition(f'data-job="{shown["job_id"]}"')[2].partition("</li>")[0]
    assert action in dock
    assert (await room.owner.post(f"/actions/jobs/{shown['job_id']}/retry")).status_code == 303
    await room.house.run("DELETE FROM workers WHERE id = %s", worker)
    assert (await comparison(room, document))["may_try_now"] is False
    async with room.working():
        await until_compared(room)
    assert (await comparison(room, document))["state"] == "done"


async def test_a_cancelled_comparison_can_be_started_again(room: Room) -> None:
    document = await add_and_compare(room)
    await room.owner.post("/actions/connections/compare", data={"document": document})
    job = (await comparison(room, document))["job_id"]
    assert (await room.owner.post(f"/actions/jobs/{job}/cancel")).status_code == 303
    text = await panel(room, document)
    assert "The comparison was cancelled" in text
    assert "Compare" in text


async def test_a_stranger_compares_nothing(room: Room) -> None:
    document = await add_and_compare(room)
    stranger = await room.house.person("somebody@example.org")
    answer = await stranger.post("/actions/connections/compare", data={"document": document})
    assert answer.status_code == 404
    assert (await comparison(room, document))["state"] == "done"


async def test_a_document_that_is_compared_while_it_is_processed_is_listed_once(room: Room) -> None:
    document = await room.upload("twice.md", f"{NOTE} Twice.")
    async with room.house.app.state.services.database.transaction() as connection:
        owner = (await room.house.rows("SELECT owner_id FROM documents WHERE id = %s", UUID(document)))[0][0]
        job = job_after(Cause.COMPARISON_REQUESTED, owner, {"revision": 1}, document=UUID(document))
        await enqueue(connection, [job])

    dock = await room.read("/fragments/frame")

    assert dock.count(f'data-document="{document}"') == 1
