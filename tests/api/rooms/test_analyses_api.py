"""Analyses by the API: stopping is a normal end, and answers are downloaded as files."""

from __future__ import annotations

import json

from tests.api.rooms.conftest import person
from tests.support.visitors import House

ANSWERED = """
    UPDATE analysis_results SET status = 'completed', answer = 'Four crowns.', made_by = 'local', completed_at = now(),
        citations = '[{"page": 1, "quote": "four crowns", "verified": true, "relevance": 1}]'
    WHERE analysis_id = %s"""


async def test_a_stopped_analysis_is_stopped_and_resumed(house: House) -> None:
    owner = await person(house, "ada@example.org")
    document = (await owner.post("/api/v1/documents", json={"text": "A report."})).json()["document_id"]
    await house.run("UPDATE documents SET text_ready = true, revision = 1 WHERE id = %s", document)
    analysis = (await owner.post("/api/v1/analyses", json={"document_id": document})).json()["id"]
    stopped = await owner.post(f"/api/v1/analyses/{analysis}/stop")
    assert (stopped.status_code, stopped.json()["status"], stopped.json()["error"]) == (200, "stopped", None)
    page = (await owner.get(f"/analyses/{analysis}")).text
    assert "Stopped by you" in page
    assert "Failed" not in page
    assert await house.rows("SELECT kind FROM events WHERE kind = 'analysis.failed'") == []
    assert (await owner.post(f"/api/v1/analyses/{analysis}/retry")).json()["status"] == "queued"


async def test_answers_are_exported_as_markdown_json_and_csv(house: House) -> None:
    owner = await person(house, "ada@example.org")
    document = (await owner.post("/api/v1/documents", json={"text": "A report.", "title": "Fees"})).json()[
        "document_id"
    ]
    await house.run("UPDATE documents SET text_ready = true, revision = 1 WHERE id = %s", document)
    analysis = (await owner.post("/api/v1/analyses", json={"document_id": document})).json()["id"]
    await house.run(ANSWERED, analysis)
    found = {
        form: await owner.get(f"/api/v1/analyses/{analysis}/export", params={"format": form})
        for form in ("markdown", "json", "csv")
    }
    assert "Four crowns." in found["markdown"].text
    assert found["markdown"].headers["content-disposition"].startswith("attachment")
    assert json.loads(found["json"].text)["results"][0]["content"] == "Four crowns."
    assert "four crowns" in found["csv"].text
    assert (await owner.get(f"/api/v1/analyses/{analysis}/export", params={"format": "pdf"})).status_code == 422
