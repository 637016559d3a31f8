"""The forms behind the buttons: whose they are, where they lead back to, and that asking twice does no harm."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import pytest_asyncio

from octavo.database import Connection
from octavo.jobs.kinds import sync_kinds
from octavo.pipeline import known_kinds
from tests.support.passwords import hash_fast
from tests.support.postgres import Server, open_folder
from tests.support.visitors import House, house_on

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"accept": "application/json"}
PAGE = {"accept": "text/html"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(newest_server: Server) -> AsyncIterator[House]:
    """One application for all tests, without a worker. Each test creates its own accounts."""
    limits = {"requests_per_minute": 10**6, "requests_per_minute_anonymous": 10**6}
    with open_folder() as folder, newest_server.database() as info, pytest.MonkeyPatch.context() as patch:
        hash_fast(patch)
        async with house_on(info, folder, **limits) as house:
            async with house.app.state.services.database.transaction() as connection:
                await know_kinds(connection)
            yield house


async def know_kinds(connection: Connection) -> None:
    await sync_kinds(connection, known_kinds())


@pytest_asyncio.fixture(loop_scope="module")
async def person(house: House) -> httpx.AsyncClient:
    return await house.person(f"{uuid4()}@example.org")


async def add(client: httpx.AsyncClient, text: str = "Some words.") -> str:
    answer = await client.post("/api/v1/documents", content=text, headers={"x-upload-filename": "a.txt"})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["document_id"])


async def jobs_of(house: House, document: str) -> list[Any]:
    return await house.rows("SELECT status, lease_token FROM jobs WHERE document_id = %s", UUID(document))


@pytest.mark.parametrize("verb", ["cancel", "retry", "resume", "restart", "classify", "trash", "restore", "replace"])
async def test_a_strangers_document_is_not_there(house: House, person: httpx.AsyncClient, verb: str) -> None:
    document = await add(person)
    stranger = await house.person(f"{uuid4()}@example.org")
    file = {"file": ("b.txt", b"Other words.")} if verb == "replace" else None

    answer = await stranger.post(f"/actions/documents/{document}/{verb}", headers=JSON, files=file)

    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert [row[0] for row in await jobs_of(house, document)] == ["queued"]


@pytest.mark.parametrize("action", ["retry", "edit", "delete", "download"])
async def test_many_are_changed_only_if_all_are_ours(house: House, person: httpx.AsyncClient, action: str) -> None:
    mine = await add(person)
    theirs = await add(await house.person(f"{uuid4()}@example.org"))
    fields = {"ids": [mine, theirs], "action": action, "add_tag": "bog"}

    answer = await person.post("/actions/bulk", data=fields, headers=JSON)

    assert answer.status_code == 404
    found = (await person.get(f"/api/v1/documents/{mine}")).json()
    assert (found["deleted_at"], found["tags"]) == (None, [])


async def test_the_form_changes_all_documents_that_match(person: httpx.AsyncClient) -> None:
    documents = [await add(person, f"Words {number}.") for number in range(3)]
    await person.post("/actions/bulk", data={"ids": documents[:2], "action": "edit", "add_tag": "bog, rain"})
    fields = {"ids": documents[:1], "all": "true", "tag": "bog", "action": "edit"}
    fields |= {"remove_tag": "rain", "new_collection": "Quay", "new_date": "2020-02-03", "new_kind": "letter"}

    answer = await person.post("/actions/bulk", data=fields, headers=PAGE)

    assert answer.status_code == 303
    found = [(await person.get(f"/api/v1/documents/{one}")).json() for one in documents]
    assert [one["collection"] for one in found] == ["Quay", "Quay", None]
    assert [one["tags"] for one in found] == [["bog"], ["bog"], []]
    assert (found[1]["document_date"], found[1]["kind"]) == ("2020-02-03", "letter")


@pytest.mark.parametrize(
    "fields",
    [{}, {"action": "edit", "add_tag": "bog"}, {"ids": "", "action": "delete"}],
    ids=["nothing", "no documents", "an empty id"],
)
async def test_a_form_without_documents_changes_nothing(person: httpx.AsyncClient, fields: dict[str, str]) -> None:
    document = await add(person)
    assert (await person.post("/actions/bulk", data=fields, headers=JSON)).status_code == 422
    for wrong in ({"action": "edit"}, {"action": "edit", "new_date": "soon"}, {"action": "purge"}):
        refused = await person.post("/actions/bulk", data={"ids": document} | wrong, headers=JSON)
        assert refused.status_code == 422, wrong
    assert (await person.get(f"/api/v1/documents/{document}")).json()["tags"] == []


async def test_many_sources_are_downloaded_as_one_zip_file(house: House, person: httpx.AsyncClient) -> None:
    texts = {f"Words {number}." for number in range(3)}
    documents = [await add(person, text) for text in sorted(texts)]
    await add(await house.person(f"{uuid4()}@example.org"), "Others.")
    for which in ({"ids": documents}, {"filter": {"q": "a.txt"}}):
        answer = await person.post("/api/v1/documents/bulk/download", json=which)
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.testzip() is None
            assert sorted(archive.namelist()) == ["a (2).txt", "a (3).txt", "a.txt"]
            assert {archive.read(name).decode() for name in archive.namelist()} == texts
    shown = (await person.get(f"/api/v1/documents/{documents[0]}")).json()
    assert shown["download_count"] == 2
    missing = {"ids": [documents[0], str(uuid4())]}
    assert (await person.post("/api/v1/documents/bulk/download", json=missing)).status_code == 404


@pytest.mark.parametrize(
    ("back", "leads_to"),
    [
        ("/library?status=failed", "/library?status=failed"),
        ("https://elsewhere.example", "/library"),
        ("//elsewhere.example", "/library"),
        ("/\\elsewhere.example", "/library"),
        ("/a\r\nset-cookie: x=y", "/library"),
        ("", "/library"),
    ],
    ids=["local", "elsewhere", "no-scheme", "backslash", "header", "empty"],
)
async def test_a_form_leads_back_to_a_page_of_ours(person: httpx.AsyncClient, back: str, leads_to: str) -> None:
    document = await add(person)

    answer = await person.post(f"/actions/documents/{document}/cancel", data={"back": back}, headers=PAGE)

    assert (answer.status_code, answer.headers["location"]) == (303, leads_to)


async def test_scripts_get_an_empty_response(person: httpx.AsyncClient) -> None:
    answer = await person.post(f"/actions/documents/{await add(person)}/cancel", headers=JSON)

    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize("verb", ["cancel", "trash"])
async def test_asking_twice_is_asking_once(person: httpx.AsyncClient, verb: str) -> None:
    document = await add(person)

    for _ in range(2):
        answer = await person.post(f"/actions/documents/{document}/{verb}", headers=PAGE)
        assert answer.status_code == 303


async def test_retry_restart_and_resume_asked_often_make_one_job(house: House, person: httpx.AsyncClient) -> None:
    document = await add(person)
    await person.post(f"/actions/documents/{document}/cancel", headers=JSON)

    for verb in ("retry", "retry", "resume", "restart", "retry"):
        answer = await person.post(f"/actions/documents/{document}/{verb}", headers=JSON)
        assert answer.status_code == 204, answer.text

    assert [row[0] for row in await jobs_of(house, document)] == ["queued"]


async def test_resume_leaves_a_job_alone_that_gets_on(house: House, person: httpx.AsyncClient) -> None:
    document = await add(person)
    work = "leased_by = gen_random_uuid(), lease_expires_at = now() + '1 hour', deadline_at = now() + '1 hour'"
    begun = f"UPDATE jobs SET status = 'processing', attempt = 1, started_at = now(), {work} WHERE document_id = %s"
    await house.run(begun, UUID(document))
    before = await jobs_of(house, document)

    answer = await person.post(f"/actions/documents/{document}/resume", headers=JSON)

    assert answer.status_code == 204
    assert await jobs_of(house, document) == before
    await house.run(
        "UPDATE jobs SET started_at = now() - interval '11 minutes', created_at = now() - interval '1 hour' "
        "WHERE document_id = %s",
        UUID(document),
    )
    await person.post(f"/actions/documents/{document}/resume", headers=JSON)
    ((status, token),) = await jobs_of(house, document)
    assert status == "queued"
    assert token > before[0][1]


async def test_what_cannot_be_taken_back_is_asked_first(person: httpx.AsyncClient) -> None:
    document = await add(person)
    await person.post(f"/actions/documents/{document}/trash", headers=JSON)

    for path in (f"/actions/documents/{document}/purge", "/actions/trash/empty"):
        question = await person.post(path, headers=PAGE)
        assert question.status_code == 200
        assert "cannot be undone" in question.text
    assert (await person.get("/api/v1/documents", params={"trashed": True})).json()["items"]

    answer = await person.post("/actions/trash/empty", data={"sure": "true"}, headers=PAGE)

    assert answer.headers["location"] == "/trash"
    assert (await person.get("/api/v1/documents", params={"trashed": True})).json()["items"] == []


async def test_a_link_becomes_a_page_or_a_video_and_anything_else_a_text(person: httpx.AsyncClient) -> None:
    given = ["https://example.org/rain", "https://youtu.be/dQw4w9WgXcQ", "See https://example.org for more."]
    for text in given:
        answer = await person.post("/actions/add", data={"text": text}, headers=PAGE)
        assert answer.status_code == 303, answer.text

    kinds = [one["source_type"] for one in (await person.get("/api/v1/documents")).json()["items"]]
    assert kinds[::-1] == ["web", "youtube", "paste"]


@pytest.mark.parametrize("text", ["", "  \n "], ids=["nothing", "blanks"])
async def test_nothing_is_refused_in_words(person: httpx.AsyncClient, text: str) -> None:
    answer = await person.post("/actions/add", data={"text": text}, headers=PAGE)

    assert answer.status_code == 422
    assert "EMPTY" in answer.text


async def test_a_file_is_sent_by_a_form(person: httpx.AsyncClient) -> None:
    answer = await person.post("/actions/upload", files={"file": ("plain.txt", b"Plain words.")}, headers=PAGE)
    assert (answer.status_code, answer.headers["location"]) == (303, "/library")

    # As browsers send a form in which nothing was chosen.
    empty = b'--x\r\nContent-Disposition: form-data; name="file"; filename=""\r\n\r\n\r\n--x--\r\n'
    form = {"content-type": "multipart/form-data; boundary=x", **JSON}
    nothing = await person.post("/actions/upload", content=empty, headers=form)
    assert nothing.json()["code"] == "NOTHING_CHOSEN"
    assert [one["filename"] for one in (await person.get("/api/v1/documents")).json()["items"]] == ["plain.txt"]


def as_form(fields: dict[str, str], filename: str = "", content: str = "") -> tuple[str, dict[str, str]]:
    """A form as browsers send it, also if no file was chosen."""
    parts = [f'name="{name}"\r\n\r\n{value}' for name, value in fields.items()]
    parts.append(f'name="file"; filename="{filename}"\r\nContent-Type: text/plain\r\n\r\n{content}')
    body = "".join(f"--x\r\nContent-Disposition: form-data; {part}\r\n" for part in parts)
    return body + "--x--\r\n", {"content-type": "multipart/form-data; boundary=x"}


OPTIONS = {"title": "Mine", "source": "A talk in Rome", "duplicates": "new"}


@pytest.mark.parametrize(
    ("text", "file"),
    [("Some words.", ()), ("https://example.org/rain", ()), ("", ("a.txt", "Words."))],
    ids=["text", "link", "file"],
)
async def test_every_way_in_takes_title_source_and_policy(
    person: httpx.AsyncClient, text: str, file: tuple[str, ...]
) -> None:
    """In one form, as browsers without scripts send it; twice, because a second document was asked for."""
    body, kind = as_form(OPTIONS | {"text": text, "extraction": "plain"}, *file)
    for _ in range(2):
        answer = await person.post("/actions/upload", content=body, headers=PAGE | kind)
        assert (answer.status_code, answer.headers["location"]) == (303, "/library")
    second, first = (await person.get("/api/v1/documents")).json()["items"]
    for one in (first, second):
        assert (one["title"], one["metadata"]["source"]) == ("Mine", "A talk in Rome")
    assert second["duplicate_of"] == first["id"]
    assert "A talk in Rome" in (await person.get(f"/documents/{first['id']}", headers=PAGE)).text
    body, kind = as_form(OPTIONS | {"text": text, "duplicates": "reject"}, *file)
    refused = await person.post("/actions/upload", content=body, headers=JSON | kind)
    assert (refused.status_code, refused.json()["code"]) == (409, "DUPLICATE")


async def test_a_file_and_a_text_in_one_form_are_two_documents(person: httpx.AsyncClient) -> None:
    files = {"file": ("a.txt", b"Words of the file.")}
    answer = await person.post("/actions/upload", data={"text": "Words of the box."}, files=files, headers=JSON)
    assert [one["state"] for one in answer.json()] == ["uploaded", "uploaded"]


@pytest.mark.parametrize("way", ["clean", "pages"])
async def test_reading_by_a_model_needs_a_model(person: httpx.AsyncClient, way: str) -> None:
    form = {"text": "Some words.", "extraction": way}
    answers = [
        await person.post("/actions/add", data=form, headers=JSON),
        await person.post("/actions/upload", data=form, files={"file": ("a.txt", b"Words.")}, headers=JSON),
    ]
    assert [one.json()["code"] for one in answers] == ["AI_NO_MODEL", "AI_NO_MODEL"]
    assert (await person.get("/api/v1/documents")).json()["items"] == []


async def test_options_that_do_not_exist_are_refused_in_words(person: httpx.AsyncClient) -> None:
    for field in ("duplicates", "extraction"):
        answer = await person.post("/actions/upload", data={field: "x"}, files={"file": ("a.txt", b"W")}, headers=JSON)
        assert (answer.status_code, field in answer.json()["detail"]) == (422, True)


async def test_a_replacement_takes_over_tags_and_the_old_file_goes_to_the_trash(person: httpx.AsyncClient) -> None:
    old = await add(person)
    await person.patch(f"/api/v1/documents/{old}", json={"tags": ["bog"], "collection": "Moor"})
    path = f"/actions/documents/{old}/replace"

    same = await person.post(path, files={"file": ("b.txt", b"Some words.")}, headers=JSON)
    assert same.json()["code"] == "SAME_FILE"
    answer = await person.post(path, files={"file": ("b.txt", b"Better words.")}, headers=PAGE)

    assert answer.status_code == 303
    (new,) = (await person.get("/api/v1/documents")).json()["items"]
    assert (new["filename"], new["tags"], new["collection"]) == ("b.txt", ["bog"], "Moor")
    (gone,) = (await person.get("/api/v1/documents", params={"trashed": True})).json()["items"]
    assert gone["id"] == old


async def test_samples_are_added_once(person: httpx.AsyncClient) -> None:
    for _ in range(2):
        answer = await person.post("/actions/samples", headers=JSON)
        assert answer.status_code == 202
        assert len(answer.json()) == 3

    assert len((await person.get("/api/v1/documents")).json()["items"]) == 3


async def test_an_unknown_verb_or_document_is_refused(person: httpx.AsyncClient) -> None:
    unknown = await person.post(f"/actions/documents/{uuid4()}/explode", headers=JSON)
    missing = await person.post(f"/actions/documents/{uuid4()}/retry", headers=PAGE)

    assert unknown.status_code == 404
    assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
