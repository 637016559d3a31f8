"""A request that is sent again with the same Idempotency-Key gets the same answer, and nothing is made twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from octavo.core.settings import Settings
from octavo.intake import Intake
from octavo.library import bulk
from octavo.pipeline.scheduled_jobs import QUERIES as HOUSEKEEPING
from octavo.web.app import create_app
from octavo.web.context import idempotency
from octavo.web.context.idempotency import Fingerprint, seal
from tests.support.conversions import invoice
from tests.support.visitors import House, me, refused

DOCUMENTS = "/api/v1/documents"
NOTE = {"text": "The ferry to the island runs every hour.", "title": "Ferry"}
# POST routes that create nothing and queue nothing, or that cannot be repeated, with the reason.
WITHOUT_KEY = {
    "/api/v1/ask": "a stream",
    "/api/v1/documents/{document}/link": "stores nothing",
    "/api/v1/documents/{document}/restore": "changes a state",
    "/api/v1/connections/{connection_id}/confirm": "changes a state",
    "/api/v1/connections/{connection_id}/dismiss": "changes a state",
    "/api/v1/connections/{connection_id}/undo": "changes a state",
    "/api/v1/analyses/{analysis}/stop": "changes a state",
    "/api/v1/analyses/{analysis}/cancel": "changes a state",
    "/api/v1/jobs/{job}/cancel": "changes a state",
    "/api/v1/jobs/{job}/prioritise": "changes a state",
    "/api/v1/imports/pause": "changes a state",
    "/api/v1/imports/resume": "changes a state",
    "/api/v1/sources/{source}/run": "changes a state",
    "/api/v1/sources/{source}/pause": "changes a state",
    "/api/v1/sources/{source}/resume": "changes a state",
    "/api/v1/rules/{rule}/try": "stores nothing",
    "/api/v1/import/known": "stores nothing",
    "/api/v1/import/documents": "a repetition changes nothing",
    "/api/v1/import/records": "a repetition changes nothing",
    "/api/v1/import/conversions": "a repetition changes nothing",
    "/api/v1/documents/bulk/{change}/undo": "a repetition changes nothing",
    "/api/v1/documents/bulk/download": "stores nothing",
    "/api/v1/models/{provider}/test": "stores nothing",
    "/api/v1/model-servers": "stores nothing",
    "/api/v1/admin/dead-letters/discard": "changes a state",
    "/api/v1/admin/dead-letters/{job}/discard": "changes a state",
    "/api/v1/admin/circuits/{name}/try": "changes a state",
    "/api/v1/mappings/check": "stores nothing",
    "/api/v1/notifications/read": "changes a state",
    "/api/v1/notifications/{notification}/read": "changes a state",
    "/api/v1/notifications/{notification}/resolve": "changes a state",
    "/api/v1/invitations": "a repetition replaces the link",
    "/api/v1/admin/reset-links": "a repetition replaces the link",
    "/api/v1/account": "has no owner yet",
    "/api/v1/session": "has no owner yet",
    "/api/v1/session/owner": "changes a state",
}


def key() -> dict[str, str]:
    return {"Idempotency-Key": str(uuid4())}


async def count(house: House, table: str) -> int:
    return (await house.rows(f"SELECT count(*) FROM {table}"))[0][0]


def test_every_post_that_makes_something_takes_a_key() -> None:
    paths: dict[str, Any] = create_app(Settings(data_dir=Path("/nowhere"))).openapi()["paths"]
    posts = {path: methods["post"] for path, methods in paths.items() if "post" in methods}
    taking = {
        path
        for path, post in posts.items()
        if any(one["name"].lower() == "idempotency-key" for one in post.get("parameters", ()))
    }
    assert set(posts) - taking == set(WITHOUT_KEY)


async def test_a_repeated_request_gets_the_same_answer_and_makes_nothing(house: House) -> None:
    client, header = await house.browser(), key()
    await me(client)
    first = await client.post(DOCUMENTS, json=NOTE, headers=header)
    again = await client.post(DOCUMENTS, json=NOTE, headers=header)
    assert first.status_code == again.status_code == 202
    assert first.json() == again.json()
    assert (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"]) == (None, "true")
    assert await count(house, "documents") == await count(house, "jobs") == 1
    other = await client.post(DOCUMENTS, json=NOTE, headers=key())
    assert other.json() != first.json()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/uploads", {"filename": "a.md"}),
        ("/api/v1/collections", {"name": "Boats"}),
        ("/api/v1/views", {"name": "Boats"}),
        ("/api/v1/prompts", {"title": "Boats", "content": "List the boats."}),
        ("/api/v1/embeddings", None),
        ("/api/v1/connections/rebuild", None),
    ],
)
async def test_all_that_is_made_is_made_once(house: House, path: str, body: dict[str, Any] | None) -> None:
    client, header = await house.browser(), key()
    await me(client)
    first = await client.post(path, json=body, headers=header)
    assert first.is_success, first.text
    again = await client.post(path, json=body, headers=header)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers["idempotency-replayed"] == "true"


async def test_secrets_are_repeated_and_not_stored_in_clear(house: House) -> None:
    person, header = await house.person("ann@example.org"), key()
    wanted = {"name": "robot", "scope": "write"}
    first = await person.post("/api/v1/keys", json=wanted, headers=header)
    again = await person.post("/api/v1/keys", json=wanted, headers=header)
    assert first.status_code == 201
    assert again.json() == first.json()
    assert len((await person.get("/api/v1/keys")).json()["items"]) == 1
    ((answer, hashed),) = await house.rows("SELECT answer, key_hash FROM idempotency_keys")
    assert first.json()["key"].encode() not in answer
    assert header["Idempotency-Key"].encode() not in hashed


async def test_a_key_for_another_request_is_refused(house: House) -> None:
    client, header = await house.browser(), key()
    await me(client)
    await client.post(DOCUMENTS, json=NOTE, headers=header)
    for path, body in (
        (DOCUMENTS, NOTE | {"text": "Another text."}),
        (DOCUMENTS, NOTE | {"text": "Another text." * 1000}),
        (f"{DOCUMENTS}?duplicates=new", NOTE),
        ("/api/v1/collections", {"name": "Boats"}),
    ):
        refused(await client.post(path, json=body, headers=header), 422, "IDEMPOTENCY_KEY_REUSED")
    assert await count(house, "documents") == 1
    assert await count(house, "collections") == 0


async def test_keys_of_others_are_not_seen(house: House) -> None:
    header = key()
    ann, bob = await house.person("ann@example.org"), await house.person("bob@example.org")
    one = (await ann.post(DOCUMENTS, json=NOTE, headers=header)).json()
    two = (await bob.post(DOCUMENTS, json=NOTE, headers=header)).json()
    assert one["document_id"] != two["document_id"]


async def test_a_key_that_may_only_read_gets_no_stored_answer(house: House) -> None:
    person, header = await house.person("ann@example.org"), key()
    await person.post(DOCUMENTS, json=NOTE, headers=header)
    secret = (await person.post("/api/v1/keys", json={"name": "r", "scope": "read"})).json()["key"]
    refused(await (await house.program(secret)).post(DOCUMENTS, json=NOTE, headers=header), 403, "NOT_ALLOWED")


async def test_a_failed_request_can_be_corrected_under_the_same_key(house: House) -> None:
    client, header = await house.browser(), key()
    await me(client)
    refused(await client.post(DOCUMENTS, json={"text": " "}, headers=header), 422, "EMPTY")
    assert (await client.post(DOCUMENTS, json=NOTE, headers=header)).status_code == 202


async def test_a_form_is_the_same_with_another_boundary(house: House) -> None:
    client, header = await house.browser(), key()
    await me(client)
    files = {"file": ("a.md", b"# Ferry\n" * 5000, "text/markdown")}
    first = await client.post(DOCUMENTS, files=files, headers=header)
    again = await client.post(DOCUMENTS, files=files, headers=header)
    assert first.request.headers["content-type"] != again.request.headers["content-type"]
    assert (again.status_code, again.json()) == (202, first.json())
    changed = {"file": ("a.md", b"# Ferry\n" * 4999 + b"# Fairy\n", "text/markdown")}
    refused(await client.post(DOCUMENTS, files=changed, headers=header), 422, "IDEMPOTENCY_KEY_REUSED")


async def test_raw_bytes_and_conversions_are_repeated(house: House) -> None:
    client, pdf = await house.browser(), invoice("A-1").write()
    await me(client)
    for path in (DOCUMENTS, "/api/v1/conversions"):
        header = key() | {"x-upload-filename": "a.pdf"}
        first = await client.post(path, content=pdf, headers=header)
        again = await client.post(path, content=pdf, headers=header)
        assert first.status_code == 202, first.text
        assert (again.status_code, again.json()) == (202, first.json())
        other = header | {"x-upload-filename": "b.pdf"}
        refused(await client.post(path, content=pdf, headers=other), 422, "IDEMPOTENCY_KEY_REUSED")


async def test_a_request_that_is_still_running_is_refused_and_then_repeated(house: House) -> None:
    client, header = await house.browser(), key() | {"x-upload-filename": "a.md"}
    await me(client)
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b"# Ferry\n"
        started.set()
        await go_on.wait()
        yield b"Every hour."

    first = asyncio.create_task(client.post(DOCUMENTS, content=slowly(), headers=header))
    await started.wait()
    meanwhile = await client.post(DOCUMENTS, content=b"# Ferry\nEvery hour.", headers=header)
    refused(meanwhile, 409, "IDEMPOTENCY_KEY_IN_USE")
    assert int(meanwhile.headers["retry-after"]) > 0
    go_on.set()
    made = await first
    again = await client.post(DOCUMENTS, content=b"# Ferry\nEvery hour.", headers=header)
    assert (again.status_code, again.json()) == (202, made.json())


async def test_a_process_that_dies_after_making_is_repeated(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing runs after the commit of the first request: no answer is sent."""
    client, header = await house.browser(), key()
    await me(client)

    async def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(Intake, "_heal", die)  # the first call after the commit
        with pytest.raises(SystemExit):
            await client.post(DOCUMENTS, json=NOTE, headers=header)
    assert await count(house, "documents") == 1
    again = await client.post(DOCUMENTS, json=NOTE, headers=header)
    assert again.status_code == 202
    assert await count(house, "documents") == 1
    shown = await client.get(f"{DOCUMENTS}/{again.json()['document_id']}")
    assert shown.json()["title"] == "Ferry"


async def test_a_process_that_dies_before_storing_the_answer_made_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, header = await house.browser(), key()
    await me(client)

    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(idempotency, "serialise", die)
        with pytest.raises(SystemExit):
            await client.post("/api/v1/prompts", json={"title": "T", "content": "C"}, headers=header)
    own = "prompts WHERE owner_id IS NOT NULL"
    assert await count(house, own) == 0
    assert (await client.post("/api/v1/prompts", json={"title": "T", "content": "C"}, headers=header)).is_success
    assert await count(house, own) == 1


async def test_an_action_on_many_documents_is_done_once_or_not_at_all(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first request, the filter matches nothing. Its answer is repeated all the same."""
    client, header = await house.browser(), key()
    await me(client)
    for number in range(3):
        await client.post(DOCUMENTS, json={"text": f"Ferry number {number}."})
    monkeypatch.setattr(bulk, "BATCH_DOCUMENTS", 1)
    wanted: dict[str, Any] = {"action": "delete", "filter": {}}

    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(idempotency, "serialise", die)
        with pytest.raises(SystemExit):
            await client.post(f"{DOCUMENTS}/bulk", json=wanted, headers=header)
    assert await count(house, "documents WHERE deleted_at IS NOT NULL") == 0
    first = await client.post(f"{DOCUMENTS}/bulk", json=wanted, headers=header)
    assert first.json()["changed"] == 3
    again = await client.post(f"{DOCUMENTS}/bulk", json=wanted, headers=header)
    assert again.json() == first.json()
    undone = await client.post(f"{DOCUMENTS}/bulk/{first.json()['undo_id']}/undo")
    assert undone.json()["changed"] == 3
    assert (await client.post(f"{DOCUMENTS}/bulk", json=wanted, headers=header)).json() == first.json()
    assert await count(house, "documents WHERE deleted_at IS NOT NULL") == 0


@pytest.mark.parametrize("action", ["delete", "retry", "analyse", "convert"])
async def test_an_action_on_no_documents_is_repeated(house: House, action: str) -> None:
    client, header = await house.browser(), key()
    await me(client)
    wanted: dict[str, Any] = {"action": action, "filter": {}}
    first = await client.post(f"{DOCUMENTS}/bulk", json=wanted, headers=header)
    assert first.json()["changed"] == 0, first.text
    await client.post(DOCUMENTS, json=NOTE)
    again = await client.post(f"{DOCUMENTS}/bulk", json=wanted, headers=header)
    assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")


async def test_an_answer_that_is_too_long_is_not_stored_and_nothing_is_made_twice(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MOST_ANSWER_BYTES", 10)
    client, header = await house.browser(), key()
    await me(client)
    await client.post(DOCUMENTS, json=NOTE, headers=header)
    refused(await client.post(DOCUMENTS, json=NOTE, headers=header), 409, "IDEMPOTENCY_ANSWER_TOO_LONG")
    assert await count(house, "documents") == 1


async def test_after_a_day_a_key_is_new_and_housekeeping_deletes_it(house: House) -> None:
    client, header = await house.browser(), key()
    await me(client)
    first = await client.post(DOCUMENTS, json=NOTE, headers=header)
    await house.run("UPDATE idempotency_keys SET created_at = now() - interval '25 hours'")
    second = await client.post(DOCUMENTS, json=NOTE, headers=header)
    assert second.json() != first.json()
    assert (await client.post(DOCUMENTS, json=NOTE, headers=header)).json() == second.json()
    await house.database.execute(HOUSEKEEPING.forget_answers)
    assert await count(house, "idempotency_keys") == 1
    await house.run("UPDATE idempotency_keys SET created_at = now() - interval '25 hours'")
    await house.database.execute(HOUSEKEEPING.forget_answers)
    assert await count(house, "idempotency_keys") == 0


@pytest.mark.parametrize("value", [b"", b"x" * 256, "naïve".encode()])
async def test_an_invalid_key_is_refused(house: House, value: bytes) -> None:
    client = await house.browser()
    answer = await client.post(DOCUMENTS, json=NOTE, headers=httpx.Headers({b"Idempotency-Key": value}))
    refused(answer, 422, "VALIDATION")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_boundary_does_not_count_however_the_body_is_cut(size: int) -> None:
    def digest(boundary: bytes) -> tuple[bytes, int]:
        body = b"--" + boundary + b"\r\nname\r\n--" + boundary[:3] + b"\r\n--" + boundary + b"--\r\n"
        print_ = Fingerprint(["POST"], boundary)
        for start in range(0, len(body), size):
            print_.add(body[start : start + size])
        return print_.digest(), print_.bytes

    assert digest(b"abcdefgh") == digest(b"abcXYZ12345")


def test_only_the_key_opens_an_answer() -> None:
    sealed = seal(b'{"key": "secret"}', "one", b"salt")
    assert seal(sealed, "one", b"salt") == b'{"key": "secret"}'
    assert b"secret" not in sealed
    assert seal(sealed, "two", b"salt") != b'{"key": "secret"}'
    assert seal(b"", "one", b"salt") == b""
