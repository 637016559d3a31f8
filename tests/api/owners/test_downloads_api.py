"""A download that broke off goes on where it was, unless the file is another one by now."""

from __future__ import annotations

import httpx
import pytest

from tests.support.visitors import House, refused

BODY = bytes(range(256)) * 4


@pytest.fixture
async def source(house: House) -> tuple[httpx.AsyncClient, str]:
    browser = await house.browser()
    made = await browser.post("/api/v1/documents", content=BODY, headers={"x-upload-filename": "a.bin"})
    assert made.status_code == 202, made.text
    return browser, f"/api/v1/documents/{made.json()['document_id']}/source"


async def test_the_rest_is_sent_to_a_client_that_has_the_beginning(source: tuple[httpx.AsyncClient, str]) -> None:
    browser, path = source
    whole = await browser.get(path)
    assert whole.content == BODY
    for mark in (whole.headers["etag"], whole.headers["last-modified"]):
        rest = await browser.get(path, headers={"range": "bytes=100-", "if-range": mark})
        assert (rest.status_code, rest.content) == (206, BODY[100:])
        assert rest.headers["content-range"] == f"bytes 100-{len(BODY) - 1}/{len(BODY)}"


async def test_the_whole_file_is_sent_if_the_client_has_another_version(source: tuple[httpx.AsyncClient, str]) -> None:
    browser, path = source
    for mark in ('"another"', "Thu, 01 Jan 2015 00:00:00 GMT", "nonsense"):
        answer = await browser.get(path, headers={"range": "bytes=100-", "if-range": mark})
        assert (answer.status_code, answer.content) == (200, BODY)


async def test_who_has_it_is_told_so_and_nothing_is_counted(source: tuple[httpx.AsyncClient, str]) -> None:
    browser, path = source
    etag = (await browser.get(path)).headers["etag"]
    for known in (etag, f'"another", W/{etag}', "*"):
        answer = await browser.get(path, headers={"if-none-match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)
    assert (await browser.get(path, headers={"if-none-match": '"another"'})).content == BODY
    assert (await browser.get(path.removesuffix("/source"))).json()["download_count"] == 2


async def test_who_asks_for_what_is_not_there_is_told_the_size(source: tuple[httpx.AsyncClient, str]) -> None:
    browser, path = source
    answer = await browser.get(path, headers={"range": "bytes=5000-"})
    refused(answer, 416, "RANGE_NOT_SATISFIABLE")
    assert answer.headers["content-range"] == f"bytes */{len(BODY)}"
    other = await browser.get(path, headers={"range": "bytes=5000-", "if-range": '"another"'})
    assert (other.status_code, other.content) == (200, BODY)
