"""What people say about connections holds over re-runs, and how they weigh the engines is the order at once."""

from __future__ import annotations

from uuid import UUID

import pytest

from octavo.connect.connections import ConnectionFilter, Decision, Weights, decide, list_connections, set_weights
from octavo.connect.map import MapFilter, load_map
from octavo.core.errors import BadInput, NotFound
from octavo.core.types import new_id
from octavo.records.search import Engine, Status
from tests.support.connections import connect
from tests.support.library import Desk


async def put_document(desk: Desk, owner: UUID) -> UUID:
    document = new_id()
    await desk.rows(
        "INSERT INTO documents (id, owner_id, process_id, filename, content_type, source_type, sha256, bytes, revision,"
        " last_revision, status, text_ready)"
        " VALUES (%s, %s, %s, 'a.txt', 'text/plain', 'text', sha256(%s), 1, 1, 1, 'completed', true)",
        *(document, owner, new_id(), str(document).encode()),
    )
    return document


async def statuses(
    desk: Desk, owner: UUID, document: UUID, wanted: ConnectionFilter | None = None
) -> list[tuple[str, str]]:
    async with desk.database.connection() as connection:
        page = await list_connections(connection, owner, document, wanted)
    return [(one.engine, one.status) for one in page.items]


async def test_a_dismissed_connection_stays_dismissed_when_it_is_found_again(desk: Desk, owner: UUID) -> None:
    one, other = await put_document(desk, owner), await put_document(desk, owner)
    ident = await connect(desk.rows, owner, one, other)
    async with desk.database.transaction() as connection:
        assert (await decide(connection, owner, ident, Decision.DISMISS)).status is Status.DISMISSED
    assert await statuses(desk, owner, one) == []
    kept = "UPDATE connections SET id = %s, found_at = now() WHERE id = %s"  # as a re-run leaves it
    again = new_id()
    await desk.rows(kept, again, ident)
    assert await statuses(desk, owner, other, ConnectionFilter(status=Status.DISMISSED)) == [
        (Engine.CONTRADICTION, "dismissed")
    ]
    async with desk.database.transaction() as connection:
        assert (await decide(connection, owner, again, Decision.UNDO)).status is Status.POSSIBLE
        assert (await decide(connection, owner, again, Decision.CONFIRM)).status is Status.CONFIRMED
    told = "SELECT count(*) FROM events WHERE kind = 'connection_judged' AND document_id = %s"
    assert await desk.one(told, one) == 3


async def test_weights_change_the_order_immediately_on_all_pages(desk: Desk, owner: UUID) -> None:
    one, other, third = [await put_document(desk, owner) for _ in range(3)]
    await connect(desk.rows, owner, one, other, Engine.SIMILARITY)
    await desk.rows("UPDATE chunks SET index = 1 WHERE document_id = %s", one)
    await connect(desk.rows, owner, one, third, Engine.CONTRADICTION)
    assert [engine for engine, _ in await statuses(desk, owner, one)] == [Engine.CONTRADICTION, Engine.SIMILARITY]
    async with desk.database.transaction() as connection:
        await set_weights(connection, owner, Weights(90, 10, 0))
        first = await list_connections(connection, owner, one, limit=1)
        second = await list_connections(connection, owner, one, limit=1, cursor=first.next_cursor)
        assert [*first.items, *second.items][0].engine is Engine.SIMILARITY
        assert (len(second.items), second.next_cursor) == (1, None)
        with pytest.raises(BadInput):
            await list_connections(connection, owner, one, cursor="bm9uc2Vuc2U")


async def test_the_other_side_in_the_trash_hides_a_connection_and_strangers_see_none(desk: Desk, owner: UUID) -> None:
    one, other = await put_document(desk, owner), await put_document(desk, owner)
    ident = await connect(desk.rows, owner, one, other)
    stranger = await desk.new_owner()
    assert await statuses(desk, stranger, one) == []
    async with desk.database.transaction() as connection:
        with pytest.raises(NotFound):
            await decide(connection, stranger, ident, Decision.DISMISS)
        assert (await load_map(connection, stranger, MapFilter())).nodes == []
        drawn = await load_map(connection, owner, MapFilter())
        assert {node.document_id for node in drawn.nodes} == {one, other}
        assert drawn == await load_map(connection, owner, MapFilter())
    await desk.rows("UPDATE documents SET deleted_at = now() WHERE id = %s", other)
    assert await statuses(desk, owner, one) == []
    await desk.rows("UPDATE documents SET deleted_at = NULL WHERE id = %s", other)
    assert len(await statuses(desk, owner, one)) == 1
    await desk.rows("DELETE FROM documents WHERE id = %s", other)
    assert await desk.rows("SELECT id FROM connections") == []
