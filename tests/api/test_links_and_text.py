"""Links and text come in through the same door as files, and what cannot be taken is refused at once."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.dumps import dump
from tests.support.sites import canary
from tests.support.visitors import House, OpenHouse, house_on, refused
from tests.support.youtube import WATCH

DOCUMENTS = "/api/v1/documents"
PAGE = "https://example.org/rivers/one"


@pytest.fixture
async def house(database_info: str, folder: Path) -> AsyncIterator[House]:
    async with house_on(database_info, folder, upload_bytes=5000) as house:
        yield house


@pytest.fixture
async def browser(house: House) -> httpx.AsyncClient:
    browser = await house.browser()
    await browser.get("/api/v1/session")
    return browser


async def give(browser: httpx.AsyncClient, **given: object) -> httpx.Response:
    return await browser.post(DOCUMENTS, json=given)


async def shown(browser: httpx.AsyncClient, answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    assert {"document_id", "process_id", "state"} <= answer.json().keys()
    return (await browser.get(f"{DOCUMENTS}/{answer.json()['document_id']}")).raise_for_status().json()


async def test_a_link_is_accepted_immediately_and_fetched_later(browser: httpx.AsyncClient) -> None:
    document = await shown(browser, await give(browser, url="https://Example.org/rivers/one?utm_source=x#a"))
    assert (document["status"], document["source_type"], document["source_url"]) == ("pending", "web", PAGE)
    assert document["title"] == "example.org - one"
    again = await give(browser, url=PAGE)
    assert (again.json()["state"], again.json()["document_id"]) == ("deduplicated", document["id"])
    refused(await give(browser, url=PAGE, duplicates="reject"), 409, "DUPLICATE")
    twin = await give(browser, url=PAGE, duplicates="new", title="My copy")
    assert twin.json()["duplicate_of"] == document["id"]
    assert (await shown(browser, twin))["title"] == "My copy"


@pytest.mark.parametrize("field", ["url", "youtube_url"])
async def test_a_video_is_a_video_whichever_way_it_is_given(browser: httpx.AsyncClient, field: str) -> None:
    document = await shown(browser, await give(browser, **{field: "https://youtu.be/dQw4w9WgXcQ?t=3"}))
    assert (document["source_type"], document["source_url"]) == ("youtube", WATCH)


async def test_text_keeps_its_title_and_where_it_is_from(browser: httpx.AsyncClient) -> None:
    document = await shown(browser, await give(browser, text="Some words.", title="Paste", source="A talk in Rome"))
    assert (document["title"], document["source_type"], document["source_url"]) == ("Paste", "paste", None)
    assert document["metadata"] == {"source": "A talk in Rome"}
    source = await browser.get(f"{DOCUMENTS}/{document['id']}/source")
    assert source.content == b"Some words."
    linked = await shown(browser, await give(browser, text="Other words.", source=PAGE))
    assert (linked["title"], linked["source_url"]) == ("Other words", PAGE)


async def test_links_and_files_keep_where_they_are_from_too(browser: httpx.AsyncClient) -> None:
    link = await shown(browser, await give(browser, url=PAGE, source="Recommended by Ada"))
    assert (link["source_url"], link["metadata"]["source"]) == (PAGE, "Recommended by Ada")
    headers = {"x-upload-filename": "a.txt"}
    answer = await browser.post(f"{DOCUMENTS}?source=A%20talk", content=b"Words of a file.", headers=headers)
    file = await shown(browser, answer)
    assert (file["source_url"], file["metadata"]["source"]) == (None, "A talk")


async def test_a_json_file_with_a_name_stays_a_file(browser: httpx.AsyncClient) -> None:
    headers = {"content-type": "application/json", "x-upload-filename": "link.json"}
    answer = await browser.post(DOCUMENTS, content=b'{"url": "https://example.org/"}', headers=headers)
    document = await shown(browser, answer)
    assert (document["filename"], document["source_type"], document["source_url"]) == ("link.json", "json", None)


async def test_a_file_that_calls_itself_a_link_is_none(browser: httpx.AsyncClient) -> None:
    headers = {"content-type": "text/uri-list", "x-upload-filename": "a.txt"}
    with canary() as inner:
        body = f"http://127.0.0.1:{inner.port}/\r\n".encode()
        document = await shown(browser, await browser.post(DOCUMENTS, content=body, headers=headers))
        assert (document["source_type"], document["source_url"]) == ("text", None)
        assert inner.visits() == 0


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "a file of the system": ({"url": "file:///etc/passwd"}, 422, "BAD_URL"),
    "no address": ({"url": "example.org"}, 422, "BAD_URL"),
    "a password": ({"url": "https://a:b@example.org/"}, 422, "BAD_URL"),
    "too long": ({"url": "https://example.org/" + "a" * 2000}, 422, "BAD_URL"),
    "loopback": ({"url": "http://127.0.0.1/"}, 422, "FETCH_REFUSED"),
    "loopback as a number": ({"url": "http://2130706433/"}, 422, "FETCH_REFUSED"),
    "loopback in hex": ({"url": "http://0x7f.1/"}, 422, "FETCH_REFUSED"),
    "loopback in IPv6": ({"url": "http://[::ffff:127.0.0.1]/"}, 422, "FETCH_REFUSED"),
    "metadata of a cloud": ({"url": "http://169.254.169.254/"}, 422, "FETCH_REFUSED"),
    "metadata by name": ({"url": "http://metadata.google.internal/"}, 422, "FETCH_REFUSED"),
    "a name of a local network": ({"url": "http://printer.local:631/"}, 422, "FETCH_REFUSED"),
    "a name without a domain": ({"url": "http://wiki/"}, 422, "FETCH_REFUSED"),
    "no video": ({"youtube_url": "https://example.org/"}, 422, "BAD_URL"),
    "an inner video": ({"youtube_url": "http://127.0.0.1/watch?v=dQw4w9WgXcQ"}, 422, "BAD_URL"),
    "no words": ({"text": " \n"}, 422, "EMPTY"),
    "more words than allowed": ({"text": "word " * 1001}, 413, "TOO_LARGE"),
    "far more words": ({"text": "word " * 100_000}, 413, "TOO_LARGE"),
    "nothing": ({}, 422, "VALIDATION"),
    "only nulls": ({"url": None}, 422, "VALIDATION"),
    "two things": ({"url": PAGE, "text": "x"}, 422, "VALIDATION"),
    "something else": ({"text": "x", "filename": "y"}, 422, "VALIDATION"),
    "a number": ({"url": 4}, 422, "VALIDATION"),
    "a list": ({"text": ["x"]}, 422, "VALIDATION"),
    "a strange title": ({"text": "x", "title": "a\u0000b"}, 422, "VALIDATION"),
    "a strange policy": ({"text": "x", "duplicates": "maybe"}, 422, "VALIDATION"),
}


@pytest.mark.parametrize(("given", "status", "code"), REFUSED.values(), ids=REFUSED.keys())
async def test_what_cannot_be_taken_is_refused_and_leaves_nothing(
    house: House, browser: httpx.AsyncClient, given: dict[str, Any], status: int, code: str
) -> None:
    before = await dump(house)
    refused(await give(browser, **given), status, code)
    assert await dump(house) == before


NAMES = {
    "inner.example.org": ["10.0.0.7"],
    "half.example.org": ["93.184.215.14", "fd00::1"],
    "outer.example.org": ["93.184.215.14"],
}


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(host: str, port: int) -> list[str]:
        del port
        if host not in NAMES:
            raise socket.gaierror(socket.EAI_AGAIN, "no name server")
        return NAMES[host]

    monkeypatch.setattr("octavo.fetch.client._look_up", look_up)


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("name", ["inner.example.org", "half.example.org"])
async def test_a_name_with_a_private_address_is_refused_with_the_setting_that_allows_it(
    house: House, browser: httpx.AsyncClient, name: str
) -> None:
    before = await dump(house)
    for answer in (
        await give(browser, url=f"http://{name}/"),
        await browser.post("/actions/add", data={"text": f"http://{name}/"}, headers={"accept": "application/json"}),
    ):
        problem = refused(answer, 422, "FETCH_REFUSED")
        assert "OCTAVO_FETCH_ALLOW" in f"{problem['title']} {problem.get('detail')}"
    assert await dump(house) == before


@pytest.mark.usefixtures("names")
async def test_a_public_name_and_one_that_cannot_be_looked_up_now_are_taken(browser: httpx.AsyncClient) -> None:
    for name in ("outer.example.org", "unknown.example.org"):
        assert (await give(browser, url=f"http://{name}/")).status_code == 202


@pytest.mark.usefixtures("names")
async def test_a_private_server_that_the_setting_names_is_taken(open_house: OpenHouse) -> None:
    house = await open_house(fetch_allow=("inner.example.org:80", "printer.local:631"))
    browser = await house.browser()
    assert (await give(browser, url="http://inner.example.org/")).status_code == 202
    assert (await give(browser, url="http://printer.local:631/")).status_code == 202
    refused(await give(browser, url="http://inner.example.org:8080/"), 422, "FETCH_REFUSED")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"https://example.org/"', b"null", b'{"url": "\\ud800"}', b"[" * 5000, b'{"text": "\xff"}'],
    ids=["nothing", "half", "a list", "a text", "null", "half a character", "depth", "no UTF-8"],
)
async def test_broken_json_is_refused(browser: httpx.AsyncClient, body: bytes) -> None:
    answer = await browser.post(DOCUMENTS, content=body, headers={"content-type": "application/json"})
    refused(answer, 422, "VALIDATION")


async def test_a_strangers_link_is_not_there(house: House, browser: httpx.AsyncClient) -> None:
    document = (await give(browser, url=PAGE)).json()["document_id"]
    stranger = await house.browser()
    refused(await stranger.get(f"{DOCUMENTS}/{document}"), 404, "NOT_FOUND")
    refused(await stranger.get(f"{DOCUMENTS}/{document}/source"), 404, "NOT_FOUND")
    assert (await give(stranger, url=PAGE)).json()["state"] == "uploaded"


async def test_openapi_describes_all_that_can_be_sent(browser: httpx.AsyncClient) -> None:
    described = (await browser.get("/api/openapi.json")).json()
    route, types = described["paths"][DOCUMENTS]["post"], described["components"]["schemas"]
    forms = route["requestBody"]["content"]
    assert forms.keys() == {"multipart/form-data", "application/json", "application/octet-stream"}
    kinds = [kind["$ref"].rpartition("/")[2] for kind in forms["application/json"]["schema"]["oneOf"]]
    required = [types[kind]["required"] for kind in kinds]
    assert required == [["url"], ["youtube_url"], ["text"]]
    assert {"duplicates", "title", "sha256"} <= {one["name"] for one in route["parameters"]}
