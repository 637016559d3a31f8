"""What is kept for a time goes when that time is over: visitors' documents, those of collections, and threads."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr

from octavo.core.errors import NotFound, OctavoError
from octavo.core.settings import Settings
from octavo.database import load_queries
from octavo.jobs.views import Cursor, is_known
from octavo.library import sweep
from octavo.library.changes import Edit, edit_documents, restore_documents
from octavo.library.collections import keep_collection, list_collections
from octavo.library.sweep import (
    ObjectSweep,
    archive_events,
    archive_jobs,
    expire_collections,
    expire_visitors,
    list_archives,
    read_archive,
)
from octavo.ops.activity import show_archive
from octavo.owners import open_anonymous_session
from octavo.records.search import AskScope
from octavo.search.threads import NewTurn, begin_turn, forget_threads, list_threads
from octavo.storage import Bucket
from tests.support.conversions import convert, invoice
from tests.support.engine import engine_on
from tests.support.library import Desk
from tests.support.postgres import as_url

HOUSEKEEPING = load_queries("housekeeping")
DAYS = 30


async def visitor(desk: Desk) -> UUID:
    async with desk.database.transaction() as connection:
        return (await open_anonymous_session(connection))[1].owner_id


async def tidy(desk: Desk) -> int:
    """As housekeeping does it every night."""
    expired = await expire_visitors(desk.database, desk.bucket, DAYS)
    async with desk.database.transaction() as connection:
        for query in (HOUSEKEEPING.forget_sessions, HOUSEKEEPING.mark_left, HOUSEKEEPING.forget_visitors):
            await connection.execute(query)
    return expired


async def run(desk: Desk, statement: str, *values: object) -> None:
    async with desk.database.transaction() as connection:
        await connection.execute(statement.encode(), values)


async def test_the_documents_of_a_visitor_who_left_expire_with_an_event(desk: Desk) -> None:
    gone, here = await visitor(desk), await visitor(desk)
    document = (await desk.add(gone, b"text")).document_id
    await convert(desk, gone, invoice().write())
    await desk.add(here, b"other text")
    await run(desk, "UPDATE sessions SET expires_at = now() - interval '1 minute' WHERE owner_id = %s", gone)
    assert await tidy(desk) == 0
    await run(desk, "UPDATE owners SET left_at = left_at - make_interval(days => %s)", DAYS - 1)
    assert await tidy(desk) == 0
    assert await desk.one("SELECT count(*) FROM documents") == 2
    await run(desk, "UPDATE owners SET left_at = left_at - interval '2 days'")
    await run(desk, "UPDATE jobs SET status = 'cancelled', admitted = false WHERE kind = 'convert'")
    assert await tidy(desk) == 1
    assert await desk.one("SELECT owner_id FROM documents") == here
    assert await desk.one("SELECT document_id FROM events WHERE kind = 'expired'") == document
    assert [row["id"] for row in await desk.rows("SELECT id FROM owners WHERE kind = 'anonymous'")] == [here]
    assert len([info async for info in desk.bucket.list()]) == 1
    await desk.check_books()


async def test_an_owner_with_an_account_or_a_session_does_not_expire(desk: Desk, owner: UUID) -> None:
    await desk.add(owner, b"text")
    await desk.add(await visitor(desk), b"text")
    await tidy(desk)
    assert await desk.rows("SELECT FROM owners WHERE left_at IS NOT NULL") == []


async def test_a_collection_keeps_documents_for_its_days_and_a_restored_one_again(desk: Desk, owner: UUID) -> None:
    kept, old, new = [(await desk.add(owner, text)).document_id for text in (b"kept", b"old", b"new")]
    await run(desk, "UPDATE jobs SET status = 'cancelled', admitted = false")
    async with desk.database.transaction() as connection:
        await edit_documents(connection, owner, [old, new], Edit(collection="Mail"))
        (mail,) = await list_collections(connection, owner)
        await keep_collection(connection, owner, mail.id, 10)
    await run(desk, "UPDATE documents SET updated_at = now() - interval '11 days' WHERE id <> %s", new)
    assert await expire_collections(desk.database) == 1
    assert await desk.one("SELECT id FROM documents WHERE deleted_at IS NOT NULL") == old
    assert await desk.one("SELECT document_id FROM events WHERE kind = 'expired'") == old
    async with desk.database.transaction() as connection:
        await restore_documents(connection, owner, [old])
    await run(desk, "UPDATE jobs SET status = 'cancelled', admitted = false WHERE status = 'queued'")
    assert await expire_collections(desk.database) == 0
    assert await desk.one("SELECT count(*) FROM documents WHERE deleted_at IS NULL") == 3
    async with desk.database.transaction() as connection:
        with pytest.raises(NotFound):
            await keep_collection(connection, await desk.new_owner(), mail.id, 1)
    assert kept


async def test_a_thread_is_kept_until_some_time_after_its_last_question(desk: Desk, owner: UUID) -> None:
    async with desk.database.transaction() as connection:
        old, new = [await begin_turn(connection, owner, NewTurn(text, AskScope())) for text in ("Old?", "New?")]
    await run(desk, "UPDATE threads SET updated_at = now() - make_interval(days => %s)", DAYS + 1)
    assert await forget_threads(desk.database, 0) == 0
    async with desk.database.transaction() as connection:
        await begin_turn(connection, owner, NewTurn("And now?", AskScope(), new.thread_id))
    assert await forget_threads(desk.database, DAYS) == 1
    async with desk.database.connection() as connection:
        assert [one.id for one in (await list_threads(connection, owner)).items] == [new.thread_id]
    assert await desk.one("SELECT count(*) FROM turns WHERE thread_id = %s", old.thread_id) == 0


# Archives -----------------------------------------------------------------------------------------------------------

EVENTS = 12
OLD_MONTH = """
    CREATE TABLE events_2026_01 PARTITION OF events FOR VALUES FROM ('2026-01-01 00:00Z') TO ('2026-02-01 00:00Z')"""
OLD_EVENT = "INSERT INTO events (at, process_id, kind, owner_id) VALUES ('2026-01-07 10:00Z', %s, 'rejected', %s)"
RELAYED = "UPDATE relay SET epoch = (SELECT max(number) FROM event_epochs), id = last_event_id()"


async def add_old_events(desk: Desk, owner: UUID) -> list[int]:
    await run(desk, OLD_MONTH)
    for _ in range(EVENTS):
        await run(desk, OLD_EVENT, uuid4(), owner)
    return [row["id"] for row in await desk.rows("SELECT id FROM events_2026_01 ORDER BY id")]


async def text_of(desk: Desk, key: str) -> str:
    return b"".join([block async for block in read_archive(desk.bucket, key)]).decode()


async def test_old_events_are_moved_to_files_and_their_month_is_dropped(
    desk: Desk, owner: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "FILE_EVENTS", 5)
    monkeypatch.setattr(sweep, "ARCHIVE_ROWS", 2)
    ids = await add_old_events(desk, owner)
    recent = await desk.one(
        "INSERT INTO events (process_id, kind, owner_id) VALUES (%s, 'rejected', %s) RETURNING id", owner, owner
    )
    epoch = await desk.one("SELECT max(number) FROM event_epochs")
    await run(desk, RELAYED)
    assert [await archive_events(desk.database, desk.bucket, DAYS) for _ in range(4)] == [5, 5, 2, 0]
    assert await desk.one("SELECT to_regclass('events_2026_01')") is None
    async with desk.database.connection() as connection:
        archives = await list_archives(connection)
        known = [await is_known(connection, Cursor(epoch, place)) for place in (0, ids[3], ids[-1], recent)]
    assert [one.name for one in archives] == [f"events_2026_01.000{number}" for number in (1, 2, 3)]
    lines = [json.loads(line) for one in archives for line in (await text_of(desk, one.key)).splitlines()]
    assert [line["id"] for line in lines] == ids
    assert {line["kind"] for line in lines} == {"rejected"}
    assert known == [True, False, True, True]  # a reader of the third event would miss others without a notice
    assert await desk.one("SELECT count(*) FROM events") == 1
    # The files are objects like all others: gzip reads them, the sweep and the doctor know them.
    assert gzip.decompress(await desk.bucket.read(archives[0].key)).count(b"\n") == 5
    await ObjectSweep(desk.database, desk.bucket, 0).sweep_part()
    assert await text_of(desk, archives[0].key)
    await desk.check_books()


async def test_events_that_were_not_relayed_or_whose_month_is_in_use_are_kept(
    desk: Desk, owner: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "DROP_SECONDS", 0)
    monkeypatch.setattr(sweep, "DROP_TRIES", 2)
    await add_old_events(desk, owner)
    assert await archive_events(desk.database, desk.bucket, DAYS) == 0
    assert await desk.one("SELECT count(*) FROM archives") == 0
    await run(desk, RELAYED)
    assert await archive_events(desk.database, desk.bucket, 10**5) == 0
    assert await archive_events(desk.database, desk.bucket, DAYS) == EVENTS
    async with desk.database.transaction() as reader:
        await reader.execute(b"SELECT count(*) FROM events")
        assert await archive_events(desk.database, desk.bucket, DAYS) == 0
    assert await desk.one("SELECT count(*) FROM events_2026_01") == EVENTS
    assert await archive_events(desk.database, desk.bucket, DAYS) == 0
    assert await desk.one("SELECT to_regclass('events_2026_01')") is None
    assert await desk.one("SELECT sum(rows) FROM archives") == EVENTS


async def test_nothing_is_deleted_if_the_storage_returns_other_content(
    desk: Desk, owner: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_old_events(desk, owner)
    await run(desk, RELAYED)
    read = sweep.read_archive

    async def damaged(bucket: Bucket, key: str) -> AsyncGenerator[bytes]:
        async for block in read(bucket, key):
            yield block.replace(b"rejected", b"accepted")

    monkeypatch.setattr(sweep, "read_archive", damaged)
    with pytest.raises(OctavoError, match="differs from what was written"):
        await archive_events(desk.database, desk.bucket, DAYS)
    assert await desk.one("SELECT count(*) FROM events_2026_01") == EVENTS
    assert await desk.one("SELECT count(*) FROM archives") == 0


async def test_finished_jobs_that_nothing_refers_to_are_moved_to_files(
    desk: Desk, owner: UUID, database_info: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "FILE_JOBS", 2)
    await desk.add(owner, b"text")
    kinds = ["embed_tags", "embed_tags", "detect_connections", "embed_document"]
    with engine_on(database_info) as engine:
        for kind in kinds:
            engine.put(owner, kind)
        engine.complete(*engine.claim(slots=10, kinds=[*kinds, "process_document"]))
    await run(desk, "UPDATE jobs SET completed_at = now() - interval '31 days' WHERE kind <> 'embed_document'")
    assert [await archive_jobs(desk.database, desk.bucket, DAYS) for _ in range(3)] == [2, 1, 0]
    left = await desk.rows("SELECT kind FROM jobs ORDER BY kind")
    assert [row["kind"] for row in left] == ["embed_document", "process_document"]
    async with desk.database.connection() as connection:
        archives = await list_archives(connection)
    lines = [json.loads(line) for one in archives for line in (await text_of(desk, one.key)).splitlines()]
    assert sorted(line["kind"] for line in lines) == ["detect_connections", "embed_tags", "embed_tags"]
    assert {line["status"] for line in lines} == {"complete"}
    assert lines[0]["stages"] == []
    settings = Settings(database_url=SecretStr(as_url(database_info)), storage_url=(folder / "objects").as_uri())
    printed = list[bytes]()
    await show_archive(settings, archives[0].name, printed.append)
    assert b"".join(printed).decode() == await text_of(desk, archives[0].key)
    with pytest.raises(NotFound, match="no archive"):
        await show_archive(settings, "events_1999_01.0001", printed.append)
