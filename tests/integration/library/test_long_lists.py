"""A library of many documents is shown as fast as one of few: no page reads the whole of it."""

from __future__ import annotations

import json
from datetime import date
from typing import Any
from uuid import UUID

import pytest

from octavo.database import fetch_rows, load_queries
from octavo.library.changes import Edit, edit_documents
from octavo.library.documents import Filters, Sort, list_documents
from tests.support.library import Desk

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
UNSET = (
    "document",
    "documents",
    "id_part",
    "status",
    "tab",
    "tag",
    "collection",
    "like",
    "kind",
    "sender",
    "before",
    "after",
    "amount_min",
    "amount_max",
    "language",
    "size_min",
    "size_max",
    "after_at",
    "after_text",
    "after_id",
)


@pytest.fixture
async def shelf(desk: Desk, owner: UUID) -> UUID:
    async with desk.database.transaction() as connection:
        await connection.execute(FILL.encode(), {"owner": owner, "many": MANY})
    async with desk.database.connection() as connection:
        await connection.execute(b"ANALYZE documents")
    return owner


async def plan_of(desk: Desk, query: bytes, values: dict[str, Any]) -> dict[str, Any]:
    async with desk.database.connection() as connection:
        cursor = await connection.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query, values)
        row = await cursor.fetchone()
    assert row is not None
    return json.loads(json.dumps(row[0]))[0]["Plan"]


def pages_read(plan: dict[str, Any]) -> int:
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def a_page(owner: UUID, **given: object) -> dict[str, Any]:
    values = {"owner": owner, "trashed": False, "versions": False, "sort": "newest", "descending": False, "most": 51}
    return dict.fromkeys(UNSET) | values | given


async def test_a_page_and_the_tabs_are_read_without_the_rest_of_the_library(desk: Desk, shelf: UUID) -> None:
    for sort in ("newest", "oldest", "title"):
        plan = await plan_of(desk, DOCUMENTS.documents, a_page(shelf, sort=sort))
        assert pages_read(plan) < 300, sort
    for tab in ("working", "needs_you"):
        plan = await plan_of(desk, DOCUMENTS.documents, a_page(shelf, tab=tab))
        assert (plan["Actual Rows"], pages_read(plan) < 300) == (MANY // 1000, True), tab
    assert pages_read(await plan_of(desk, PAGES.tabs, {"owner": shelf})) < 300
    async with desk.database.connection() as connection:
        (counts,) = await fetch_rows(connection, PAGES.tabs, {"owner": shelf})
    each = MANY // 1000
    tabs = {"everything": MANY, "working": each, "needs_you": each, "failed": each, "stored_only": each, "refused": 0}
    assert counts == tabs


async def test_filters_by_facts_use_their_indexes_and_no_order_asks_for_each_document(desk: Desk, shelf: UUID) -> None:
    filters: list[dict[str, Any]] = [
        {"kind": "invoice"},
        {"after": date(2013, 9, 1), "before": date(2013, 9, 2)},
        {"amount_min": 500, "amount_max": 900},
    ]
    for chosen in filters:
        plan = await plan_of(desk, DOCUMENTS.documents, a_page(shelf, **chosen))
        assert plan["Actual Rows"] > 0
        assert pages_read(plan) < 600, chosen
    for sort in ("kind", "sender", "date", "amount", "language", "collection", "state", "size"):
        plan = await plan_of(desk, DOCUMENTS.documents, a_page(shelf, sort=sort, descending=True))
        # The rows themselves are read once to be sorted; only those of the page are looked up further.
        assert pages_read(plan) < 1500, sort


@pytest.mark.parametrize(
    "sort", ["newest", "oldest", "title", "sender", "-date", "amount", "-kind", "-amount", "-size"]
)
async def test_every_document_is_on_exactly_one_page(desk: Desk, owner: UUID, sort: Sort) -> None:
    for number in range(12):
        document = (await desk.add(owner, b"text %d" % number, given={"title": f"Title {number % 3}"})).document_id
        said = {"sender": f"Sender {number % 3}", "date": f"2014-04-{10 + number % 4}", "amount": f"{number % 3 * 9.5}"}
        if number % 2:
            async with desk.database.transaction() as connection:
                await edit_documents(connection, owner, [document], Edit(facts=said))
    seen: list[UUID] = []
    cursor = None
    async with desk.database.connection() as connection:
        while True:
            page = await list_documents(connection, owner, sort=sort, cursor=cursor, limit=5)
            seen += [one.id for one in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        whole = await list_documents(connection, owner, Filters(), sort=sort, limit=100)
    assert seen == [one.id for one in whole.items]
    assert len(set(seen)) == 12
    titles = [one.title for one in whole.items]
    assert sort != "title" or titles == sorted(titles)
