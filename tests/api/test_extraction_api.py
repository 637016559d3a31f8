"""Who may have texts written by models, and what they are told who may not: nothing changes for these."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.engine import Engine, engine_on
from tests.support.visitors import OpenHouse, refused

DOCUMENTS = "/api/v1/documents"
OUTSIDE = {"providers": "gemini,local", "gemini_key": "nobody asks it here"}
INPUTS = "SELECT input ->> 'revision', input ->> 'extraction', input ->> 'generation' FROM jobs ORDER BY created_at, id"


async def add(browser: httpx.AsyncClient, **more: str) -> httpx.Response:
    return await browser.post(DOCUMENTS, json={"text": "Some words.", **more})


@pytest.fixture
def engine(database_info: str) -> Iterator[Engine]:
    with engine_on(database_info) as one:
        yield one


def finish(engine: Engine, document: str) -> None:
    """As if a worker had."""
    engine.complete(engine.claim_one(kinds=["process_document"]))
    engine.run("UPDATE documents SET quality = 'full', word_count = 2 WHERE id = %s", document)


async def test_without_a_model_elsewhere_the_answer_says_why_and_nothing_changes(
    open_house: OpenHouse, engine: Engine
) -> None:
    house = await open_house()
    person = await house.person("ada@example.org")
    said = refused(await add(person, extraction="clean"), 422, "AI_NO_MODEL")
    assert "none is set up" in said["detail"]
    announced = {"filename": "a.pdf", "extraction": "pages"}
    refused(await person.post("/api/v1/uploads", json=announced), 422, "AI_NO_MODEL")
    raw = {"x-upload-filename": "a.txt"}
    refused(await person.post(f"{DOCUMENTS}?extraction=clean", content=b"x", headers=raw), 422, "AI_NO_MODEL")
    form = {"extraction": (None, "clean"), "file": ("a.txt", b"x")}
    refused(await person.post(DOCUMENTS, files=form), 422, "AI_NO_MODEL")
    assert await house.rows("SELECT FROM uploads") == []
    document = (await add(person)).json()["document_id"]
    finish(engine, document)
    refused(await person.post(f"{DOCUMENTS}/{document}/retry", json={"extraction": "clean"}), 422, "AI_NO_MODEL")
    assert await house.rows(INPUTS) == [("1", None, None)]
    assert "with a model" not in (await person.get(f"/documents/{document}")).text
    assert (await person.get("/api/v1/settings")).json()["extraction"] == ["plain"]
    refused(await add(person, extraction="magic"), 422, "VALIDATION")


async def test_visitors_are_asked_to_sign_in(open_house: OpenHouse) -> None:
    house = await open_house(**OUTSIDE)
    visitor = await house.browser()
    await visitor.get("/api/v1/session")
    assert "Sign in" in refused(await add(visitor, extraction="clean"), 422, "AI_NO_MODEL")["detail"]


async def test_a_text_is_written_when_it_comes_in_or_later_and_rapid_clicks_make_one_job(
    open_house: OpenHouse, engine: Engine
) -> None:
    house = await open_house(**OUTSIDE)
    person = await house.person("ada@example.org")
    assert (await person.get("/api/v1/settings")).json()["extraction"] == ["plain", "clean", "pages"]
    document = (await add(person, extraction="clean")).json()["document_id"]
    retry = f"{DOCUMENTS}/{document}/retry"
    assert (await person.post(retry, json={"extraction": "clean"})).json()["state"] == "pending"
    refused(await person.post(retry, json={"extraction": "pages"}), 409, "STILL_PROCESSED")
    assert await house.rows(INPUTS) == [("1", "clean", None)]
    finish(engine, document)
    assert "extraction" not in (await person.get(f"{DOCUMENTS}/{document}")).json()["metadata"]
    page = (await person.get(f"/documents/{document}")).text
    assert ("Clean up with a model" in page, "Read with a model" in page) == (True, False)
    # Asked for again, although it is there: models are asked anew.
    for _ in range(2):
        assert (await person.post(f"/actions/documents/{document}/clean")).status_code == 303
    assert (await house.rows(INPUTS))[1:] == [("2", "clean", "2")]
    finish(engine, document)
    refused(await person.post(retry, json={"extraction": "clean", "from_stage": "chunked"}), 422, "VALIDATION")
    # A twin of its own is made in the way that is asked for, and not copied.
    twin = await add(person, extraction="pages", duplicates="new")
    assert twin.json()["duplicate_of"] == document
    assert (await house.rows(INPUTS))[2:] == [("1", "pages", None)]
