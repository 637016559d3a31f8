"""Searching a small library: what is found, for whom, how soon, and what is said when it cannot be looked for."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from octavo.core.errors import OverBudget
from octavo.web.context.services import Models
from tests.integration.web.reader.conftest import Room

pytestmark = pytest.mark.asyncio(loop_scope="module")

BRIDGE = "# Harbour bridge\n\nThe steel cables of the bridge are in poor condition. Engineers measured them in May."
BREAD = "# Sourdough\n\nFeed the starter with flour and water and let the dough rest overnight."
BOG = "# How a bog keeps its rain\n\nSphagnum moss holds many times its weight in water, so the mire stays wet."
GERMAN = (
    "# Die Brücke am Hafen\n\nDie alten Brücken wurden geprüft. Die Ingenieure fanden an den Häusern viele Risse, "
    "und die Stadt will sie im nächsten Jahr mit neuem Stahl verstärken lassen."
)
CHINESE = "# 水質檢查報告\n\n港口的水質在夏天變差。工程師每週檢查一次水質。並且記錄結果。"


async def add_all(room: Room, **texts: str) -> dict[str, str]:
    """By name; all of them are worked on together."""
    ids = {name: await room.upload(f"{name}.md", text) for name, text in texts.items()}
    async with room.working():
        await room.until_done()
    return ids


async def search(room: Room, q: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await room.owner.get("/api/v1/search", params={"q": q, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def found(room: Room, q: str, **more: Any) -> list[str]:  # noqa: ANN401
    return [hit["document_id"] for hit in (await search(room, q, **more))["items"]]


async def test_words_meaning_and_both_find_the_place(room: Room) -> None:
    ids = await add_all(room, bridge=BRIDGE, bread=BREAD, bog=BOG)
    answer = await search(room, "condition of the bridge's cables")
    first = answer["items"][0]
    assert (first["document_id"], answer["mode"], answer["degraded"]) == (ids["bridge"], "hybrid", None)
    assert {first["snippet"][start:end] for start, end in first["marks"]} >= {"cables", "condition"}
    assert first["scores"]["text"]
    assert first["scores"]["semantic"]
    assert (await found(room, "baking a loaf at home", mode="semantic"))[0] == ids["bread"]
    assert await found(room, "sphagnum", mode="text") == [ids["bog"]]
    # Endings do not matter, a title counts, and what is nowhere is not found by words.
    assert await found(room, "engineer measuring", mode="text") == [ids["bridge"]]
    assert (await found(room, "Sourdough", mode="text"))[0] == ids["bread"]
    assert await found(room, "quaternion", mode="text") == []


async def test_phrases_exclusions_and_filters_hold_for_every_mode(room: Room) -> None:
    ids = await add_all(room, bridge=BRIDGE, bread=BREAD, bog=BOG)
    await room.owner.patch(f"/api/v1/documents/{ids['bog']}", json={"tags": ["Wet"], "collection": "Nature"})
    await room.owner.patch(f"/api/v1/documents/{ids['bread']}", json={"document_date": "2020-02-02"})
    for mode in ("hybrid", "text", "semantic"):
        assert await found(room, '"flour and water"', mode=mode) == [ids["bread"]]
        assert await found(room, '"water and flour"', mode=mode) == []
        assert ids["bread"] not in await found(room, "water -flour", mode=mode)
        assert ids["bog"] in await found(room, "water -flour", mode=mode)
        assert await found(room, "water", mode=mode, tag="wet") == [ids["bog"]]
        assert await found(room, "water", mode=mode, collection="nature") == [ids["bog"]]
        assert await found(room, "water", mode=mode, until="2020-12-31") == [ids["bread"]]
        assert await found(room, "water", mode=mode, document=ids["bog"]) == [ids["bog"]]
        assert await found(room, "water", mode=mode, kind="pdf") == []


async def test_each_language_is_read_in_its_own_way(room: Room) -> None:
    ids = await add_all(room, bridge=BRIDGE, german=GERMAN, chinese=CHINESE)
    assert await found(room, "Brücke prüfen", mode="text") == [ids["german"]]
    assert await found(room, "Haus", mode="text") == [ids["german"]]
    assert await found(room, "水質", mode="text") == [ids["chinese"]]
    assert await found(room, '"工程師每週檢查"', mode="text") == [ids["chinese"]]
    assert await found(room, "夏", mode="text") == [ids["chinese"]]
    # Words of grammar say nothing, in any of them.
    assert await found(room, "the of die", mode="text") == []


async def test_the_language_filter_takes_every_variety_of_a_language(room: Room) -> None:
    tagged = {"plain": "en", "british": "en-GB", "american": "en_US", "german": "de-AT"}
    ids = await add_all(room, **{name: f"---\nlanguage: {tag}\n---\n\n{BRIDGE}" for name, tag in tagged.items()})
    english = {ids[name] for name in ("plain", "british", "american")}
    for asked in ("en", "en-GB", "EN_us"):
        for mode in ("hybrid", "text", "semantic"):
            assert set(await found(room, "bridge", mode=mode, language=asked)) == english
    assert await found(room, "bridge", language="de") == [ids["german"]]
    # All of them are read by the rules of English, and one choice stands for all of them.
    assert set(await found(room, "engineer measuring", mode="text", language="en")) == english
    page = await room.owner.get("/search", params={"q": "bridge", "language": "en-GB"})
    choices = page.text.partition('id="by-language"')[2].partition("</select>")[0]
    assert re.findall(r"<option( selected)?>([^<]+)</option>", choices) == [("", "de"), (" selected", "en")]


async def test_a_stranger_finds_nothing(room: Room) -> None:
    await add_all(room, bog=BOG)
    stranger = await room.house.person(f"{uuid4()}@example.org")
    for mode in ("hybrid", "text", "semantic"):
        answer = await stranger.get("/api/v1/search", params={"q": "sphagnum moss", "mode": mode})
        assert (answer.status_code, answer.json()["items"]) == (200, [])


async def test_what_changes_is_found_as_it_is_at_once(room: Room) -> None:
    ids = await add_all(room, bog=BOG, bread=BREAD)
    address = f"/api/v1/documents/{ids['bog']}"
    await room.owner.delete(address)
    assert ids["bog"] not in await found(room, "sphagnum moss")
    await room.owner.post(f"{address}/restore")
    assert (await found(room, "sphagnum moss"))[0] == ids["bog"]
    await room.owner.patch(address, json={"title": "Peatland almanac"})
    answer = await search(room, "almanac", mode="text")
    assert [(hit["document_id"], hit["title"]) for hit in answer["items"]] == [(ids["bog"], "Peatland almanac")]
    await room.owner.post(f"{address}/retry", json={"from_stage": ""})
    async with room.working():
        await room.until_done()
    again = await search(room, "sphagnum moss")
    assert [hit["document_id"] for hit in again["items"]].count(ids["bog"]) == 1
    await room.owner.delete(f"{address}?purge=true")
    assert await found(room, "sphagnum", mode="text") == []
    assert (
        await room.house.rows(
            "SELECT FROM chunk_words w FULL JOIN chunks c ON c.id = w.chunk_id WHERE w.chunk_id IS NULL OR c.id IS NULL"
        )
        == []
    )


ODD = [
    "the of and",
    "-- -",
    '"""',
    "a & b | !c:*",
    "'; DROP TABLE chunks; --",
    "nul\0nul",
    "\ud800",
    "(" * 300,
    "é" * 999,
]


@pytest.mark.parametrize("q", ODD, ids=range(len(ODD)))
async def test_whatever_is_typed_gets_an_answer(room: Room, q: str) -> None:
    await add_all(room, bog=BOG)
    for mode in ("hybrid", "text"):
        said = quote(q.encode(errors="surrogatepass"))
        answer = await room.owner.get(f"/api/v1/search?q={said}&mode={mode}")
        assert answer.status_code in {200, 422}, answer.text
        if answer.status_code == 422:
            assert answer.json()["code"] == "NOTHING_ASKED"


async def test_nothing_and_too_much_are_refused_with_a_reason(room: Room) -> None:
    for q, code in (("", "NOTHING_ASKED"), ("-moss", "NOTHING_ASKED"), ("word " * 2000, "QUERY_TOO_LONG")):
        answer = await room.owner.get("/api/v1/search", params={"q": q})
        assert (answer.status_code, answer.json()["code"]) == (422, code)


async def test_without_a_vector_words_have_to_do_and_it_is_said(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = await add_all(room, bog=BOG)

    async def refuse(*_: object) -> None:
        raise OverBudget("Nothing is left.")

    monkeypatch.setattr(Models, "embed", refuse)
    answer = await search(room, "sphagnum moss")
    assert (answer["mode"], answer["degraded"]["code"]) == ("text", "OVER_BUDGET")
    assert [hit["document_id"] for hit in answer["items"]] == [ids["bog"]]
    refused = await room.owner.get("/api/v1/search", params={"q": "moss", "mode": "semantic"})
    assert (refused.status_code, refused.json()["code"]) == (402, "OVER_BUDGET")
    assert "Searched by words only" in await room.read("/search?q=sphagnum")


async def test_a_text_without_vectors_is_found_by_its_words(room: Room) -> None:
    ids = await add_all(room, bog=BOG, bread=BREAD)
    await room.house.rows("DELETE FROM chunk_embeddings WHERE document_id = %s RETURNING chunk_id", ids["bog"])
    assert (await found(room, "sphagnum moss"))[0] == ids["bog"]


async def test_documents_and_tags_know_what_is_like_them(room: Room) -> None:
    safe = BRIDGE.replace("poor", "good").replace("# Harbour bridge", "# Inspection of the bridge over the harbour")
    ids = await add_all(room, bridge=BRIDGE, safe=safe, bread=BREAD)
    related = (await room.owner.get(f"/api/v1/documents/{ids['bridge']}/related")).json()["items"]
    assert [one["document_id"] for one in related] == [ids["safe"]]
    stranger = await room.house.person(f"{uuid4()}@example.org")
    assert (await stranger.get(f"/api/v1/documents/{ids['bridge']}/related")).status_code == 404
    tags = (await room.owner.get("/api/v1/tags")).json()["items"]
    similar = (await room.owner.get("/api/v1/tags/similar", params={"name": tags[0]["name"]})).json()["items"]
    assert tags[0]["name"] not in {one["name"] for one in similar}


async def test_the_page_leads_to_the_passage(room: Room) -> None:
    ids = await add_all(room, evil="# <b>Bold</b>\n\nA <script>alert(1)</script> of peat & moss.", bread=BREAD)
    shown = await room.read("/search?q=peat+moss&mode=text")
    assert "<mark>peat</mark>" in shown
    assert "<script>alert" not in shown
    link = re.search(rf'href="(/documents/{ids["evil"]}\?c=([0-9a-f-]+))#c-\2"', shown)
    assert link
    assert "peat" in await room.read(link[1])
    assert "Nothing found" in await room.read("/search?q=quaternion&mode=text")
    assert "Search for words" in await room.read("/search")
    long = await room.owner.get("/search", params={"q": "x" * 5000})
    assert long.status_code == 422
    assert "too long" in long.text
