"""What an owner sees of documents and does with them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date
from uuid import UUID, uuid4

import pytest

from octavo.core.errors import BadInput, NotFound
from octavo.database import Connection
from octavo.jobs.queue import cancel_jobs
from octavo.library import changes
from octavo.library.changes import Edit
from octavo.library.collections import delete_collection, list_collections, list_tags, rename_collection
from octavo.library.documents import Filters, list_chunks, list_documents, list_events, show_document
from octavo.library.errors import NameTaken, NotReady, SourceGone
from octavo.library.files import count_download, find_file
from octavo.library.sweep import ObjectSweep, purge_old_trash
from tests.support.library import Desk, sweep_objects

Act = Callable[[Connection, UUID, list[UUID]], Awaitable[object]]


async def add(desk: Desk, owner: UUID, text: str) -> UUID:
    return (await desk.add(owner, text.encode())).document_id


async def test_a_list_goes_page_by_page_and_misses_nothing(desk: Desk, owner: UUID) -> None:
    added = [await add(desk, owner, f"text {number}") for number in range(7)]
    found: list[UUID] = []
    cursor = None
    async with desk.database.connection() as connection:
        while True:
            page = await list_documents(connection, owner, cursor=cursor, limit=3)
            found += [one.id for one in page.items]
            if (cursor := page.next_cursor) is None:
                break
    assert found == added[::-1]


async def test_filters_find_what_they_name(desk: Desk, owner: UUID) -> None:
    first, second = await add(desk, owner, "one"), await add(desk, owner, "two")
    async with desk.database.transaction() as connection:
        edit = Edit(title="100 % _sure", tags=["Öl", "gas"], collection="Energy", author="Ada")
        await changes.edit_documents(connection, owner, [first], edit)
    one, key = uuid4(), uuid4()
    wanted: list[tuple[Filters, list[UUID]]] = [
        (Filters(q="100 %"), [first]),
        (Filters(q="%"), [first]),
        (Filters(q="ADA"), [first]),
        (Filters(q="note.txt"), [second, first]),
        (Filters(tag="öl"), [first]),
        (Filters(tag="coal"), []),
        (Filters(collection="energy"), [first]),
        (Filters(status="pending"), [second, first]),
        (Filters(status="failed"), []),
        (Filters(trashed=True), []),
        (Filters(size_min=3, size_max=3), [second, first]),
        (Filters(size_min=4), []),
        (Filters(size_max=2), []),
        (Filters(import_id=one), [first]),
        (Filters(import_id=key), [first]),
        (Filters(import_id=uuid4()), []),
    ]
    async with desk.database.connection() as connection:
        await connection.execute("INSERT INTO imports (id, owner_id, key) VALUES (%s, %s, %s)", [one, owner, key])
        await connection.execute("UPDATE documents SET import_id = %s WHERE id = %s", [one, first])
        for filters, expected in wanted:
            assert [one.id for one in (await list_documents(connection, owner, filters)).items] == expected, filters


async def test_editing_changes_only_the_given_fields(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "text")
    async with desk.database.transaction() as connection:
        edit = Edit(title="A title", document_date=date(2020, 2, 3), tags=["b", "A", "a"], collection="Box")
        await changes.edit_documents(connection, owner, [document], edit)
        await changes.edit_documents(connection, owner, [document], Edit(author="Ada"))
        shown = await show_document(connection, owner, document)
    assert (shown.title, shown.author, shown.document_date) == ("A title", "Ada", date(2020, 2, 3))
    assert (shown.tags, shown.collection) == (["A", "b"], "Box")
    async with desk.database.transaction() as connection:
        await changes.edit_documents(connection, owner, [document], Edit(title=None, tags=[], collection=None))
        shown = await show_document(connection, owner, document)
    assert (shown.title, shown.tags, shown.collection, shown.author) == ("note.txt", [], None, "Ada")


async def test_many_documents_are_changed_all_or_none(desk: Desk, owner: UUID) -> None:
    mine = await add(desk, owner, "mine")
    theirs = await add(desk, await desk.new_owner(), "theirs")
    for stranger in (theirs, uuid4()):
        with pytest.raises(NotFound):
            async with desk.database.transaction() as connection:
                await changes.trash_documents(connection, owner, [mine, stranger])
    assert await desk.rows("SELECT FROM documents WHERE deleted_at IS NOT NULL") == []


CHANGES: dict[str, Act] = {
    "edit": lambda connection, owner, ids: changes.edit_documents(connection, owner, ids, Edit(title="x")),
    "delete": changes.trash_documents,
    "restore": changes.restore_documents,
    "purge": changes.purge_documents,
    "retry": lambda connection, owner, ids: changes.retry_document(connection, owner, ids[0], None),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_strangers_document_is_not_found(desk: Desk, owner: UUID, change: str) -> None:
    theirs = await add(desk, await desk.new_owner(), "theirs")
    before = await desk.rows("SELECT * FROM documents")
    with pytest.raises(NotFound):
        async with desk.database.transaction() as connection:
            await CHANGES[change](connection, owner, [theirs])
    assert await desk.rows("SELECT * FROM documents") == before


async def test_a_strangers_files_chunks_and_events_are_not_found(desk: Desk, owner: UUID) -> None:
    theirs = await add(desk, await desk.new_owner(), "theirs")
    async with desk.database.connection() as connection:
        for look in (show_document, list_chunks, list_events):
            with pytest.raises(NotFound):
                await look(connection, owner, theirs)
        with pytest.raises(NotFound):
            await find_file(connection, owner, theirs, "source")


async def test_deleting_stops_the_work_and_restoring_goes_on(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "text")
    async with desk.database.transaction() as connection:
        await changes.trash_documents(connection, owner, [document])
        with pytest.raises(NotFound):
            await show_document(connection, owner, document)
        assert (await show_document(connection, owner, document, trashed=True)).deleted_at
    assert await desk.one("SELECT status FROM jobs") == "cancelled"
    async with desk.database.transaction() as connection:
        await changes.restore_documents(connection, owner, [document])
        shown = await show_document(connection, owner, document)
    assert (shown.status, shown.deleted_at) == ("pending", None)
    assert await desk.one("SELECT status FROM jobs") == "queued"


async def test_the_events_of_a_document_are_listed_in_order(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "text")
    async with desk.database.transaction() as connection:
        await changes.edit_documents(connection, owner, [document], Edit(title="x"))
        await count_download(connection, document)
        await changes.trash_documents(connection, owner, [document])
        await changes.restore_documents(connection, owner, [document])
        page = await list_events(connection, owner, document, limit=3)
        rest = await list_events(connection, owner, document, cursor=page.next_cursor)
    kinds = [event.kind for event in [*page.items, *rest.items]]
    assert kinds == ["created", "edited", "downloaded", "cancelled", "deleted", "retry", "restored"]


async def test_downloads_are_counted(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "text")
    async with desk.database.transaction() as connection:
        await count_download(connection, document)
        first = (await show_document(connection, owner, document)).first_downloaded_at
        await count_download(connection, document)
        shown = await show_document(connection, owner, document)
    assert (shown.download_count, shown.first_downloaded_at) == (2, first)


async def test_a_missing_text_is_announced_only_while_it_is_being_made(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "text")
    async with desk.database.connection() as connection:
        with pytest.raises(NotReady, match="Not available until"):
            await find_file(connection, owner, document, "markdown")
        shown = await show_document(connection, owner, document)
        await cancel_jobs(connection, owner, [shown.process_id])
        with pytest.raises(NotReady, match="This document has no text"):
            await find_file(connection, owner, document, "markdown")


async def test_purging_leaves_nothing_but_the_story(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "text")
    async with desk.database.transaction() as connection:
        keys = await changes.purge_documents(connection, owner, [document])
    await desk.bucket.delete(keys)
    assert len(keys) == 1
    for table in ("documents", "artifacts", "objects", "jobs", "chunks"):
        assert await desk.rows(f"SELECT FROM {table}") == [], table
    assert await desk.one("SELECT kind FROM events WHERE kind = 'purged'") == "purged"
    assert await desk.one("SELECT bytes FROM owner_usage") == 0
    await desk.check_books()


async def test_old_trash_is_emptied_and_younger_stays(desk: Desk, owner: UUID) -> None:
    old, young = await add(desk, owner, "old"), await add(desk, owner, "young")
    async with desk.database.transaction() as connection:
        await changes.trash_documents(connection, owner, [old, young])
    await desk.rows("UPDATE documents SET deleted_at = deleted_at - interval '31 days' WHERE id = %s RETURNING id", old)
    assert await purge_old_trash(desk.database, desk.bucket, 30) == 1
    assert await desk.one("SELECT id FROM documents") == young
    await desk.check_books()


async def test_the_sweep_removes_objects_without_a_row_and_keeps_recent_ones(desk: Desk, owner: UUID) -> None:
    await add(desk, owner, "kept")
    await desk.bucket.put("derived/orphan", b"left by a killed process")
    assert await sweep_objects(desk.database, desk.bucket, 3600) == 0
    assert await sweep_objects(desk.database, desk.bucket, 0) == 1
    await desk.check_books()


async def test_a_bucket_is_swept_in_parts(desk: Desk, owner: UUID) -> None:
    await add(desk, owner, "kept")
    for number in range(7):
        await desk.bucket.put(f"derived/orphan-{number}", b"left by a killed process")
    sweep, removed = ObjectSweep(desk.database, desk.bucket, 0), list[int]()
    while not sweep.has_ended:
        removed.append(await sweep.sweep_part(3))
    assert sum(removed) == 7
    assert max(removed) <= 3
    await desk.check_books()


async def test_rapid_clicks_on_retry_make_one_job(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "text")
    process = await desk.one("SELECT process_id FROM documents")
    await desk.rows("UPDATE jobs SET status = 'cancelled', admitted = false RETURNING id")

    async def click() -> UUID:
        async with desk.database.transaction() as connection:
            return (await changes.retry_document(connection, owner, document, None)).process_id

    assert set(await asyncio.gather(*(click() for _ in range(8)))) == {process}
    assert await desk.one("SELECT count(*) FROM events WHERE kind = 'retry'") == 1


async def test_a_retry_without_the_source_says_that_it_is_gone(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "text")
    await desk.rows("UPDATE jobs SET status = 'cancelled', admitted = false RETURNING id")
    await desk.rows("DELETE FROM artifacts RETURNING id")
    with pytest.raises(SourceGone):
        async with desk.database.transaction() as connection:
            await changes.retry_document(connection, owner, document, None)


async def test_collections_are_renamed_and_deleted_without_their_documents(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "text")
    async with desk.database.transaction() as connection:
        await changes.edit_documents(connection, owner, [document], Edit(collection="  My   box ", tags=["t"]))
        (box,) = await list_collections(connection, owner)
        assert (box.name, box.documents) == ("My box", 1)
        assert [(tag.name, tag.documents) for tag in await list_tags(connection, owner)] == [("t", 1)]
        await rename_collection(connection, owner, box.id, "Chest")
        assert (await show_document(connection, owner, document)).collection == "Chest"
        with pytest.raises(NotFound):
            await rename_collection(connection, await desk.new_owner(), box.id, "Mine")
        await delete_collection(connection, owner, box.id)
        assert (await show_document(connection, owner, document)).collection is None


async def test_two_collections_cannot_have_one_name(desk: Desk, owner: UUID) -> None:
    first, second = await add(desk, owner, "1"), await add(desk, owner, "2")
    async with desk.database.transaction() as connection:
        await changes.edit_documents(connection, owner, [first], Edit(collection="A"))
        await changes.edit_documents(connection, owner, [second], Edit(collection="B"))
    async with desk.database.connection() as connection:
        box = next(one for one in await list_collections(connection, owner) if one.name == "B")
        with pytest.raises(NameTaken):
            await rename_collection(connection, owner, box.id, "a")


async def test_names_of_nothing_and_bad_cursors_are_refused(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "text")
    async with desk.database.connection() as connection:
        for edit in (Edit(tags=["  "]), Edit(collection=" "), Edit(tags=[str(n) for n in range(51)])):
            with pytest.raises(BadInput):
                await changes.edit_documents(connection, owner, [document], edit)
        for cursor in ("x", "-1", "٣", "9" * 30):
            with pytest.raises(BadInput):
                await list_chunks(connection, owner, document, cursor=cursor)
