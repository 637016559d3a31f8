"""What is kept for a time goes when that time is over: visitors' documents, those of collections, and threads."""

from __future__ import annotations

from uuid import UUID

import pytest

from octavo.core.errors import NotFound
from octavo.database import load_queries
from octavo.library.changes import Edit, edit_documents, restore_documents
from octavo.library.collections import keep_collection, list_collections
from octavo.library.sweep import expire_collections, expire_visitors
from octavo.owners import open_anonymous_session
from octavo.records.search import AskScope
from octavo.search.threads import NewTurn, begin_turn, forget_threads, list_threads
from tests.support.conversions import convert, invoice
from tests.support.library import Desk

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
