"""A PDF that asks for a password is read when somebody gives it, and the password is nowhere afterwards."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.integration.web.reader.conftest import Room
from tests.support.dumps import dump
from tests.support.pdf import Pdf, Words
from tests.support.visitors import refused

pytestmark = pytest.mark.asyncio(loop_scope="module")

PASSWORD = "correct-horse-7261"


def locked(text: str = "Behind the door.") -> bytes:
    return Pdf([[Words(text)]]).write(PASSWORD)


def retry(document: str) -> str:
    return f"/api/v1/documents/{document}/retry"


async def test_the_password_opens_it_and_is_not_kept(room: Room, capfd: pytest.CaptureFixture[str]) -> None:
    source = locked()
    document = await room.add("locked.pdf", source)
    shown = (await room.owner.get(f"/api/v1/documents/{document}")).json()
    assert shown["error"]["code"] == "ENCRYPTED"
    answer = await room.owner.post(retry(document), json={"password": PASSWORD})
    assert (answer.status_code, answer.json()["state"]) == (200, "pending")
    async with room.working():
        await room.until_done()
    assert await room.read(f"/api/v1/documents/{document}/markdown") == "Behind the door."
    assert (await room.owner.get(f"/api/v1/documents/{document}/source")).content == source
    assert (await room.owner.get(f"/api/v1/documents/{document}/pages/1.png")).status_code == 200
    # Once open, it is processed again without anybody who knows the password.
    await room.owner.post(retry(document), json={"from_stage": "extracted"})
    async with room.working():
        await room.until_done()
    shown = (await room.owner.get(f"/api/v1/documents/{document}")).json()
    assert (shown["status"], shown["revision"]) == ("completed", 2)
    written = "".join(capfd.readouterr())
    assert PASSWORD not in written
    assert PASSWORD not in str(await dump(room.house))


async def test_a_wrong_password_is_reported_immediately_and_changes_nothing(room: Room) -> None:
    document = await room.add("locked.pdf", locked("Other words."))
    before = await room.house.rows("SELECT key FROM artifacts WHERE document_id = %s", document)
    refused(await room.owner.post(retry(document), json={"password": "wrong"}), 422, "ENCRYPTED")
    assert (await room.owner.get(f"/api/v1/documents/{document}")).json()["status"] == "failed"
    assert await room.house.rows("SELECT key FROM artifacts WHERE document_id = %s", document) == before


async def test_a_page_asks_for_the_password(room: Room) -> None:
    document = await room.add("locked.pdf", locked("Seen in a browser."))
    action = f"/actions/documents/{document}/unlock"
    assert f'action="{action}"' in await room.read(f"/documents/{document}/replace")
    wrong = await room.owner.post(action, data={"password": "wrong"}, headers={"accept": "text/html"})
    assert (wrong.status_code, "The password is wrong." in wrong.text) == (422, True)
    assert (await room.owner.post(action, data={"password": PASSWORD})).status_code == 303
    async with room.working():
        await room.until_done()
    assert await room.read(f"/api/v1/documents/{document}/markdown") == "Seen in a browser."


async def test_a_second_opened_file_takes_the_place_of_the_first(room: Room) -> None:
    document = await room.add("locked.pdf", locked("Opened twice."))
    for _ in range(2):
        assert (await room.owner.post(retry(document), json={"password": PASSWORD})).status_code == 200
    kinds = await room.house.rows("SELECT kind FROM artifacts WHERE document_id = %s ORDER BY kind", document)
    assert kinds == [("source",), ("unlocked",)]
    async with room.working():
        await room.until_done()
    assert await room.read(f"/api/v1/documents/{document}/markdown") == "Opened twice."
    assert (await room.owner.delete(f"/api/v1/documents/{document}?purge=true")).status_code == 204
    bucket = room.house.app.state.services.bucket
    assert not [info.key async for info in bucket.list() if document in info.key]


async def test_where_no_password_is_needed_none_is_missed(room: Room) -> None:
    document = await room.add("open.pdf", Pdf([[Words("Open to all.")]]).write())
    assert (await room.owner.post(retry(document), json={"password": "any"})).json()["state"] == "pending"
    async with room.working():
        await room.until_done()
    assert await room.house.rows("SELECT FROM artifacts WHERE document_id = %s AND kind = 'unlocked'", document) == []


async def test_only_pdfs_are_opened_and_only_by_their_owner(room: Room) -> None:
    text = await room.add("notes.txt", "Some words of a text.")
    refused(await room.owner.post(retry(text), json={"password": PASSWORD}), 422, "VALIDATION")
    document = await room.upload("locked.pdf", locked("Not yours."))
    stranger = await room.house.person(f"{uuid4()}@example.org")
    refused(await stranger.post(retry(document), json={"password": PASSWORD}), 404, "NOT_FOUND")
    refused(await room.owner.post(retry(document), json={"password": ""}), 422, "VALIDATION")
