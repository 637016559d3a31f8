"""A library of many documents is shown as fast as one of few: no page reads the whole of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from octavo.database import Connection, connect, fetch_rows, load_queries
from octavo.library.changes import Edit, edit_documents
from octavo.library.documents import LIST_PARAMETERS, Filters, Sort, list_documents
from tests.support.library import Desk
from tests.support.postgres import Server

DOCUMENTS = load_queries("documents")
PAGES = load_queries("pages")
MANY = 12_000
FILL = """
    WITH made AS (
        INSERT INTO documents (id, owner_id, process_id, status, title, filename, content_type, source_type, sha256,
                               bytes, quality, created_at, kind, sender, document_date, amount)
        SELECT gen_random_uuid(), %(owner)s, gen_random_uuid(),
               CASE WHEN n %% 1000 = 0 THEN 'failed' WHEN n %% 1000 = 1 THEN 'pending' ELSE 'completed' END,
               md5(n::text), 'note-' || n || '.txt', 'text/plain', 'text', sha256(n::text::bytea), 10,
               CASE WHEN n %% 1000 = 2 THEN 'stored_only' WHEN n %% 1000 = 3 THEN 'partial' ELSE 'full' END,
               clock_timestamp() - make_interval(secs => n),
               CASE WHEN n %% 100 = 4 THEN 'invoice' ELSE 'letter' END, 'Sender ' || n %% 300,
               date '2000-01-01' + n %% 5000, CASE WHEN n %% 100 = 4 THEN n END
        FROM generate_series(1, %(many)s) AS n RETURNING 1
    ) SELECT count(*) FROM made
"""


@pytest.fixture(scope="module")
def long_shelf(newest_server: Server) -> Iterator[tuple[str, UUID]]:
    """The database and the owner of many documents that tests only read."""
    with newest_server.database() as info, psycopg.connect(info, autocommit=True) as connection:
        owner = uuid4()
        connection.execute(b"INSERT INTO owners (id, kind) VALUES (%s, 'user')", [owner])
        connection.execute(FILL.encode(), {"owner": owner, "many": MANY})
        connection.execute(b"ANALYZE documents")
        yield info, owner


@pytest.fixture
def shelf(long_shelf: tuple[str, UUID]) -> UUID:
    return long_shelf[1]


@pytest.fixture
async def database(long_shelf: tuple[str, UUID]) -> AsyncIterator[Connection]:
    async with await connect(long_shelf[0]) as connection:
        yield connection


async def plan_of(database: Connection, query: bytes, values: dict[str, Any]) -> dict[str, Any]:
    cursor = await database.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query, values)
    row = await cursor.fetchone()
    assert row is not None
    return json.loads(json.dumps(row[0]))[0]["Plan"]


def pages_read(plan: dict[str, Any]) -> int:
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def a_page(owner: UUID, **given: object) -> dict[str, Any]:
    values = {"owner": owner, "trashed": False, "versions": False, "sort": "newest", "descending": False, "most": 51}
    return dict.fromkeys(LIST_PARAMETERS) | values | given


async def test_a_page_and_the_tabs_are_read_without_the_rest_of_the_library(database: Connection, shelf: UUID) -> None:
    for sort in ("newest", "oldest", "title"):
        plan = await plan_of(database, DOCUMENTS.documents, a_page(shelf, sort=sort))
        assert pages_read(plan) < 300, sort
    for tab in ("working", "needs_you"):
        plan = await plan_of(database, DOCUMENTS.documents, a_page(shelf, tab=tab))
        assert (plan["Actual Rows"], pages_read(plan) < 300) == (MANY // 1000, True), tab
    assert pages_read(await plan_of(database, PAGES.tabs, {"owner": shelf})) < 300
    (counts,) = await fetch_rows(database, PAGES.tabs, {"owner": shelf})
    each = MANY // 1000
    tabs = {"everything": MANY, "working": each, "needs_you": each, "failed": each, "stored_only": each, "refused": 0}
    assert counts == tabs


async def test_filters_by_facts_use_their_indexes_and_no_order_asks_for_each_document(
    database: Connection, shelf: UUID
) -> None:
    filters: list[dict[str, Any]] = [
        {"kind": "invoice"},
        {"after": date(2013, 9, 1), "before": date(2013, 9, 2)},
        {"amount_min": 500, "amount_max": 900},
    ]
    for chosen in filters:
        plan = await plan_of(database, DOCUMENTS.documents, a_page(shelf, **chosen))
        assert plan["Actual Rows"] > 0
        assert pages_read(plan) < 600, chosen
    for sort in ("kind", "sender", "date", "amount", "language", "collection", "state", "size"):
        plan = await plan_of(database, DOCUMENTS.documents, a_page(shelf, sort=sort, descending=True))
        # The rows themselves are read once to be sorted; only those of the page are looked up further.
        assert pages_read(plan) < 1500, sort


SORTS: list[Sort] = ["newest", "oldest", "title", "sender", "-date", "amount", "-kind", "-amount", "-size"]


async def test_every_document_is_on_exactly_one_page(desk: Desk, owner: UUID) -> None:
    for number in range(12):
        document = (await desk.add(owner, b"text %d" % number, given={"title": f"Title {number % 3}"})).document_id
        said = {"sender": f"Sender {number % 3}", "date": f"2014-04-{10 + number % 4}", "amount": f"{number % 3 * 9.5}"}
        if number % 2:
            async with desk.database.transaction() as connection:
                await edit_documents(connection, owner, [document], Edit(facts=said))
    async with desk.database.connection() as connection:
        for sort in SORTS:
            await check_pages(connection, owner, sort)


async def check_pages(connection: Connection, owner: UUID, sort: Sort) -> None:
    seen: list[UUID] = []
    cursor = None
    while True:
        page = await list_documents(connection, owner, sort=sort, cursor=cursor, limit=5)
        seen += [one.id for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    whole = await list_documents(connection, owner, Filters(), sort=sort, limit=100)
    assert seen == [one.id for one in whole.items], sort
    assert len(set(seen)) == 12, sort
    titles = [one.title for one in whole.items]
    assert sort != "title" or titles == sorted(titles)
