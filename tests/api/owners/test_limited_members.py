"""A limited member sees the collections that were granted to them, and nothing else by any route."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import pytest_asyncio
from fastapi.routing import iter_route_contexts

from tests.support.connections import connect
from tests.support.live import process_of, serving_live, streaming
from tests.support.passwords import PASSWORD, hash_fast
from tests.support.pdf import Pdf, Words
from tests.support.postgres import Server, open_folder
from tests.support.visitors import House, house_on, me, refused, session_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

SEEN = "The gull flies over the harbour at dawn."
HIDDEN = "The gull counts zanzibarite rubies in the vault."
TITLE = "Ledger of zanzibarite"
ACCEPT = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
JSON = {"accept": "application/json"}


@dataclass(slots=True)
class Library:
    """An account with two granted documents, one of them with write access, and two documents that are not granted."""

    house: House
    info: str
    owner: httpx.AsyncClient
    owner_id: str
    member: httpx.AsyncClient
    agent: httpx.AsyncClient
    user: str
    read: str
    write: str
    hidden: str
    loose: str
    collections: dict[str, str]

    async def see(self, path: str, **query: Any) -> Any:  # noqa: ANN401
        answer = await self.member.get(f"/api/v1{path}", params=query, headers=JSON)
        assert answer.status_code == 200, answer.text
        return answer.json()


async def add(house: House, owner: httpx.AsyncClient, text: str, title: str, collection: str | None) -> str:
    """A document with a chunk, as a worker would leave it."""
    added = await owner.post("/api/v1/documents", json={"text": text, "title": title, "collection": collection})
    assert added.status_code == 202, added.text
    document = added.json()["document_id"]
    await house.run(
        "UPDATE documents SET text_ready = true, revision = 1, status = 'completed', language = 'en', sender = %s "
        "WHERE id = %s",
        *(f"Sender of {title}", document),
    )
    await house.run(
        "INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, word_count) "
        "VALUES (%s, %s, 1, 0, %s, 0, %s, 9)",
        *(uuid4(), document, text, len(text)),
    )
    edited = await owner.patch(f"/api/v1/documents/{document}", json={"tags": [f"tag of {title}"]})
    assert edited.status_code == 200, edited.text
    return document


async def grant(owner: httpx.AsyncClient, collection: str, **wanted: str) -> str:
    made = await owner.post("/api/v1/grants", json={"collection_id": collection, **wanted})
    assert made.status_code == 201, made.text
    return made.json()["id"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def library(newest_server: Server) -> AsyncGenerator[Library]:
    limits = {"requests_per_minute": 10**6, "requests_per_minute_anonymous": 10**6}
    with open_folder() as folder, newest_server.database() as info, pytest.MonkeyPatch.context() as patch:
        hash_fast(patch)
        async with house_on(info, folder, **limits) as house:
            yield await settle(house, info)


async def settle(house: House, info: str) -> Library:
    owner, member = [await house.person(f"{name}@example.org") for name in ("ada", "dora")]
    owner_id = (await me(owner))["owner_id"]
    body = {"email": "dora@example.org", "role": "member", "limited": True}
    user = (await owner.post("/api/v1/members", json=body)).json()["user_id"]
    await member.post("/api/v1/session/owner", json={"owner_id": owner_id})
    read = await add(house, owner, SEEN, "Gulls", "Reading")
    write = await add(house, owner, SEEN.replace("gull", "tern"), "Terns", "Writing")
    hidden = await add(house, owner, HIDDEN, TITLE, "Vault")
    loose = await add(house, owner, HIDDEN.replace("gull", "crow"), f"{TITLE} II", None)
    ids = {one["name"]: one["id"] for one in (await owner.get("/api/v1/collections")).json()["items"]}
    group = (await owner.post("/api/v1/groups", json={"name": "Birders"})).json()["id"]
    joined = await owner.put(f"/api/v1/groups/{group}/members/{user}")
    assert [one["email"] for one in joined.json()["members"]] == ["dora@example.org"]
    await grant(owner, ids["Reading"], group_id=group)
    await grant(owner, ids["Writing"], user_id=user, access="write")
    key = (await member.post("/api/v1/keys", json={"name": "agent", "scope": "write"})).json()["key"]
    agent = await house.program(key)
    return Library(house, info, owner, owner_id, member, agent, user, read, write, hidden, loose, ids)


def is_clean(library: Library, text: str) -> bool:
    secrets = ("zanzibarite", "rubies", library.hidden, library.loose, library.collections["Vault"], "Vault")
    return not [one for one in secrets if one in text]


# Reading -----------------------------------------------------------------------------------------------------------


async def test_lists_counts_and_names_are_of_granted_collections(library: Library) -> None:
    found = await library.see("/documents")
    assert {one["id"] for one in found["items"]} == {library.read, library.write}
    assert [one["name"] for one in (await library.see("/collections"))["items"]] == ["Reading", "Writing"]
    assert [one["name"] for one in (await library.see("/tags"))["items"]] == ["tag of Gulls", "tag of Terns"]
    assert {one["document_id"] for one in (await library.see("/jobs"))["items"]} == {library.read, library.write}
    assert (await library.see("/members"))["items"][0]["email"] == "dora@example.org"
    assert len((await library.see("/members"))["items"]) == 1


async def test_a_foreign_document_is_not_found(library: Library) -> None:
    for path in ("", "/chunks", "/facts", "/events", "/versions", "/source", "/export", "/related", "/connections"):
        answer = await library.member.get(f"/api/v1/documents/{library.hidden}{path}")
        refused(answer, 404, "NOT_FOUND")
        assert is_clean(library, answer.text.replace(library.hidden, ""))


async def test_a_search_finds_suggests_and_counts_only_granted_documents(library: Library) -> None:
    found = await library.see("/search", q="gull", mode="text")
    assert {one["document_id"] for one in found["items"]} == {library.read}
    nothing = await library.see("/search", q="zanzibarite", mode="text")
    misspelt = await library.see("/search", q="zanzibarit", mode="text")
    assert (nothing["items"], misspelt["items"]) == ([], [])
    assert "zanzibarite" not in json.dumps(misspelt)
    named = await library.see("/search", q="sender:Ledger", mode="text")
    assert named["items"] == []


async def test_the_rank_of_a_word_does_not_tell_how_many_others_use_it(library: Library) -> None:
    before = (await library.see("/search", q="gull", mode="text"))["items"][0]["score"]
    for number in range(3):
        await add(library.house, library.owner, f"{HIDDEN} {number}", f"{TITLE} {number + 3}", "Vault")
    after = (await library.see("/search", q="gull", mode="text"))["items"][0]["score"]
    assert before == after


async def test_answers_quote_only_granted_documents(library: Library) -> None:
    answer = await library.member.post("/api/v1/ask", json={"question": "What does the gull count in the vault?"})
    assert answer.status_code == 200
    assert "rubies" not in answer.text
    assert is_clean(library, answer.text.replace("vault", ""))


async def test_threads_are_private_and_disappear_with_the_documents_they_quote(library: Library) -> None:
    asked = await library.owner.post("/api/v1/ask", json={"question": "What do gulls count?"})
    theirs = asked.text.partition('"thread_id": "')[2].partition('"')[0]
    refused(await library.member.get(f"/api/v1/threads/{theirs}"), 404, "NOT_FOUND")
    asked = await library.member.post("/api/v1/ask", json={"question": "Where does the gull fly at dawn?"})
    own = asked.text.partition('"thread_id": "')[2].partition('"')[0]
    assert (await library.see(f"/threads/{own}"))["turns"]
    quote = [{"document_id": library.hidden, "quote": "rubies"}]
    await library.house.run("UPDATE turns SET citations = %s::jsonb WHERE thread_id = %s", json.dumps(quote), own)
    refused(await library.member.get(f"/api/v1/threads/{own}"), 404, "NOT_FOUND")
    assert own not in json.dumps(await library.see("/threads"))


async def test_both_ends_of_a_connection_must_be_granted(library: Library) -> None:
    run, owner = library.house.run, UUID(library.owner_id)
    one, other, third, foreign = [await fresh(library, name) for name in ("Reading", "Writing", "Writing", "Vault")]
    shown, hidden = await connect(run, owner, one, other), await connect(run, owner, third, foreign)
    listed = json.dumps([await library.see(f"/documents/{document}/connections") for document in (one, third)])
    assert (str(shown) in listed, str(hidden) in listed) == (True, False)
    drawn = json.dumps(await library.see("/connections/map"))
    assert (str(one) in drawn, str(foreign) in drawn) == (True, False)


async def fresh(library: Library, collection: str) -> UUID:
    """A document without chunks."""
    text = f"Text {uuid4()}"
    added = await library.owner.post("/api/v1/documents", json={"text": text, "collection": collection})
    document = added.json()["document_id"]
    await library.house.run("UPDATE documents SET text_ready = true, revision = 1 WHERE id = %s", document)
    return UUID(document)


async def test_an_export_contains_only_granted_documents(library: Library) -> None:
    answer = await library.member.get("/api/v1/export")
    assert answer.status_code == 200
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        names = tar.getnames()
        text = b"".join(tar.extractfile(one).read() for one in tar.getmembers() if one.isfile())  # pyright: ignore[reportOptionalMemberAccess]
    assert library.read in text.decode(errors="replace"), names
    assert is_clean(library, " ".join(names) + text.decode(errors="replace"))


async def test_an_agent_sees_what_its_person_sees(library: Library) -> None:
    async def use(name: str, **arguments: object) -> str:
        params = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await library.agent.post("/mcp", json=message, headers=ACCEPT)
        assert answer.status_code == 200, answer.text
        return answer.text

    assert library.read in await use("list_documents")
    assert is_clean(library, await use("list_documents"))
    found = await use("search", query="gull")
    assert "harbour" in found
    assert is_clean(library, found)
    foreign = await use("read", document=library.hidden)
    assert '"isError":true' in foreign
    assert "rubies" not in foreign


async def test_events_are_of_granted_documents(library: Library) -> None:
    with open_folder() as folder, serving_live(library.info, folder) as served:
        async with httpx.AsyncClient(base_url=served.address, trust_env=False) as client:
            client.cookies.set("octavo_session", session_of(library.member))
            async with streaming(client) as stream:
                tell = (
                    "INSERT INTO events (process_id, kind, owner_id, document_id) "
                    "VALUES (%s, 'test', %s, %s), (%s, 'test', %s, NULL), (%s, 'test', %s, %s)"
                )
                first, last = uuid4(), uuid4()
                values = (first, library.owner_id, library.hidden, uuid4(), library.owner_id)
                await library.house.run(tell, *values, last, library.owner_id, library.read)
                assert process_of(await stream.next()) == last
    listed = await library.see("/events", limit=500)
    assert is_clean(library, json.dumps(listed))
    assert {one["document_id"] for one in listed["items"]} <= await granted(library)


async def granted(library: Library) -> set[str]:
    ids = [library.collections["Reading"], library.collections["Writing"]]
    rows = await library.house.rows("SELECT id::text FROM documents WHERE collection_id = ANY (%s::uuid[])", ids)
    return {row[0] for row in rows}


async def test_no_page_shows_anything_else(library: Library) -> None:
    paths = {
        one.path
        for one in iter_route_contexts(library.house.app.routes)
        if one.path and "GET" in (one.methods or ()) and not one.path.startswith("/api/")
    }
    pages = [path for path in sorted(paths) if "{" not in path]
    pages += [f"/documents/{library.read}", f"/documents/{library.read}?panel=connections", "/search?q=gull"]
    assert len(pages) > 30
    shown = 0
    for path in pages:
        answer = await library.member.get(path, headers={"accept": "text/html"})
        assert answer.status_code < 500, (path, answer.text)
        assert is_clean(library, answer.text), path
        shown += answer.status_code == 200
    assert shown > 20


# Writing -----------------------------------------------------------------------------------------------------------


async def test_documents_are_edited_only_where_writing_was_granted(library: Library) -> None:
    edited = await library.member.patch(f"/api/v1/documents/{library.write}", json={"title": "Terns of Iceland"})
    assert (edited.status_code, edited.json()["title"]) == (200, "Terns of Iceland")
    for document in (library.read, library.hidden):
        refused(await library.member.patch(f"/api/v1/documents/{document}", json={"title": "Mine"}), 404, "NOT_FOUND")
        body = {"ids": [library.write, document], "action": "delete"}
        refused(await library.member.post("/api/v1/documents/bulk", json=body), 404, "NOT_FOUND")
    purged = await library.member.delete(f"/api/v1/documents/{library.write}", params={"purge": True})
    refused(purged, 403, "NOT_ALLOWED")
    shared = await library.member.post("/api/v1/shares", json={"document_id": library.write})
    refused(shared, 403, "NOT_ALLOWED")
    refused(await library.member.post("/api/v1/views", json={"name": "Mine"}), 403, "NOT_ALLOWED")


@pytest.mark.parametrize("collection", ["Vault", "Reading", "Not there yet", None])
async def test_a_document_cannot_be_moved_out_of_what_was_granted(library: Library, collection: str | None) -> None:
    edit = {"collection": collection}
    one = await library.member.patch(f"/api/v1/documents/{library.write}", json=edit)
    refused(one, 403, "NOT_ALLOWED")
    if collection:
        body = {"ids": [library.write], "action": "edit", "edit": edit}
        many = await library.member.post("/api/v1/documents/bulk", json=body)
        assert many.status_code == 403 or many.json()["changed"] == 0, many.text
    names = {row["name"] for row in (await library.owner.get("/api/v1/collections")).json()["items"]}
    assert "Not there yet" not in names
    assert (await library.see(f"/documents/{library.write}"))["collection"] == "Writing"


async def test_a_change_of_others_cannot_be_undone(library: Library) -> None:
    """It would move the document back, or change documents that the member does not see."""
    moved = str(await fresh(library, "Vault"))
    body = {"ids": [moved, library.write], "action": "edit", "edit": {"collection": "Writing"}}
    change = (await library.owner.post("/api/v1/documents/bulk", json=body)).json()["undo_id"]
    undone = await library.member.post(f"/api/v1/documents/bulk/{change}/undo")
    assert undone.status_code in {403, 404}, undone.text
    assert (await library.see(f"/documents/{moved}"))["collection"] == "Writing"


async def test_an_upload_goes_to_a_granted_collection_and_never_joins_a_hidden_document(library: Library) -> None:
    body = Pdf([[Words(HIDDEN)]]).write()
    headers = {"x-upload-filename": "rubies.pdf"}
    first = await library.owner.post("/api/v1/documents", content=body, headers=headers)
    answer = await library.member.post("/api/v1/documents", content=body, headers=headers)
    assert answer.status_code == 202, answer.text
    assert first.json()["document_id"] not in answer.text
    document = await library.see(f"/documents/{answer.json()['document_id']}")
    assert (document["collection"], document["duplicate_of"], document["metadata"]) == ("Writing", None, {})
    for collection in ("Vault", "Reading", "Unknown"):
        foreign = await library.member.post("/api/v1/documents", json={"text": "Terns.", "collection": collection})
        refused(foreign, 403, "NOT_ALLOWED")


async def test_an_upload_of_known_content_is_not_ready_sooner(library: Library) -> None:
    """Otherwise a member could find out whether the account has a text that they can guess."""
    text = f"The vault has {uuid4()} rubies."
    await add(library.house, library.owner, text, "Rubies", "Vault")
    answers = [
        await library.member.post("/api/v1/documents", json={"text": one, "title": "Mine", "collection": "Writing"})
        for one in (text, f"{text} And more.")
    ]
    known, unknown = [await library.see(f"/documents/{one.json()['document_id']}") for one in answers]
    for name in ("status", "text_ready", "embeddings_ready", "duplicate_of", "revision"):
        assert known[name] == unknown[name], name
    assert [[job["kind"] for job in one["jobs"]] for one in (known, unknown)] == [["process_document"]] * 2


async def test_a_reader_saves_their_own_reading_position(library: Library) -> None:
    for start in (5, 7):
        saved = await library.member.put(f"/api/v1/documents/{library.read}/position", json={"start": start})
        assert saved.status_code == 204, saved.text
    assert (await library.see(f"/documents/{library.read}/position"))["start"] == 7
    owners = await library.owner.get(f"/api/v1/documents/{library.read}/position")
    assert owners.json()["start"] == 0
    hidden = await library.member.put(f"/api/v1/documents/{library.hidden}/position", json={"start": 5})
    refused(hidden, 404, "NOT_FOUND")


async def test_an_upload_in_steps_belongs_to_the_member_who_began_it(library: Library) -> None:
    ticket = (await library.member.post("/api/v1/uploads", json={"filename": "a.txt"})).json()
    await library.member.put(f"/api/v1/uploads/{ticket['upload_id']}/content", content=f"Text {uuid4()}".encode())
    done = await library.member.post(f"/api/v1/uploads/{ticket['upload_id']}/finalize")
    assert (done.status_code, done.json()["state"]) == (200, "uploaded"), done.text
    assert (await library.see(f"/documents/{done.json()['document_id']}"))["collection"] == "Writing"
    other = (await library.owner.post("/api/v1/uploads", json={"filename": "a.txt"})).json()["upload_id"]
    refused(await library.member.put(f"/api/v1/uploads/{other}/content", content=b"x"), 404, "NOT_FOUND")
    refused(await library.member.post(f"/api/v1/uploads/{other}/finalize"), 404, "NOT_FOUND")


# Managing ----------------------------------------------------------------------------------------------------------


async def test_a_withdrawn_grant_ends_with_the_next_request(library: Library) -> None:
    collection = (await library.owner.post("/api/v1/collections", json={"name": "Lent"})).json()["id"]
    document = await fresh(library, "Lent")
    refused(await library.member.get(f"/api/v1/documents/{document}"), 404, "NOT_FOUND")
    made = await grant(library.owner, collection, user_id=library.user)
    assert (await library.see(f"/documents/{document}"))["collection"] == "Lent"
    assert (await library.owner.delete(f"/api/v1/grants/{made}")).status_code == 204
    refused(await library.member.get(f"/api/v1/documents/{document}"), 404, "NOT_FOUND")


async def test_an_older_version_is_shown_only_with_the_newest_one(library: Library) -> None:
    first = str(await fresh(library, "Reading"))
    body = {"text": f"Text {uuid4()}", "version_of": first}
    second = (await library.owner.post("/api/v1/documents", json=body)).json()["document_id"]
    assert (await library.see(f"/documents/{first}"))["superseded"]
    await library.owner.patch(f"/api/v1/documents/{second}", json={"collection": "Vault"})
    refused(await library.member.get(f"/api/v1/documents/{first}"), 404, "NOT_FOUND")


async def test_a_member_can_be_limited_later_and_loses_shared_links(library: Library) -> None:
    person = await library.house.person("erin@example.org")
    body = {"email": "erin@example.org", "role": "member"}
    user = (await library.owner.post("/api/v1/members", json=body)).json()["user_id"]
    await person.post("/api/v1/session/owner", json={"owner_id": library.owner_id})
    link = (await person.post("/api/v1/shares", json={"document_id": library.hidden})).json()["link"]
    limited = await library.owner.patch(f"/api/v1/members/{user}", json={"limited": True})
    assert limited.json()["limited"] is True
    assert (await person.get("/api/v1/documents")).json()["items"] == []
    browser = await library.house.browser()
    assert (await browser.get("/shared/" + link.rpartition("/")[2])).status_code == 404
    owner = await library.owner.patch(f"/api/v1/members/{user}", json={"role": "owner"})
    assert owner.json()["limited"] is False
    refused(await library.owner.patch(f"/api/v1/members/{user}", json={"limited": True}), 409, "OWNER_SEES_ALL")
    await library.owner.delete(f"/api/v1/members/{user}")


async def test_an_invitation_can_be_for_a_limited_member(library: Library) -> None:
    body = {"email": "fay@example.org", "role": "reader", "limited": True}
    made = (await library.owner.post("/api/v1/invitations", json=body)).json()
    assert made["limited"] is True
    browser = await library.house.browser()
    token = made["link"].rpartition("=")[2]
    joined = await browser.post("/invitation", data={"token": token, "password": PASSWORD})
    assert joined.status_code == 303, joined.text
    assert (await me(browser))["limited"] is True
    assert (await browser.get("/api/v1/documents")).json()["items"] == []


async def test_groups_have_unique_names_and_members_of_the_account(library: Library) -> None:
    made = (await library.owner.post("/api/v1/groups", json={"name": "Auditors"})).json()["id"]
    taken = await library.owner.post("/api/v1/groups", json={"name": " auditors "})
    refused(taken, 409, "GROUP_NAME_TAKEN")
    stranger = (await me(await library.house.person("gil@example.org")))["owner_id"]
    refused(await library.owner.put(f"/api/v1/groups/{made}/members/{stranger}"), 404, "NOT_FOUND")
    both = {"collection_id": library.collections["Vault"], "user_id": library.user, "group_id": made}
    refused(await library.owner.post("/api/v1/grants", json=both), 422, "VALIDATION")
    assert (await library.owner.delete(f"/api/v1/groups/{made}")).status_code == 204
