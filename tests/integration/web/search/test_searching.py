"""Searching a small library: what is found, for whom, how soon, and what is said when it cannot be looked for."""

from __future__ import annotations

import asyncio
import re
from html import escape
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
import pytest_asyncio

from octavo.ai.gateway_setup import LiveModels
from octavo.core.errors import OverBudget
from tests.integration.web.reader.conftest import Room
from tests.support.processes import PATIENCE_SECONDS
from tests.support.visitors import House

pytestmark = pytest.mark.asyncio(loop_scope="module")

BRIDGE = "# Harbour bridge\n\nThe steel cables of the bridge are in poor condition. Engineers measured them in May."
BREAD = "# Sourdough\n\nFeed the starter with flour and water and let the dough rest overnight."
BOG = "# How a bog keeps its rain\n\nSphagnum moss holds many times its weight in water, so the mire stays wet."
GERMAN = (
    "# Die Brücke am Hafen\n\nDie alten Brücken wurden geprüft. Die Ingenieure fanden an den Häusern viele Risse, "
    "und die Stadt will sie im nächsten Jahr mit neuem Stahl verstärken lassen."
)
CHINESE = "# 水質檢查報告\n\n港口的水質在夏天變差。工程師每週檢查一次水質。並且記錄結果。"

LEASE = "The notice period of the lease is ninety days. The deposit is returned after the crane was inspected."
INSPECTION = BRIDGE.replace("poor", "good").replace("# Harbour bridge", "# Inspection of the bridge over the harbour")


async def add_all(room: Room, **texts: str) -> dict[str, str]:
    """By name; all of them are worked on together."""
    ids = {name: await room.upload(f"{name}.md", text) for name, text in texts.items()}
    async with room.working():
        await room.until_done()
    return ids


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def library(house: House) -> tuple[Room, dict[str, str]]:
    """Documents that tests only search. One test sets tags, a collection and a date, which no other test reads."""
    room = Room(house, await house.person(f"{uuid4()}@example.org"))
    return room, await add_all(room, bridge=BRIDGE, bread=BREAD, bog=BOG, lease=LEASE)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def similar(house: House) -> tuple[Room, dict[str, str]]:
    """Two documents about one bridge and one about bread, which tests only read."""
    room = Room(house, await house.person(f"{uuid4()}@example.org"))
    return room, await add_all(room, bridge=BRIDGE, safe=INSPECTION, bread=BREAD)


async def search(room: Room, q: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await room.owner.get("/api/v1/search", params={"q": q, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def found(room: Room, q: str, **more: Any) -> list[str]:  # noqa: ANN401
    return [hit["document_id"] for hit in (await search(room, q, **more))["items"]]


async def test_words_meaning_and_both_find_the_place(library: tuple[Room, dict[str, str]]) -> None:
    room, ids = library
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


async def test_phrases_exclusions_and_filters_hold_for_every_mode(library: tuple[Room, dict[str, str]]) -> None:
    room, ids = library
    await room.owner.patch(f"/api/v1/documents/{ids['bog']}", json={"tags": ["Wet"], "collection": "Nature"})
    await room.owner.patch(f"/api/v1/documents/{ids['bread']}", json={"document_date": "2020-02-02"})
    for mode in ("hybrid", "text", "semantic"):
        assert await found(room, '"flour and water"', mode=mode) == [ids["bread"]]
        assert await found(room, '"water and flour"', mode=mode) == []
        assert ids["bread"] not in await found(room, "water -flour", mode=mode)
        assert ids["bog"] in await found(room, "water -flour", mode=mode)
        assert await found(room, "water", mode=mode, tag="wet") == [ids["bog"]]
        assert await found(room, "water", mode=mode, collection="nature") == [ids["bog"]]
        assert await found(room, "dough with flour and water", mode=mode, until="2020-12-31") == [ids["bread"]]
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


async def test_a_stranger_finds_nothing(library: tuple[Room, dict[str, str]]) -> None:
    room, _ = library
    stranger = await room.house.person(f"{uuid4()}@example.org")
    for mode in ("hybrid", "text", "semantic"):
        answer = await stranger.get("/api/v1/search", params={"q": "sphagnum moss", "mode": mode})
        assert (answer.status_code, answer.json()["items"]) == (200, [])


async def test_changed_documents_are_found_immediately(room: Room) -> None:
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
async def test_any_input_gets_a_response(library: tuple[Room, dict[str, str]], q: str) -> None:
    room, _ = library
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


async def test_without_a_vector_only_words_are_used_and_this_is_reported(
    library: tuple[Room, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    room, ids = library

    async def refuse(*_: object) -> None:
        raise OverBudget("Nothing is left.")

    monkeypatch.setattr(LiveModels, "embed", refuse)
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


async def test_documents_and_tags_list_similar_ones(
    similar: tuple[Room, dict[str, str]],
) -> None:
    room, ids = similar
    related = (await room.owner.get(f"/api/v1/documents/{ids['bridge']}/related")).json()["items"]
    assert [one["document_id"] for one in related] == [ids["safe"]]
    stranger = await room.house.person(f"{uuid4()}@example.org")
    assert (await stranger.get(f"/api/v1/documents/{ids['bridge']}/related")).status_code == 404
    tags = (await room.owner.get("/api/v1/tags")).json()["items"]
    others = (await room.owner.get("/api/v1/tags/similar", params={"name": tags[0]["name"]})).json()["items"]
    assert tags[0]["name"] not in {one["name"] for one in others}


NONSENSE = ("qwertzuiop", "blorptang xqzvij frumplewock", "asdfghjkl", "zzxxyy vvbbnn")


async def test_nothing_is_an_answer_and_paraphrases_are_still_found(library: tuple[Room, dict[str, str]]) -> None:
    room, ids = library
    for mode in ("hybrid", "text", "semantic"):
        for q in NONSENSE:
            assert (await search(room, q, mode=mode))["items"] == [], (q, mode)
    for q, name in (
        ("baking a loaf at home", "bread"),
        ("how long before a tenant can leave", "lease"),
        ("wetland plants", "bog"),
        ("are the ropes of the crossing safe", "bridge"),
    ):
        assert (await found(room, q, mode="semantic"))[0] == ids[name], q
        assert (await found(room, q))[0] == ids[name], q
    assert "Nothing found" in await room.read("/search?q=qwertzuiop")


async def test_a_misspelled_query_suggests_words_of_the_owner_only(room: Room) -> None:
    ids = await add_all(room, lease=LEASE)
    stranger = await room.house.person(f"{uuid4()}@example.org")
    text = {"text": "The peridot ledger of Zubenelgenubi.", "title": "Other"}
    assert (await stranger.post("/api/v1/documents", json=text)).status_code == 202
    async with room.working():
        await room.until_done()
    for q, meant in (
        ("notce peroid", "notice period"),
        ('"notce" PEROID -moss', '"notice" period -moss'),
        ("the notice peroid", "the notice period"),
        ("notice period", None),
        ("zubenelgenubu", None),
        ("qwertzuiop", None),
    ):
        assert (await search(room, q))["suggestion"] == meant, q
    shown = await room.read("/search?q=notce+peroid&mode=text")
    assert 'Did you mean <a href="/search?q=notice+period&amp;mode=text"' in shown
    # A word that is only in the trash is not suggested, and none is left after the document is deleted for good.
    await room.owner.delete(f"/api/v1/documents/{ids['lease']}")
    assert (await search(room, "notce peroid"))["suggestion"] is None
    await room.owner.delete(f"/api/v1/documents/{ids['lease']}?purge=true")
    rows = await room.house.rows("SELECT FROM vocabulary WHERE document_id = %s", ids["lease"])
    assert rows == []


async def test_titles_tags_names_authors_and_summaries_are_found_at_once(room: Room) -> None:
    cloves = "Sixteen sacks of cloves were weighed on the quay and carried to the store before noon."
    ids = {"file": await room.upload("zanzibar_ledger_0042.txt", cloves)}
    ids |= await add_all(room, bread=BREAD, bog=BOG)
    for name, change in (
        ("bread", {"tags": ["marmalade", "Petit déjeuner"]}),
        ("bog", {"author": "Ottoline Quickfall"}),
    ):
        await room.owner.patch(f"/api/v1/documents/{ids[name]}", json=change)
    for q, name, why, matched in (
        ("zanzibar ledger", "file", "filename", "zanzibar_ledger_0042.txt"),
        ("zanzibar_ledger_0042.txt", "file", "filename", "zanzibar_ledger_0042.txt"),
        ("ledger 42 0042", "file", "filename", "zanzibar_ledger_0042.txt"),
        ("marmalade", "bread", "tag", "marmalade"),
        ("petit déjeuner", "bread", "tag", "Petit déjeuner"),
        ("quickfall", "bog", "words", None),
    ):
        for mode in ("hybrid", "text"):
            hits = (await search(room, q, mode=mode))["items"]
            assert [(hit["document_id"], hit["why"], hit["matched"]) for hit in hits] == [(ids[name], why, matched)], q
            assert hits[0]["chunk_id"]
    assert "Matches the tag" in await room.read("/search?q=marmalade")
    await room.owner.patch(f"/api/v1/documents/{ids['bread']}", json={"tags": []})
    assert await found(room, "marmalade") == []


async def test_a_document_without_text_is_found_by_its_name_and_opens(room: Room) -> None:
    ids = {"file": await room.upload("tulip-fields_2019.zip", b"PK\x05\x06" + bytes(18))}
    async with room.working():
        await room.until_done()
    (hit,) = (await search(room, "tulip fields"))["items"]
    assert (hit["document_id"], hit["chunk_id"], hit["why"], hit["page"]) == (ids["file"], None, "filename", None)
    assert hit["snippet"]
    shown = await room.read("/search?q=tulip+fields")
    assert f'class="hit" href="/documents/{ids["file"]}"' in shown


MANUAL = " ".join(f"The {name} drawer of the office is for paper and order." for name in ("first", "second", "third"))
ANIMALS = (
    "Cats sleep most of the day on a warm shelf near the stove. Horses graze on the meadow behind the house in the "
    "early morning. Hens lay their eggs in straw and are fed with corn at noon by the children. Dogs bark loudly at "
    "night. Sheep are shorn in spring before the heat of the summer comes."
)


async def test_a_hit_shows_the_sentence_that_matched_and_why(room: Room) -> None:
    await add_all(room, manual=f"{MANUAL} {MANUAL} The invoice number is 4711. {MANUAL}", animals=ANIMALS)
    (hit,) = (await search(room, "invoice number", mode="text"))["items"]
    assert (hit["sentence"], hit["why"]) == ("The invoice number is 4711.", "words")
    assert hit["snippet"].startswith("… The invoice number is 4711.")
    (hit,) = (await search(room, "puppies making noise after dusk", mode="semantic"))["items"]
    assert (hit["sentence"], hit["why"]) == ("Dogs bark loudly at night.", "meaning")
    assert hit["snippet"].startswith("… Dogs bark loudly at night.")
    (hit,) = (await search(room, "dogs barking at night"))["items"]
    assert (hit["sentence"], hit["why"]) == ("Dogs bark loudly at night.", "both")
    assert "Matches by words and meaning" in await room.read("/search?q=dogs+barking+at+night")


EARLIER = "UPDATE documents SET embedding_model_id = embedding_model('openai:earlier', 3) WHERE id = %s RETURNING id"


async def test_the_page_says_that_the_embedding_model_changes_and_how_far_it_is(room: Room) -> None:
    ids = await add_all(room, bread=BREAD, bog=BOG)
    assert "embedding model has changed" not in await room.read("/search")
    await room.house.rows(EARLIER, ids["bog"])
    assert "Documents with new vectors: 1 of 2" in await room.read("/search")
    state = (await room.owner.get("/api/v1/embeddings")).json()
    assert (state["documents"], state["done"]) == (2, 1)
    # The earlier model cannot be called any more: the document is found by its words, and the other one by meaning.
    assert await found(room, "sphagnum") == [ids["bog"]]
    assert await found(room, "baking a loaf at home") == [ids["bread"]]


NO_VECTORS = "SELECT FROM tags WHERE name ~ 'sailing' AND id NOT IN (SELECT tag_id FROM tag_embeddings)"


async def test_tags_given_by_people_get_vectors_and_similar_ones_are_shown(room: Room) -> None:
    ids = await add_all(room, bread=BREAD, bog=BOG)
    async with room.working():
        for name, tag in (("bread", "sailing boats"), ("bog", "sailing ships")):
            await room.owner.patch(f"/api/v1/documents/{ids[name]}", json={"tags": [tag]})
        await until_empty(room, NO_VECTORS)
    similar = (await room.owner.get("/api/v1/tags/similar", params={"name": "sailing boats"})).json()["items"]
    assert [one["name"] for one in similar] == ["sailing ships"]
    assert re.search(r"Similar tags: <a [^>]*>#sailing ships</a>", await room.read("/library?tag=sailing+boats"))
    assert "Similar tags" not in await room.read("/library?tag=unknown")
    assert 'href="/library?tag=sailing%20ships"' in await room.read(f"/documents/{ids['bread']}")


async def until_empty(room: Room, statement: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await room.house.rows(statement):  # noqa: ASYNC110 - a worker makes it true
            await asyncio.sleep(0.02)


async def test_the_reader_shows_the_description_of_a_passage_and_related_documents(
    similar: tuple[Room, dict[str, str]],
) -> None:
    room, ids = similar
    (chunk,) = (await room.owner.get(f"/api/v1/documents/{ids['bridge']}/chunks")).json()["items"]
    shown = await room.read(f"/documents/{ids['bridge']}")
    assert f'href="/documents/{ids["bridge"]}?c={chunk["id"]}&amp;panel=about#c-{chunk["id"]}"' in shown
    assert re.search(rf'Related documents</h3>\s*<ul[^>]*>\s*<li><a href="/documents/{ids["safe"]}"', shown)
    assert ids["bread"] not in shown
    about = await room.read(f"/documents/{ids['bridge']}?c={chunk['id']}&panel=about")
    passage = about[about.index('aria-label="This passage"') : about.index("Whole document</h3>")]
    for word in (*chunk["themes"], *(concept["text"] for concept in chunk["concepts"]), "Tone", "Importance"):
        assert escape(word) in passage
    assert not chunk["summary"] or escape(chunk["summary"]) in passage
    # A passage of another document, or of another owner, says nothing.
    assert 'aria-label="This passage"' not in await room.read(f"/documents/{ids['bread']}?c={chunk['id']}&panel=about")


async def test_the_page_leads_to_the_passage(room: Room) -> None:
    ids = await add_all(room, evil="# <b>Bold</b>\n\nA <script>alert(1)</script> of peat & moss.")
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


async def test_a_hit_opens_beside_another_and_highlights_are_found(library: tuple[Room, dict[str, str]]) -> None:
    room, ids = library
    words = "The steel cables of the bridge are in poor condition."
    marked = {"quote": words, "note": "ask the ospreys"}
    await room.owner.post(f"/api/v1/documents/{ids['bridge']}/highlights", json=marked)
    first = (await search(room, "sphagnum", mode="text"))["items"][0]
    chosen = f"{ids['bog']}:{first['chunk_id']}"
    assert escape(f"beside={quote_key(chosen)}") in await room.read("/search?q=sphagnum&mode=text")
    shown = await room.read(f"/search?q=cables&mode=text&beside={chosen}")
    assert "Choose a passage to open beside" in shown
    second = (await search(room, "cables", mode="text"))["items"][0]["chunk_id"]
    address = f"/documents/{ids['bog']}/beside/{ids['bridge']}?left={first['chunk_id']}&right={second}"
    assert f'href="{escape(address)}"' in shown
    assert "Sphagnum moss" in await room.read(address)
    assert "Your highlights" in await room.read("/search?q=OSPREYS")
    assert "Your highlights" not in await room.read("/search?q=sphagnum")
    for wrong in ("x", f"{uuid4()}:{uuid4()}"):
        assert "Choose a passage" not in await room.read(f"/search?q=cables&mode=text&beside={wrong}")


def quote_key(key: str) -> str:
    return quote(key, safe="")
