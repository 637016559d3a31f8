"""An edit that expects a version is refused if somebody changed it in the meantime; other edits are as before."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import httpx
import pytest

from octavo.owners import make_sign_in_link
from octavo.web.http.parameters import Changed, check_match, etag_of
from tests.support.connections import put_passage
from tests.support.visitors import House, refused

# What is added, and two different edits of it.
EDITS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "prompts": ({"title": "T", "content": "C"}, {"title": "One"}, {"title": "Two"}),
    "webhooks": (
        {"address": "https://example.org/hook"},
        {"active": False},
        {"address": "https://example.org/other"},
    ),
    "rules": (
        {"name": "Invoices", "when": {"text": "invoice"}, "then": {"tags": ["tax"]}},
        {"enabled": True},
        {"then": {"tags": ["other"]}},
    ),
    "sources": ({"kind": "rss", "path": "https://example.org/feed"}, {"paused": True}, {"name": "News"}),
}


async def make(house: House, client: httpx.AsyncClient, kind: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The path of something that can be edited, and two different edits."""
    if kind in EDITS:
        added, one, other = EDITS[kind]
        made = (await client.post(f"/api/v1/{kind}", json=added)).json()
        return f"/api/v1/{kind}/{made['id']}", one, other
    document = (await client.post("/api/v1/documents", json={"text": "The ferry runs every hour."})).json()
    path = f"/api/v1/documents/{document['document_id']}"
    if kind == "facts":
        return f"{path}/facts", {"sender": "Ann"}, {"sender": "Bob"}
    if kind == "highlights":
        await put_passage(house.run, UUID(document["document_id"]), index=0)
        added = await client.post(f"{path}/highlights", json={"start": 0, "end": 5})
        return f"/api/v1/highlights/{added.json()['id']}", {"note": "One"}, {"note": "Two"}
    return path, {"title": "One"}, {"title": "Two"}


@pytest.mark.parametrize("kind", ["documents", "facts", "prompts", "webhooks", "rules", "sources"])
async def test_an_edit_of_a_stale_version_is_refused(house: House, kind: str) -> None:
    client = await house.person("ann@example.org")
    if kind == "sources":  # only administrators add them
        await client.post("/sign-in", data={"token": await make_sign_in_link(house.database)})
    path, one, other = await make(house, client, kind)
    seen = (await client.get(path)).headers["etag"]
    edited = await client.patch(path, json=one, headers={"if-match": seen})
    assert edited.status_code == 200, edited.text
    assert edited.headers["etag"] == (await client.get(path)).headers["etag"] != seen
    refused(await client.patch(path, json=other, headers={"if-match": seen}), 412, "CHANGED")
    assert (await client.get(path)).headers["etag"] == edited.headers["etag"]
    again = await client.patch(path, json=other, headers={"if-match": f'"x", {edited.headers["etag"]}'})
    assert again.status_code == 200
    for anything in ({}, {"if-match": "*"}):
        assert (await client.patch(path, json=one, headers=anything)).status_code == 200


async def test_the_answers_of_highlights_have_their_version(house: House) -> None:
    client = await house.person("ann@example.org")
    path, one, other = await make(house, client, "highlights")
    seen = (await client.patch(path, json={})).headers["etag"]
    assert (await client.patch(path, json=one, headers={"if-match": seen})).status_code == 200
    refused(await client.patch(path, json=other, headers={"if-match": seen}), 412, "CHANGED")


async def test_of_two_edits_of_the_same_version_one_is_refused(house: House) -> None:
    client = await house.person("ann@example.org")
    path, one, other = await make(house, client, "prompts")
    header = {"if-match": (await client.get(path)).headers["etag"]}
    answers = await asyncio.gather(*(client.patch(path, json=edit, headers=header) for edit in (one, other)))
    assert sorted(answer.status_code for answer in answers) == [200, 412]


async def test_processing_is_not_an_edit(house: House) -> None:
    client = await house.person("ann@example.org")
    path, _, _ = await make(house, client, "documents")
    before = (await client.get(path)).headers["etag"]
    await house.run("UPDATE documents SET word_count = 7, text_ready = true, download_count = 3")
    assert (await client.get(path)).headers["etag"] == before


def test_an_etag_is_compared_as_a_whole() -> None:
    etag = etag_of("title", ["tag"])
    assert etag != etag_of("title", ["tags"])
    check_match(f"W/{etag}", etag)
    for wrong in ("", etag[:-2], etag.strip('"'), '"*"'):
        with pytest.raises(Changed):
            check_match(wrong, etag)
