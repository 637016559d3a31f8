"""A library of many documents is shown as fast as one of few: no page reads the whole of it."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from octavo.database import fetch_rows, load_queries
from octavo.library.documents import Filters, Sort, list_documents
from tests.support.library import Desk

DOCUMENTS = load_queries("documents")
PAGES = load_queries("pages")
MANY = 12_000
FILL = """
    WITH made AS (
        INSERT INTO documents (id, owner_id, process_id, status, title, filename, content_type, source_type, sha256,
                               bytes, quality, created_at)
        SELECT gen_random_uuid(), %(owner)s, gen_random_uuid(),
               CASE WHEN n %% 1000 = 0 THEN 'failed' WHEN n %% 1000 = 1 THEN 'pending' ELSE 'completed' END,
               md5(n::text), 'note-' || n || '.txt', 'text/plain', 'text', sha256(n::text::bytea), 10,
               CASE WHEN n %% 1000 = 2 THEN 'stored_only' WHEN n %% 1000 = 3 THEN 'empty' ELSE 'full' END,
               clock_timestamp() - make_interval(secs => n)
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


async def test_a_page_and_the_tabs_are_read_without_the_rest_of_the_library(desk: Desk, shelf: UUID) -> None:
    for sort in ("newest", "oldest", "title"):
        values = dict.fromkeys(UNSET) | {"owner": shelf, "trashed": False, "versions": False, "sort": sort, "most": 51}
        assert pages_read(await plan_of(desk, DOCUMENTS.documents, values)) < 300, sort
    for tab in ("working", "needs_you"):
        values = dict.fromkeys(UNSET) | {"owner": shelf, "trashed": False, "versions": False, "tab": tab}
        plan = await plan_of(desk, DOCUMENTS.documents, values | {"sort": "newest", "most": 51})
        assert (plan["Actual Rows"], pages_read(plan) < 300) == (MANY // 1000, True), tab
    assert pages_read(await plan_of(desk, PAGES.tabs, {"owner": shelf})) < 300
    async with desk.database.connection() as connection:
        (counts,) = await fetch_rows(connection, PAGES.tabs, {"owner": shelf})
    each = MANY // 1000
    tabs = {"everything": MANY, "working": each, "needs_you": each, "failed": each, "stored_only": each, "refused": 0}
    assert counts == tabs


@pytest.mark.parametrize("sort", ["newest", "oldest", "title"])
async def test_every_document_is_on_exactly_one_page(desk: Desk, owner: UUID, sort: Sort) -> None:
    for number in range(12):
        await desk.add(owner, b"text %d" % number, given={"title": f"Title {number % 3}"})
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
