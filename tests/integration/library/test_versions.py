"""A new version keeps the old one whole; lists show the newest; what changed can be seen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from octavo.core.errors import NotFound
from octavo.database import Connection, fetch_rows, load_queries
from octavo.library import changes
from octavo.library.changes import Edit
from octavo.library.documents import Filters, list_documents, show_document
from octavo.library.versions import DocumentRevision, compare_documents, list_versions
from tests.support.library import LIMITS, Desk
from tests.support.processing import OpenSandbox
from tests.support.working import add, finished, text_of, working

DOCTOR = load_queries("doctor")
Act = Callable[[Connection, UUID, Sequence[UUID]], Awaitable[object]]
CONNECT = """
    INSERT INTO connections (id, owner_id, engine, source_chunk, target_chunk, source_document, target_document,
                             strength, source_start, source_end, target_start, target_end, explanation, status,
                             made_by, digest)
    SELECT gen_random_uuid(), %s, %s, least(a.id, b.id), greatest(a.id, b.id),
           CASE WHEN a.id < b.id THEN a.document_id ELSE b.document_id END,
           CASE WHEN a.id < b.id THEN b.document_id ELSE a.document_id END,
           0.5, 0, 5, 0, 5, 'why', 'found', 'local', sha256('x')
    FROM chunks a, chunks b WHERE a.document_id = %s AND b.document_id = %s AND a.index = 0 AND b.index = 0"""
FIRST = "# Lease\n\nThe fee is 100 euros a month.\n\nIt ends in May.\n"
SECOND = "# Lease\n\nThe fee is 120 euros a month.\n\nIt ends in May.\n\nPets are allowed.\n"


async def listed(desk: Desk, owner: UUID, *, versions: bool = False, trashed: bool = False) -> list[tuple[int, bool]]:
    async with desk.database.connection() as connection:
        page = await list_documents(connection, owner, Filters(versions=versions, trashed=trashed))
    return [(one.version, one.superseded) for one in page.items]


async def add_version(desk: Desk, owner: UUID, of: UUID, body: str) -> UUID:
    return (await desk.add(owner, body.encode(), version_of=of)).document_id


async def test_lists_show_the_newest_version_and_the_old_one_stays_complete(desk: Desk, owner: UUID) -> None:
    first = await add_first(desk, owner)
    second = await add_version(desk, owner, first, SECOND)
    assert await listed(desk, owner) == [(2, False)]
    assert await listed(desk, owner, versions=True) == [(2, False), (1, True)]
    async with desk.database.connection() as connection:
        old = await show_document(connection, owner, first)
        both = [await list_versions(connection, owner, one) for one in (first, second)]
    assert (old.version, old.superseded, old.bytes) == (1, True, len(FIRST))
    assert both[0] == both[1]
    assert [(one.document_id, one.version, one.newest) for one in both[0]] == [(second, 2, True), (first, 1, False)]
    event = (await desk.rows("SELECT document_id, detail FROM events WHERE kind = 'superseded'"))[0]
    assert event == {"document_id": first, "detail": {"document": str(second), "version": 2}}
    # The number is that of the newest, whichever version is named.
    await add_version(desk, owner, first, "third")
    assert await listed(desk, owner) == [(3, False)]
    await desk.check_books()


async def add_first(desk: Desk, owner: UUID) -> UUID:
    return (await desk.add(owner, FIRST.encode())).document_id


async def test_versions_added_in_parallel_get_different_numbers(desk: Desk, owner: UUID) -> None:
    first = await add_first(desk, owner)
    await asyncio.gather(*(add_version(desk, owner, first, f"version {number}") for number in range(10)))
    assert sorted(await listed(desk, owner, versions=True)) == [*((one, True) for one in range(1, 11)), (11, False)]
    # The same bytes at once are one version.
    same = await asyncio.gather(*(add_version(desk, owner, first, "the same") for _ in range(10)))
    assert len(set(same)) == 1
    assert await listed(desk, owner) == [(12, False)]


async def test_the_same_bytes_as_the_newest_change_nothing_and_older_ones_come_back_as_new(
    desk: Desk, owner: UUID
) -> None:
    first = await add_first(desk, owner)
    second = await add_version(desk, owner, first, SECOND)
    again = await desk.add(owner, SECOND.encode(), version_of=first)
    assert (again.state, again.document_id) == ("deduplicated", second)
    back = await desk.add(owner, FIRST.encode(), version_of=second)
    assert (back.state, back.duplicate_of) == ("uploaded", first)
    assert await listed(desk, owner) == [(3, False)]
    repeated = await desk.intake.finalize(owner, back.upload_id, LIMITS)
    assert repeated.document_id == back.document_id
    await desk.check_books()


async def test_corrections_are_carried_over_to_the_next_version(desk: Desk, owner: UUID) -> None:
    first = await add_first(desk, owner)
    async with desk.database.transaction() as connection:
        edit = Edit(title="The lease", tags=["home"], collection="Contracts")
        await changes.edit_documents(connection, owner, [first], edit)
    second = await add_version(desk, owner, first, SECOND)
    async with desk.database.connection() as connection:
        new = await show_document(connection, owner, second)
    assert (new.title, new.tags, new.collection, new.author) == ("The lease", ["home"], "Contracts", None)
    assert await desk.one("SELECT edited FROM documents WHERE id = %s", second) == ["tags"]
    said = await desk.one("SELECT array_agg(name) FROM facts WHERE document_id = %s AND made_by = 'person'", second)
    assert said == ["title"]


async def test_the_trash_brings_the_version_before_back(desk: Desk, owner: UUID) -> None:
    first = await add_first(desk, owner)
    second = await add_version(desk, owner, first, SECOND)

    async def act(change: Act, *documents: UUID) -> list[tuple[int, bool]]:
        async with desk.database.transaction() as connection:
            await change(connection, owner, documents)
        return await listed(desk, owner)

    assert await act(changes.trash_documents, second) == [(1, False)]
    with pytest.raises(NotFound):
        await desk.add(owner, b"what is in the trash has no versions", version_of=second)
    assert await act(changes.restore_documents, second) == [(2, False)]
    assert await act(changes.trash_documents, first, second) == []
    assert await listed(desk, owner, trashed=True) == [(2, False), (1, False)]
    assert await act(changes.restore_documents, first) == [(1, False)]
    assert await act(changes.purge_documents, first) == []
    assert await act(changes.restore_documents, second) == [(2, False)]
    # The family lives on without its first.
    await add_version(desk, owner, second, "third")
    assert await listed(desk, owner, versions=True) == [(3, False), (2, True)]


async def test_trashing_and_adding_in_parallel_keeps_the_newest_version_current(desk: Desk, owner: UUID) -> None:
    first = await add_first(desk, owner)

    async def trash(document: UUID) -> None:
        async with desk.database.transaction() as connection:
            await changes.trash_documents(connection, owner, [document])

    for number in range(4):
        newest = await add_version(desk, owner, first, f"number {number}")
        await asyncio.gather(trash(newest), *(add_version(desk, owner, first, f"{number} {one}") for one in range(3)))
        found = await listed(desk, owner, versions=True)
        assert [superseded for _, superseded in found] == [False, *[True] * (len(found) - 1)]
        async with desk.database.connection() as connection:
            assert await fetch_rows(connection, DOCTOR.wrong_versions, {}) == []


async def test_nobody_can_add_a_version_to_a_foreign_document(desk: Desk, owner: UUID) -> None:
    first = await add_first(desk, owner)
    stranger = await desk.new_owner()
    for named in (first, uuid4()):
        with pytest.raises(NotFound):
            await desk.add(stranger, SECOND.encode(), version_of=named)
    assert await desk.one("SELECT count(*) FROM documents") == 1
    assert await desk.one("SELECT count(*) FROM uploads") == 1
    async with desk.database.connection() as connection:
        with pytest.raises(NotFound):
            await list_versions(connection, stranger, first)
    with pytest.raises(NotFound):
        await compare_documents(desk.database, desk.bucket, stranger, DocumentRevision(first), DocumentRevision(first))


async def test_what_changed_between_versions_and_between_revisions(desk: Desk, owner: UUID, folder: Path) -> None:
    first = await add(desk, owner, "lease.md", FIRST.encode())
    async with working(desk, OpenSandbox(), folder):
        await finished(desk, owner, first)
        second = await add(desk, owner, "lease-2.md", SECOND.encode(), version_of=first)
        other = await add(desk, owner, "other.md", b"# Other\n\nWhat others say of fees and of pets.\n")
        await finished(desk, owner, other)
        await finished(desk, owner, second)
        async with desk.database.transaction() as connection:
            await changes.retry_document(connection, owner, second, "chunked")
        assert (await finished(desk, owner, second)).revision == 2
    found = await compare_documents(
        desk.database, desk.bucket, owner, DocumentRevision(first), DocumentRevision(second)
    )
    assert (found.old.version, found.new.version, found.changes) == (1, 2, 2)
    assert found.text
    assert [part.text for part in found.text[0].parts if part.kind == "removed"] == ["100"]
    assert [(part.kind, part.text) for part in found.text[1].parts] == [("added", "\n\nPets are allowed.")]
    assert {"filename", "bytes", "word_count"} <= {one.field for one in found.fields}
    await check_connections(desk, owner, first, second, other)
    again = await compare_documents(
        desk.database, desk.bucket, owner, DocumentRevision(second, 1), DocumentRevision(second)
    )
    assert (again.old.revision, again.new.revision, again.text) == (1, 2, [])
    assert await text_of(desk, owner, first) == FIRST
    with pytest.raises(NotFound):
        await compare_documents(
            desk.database, desk.bucket, owner, DocumentRevision(second, 9), DocumentRevision(second)
        )
    await desk.check_books()


async def check_connections(desk: Desk, owner: UUID, first: UUID, second: UUID, other: UUID) -> None:
    """What both are connected with in the same way is no change."""
    await desk.rows("DELETE FROM connections")
    engines = {
        "semantic_similarity": (first, second),
        "thematic_bridge": (first,),
        "contradiction_detection": (second,),
    }
    for engine, documents in engines.items():
        for document in documents:
            await desk.rows(CONNECT, owner, engine, document, other)
    found = await compare_documents(desk.database, desk.bucket, owner, None, DocumentRevision(second))
    assert found.old.document_id == first
    assert [(one.engine, one.document_id, one.quote) for one in found.appeared] == [
        ("contradiction_detection", other, "# Oth")
    ]
    assert [one.engine for one in found.vanished] == ["thematic_bridge"]
