"""Imports on the pages: one document is moved up, all of them are paused, and the list of running jobs says so."""

from __future__ import annotations

from uuid import uuid4

import httpx

from tests.api.rooms.conftest import person, went_to, words
from tests.support.visitors import House


async def add_import(browser: httpx.AsyncClient, count: int) -> list[str]:
    headers, path = {"x-upload-filename": "note.txt"}, f"/api/v1/documents?import_id={uuid4()}"
    answers = [await browser.post(path, content=f"Note {n}.", headers=headers) for n in range(count)]
    return [one.json()["document_id"] for one in answers]


async def lanes(browser: httpx.AsyncClient) -> list[str]:
    return [one["lane"] for one in (await browser.get("/api/v1/jobs")).json()["items"]]


async def test_a_document_of_an_import_is_moved_up_in_the_library(house: House) -> None:
    browser = await person(house, "ada@example.org")
    first, _ = await add_import(browser, 2)
    assert await lanes(browser) == ["bulk", "bulk"]
    assert (await browser.get("/library")).text.count(f"/actions/documents/{first}/prioritise") == 1
    went_to(await browser.post(f"/actions/documents/{first}/prioritise"), "/library")
    went_to(await browser.post(f"/actions/documents/{first}/prioritise"), "/library")
    assert await lanes(browser) == ["bulk", "interactive"]
    assert f"/actions/documents/{first}/prioritise" not in (await browser.get("/library")).text


async def test_imports_are_paused_and_resumed_beside_the_running_jobs(house: House) -> None:
    browser = await person(house, "ada@example.org")
    assert "Pause imports" not in words(await browser.get("/library"))
    await add_import(browser, 1)
    assert "Pause imports" in words(await browser.get("/library"))
    went_to(await browser.post("/actions/imports/pause"), "/library")
    page = words(await browser.get("/library"))
    assert "Resume imports" in page
    assert "Imports are paused" in page
    went_to(await browser.post("/actions/imports/resume"), "/library")
    assert "Imports are paused" not in words(await browser.get("/library"))


async def test_somebody_elses_document_cannot_be_moved(house: House) -> None:
    (document,) = await add_import(await person(house, "ada@example.org"), 1)
    stranger = await person(house, "bo@example.org")
    assert (await stranger.post(f"/actions/documents/{document}/prioritise")).status_code == 404


async def test_a_file_without_a_mark_in_a_browser_is_added_by_hand(house: House) -> None:
    browser = await person(house, "ada@example.org")
    await add_import(browser, 10)
    await browser.post("/api/v1/documents", json={"text": "A pasted line."})
    assert (await lanes(browser))[0] == "interactive"


async def test_a_malformed_mark_is_refused(house: House) -> None:
    browser = await person(house, "ada@example.org")
    headers, path = {"x-upload-filename": "note.txt"}, "/api/v1/documents?import_id=harbour"
    assert (await browser.post(path, content="Note.", headers=headers)).status_code == 422


async def test_links_text_and_announced_files_can_be_part_of_an_import_too(house: House) -> None:
    browser = await person(house, "ada@example.org")
    mark = f"?import_id={uuid4()}"
    await browser.post(f"/api/v1/documents{mark}", json={"text": "A pasted line."})
    ticket = (await browser.post(f"/api/v1/uploads{mark}", json={"filename": "a.txt"})).json()
    await browser.put(ticket["put_url"], content=b"Words.")
    await browser.post(f"/api/v1/uploads/{ticket['upload_id']}/finalize")
    assert await lanes(browser) == ["bulk", "bulk"]
