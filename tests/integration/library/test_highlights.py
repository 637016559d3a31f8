"""Highlights are kept by content: a new revision or version moves them or marks them as lost, and none disappears."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID, uuid4

import pytest

from octavo.core.errors import BadInput, NotFound
from octavo.library import changes
from octavo.library.errors import NotReady
from octavo.library.highlights import (
    NewHighlight,
    add_highlight,
    delete_highlight,
    edit_highlight,
    find_highlights,
    keep_position,
    list_highlights,
    place_highlights,
    read_position,
)
from octavo.records.documents import Highlight
from tests.support.library import Desk
from tests.support.processing import OpenSandbox
from tests.support.working import add, finished, text_of, working

QUOTE = "Either party may end the lease with a notice period of ninety days."
FIRST = f"""# Crane lease

The lease of the **tower crane** at [Quarry Lane](https://example.org/lane) begins on 1 April 2024. {QUOTE}

The fee is due. The deposit is 12,500 EUR.

The fee is due. Damage is reported within two days.
"""
SECOND = FIRST.replace("# Crane lease\n", "# Crane lease, amended\n\nThis replaces the lease of March.\n").replace(
    "The deposit is 12,500 EUR.", "The deposit is 9,000 EUR."
)


async def mark(desk: Desk, owner: UUID, document: UUID, **passage: object) -> Highlight:
    async with desk.database.transaction() as connection:
        new = NewHighlight(**passage)  # pyright: ignore[reportArgumentType]
        return await add_highlight(connection, owner, document, None, new)


async def marks(desk: Desk, owner: UUID, document: UUID) -> list[Highlight]:
    async with desk.database.connection() as connection:
        return (await list_highlights(connection, owner, document)).items


async def found(desk: Desk, owner: UUID, q: str | None = None) -> list[UUID]:
    async with desk.database.connection() as connection:
        return [one.id for one in (await find_highlights(connection, owner, q)).items]


async def read(desk: Desk, owner: UUID, folder: Path, text: str = FIRST, **more: object) -> UUID:
    document = await add(desk, owner, "lease.md", text.encode(), **more)
    async with working(desk, OpenSandbox(), folder):
        await finished(desk, owner, document)
    return document


async def chunk(desk: Desk, one: Highlight) -> str:
    return await desk.one("SELECT content FROM chunks WHERE id = %s", one.chunk_id)


async def test_a_quote_is_found_in_the_text_whatever_its_spaces_and_markdown(
    desk: Desk, owner: UUID, folder: Path
) -> None:
    document = await read(desk, owner, folder)
    text = await text_of(desk, owner, document)
    exact = await mark(desk, owner, document, quote=QUOTE, colour="green", note="ask Tomas")
    assert (exact.quote, exact.colour, exact.note, exact.lost) == (QUOTE, "green", "ask Tomas", False)
    assert text[exact.start : exact.end] == QUOTE
    assert QUOTE in await chunk(desk, exact)
    seen = "tower  crane at\nQuarry Lane begins on 1 April 2024."
    plain = await mark(desk, owner, document, quote=seen)
    assert text[plain.start : plain.end].startswith("tower crane** at [Quarry Lane](https")
    assert text[plain.start : plain.end].endswith("2024.")
    assert plain.quote == " ".join(seen.split())
    by_place = await mark(desk, owner, document, start=exact.start, end=exact.end)
    assert (by_place.quote, by_place.start, by_place.end) == (QUOTE, exact.start, exact.end)
    second = await mark(desk, owner, document, quote="The fee is due.", start=len(text))
    assert second.start == text.rindex("The fee is due.")
    order = [one.start for one in await marks(desk, owner, document)]
    assert order == sorted(one.start or 0 for one in (exact, plain, by_place, second))


@pytest.mark.parametrize(
    "passage",
    [{"quote": "Nobody may end the lease."}, {"quote": "— …"}, {"start": 0, "end": 10**6}, {"start": 13, "end": 14}],
)
async def test_a_passage_that_the_text_does_not_have_is_refused(
    desk: Desk, owner: UUID, folder: Path, passage: dict[str, object]
) -> None:
    document = await read(desk, owner, folder)
    with pytest.raises(BadInput, match=r"quote: not found|start, end: must select"):
        await mark(desk, owner, document, **passage)


async def test_a_document_without_text_cannot_be_highlighted_yet(desk: Desk, owner: UUID) -> None:
    document = (await desk.add(owner, FIRST.encode())).document_id
    with pytest.raises(NotReady):
        await mark(desk, owner, document, quote=QUOTE)


async def test_a_highlight_is_in_its_new_chunk_after_a_retry(desk: Desk, owner: UUID, folder: Path) -> None:
    document = await read(desk, owner, folder)
    before = await mark(desk, owner, document, quote=QUOTE, note="ask Tomas")
    later = await mark(desk, owner, document, quote="The fee is due.", start=10**6)
    await desk.rows("UPDATE highlights SET char_start = 0, char_end = 1 WHERE id = %s", before.id)
    async with working(desk, OpenSandbox(), folder):
        async with desk.database.transaction() as connection:
            await changes.retry_document(connection, owner, document, "extracted")
        assert (await finished(desk, owner, document)).revision == 2
    after, repeated = await marks(desk, owner, document)
    assert (after.id, after.note, after.created_at) == (before.id, "ask Tomas", before.created_at)
    assert (after.start, after.end, after.lost) == (before.start, before.end, False)
    assert after.chunk_id != before.chunk_id
    assert QUOTE in await chunk(desk, after)
    assert repeated.start == later.start


async def test_a_highlight_is_lost_while_its_passage_is_gone_and_found_when_it_is_back(
    desk: Desk, owner: UUID, folder: Path
) -> None:
    document = await read(desk, owner, folder)
    await mark(desk, owner, document, quote=QUOTE, note="ask Tomas")
    for old, new, lost in (("ninety", "thirty", True), ("thirty", "ninety", False)):
        async with desk.database.transaction() as connection:
            await connection.execute(
                b"UPDATE chunks SET content = replace(content, %s, %s) WHERE document_id = %s", (old, new, document)
            )
            await place_highlights(connection, document)
        (one,) = await marks(desk, owner, document)
        assert (one.lost, one.start is None, one.chunk_id is None, one.note) == (lost, lost, lost, "ask Tomas")
        assert await found(desk, owner, "tomas") == [one.id]


async def test_a_new_version_has_the_highlights_moved_or_lost_and_the_old_one_keeps_its_own(
    desk: Desk, owner: UUID, folder: Path
) -> None:
    first = await read(desk, owner, folder)
    kept = await mark(desk, owner, first, quote=QUOTE, colour="pink", note="ask Tomas")
    await mark(desk, owner, first, quote="The deposit is 12,500 EUR.", note="too much")
    second = (await desk.add(owner, SECOND.encode(), version_of=first)).document_id
    assert [(one.lost, one.start) for one in await marks(desk, owner, second)] == [(False, None), (False, None)]
    async with working(desk, OpenSandbox(), folder):
        await finished(desk, owner, second)
    moved, lost = await marks(desk, owner, second)
    text = await text_of(desk, owner, second)
    assert (text[moved.start : moved.end], moved.colour, moved.note) == (QUOTE, "pink", "ask Tomas")
    assert moved.start != kept.start
    assert (lost.lost, lost.quote, lost.note) == (True, "The deposit is 12,500 EUR.", "too much")
    assert [one.lost for one in await marks(desk, owner, first)] == [False, False]
    assert set(await found(desk, owner)) == {moved.id, lost.id}
    # The same bytes as before share the results of the first version, and nothing is processed.
    third = (await desk.add(owner, FIRST.encode(), version_of=second)).document_id
    assert [one.lost for one in await marks(desk, owner, third)] == [False, False]


async def test_highlights_are_found_by_words_in_the_quote_or_the_note(desk: Desk, owner: UUID, folder: Path) -> None:
    document = await read(desk, owner, folder)
    one = await mark(desk, owner, document, quote=QUOTE, note="ask Tomas about the ospreys")
    other = await mark(desk, owner, document, quote="The deposit is 12,500 EUR.", note="100 % too much")
    assert await found(desk, owner) == [other.id, one.id]
    assert await found(desk, owner, "OSPREYS notice period") == [one.id]
    assert await found(desk, owner, "%") == [other.id]
    assert await found(desk, owner, "ospreys deposit") == []
    async with desk.database.connection() as connection:
        newest = await find_highlights(connection, owner, None, limit=1)
        older = await find_highlights(connection, owner, None, cursor=newest.next_cursor, limit=1)
        first = await list_highlights(connection, owner, document, limit=1)
        rest = await list_highlights(connection, owner, document, cursor=first.next_cursor, limit=1)
    assert [newest.items[0].id, older.items[0].id, older.next_cursor] == [other.id, one.id, None]
    assert [first.items[0].id, rest.items[0].id, rest.next_cursor] == [one.id, other.id, None]


async def test_a_stranger_neither_sees_nor_changes_a_highlight(desk: Desk, owner: UUID, folder: Path) -> None:
    document = await read(desk, owner, folder)
    one = await mark(desk, owner, document, quote=QUOTE)
    stranger = await desk.new_owner()
    async with desk.database.transaction() as connection:
        for call in (
            list_highlights(connection, stranger, document),
            add_highlight(connection, stranger, document, None, NewHighlight(QUOTE)),
            edit_highlight(connection, stranger, one.id, "mine", None),
            delete_highlight(connection, stranger, one.id),
        ):
            with pytest.raises(NotFound):
                await call
    assert await found(desk, stranger) == []
    assert await marks(desk, owner, document) == [one]


async def test_a_note_is_changed_and_a_highlight_is_deleted_alone_or_with_its_document(
    desk: Desk, owner: UUID, folder: Path
) -> None:
    document = await read(desk, owner, folder)
    one, other = [await mark(desk, owner, document, quote=quote) for quote in (QUOTE, "two days")]
    async with desk.database.transaction() as connection:
        edited = await edit_highlight(connection, owner, one.id, "asked", "blue")
        again = await edit_highlight(connection, owner, one.id, None, None)
        await delete_highlight(connection, owner, other.id)
        with pytest.raises(NotFound):
            await delete_highlight(connection, owner, uuid4())
    assert (edited.note, edited.colour, again.note) == ("asked", "blue", "asked")
    assert [kept.id for kept in await marks(desk, owner, document)] == [one.id]
    async with desk.database.transaction() as connection:
        await changes.trash_documents(connection, owner, [document])
    assert await found(desk, owner) == []
    async with desk.database.transaction() as connection:
        await changes.restore_documents(connection, owner, [document])
    assert await found(desk, owner) == [one.id]
    async with desk.database.transaction() as connection:
        await changes.trash_documents(connection, owner, [document])
        await changes.purge_documents(connection, owner, [document])
    assert await desk.one("SELECT count(*) FROM highlights") == 0


async def test_a_visitor_who_signs_in_keeps_the_highlights(desk: Desk, owner: UUID, folder: Path) -> None:
    visitor = uuid4()
    await desk.rows("INSERT INTO owners (id, kind) VALUES (%s, 'anonymous')", visitor)
    document = await read(desk, visitor, folder)
    one = await mark(desk, visitor, document, quote=QUOTE, note="ask Tomas")
    await desk.rows("SELECT merge_owner(%s, %s)", visitor, owner)
    assert await marks(desk, owner, document) == [one]
    assert await found(desk, owner, "tomas") == [one.id]


# Reading position ---------------------------------------------------------------------------------------------------


async def keep(desk: Desk, owner: UUID, document: UUID, user: UUID | None, start: int) -> None:
    async with desk.database.transaction() as connection:
        await keep_position(connection, owner, document, user, start)


async def position(desk: Desk, owner: UUID, document: UUID, user: UUID | None) -> int | None:
    async with desk.database.connection() as connection:
        return await read_position(connection, owner, document, user)


async def new_user(desk: Desk) -> UUID:
    made, statement = uuid4(), "INSERT INTO users (id, email, password_hash, owner_id) VALUES (%s, %s, 'x', %s)"
    await desk.rows(statement, made, f"{made}@example.org", await desk.new_owner())
    return made


async def test_each_person_has_an_own_reading_position(desk: Desk, owner: UUID) -> None:
    document = (await desk.add(owner, FIRST.encode())).document_id
    anna, ben = await new_user(desk), await new_user(desk)
    assert await position(desk, owner, document, anna) is None
    for start in (10, 20):
        await keep(desk, owner, document, anna, start)
    await keep(desk, owner, document, ben, 5)
    assert [await position(desk, owner, document, one) for one in (anna, ben)] == [20, 5]
    stranger = await desk.new_owner()
    assert await position(desk, stranger, document, anna) is None
    with pytest.raises(NotFound):
        await keep(desk, stranger, document, anna, 1)
    await desk.rows("DELETE FROM users WHERE id = %s", anna)
    assert await desk.one("SELECT count(*) FROM reading_positions") == 1


async def test_a_visitor_who_signs_in_continues_where_the_visitor_stopped(desk: Desk, owner: UUID) -> None:
    visitor, anna = uuid4(), await new_user(desk)
    await desk.rows("INSERT INTO owners (id, kind) VALUES (%s, 'anonymous')", visitor)
    document = (await desk.add(visitor, FIRST.encode())).document_id
    await keep(desk, visitor, document, None, 30)
    await desk.rows("SELECT merge_owner(%s, %s)", visitor, owner)
    assert await position(desk, owner, document, anna) == 30
    await keep(desk, owner, document, anna, 40)
    assert await position(desk, owner, document, anna) == 40
