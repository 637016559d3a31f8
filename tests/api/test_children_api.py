"""Files of an archive are listed below it, and each knows the archive; strangers see neither."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.engine import Engine, engine_on
from tests.support.visitors import OpenHouse, refused

DOCUMENTS = "/api/v1/documents"
RELATE = "INSERT INTO document_parts (parent_id, number, name, document_id) VALUES (%s, %s, %s, %s)"


@pytest.fixture
def engine(database_info: str) -> Iterator[Engine]:
    with engine_on(database_info) as one:
        yield one


async def add(browser: httpx.AsyncClient, title: str) -> str:
    added = await browser.post(DOCUMENTS, json={"text": f"Some words about {title}.", "title": title})
    return added.json()["document_id"]


async def test_parts_are_listed_in_their_order_and_name_their_parent(open_house: OpenHouse, engine: Engine) -> None:
    house = await open_house()
    person, stranger = await house.person("ada@example.org"), await house.person("bob@example.org")
    parent, *parts = [await add(person, title) for title in ("Everything", "First", "Second", "Third")]
    for number, part in enumerate(parts):
        engine.run(RELATE, parent, number, f"folder/{number}.txt", part)
    page = (await person.get(f"{DOCUMENTS}/{parent}/children?limit=2")).json()
    rest = (await person.get(f"{DOCUMENTS}/{parent}/children", params={"cursor": page["next_cursor"]})).json()
    assert [item["title"] for item in page["items"] + rest["items"]] == ["First", "Second", "Third"]
    assert rest["next_cursor"] is None
    child = (await person.get(f"{DOCUMENTS}/{parts[1]}")).json()
    assert (child["parent_id"], child["part_name"]) == (parent, "folder/1.txt")
    assert (await person.get(f"{DOCUMENTS}/{parent}")).json()["parent_id"] is None
    assert (await person.get(f"{DOCUMENTS}/{parts[0]}/children")).json() == {"items": [], "next_cursor": None}
    refused(await stranger.get(f"{DOCUMENTS}/{parent}/children"), 404, "NOT_FOUND")
    refused(await person.get(f"{DOCUMENTS}/{parent}/children?cursor=x"), 422, "VALIDATION")


async def test_the_reader_shows_the_parts_and_the_parent(open_house: OpenHouse, engine: Engine) -> None:
    house = await open_house()
    person = await house.person("ada@example.org")
    parent, part = await add(person, "Everything"), await add(person, "First")
    engine.run(RELATE, parent, 0, "folder/a.txt", part)
    below = (await person.get(f"/documents/{part}")).text
    assert f'<a href="/documents/{parent}">Everything</a> (folder/a.txt)' in below
    above = (await person.get(f"/documents/{parent}")).text
    assert "<h3>Parts</h3>" in above
    assert f'<a href="/documents/{part}" dir="auto">First</a>' in above
