"""Files that were refused: listed with their reason, on a page and in the API, for nobody but their owner."""

from __future__ import annotations

import pytest

from tests.api.rooms.conftest import guest, heading, is_page, words
from tests.support.visitors import House, refused

EMPTY = {"file": ("refused by us.pdf", b"", "application/pdf")}


async def test_a_file_refused_in_one_call_is_listed_with_its_reason(house: House) -> None:
    browser, stranger = await guest(house), await guest(house)
    problem = refused(await browser.post("/api/v1/documents", files=EMPTY), 422, "EMPTY")
    (listed,) = (await browser.get("/api/v1/uploads", params={"state": "rejected"})).json()["items"]
    assert (listed["filename"], listed["state"], listed["document_id"]) == ("refused by us.pdf", "rejected", None)
    assert listed["error"] == {"code": problem["code"], "message": "The content is empty."}
    assert (await stranger.get("/api/v1/uploads", params={"state": "rejected"})).json()["items"] == []
    assert (await browser.get("/api/v1/uploads", params={"state": "uploaded"})).json()["items"] == []


async def test_the_library_leads_to_the_refused_files(house: House) -> None:
    browser = await guest(house)
    assert "/uploads" not in (await browser.get("/library")).text
    is_page(empty := await browser.get("/uploads"))
    assert "No refused files" in words(empty)
    await browser.post("/api/v1/documents", files=EMPTY)
    library = await browser.get("/library")
    assert 'href="/uploads"' in library.text
    assert "1 refused" in words(library)
    is_page(page := await browser.get("/uploads"))
    assert heading(page) == "Refused files"
    assert "refused by us.pdf The content is empty." in words(page)


@pytest.mark.parametrize("query", [{"state": "lost"}, {"cursor": "x"}])
async def test_a_wrong_request_is_refused(house: House, query: dict[str, str]) -> None:
    answer = await (await house.browser()).get("/api/v1/uploads", params=query)
    assert answer.status_code in {400, 422}


async def test_a_refused_duplicate_names_its_twin_in_a_field(house: House) -> None:
    browser = await house.browser()
    files = {"file": ("a.txt", b"The same text.", "text/plain")}
    first = (await browser.post("/api/v1/documents", files=files)).json()["document_id"]
    answer = await browser.post("/api/v1/documents", files=files, data={"duplicates": "reject"})
    assert refused(answer, 409, "DUPLICATE")["duplicate_of"] == first
