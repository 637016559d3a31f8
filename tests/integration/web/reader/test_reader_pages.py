"""The reader page: whose it is, what it shows of a long text, and what it says when there is none."""

from __future__ import annotations

import re
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from tests.integration.web.reader.conftest import Room
from tests.support.visitors import House, me

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATHS = ("", "/text", "/state", "/edit", "/history")
HTML = {"accept": "text/html"}


def book(pages: int) -> str:
    return "\f".join(
        f"Chapter {n}\n=========\n\nText of page {n}. " + "It goes on and on. " * 40 for n in range(1, pages + 1)
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def long_book(house: House) -> tuple[Room, str]:
    """45 pages that tests only read; processing them takes two seconds."""
    room = Room(house, await house.person(f"{uuid4()}@example.org"))
    return room, await room.add("book.txt", book(45))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def note(house: House) -> tuple[Room, str]:
    """A short text that tests only read."""
    room = Room(house, await house.person(f"{uuid4()}@example.org"))
    return room, await room.add("a.md", "# Mine\n\nSecret words.")


async def join(room: Room, role: str = "reader") -> httpx.AsyncClient:
    """A member of the room, with a browser of their own."""
    email = f"{uuid4()}@example.org"
    reader = await room.house.person(email)
    await room.owner.post("/api/v1/members", json={"email": email, "role": role})
    await reader.post("/api/v1/session/owner", json={"owner_id": (await me(room.owner))["owner_id"]})
    return reader


def shown_pages(html: str) -> list[int]:
    return [int(number) for number in re.findall(r'id="p-(\d+)"', html)]


# Finding, continuing, two documents -----------------------------------------------------------------------------------


async def test_words_are_found_in_pages_that_are_not_loaded(long_book: tuple[Room, str]) -> None:
    room, document = long_book
    found = (await room.owner.get(f"/api/v1/documents/{document}/find?q=text OF%20 page 41")).json()
    (one,) = found["items"]
    assert (found["total"], one["page"], one["snippet"][slice(*one["marks"][0])]) == (1, 41, "Text of page 41")
    html = (await room.owner.get(f"/documents/{document}?find=text+of+page+41", headers=HTML)).text
    assert "1 match" in html
    assert f"c={one['chunk_id']}" in html
    assert 41 not in shown_pages(html)
    html = (await room.owner.get(f"/documents/{document}?find=ospreys", headers=HTML)).text
    assert "No matches" in html


async def test_all_matches_are_listed_page_by_page(long_book: tuple[Room, str]) -> None:
    room, document = long_book
    address = f"/api/v1/documents/{document}/find?q=chapter&limit=20"
    pages: list[int] = []
    cursor = ""
    while cursor is not None:
        body = (await room.owner.get(f"{address}&cursor={cursor}")).json()
        assert body["total"] == 45
        pages += [one["page"] for one in body["items"]]
        cursor = body["next_cursor"]
    assert pages == list(range(1, 46))


async def test_the_reader_opens_where_the_person_stopped(long_book: tuple[Room, str]) -> None:
    room, document = long_book
    person = await join(room, "member")
    address = f"/api/v1/documents/{document}/position"
    assert (await person.get(address)).json() == {"start": 0, "page": 1}
    place = (await person.get(f"/api/v1/documents/{document}/find?q=text of page 25")).json()["items"][0]
    assert (await person.put(address, json={"start": place["start"]})).status_code == 204
    assert (await person.get(address)).json() == {"start": place["start"], "page": 25}
    html = (await person.get(f"/documents/{document}", headers=HTML)).text
    assert "Continue on page 25" in html
    assert 25 in shown_pages(html)
    assert 1 not in shown_pages(html)
    assert "Continue on page" not in (await person.get(f"/documents/{document}?p=2", headers=HTML)).text
    assert (await room.owner.get(address)).json() == {"start": 0, "page": 1}


async def test_two_documents_are_shown_at_their_passages(long_book: tuple[Room, str]) -> None:
    room, document = long_book
    other = await room.add("note.md", "# Note\n\nA short text beside the long one.")
    place = (await room.owner.get(f"/api/v1/documents/{document}/find?q=text of page 41")).json()["items"][0]
    address = f"/documents/{document}/beside/{other}?left={place['chunk_id']}"
    html = (await room.owner.get(address, headers=HTML)).text
    assert 'id="left-p-41"' in html
    assert 'id="left-p-1"' not in html
    assert "A short text beside the long one." in html
    assert f"/documents/{other}/beside/{document}?right={place['chunk_id']}" in html
    stranger = await room.house.browser()
    assert (await stranger.get(address, headers=HTML)).status_code == 404
    mine = await room.house.person(f"{uuid4()}@example.org")
    own = (await mine.post("/api/v1/documents", json={"text": "Mine"})).json()["document_id"]
    for one, two in ((own, other), (other, own)):
        assert (await mine.get(f"/documents/{one}/beside/{two}", headers=HTML)).status_code == 404


async def test_all_highlights_are_on_a_page_by_document(room: Room) -> None:
    document = await room.add("lease.md", "# Lease\n\nThe fee is due in May. The deposit is small.")
    for quote, note in (("The fee is due in May.", "ask Tomas"), ("The deposit is small.", "")):
        await room.owner.post(f"/api/v1/documents/{document}/highlights", json={"quote": quote, "note": note})
    html = (await room.owner.get("/highlights", headers=HTML)).text
    assert html.index(">The deposit is small.") < html.index(">The fee is due in May.")
    found = (await room.owner.get("/highlights?q=TOMAS", headers=HTML)).text
    assert "The fee is due in May." in found
    assert "The deposit is small." not in found
    await room.house.run("UPDATE highlights SET lost = true, char_start = NULL, char_end = NULL WHERE note <> ''")
    (lost,) = (await room.owner.get("/api/v1/highlights?q=tomas")).json()["items"]
    assert "Lost" in (await room.owner.get("/highlights?q=tomas", headers=HTML)).text
    await room.owner.post(f"/actions/highlights/{lost['id']}/delete")
    assert "Nothing found" in (await room.owner.get("/highlights?q=tomas", headers=HTML)).text


# Whose it is -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path or "page")
async def test_a_stranger_gets_the_same_response_as_for_a_missing_document(note: tuple[Room, str], path: str) -> None:
    room, document = note
    for stranger in (await room.house.person(f"{uuid4()}@example.org"), await room.house.browser()):
        answers = [await stranger.get(f"/documents/{one}{path}", headers=HTML) for one in (document, uuid4(), "x")]
        assert [one.status_code for one in answers] == [404, 404, 404]
        assert len({re.sub(r"/documents/[^/\"?]*", "", one.text) for one in answers}) <= 2
        assert not any("Secret" in one.text or "Mine" in one.text for one in answers)


async def test_a_stranger_changes_nothing(note: tuple[Room, str]) -> None:
    room, document = note
    stranger = await room.house.person(f"{uuid4()}@example.org")
    answer = await stranger.post(f"/documents/{document}/edit", data={"title": "Theirs"})
    assert answer.status_code == 404
    assert (await room.owner.get(f"/api/v1/documents/{document}")).json()["title"] == "Mine"


async def test_a_reader_gets_no_form(note: tuple[Room, str]) -> None:
    room, document = note
    reader = await join(room)
    shown = await reader.get(f"/documents/{document}")
    assert shown.status_code == 200
    assert "/actions/" not in shown.text
    assert f"/documents/{document}/edit" not in shown.text
    assert (await reader.get(f"/documents/{document}/edit")).status_code == 403
    assert (await reader.post(f"/documents/{document}/edit", data={"title": "x"})).status_code == 403


# What it shows -----------------------------------------------------------------------------------------------------


async def test_a_long_text_comes_in_windows(long_book: tuple[Room, str]) -> None:
    room, document = long_book
    first = await room.read(f"/documents/{document}")
    assert shown_pages(first) == list(range(1, 21))
    assert "Pages 21–40" in first  # noqa: RUF001 - a span
    assert 'rel="prev"' not in first
    middle = await room.read(f"/documents/{document}?p=33")
    assert shown_pages(middle) == list(range(21, 41))
    assert "data-page-now>33<" in middle
    assert {"prev", "next"} <= set(re.findall(r'rel="(\w+)"', middle))
    last = re.search(r'rel="next" href="([^"]+)"', middle)
    assert last
    assert shown_pages(await room.read(last[1])) == list(range(41, 46))


async def test_windows_in_a_row_are_the_whole_text(long_book: tuple[Room, str]) -> None:
    room, document = long_book
    start, pages = "0", list[int]()
    while start:
        piece = await room.read(f"/documents/{document}/text?from={start}&revision=1")
        pages += shown_pages(piece)
        (start,) = re.findall(r'data-later="(\d*)"', piece)
    assert pages == list(range(1, 46))


async def test_every_passage_has_its_anchor_and_can_be_pointed_at(long_book: tuple[Room, str]) -> None:
    room, document = long_book
    chunks = (await room.owner.get(f"/api/v1/documents/{document}/chunks?limit=500")).json()["items"]
    assert len(chunks) > 10
    for one in (chunks[0], chunks[len(chunks) // 2], chunks[-1]):
        shown = await room.read(f"/documents/{document}?c={one['id']}")
        assert f'id="c-{one["id"]}"' in shown
        assert one["page_from"] in shown_pages(shown)
        assert re.search(rf'class="passage cited" id="c-{one["id"]}"', shown)


async def test_the_outline_leads_to_headings_in_other_windows(long_book: tuple[Room, str]) -> None:
    room, document = long_book
    shown = await room.read(f"/documents/{document}")
    links = re.findall(r'href="(/documents/[^"]+#(h-\d+))"', shown)
    assert len(links) == 45
    address, anchor = links[-1]
    assert f'id="{anchor}"' in await room.read(address.partition("#")[0])


@pytest.mark.parametrize(
    "query",
    [
        "p=0",
        "p=-1",
        "p=99999999999999999999",
        "p=x",
        "at=x",
        "at=999999999",
        "c=nothing",
        "panel=%00",
        "p=1&p=2",
        "p=²",
    ],
)
async def test_an_address_that_makes_no_sense_is_read_from_the_start(note: tuple[Room, str], query: str) -> None:
    room, document = note
    assert 'id="h-1"' in await room.read(f"/documents/{document}?{query}")


async def test_a_page_is_gone_to_with_its_anchor(long_book: tuple[Room, str]) -> None:
    room, document = long_book
    answer = await room.owner.get(f"/documents/{document}?go=30")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/documents/{document}?p=30#p-30")


async def test_the_text_carries_its_own_language(room: Room) -> None:
    document = await room.add("a.md", "---\ntitle: A\nlang: pt_BR\n---\n\nPalavras.")
    assert re.search(r'<div class="window"[^>]* lang="pt-BR" dir="auto">', await room.read(f"/documents/{document}"))


async def test_a_video_is_opened_at_the_second(room: Room) -> None:
    document = await room.add("a.md", "# Talk\n\nWords that were said.")
    address = "https://www.youtube.com/watch?v=abc&t=9"
    await room.house.run("UPDATE chunks SET seconds = 754 WHERE document_id = %s", document)
    for source_type in ("youtube", "paste"):
        await room.house.run(
            "UPDATE documents SET source_type = %s, source_url = %s WHERE id = %s", source_type, address, document
        )
        shown = await room.read(f"/documents/{document}")
        assert 'href="https://www.youtube.com/watch?v=abc&amp;t=754s"' in shown, source_type
        assert "12:34" in shown
        assert "Open the video" in shown


async def test_the_size_of_texts_is_kept_in_the_browser(note: tuple[Room, str]) -> None:
    room, document = note
    browser = await join(room)
    back = f"/documents/{document}?p=1"
    answer = await browser.post(f"/documents/{document}/size", data={"size": "22", "back": back})
    assert (answer.status_code, answer.headers["location"]) == (303, back)
    assert 'class="reader size-22' in (await browser.get(f"/documents/{document}")).text
    away = await browser.post(f"/documents/{document}/size", data={"size": "22", "back": "//x.example"})
    assert away.headers["location"] == f"/documents/{document}"


# While it is made, and after ---------------------------------------------------------------------------------------


async def test_a_document_that_waits_says_why(room: Room) -> None:
    document = await room.upload("a.md", "# A")
    shown = await room.read(f"/documents/{document}")
    assert "Waiting" in shown
    assert "Refresh" in shown
    assert 'class="skeleton' in shown
    assert "Cancel" in await room.read(f"/documents/{document}/state")
    assert (await room.owner.get(f"/documents/{document}/text")).status_code == 409


async def test_a_kept_file_offers_itself(room: Room) -> None:
    document = await room.add("a.bin", bytes(range(256)))
    shown = await room.read(f"/documents/{document}")
    assert "Text cannot be extracted from this file type" in shown
    assert f'href="/api/v1/documents/{document}/source" download>Download</a>' in shown
    assert 'id="outline"' not in shown


async def test_what_failed_names_its_cause_and_a_verb(room: Room) -> None:
    document = await room.add("a.md", " \n")
    shown = await room.read(f"/documents/{document}")
    assert "(EMPTY)" in shown
    assert "Replace file" in shown


async def test_in_the_trash_it_can_only_be_brought_back(room: Room) -> None:
    document = await room.add("a.md", "# A\n\nWords.")
    await room.owner.delete(f"/api/v1/documents/{document}")
    shown = await room.read(f"/documents/{document}")
    assert "In the trash" in shown
    assert f'action="/actions/documents/{document}/restore"' in shown
    assert "Words." not in shown
    assert (await room.owner.get(f"/documents/{document}/text")).status_code == 404
    assert (await room.owner.get(f"/documents/{document}/edit")).status_code == 404
    await room.owner.post(f"/actions/documents/{document}/restore", data={})
    assert "Words." in await room.read(f"/documents/{document}")


async def test_a_newer_text_is_offered_and_not_mixed_in(room: Room) -> None:
    document = await room.add("a.md", "# A\n\nWords.")
    await room.owner.post(f"/api/v1/documents/{document}/retry")
    async with room.working():
        await room.until_done()
    assert (await room.owner.get(f"/documents/{document}/text?from=0&revision=1")).status_code == 409
    assert 'data-revision="2"' in await room.read(f"/documents/{document}/state")


async def test_a_text_that_is_too_long_is_offered_for_download(
    note: tuple[Room, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("octavo.web.rooms.reader.pages.MOST_BYTES", 10)
    room, document = note
    shown = await room.read(f"/documents/{document}")
    assert "Too long to show" in shown
    assert f"/api/v1/documents/{document}/markdown" in shown


async def test_the_history_tells_every_stage(note: tuple[Room, str]) -> None:
    room, document = note
    shown = await room.read(f"/documents/{document}/history")
    for words in ("Read the file", "Saved the text", "Split into passages", "Finished", "Started"):
        assert words in shown


# Editing -----------------------------------------------------------------------------------------------------------

WRITTEN = {"title": "New", "author": "Ada", "document_date": "2024-02-29", "tags": "peat, bog , ", "collection": "Bogs"}


async def edit(room: Room, document: str, **fields: str) -> httpx.Response:
    return await room.owner.post(f"/documents/{document}/edit", data=fields)


async def test_the_fields_of_a_document_can_be_edited(room: Room) -> None:
    document = await room.upload("a.txt", "words without a title, just words")
    form = await room.read(f"/documents/{document}/edit")
    assert 'placeholder="a.txt"' in form
    answer = await edit(room, document, **WRITTEN)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/documents/{document}")
    now = (await room.owner.get(f"/api/v1/documents/{document}")).json()
    assert {name: now[name] for name in ("title", "author", "document_date", "tags", "collection")} == {
        **WRITTEN,
        "tags": ["bog", "peat"],
    }
    shown = await room.read(f"/documents/{document}/edit")
    assert 'value="bog, peat"' in shown
    assert '<option value="Bogs">' in shown


async def test_only_changed_fields_are_written(room: Room) -> None:
    document = await room.upload("a.txt", "words without a title, just words")
    await edit(room, document, **WRITTEN)
    await edit(room, document, **WRITTEN | {"tags": "bog, peat"})
    await edit(room, document, **WRITTEN | {"tags": "bog, peat", "author": ""})
    told = await room.house.rows(
        "SELECT detail -> 'fields' FROM events WHERE kind = 'edited' AND document_id = %s ORDER BY id", document
    )
    assert [len(row[0]) for row in told] == [5, 1]
    assert (await room.owner.get(f"/api/v1/documents/{document}")).json()["author"] is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", "x" * 501),
        ("author", "a\x07b"),
        ("document_date", "2024-02-30"),
        ("document_date", "yesterday"),
        ("tags", ",".join(f"t{n}" for n in range(51))),
        ("tags", "x" * 201),
        ("collection", "x" * 201),
    ],
    ids=["long title", "bell", "no such day", "no date", "many tags", "long tag", "long collection"],
)
async def test_an_invalid_value_is_reported_next_to_its_field(note: tuple[Room, str], field: str, value: str) -> None:
    room, document = note
    before = (await room.owner.get(f"/api/v1/documents/{document}")).json()
    answer = await edit(room, document, **WRITTEN | {field: value})
    assert answer.status_code == 422
    assert f'id="{field}-wrong"' in answer.text
    assert 'value="Ada"' in answer.text or field == "author"
    assert (await room.owner.get(f"/api/v1/documents/{document}")).json() == before
    assert (await room.owner.get("/api/v1/collections")).json()["items"] == []


SKIPPED = """INSERT INTO job_stages (job_id, stage, output, attempt, started_at, finished_at)
SELECT id, 'analysis_asked', '{"estimated_usd": 3.2, "started": false}', 1, now(), now()
FROM jobs WHERE document_id = %s AND kind = 'process_document'"""


async def test_a_document_that_was_too_expensive_to_analyse_says_so_and_offers_it(room: Room) -> None:
    document = await room.upload("book.md", "# Book\n\nA long book about bogs and their mosses.")
    async with room.working():
        await room.until_done()
    assert "not analysed automatically" not in (await room.owner.get(f"/documents/{document}")).text
    await room.house.run(SKIPPED, document)
    page = (await room.owner.get(f"/documents/{document}")).text
    note = page.partition('id="skipped-analysis"')[2].partition("</a>")[0]
    assert "was not analysed automatically" in note
    assert "Estimate: $3.20. Limit (OCTAVO_ANALYSE_BUDGET): $1.00." in note
    assert f'href="/analyses/new?document={document}">Start analysis' in note
    prompts = (await room.owner.get("/api/v1/prompts")).json()["items"]
    wanted = {"document_id": document, "prompt_ids": [prompts[0]["id"]]}
    assert (await room.owner.post("/api/v1/analyses", json=wanted)).is_success
    assert "not analysed automatically" not in (await room.owner.get(f"/documents/{document}")).text
