"""The blocking client and a real server: the same calls, without an event loop of the program."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from octavo.client import Filters, RemoteProblem, SyncClient
from tests.support.instance import Instance, instance_in
from tests.support.postgres import open_folder


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    with open_folder() as folder, instance_in(folder, workers=1) as instance:
        instance.start()
        yield instance


@pytest.fixture(scope="module")
def client(instance: Instance) -> Iterator[SyncClient]:
    key = instance.octavo("keys", "add", "test", "--scope", "admin").stdout.strip()
    with SyncClient(instance.address, key=key) as client:
        yield client


def test_a_document_is_added_awaited_read_and_downloaded(client: SyncClient, tmp_path: Path) -> None:
    file = tmp_path / "gulls.txt"
    file.write_text("# Gulls\n\nThe gull flies over the harbour at dawn.\n" * 50)
    added = client.add_file(file)
    document = client.wait(added.document_id, timeout_seconds=120)
    assert document.status == "completed"
    assert "harbour at dawn" in client.read_markdown(document.id)
    assert client.download_source(document.id, tmp_path / "copy.txt") == file.stat().st_size
    assert (tmp_path / "copy.txt").read_bytes() == file.read_bytes()
    assert client.download_export(document.id, tmp_path / "all.json") == (tmp_path / "all.json").stat().st_size
    assert client.download_documents(tmp_path / "all.zip", [document.id]) > 0
    assert [one.id for one in client.walk_documents(Filters(q="gulls"))] == [document.id]
    parts = [type(one).__name__ for one in client.ask("Where does the gull fly?")]
    assert (parts[0], parts[-1]) == ("ThreadReference", "AnswerSources")


def test_waiting_has_an_end(client: SyncClient) -> None:
    client.pause_imports()
    try:
        client.join_import(uuid4())
        added = client.add_text("A text that nobody works on while imports are paused.")
        with pytest.raises(TimeoutError):
            client.wait(added.document_id, timeout_seconds=0.5)
    finally:
        client.resume_imports()


def test_collections_webhooks_and_members_are_managed(client: SyncClient) -> None:
    made = client.add_collection("Taxes")
    client.edit_collection(made.id, {"name": "Taxes 2026", "keep_days": 30})
    assert [(one.name, one.keep_days) for one in client.list_collections()] == [("Taxes 2026", 30)]
    client.delete_collection(made.id)
    assert client.list_collections() == []
    webhook = client.add_webhook("https://example.org/hook", ["document.completed"])
    assert webhook.secret
    assert client.rotate_webhook(webhook.id).secret != webhook.secret
    assert client.edit_webhook(webhook.id, {"active": False}).active is False
    assert client.list_deliveries(webhook.id).items == []
    client.delete_webhook(webhook.id)
    assert client.list_webhooks() == []
    assert client.list_members() == []  # the local account has no people
    assert client.list_views() == client.analyses.list().items == list(client.conversions.list().items) == []
    assert client.read_health().ready
    assert client.is_alive()


def test_a_refusal_is_raised_where_the_call_is(client: SyncClient) -> None:
    with pytest.raises(RemoteProblem) as refused:
        client.show_document(uuid4())
    assert refused.value.code == "NOT_FOUND"


def test_several_threads_share_a_client(client: SyncClient) -> None:
    wanted = [f"Number {number}" for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        assert [one.name for one in pool.map(client.add_collection, wanted)] == wanted


def test_it_works_where_an_event_loop_already_runs(client: SyncClient) -> None:
    async def cell_of_a_notebook() -> str:
        return client.read_settings().version

    assert asyncio.run(cell_of_a_notebook())


def test_a_stream_can_be_left_early(client: SyncClient) -> None:
    start = client.latest_event()
    client.add_text(f"Something new {uuid4()}")
    events = client.events(after=start)
    assert next(events).cursor != start
    events.close()
    assert client.is_alive()


def test_a_large_file_is_downloaded_whole(client: SyncClient, tmp_path: Path) -> None:
    file, copy = tmp_path / "large.bin", tmp_path / "copy.bin"
    file.write_bytes(os.urandom(20 << 20))
    seen: list[int] = []
    document = client.add_file(file).document_id
    client.download_source(document, copy, on_progress=seen.append)
    assert hashlib.sha256(copy.read_bytes()).digest() == hashlib.sha256(file.read_bytes()).digest()
    assert seen == sorted(seen)


def test_a_person_signs_up_changes_the_password_and_signs_out(instance: Instance) -> None:
    email = f"{uuid4()}@example.org"
    with SyncClient(instance.address) as person:
        assert person.sign_up(email, "a long password 1").email == email
        assert person.show_me().email == email
        person.change_password("a long password 1", "a long password 2")
        person.sign_out()
        with pytest.raises(RemoteProblem):
            person.list_keys()
        assert person.sign_in(email, "a long password 2").email == email
        assert [one.email for one in person.list_members()] == [email]
