"""The client and a real server: files arrive whole, also over connections that break, and in constant memory."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from octavo.client import Client, Filters, RemoteProblem
from octavo.client.uploads import ONE_CALL_BYTES
from tests.integration.client.servers import cutting
from tests.support.instance import Instance, instance_in
from tests.support.postgres import open_folder

LARGE = ONE_CALL_BYTES + 100_000
# More than the headers of a request, less than a file with its headers.
IN_THE_BODY = 50_000


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    """Nobody works on what comes in, so that it stays as it came."""
    with open_folder() as folder, instance_in(folder, workers=0) as instance:
        instance.start()
        yield instance


@pytest.fixture(scope="module")
def key(instance: Instance) -> str:
    return instance.octavo("keys", "add", "test").stdout.strip()


@pytest.fixture
async def client(instance: Instance, key: str) -> AsyncIterator[Client]:
    async with Client(instance.address, key=key) as client:
        yield client


def new_file(folder: Path, size: int, name: str = "file.bin") -> Path:
    """Of a content that no other test has."""
    file = folder / name
    file.write_bytes(os.urandom(size))
    return file


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("size", [1, 300_000, ONE_CALL_BYTES, LARGE])
@pytest.mark.parametrize("duplicates", ["reuse", "new"])
async def test_a_file_arrives_as_it_is(client: Client, tmp_path: Path, size: int, duplicates: str) -> None:
    file = new_file(tmp_path, size, "Übung [1].bin")
    progress: list[int] = []
    policy = "new" if duplicates == "new" else "reuse"
    outcome = await client.add_file(file, duplicates=policy, on_progress=progress.append)
    document = await client.show_document(outcome.document_id)
    assert (outcome.state, document.filename) == ("uploaded", file.name)
    assert (document.bytes, document.sha256) == (size, digest(file))
    assert progress == sorted(progress)
    assert progress[-1] == size


async def test_the_same_file_again_is_treated_as_was_asked(client: Client, tmp_path: Path) -> None:
    file = new_file(tmp_path, 100)
    first = await client.add_file(file)
    again = await client.add_file(file)
    assert (again.state, again.document_id, again.duplicate_of) == ("deduplicated", *[first.document_id] * 2)
    copy = await client.add_file(file, duplicates="new")
    assert (copy.state, copy.duplicate_of) == ("uploaded", first.document_id)
    with pytest.raises(RemoteProblem) as refused:
        await client.add_file(file, duplicates="reject")
    assert (refused.value.code, refused.value.status) == ("DUPLICATE", 409)


@pytest.mark.parametrize(
    ("size", "cuts"),
    [
        (200_000, [IN_THE_BODY]),
        (200_000, [IN_THE_BODY, IN_THE_BODY]),
        (200_000, [-1]),  # it was done, and the answer is lost
        (LARGE, [IN_THE_BODY]),
        (LARGE, [IN_THE_BODY, LARGE // 2, LARGE - 10]),
        (LARGE, [-1]),
    ],
)
async def test_a_transfer_that_breaks_off_is_repeated(
    instance: Instance, key: str, client: Client, tmp_path: Path, size: int, cuts: list[int]
) -> None:
    file = new_file(tmp_path, size)
    with cutting(instance.address, *cuts) as cutter:
        async with Client(cutter.address, key=key) as broken:
            outcome = await broken.add_file(file)
    assert cutter.connections == len(cuts) + 1
    document = await client.show_document(outcome.document_id)
    assert document.sha256 == digest(file)
    same = [one.id async for one in client.walk_documents() if one.sha256 == document.sha256]
    assert same == [document.id]


async def test_a_separate_document_is_created_once_over_a_broken_connection(
    instance: Instance, key: str, client: Client, tmp_path: Path
) -> None:
    file = new_file(tmp_path, 200_000)
    first = await client.add_file(file)
    with cutting(instance.address, IN_THE_BODY, -1) as cutter:
        async with Client(cutter.address, key=key, connections=1) as broken:
            outcome = await broken.add_file(file, duplicates="new")
    documents = [one async for one in client.walk_documents(Filters(q=file.name)) if one.sha256 == digest(file)]
    assert {one.id for one in documents} == {first.document_id, outcome.document_id}
    assert len(documents) == 2


async def test_a_large_file_does_not_come_into_memory(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "large.bin"
    with file.open("wb") as stream:
        stream.write(os.urandom(32))
        stream.truncate(64 << 20)
    tracemalloc.start()
    try:
        await client.add_file(file)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


async def test_many_parallel_callers_share_the_connections(instance: Instance, key: str, tmp_path: Path) -> None:
    files = [new_file(tmp_path, 500, f"{number}.txt") for number in range(40)]
    with cutting(instance.address) as counter:
        async with Client(counter.address, key=key, connections=4) as client:
            outcomes = await asyncio.gather(*(client.add_file(file) for file in files))
    assert {one.state for one in outcomes} == {"uploaded"}
    assert counter.connections <= 4


async def test_documents_jobs_and_chunks_are_read_in_the_form_of_the_server(client: Client, tmp_path: Path) -> None:
    outcome = await client.add_file(new_file(tmp_path, 100, "form.txt"))
    page = await client.list_documents(limit=1)
    assert [one.id for one in page.items] == [outcome.document_id]
    edited = await client.edit_document(outcome.document_id, {"title": "A form", "tags": ["b", "a"]})
    assert (edited.title, edited.tags) == ("A form", ["a", "b"])
    job = await client.show_job(outcome.process_id)
    assert (job.document_id, job.status) == (outcome.document_id, "queued")
    assert job.waiting_because
    assert job.waiting_because.reason == "no_worker"
    listed = await client.list_jobs(document=outcome.document_id, status="queued")
    assert {one.kind: one.id for one in listed.items if one.kind != "embed_tags"} == {"process_document": job.id}
    assert (await client.list_chunks(outcome.document_id)).items == []


async def test_all_documents_are_walked_page_by_page(client: Client, tmp_path: Path) -> None:
    added = {(await client.add_file(new_file(tmp_path, 50, f"walk {n}.txt"))).document_id for n in range(3)}
    first = await client.list_documents(Filters(q="walk "), limit=2)
    assert first.next_cursor
    rest = await client.list_documents(Filters(q="walk "), cursor=first.next_cursor, limit=2)
    assert {one.id for one in first.items + rest.items} == added
    assert rest.next_cursor is None


async def test_a_stranger_gets_nothing(instance: Instance, client: Client, tmp_path: Path) -> None:
    document = (await client.add_file(new_file(tmp_path, 10))).document_id
    async with Client(instance.address, key="octavo_nonsense") as stranger:
        with pytest.raises(RemoteProblem) as refused:
            await stranger.show_document(document)
    assert (refused.value.code, refused.value.status) == ("UNAUTHENTICATED", 401)
