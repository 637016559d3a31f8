"""A search uses totals of an owner's texts that are kept with every change, and finds only the owner's texts."""

from __future__ import annotations

from uuid import UUID

import psycopg
import pytest

from octavo.core.types import new_id
from octavo.database import Database
from octavo.search import chunk_search, query_terms, ranking, search
from tests.integration.search.test_search_cost import add_chunks

TOTALS = "SELECT config::text, chunks, average FROM owner_texts(%s) ORDER BY 1"
COUNTED = """SELECT search_config(d.language)::text, count(*), greatest(avg(w.length)::double precision, 1)
FROM documents d JOIN chunk_words w ON w.document_id = d.id AND w.revision = d.revision
WHERE d.owner_id = %s AND d.deleted_at IS NULL GROUP BY 1 ORDER BY 1"""
OWNER = "INSERT INTO owners (id, kind) VALUES (%s, 'user')"
DOCUMENT = """INSERT INTO documents (id, owner_id, process_id, status, title, filename, content_type, source_type,
    sha256, bytes, revision, last_revision, text_ready, language)
VALUES (%s, %s, gen_random_uuid(), 'completed', %s, 'a.md', 'text/markdown', 'markdown',
    sha256('a'), 1, 1, 1, true, 'en')"""
CHUNK = """INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, word_count)
VALUES (gen_random_uuid(), %s, %s, %s, %s, 0, 9, 9)"""
# What happens to a document, one after another.
CHANGES = (
    "UPDATE documents SET deleted_at = now() WHERE id = %(document)s",
    "UPDATE documents SET deleted_at = NULL WHERE id = %(document)s",
    "UPDATE documents SET language = 'de' WHERE id = %(document)s",
    "UPDATE documents SET owner_id = %(other)s WHERE id = %(document)s",
    "UPDATE documents SET owner_id = %(owner)s WHERE id = %(document)s",
    """INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, word_count)
    SELECT gen_random_uuid(), %(document)s, 2, n, 'a second revision', 0, 9, 9 FROM generate_series(0, 4) AS n""",
    "UPDATE documents SET revision = 2, last_revision = 2 WHERE id = %(document)s",
    "DELETE FROM chunks WHERE document_id = %(document)s AND revision = 1",
    "DELETE FROM chunks WHERE document_id = %(document)s AND revision = 2 AND index = 4",
    "DELETE FROM documents WHERE id = %(document)s",
)


def add_document(connection: psycopg.Connection, owner: UUID, *texts: str, title: str = "") -> UUID:
    document = new_id()
    connection.execute(DOCUMENT, [document, owner, title])
    for index, text in enumerate(texts):
        connection.execute(CHUNK, [document, 1, index, text])
    return document


def test_totals_follow_every_change_of_a_document(database_info: str) -> None:
    with psycopg.connect(database_info, autocommit=True) as connection:
        owner, other = new_id(), new_id()
        for one in (owner, other):
            connection.execute(OWNER, [one])
            add_document(connection, one, "the harbour has a crane", "and a quay")
        document = add_document(connection, owner, "a lighthouse", "ein Leuchtturm", "the keel of a boat")
        for change in CHANGES:
            connection.execute(change, {"document": document, "owner": owner, "other": other})  # type: ignore[arg-type]
            for one in (owner, other):
                kept, counted = (connection.execute(query, [one]).fetchall() for query in (TOTALS, COUNTED))
                assert [row[:2] for row in kept] == [row[:2] for row in counted], change
                assert [row[2] for row in kept] == pytest.approx([row[2] for row in counted]), change
        connection.execute("DELETE FROM owners WHERE id = %s", [other])
        left = connection.execute("SELECT count(*) FROM text_totals WHERE owner_id = %s", [other]).fetchone()
        assert left == (0,)


def test_writers_of_one_owner_do_not_wait_for_each_other_and_changes_are_summed(database_info: str) -> None:
    owner = new_id()
    with psycopg.connect(database_info) as first, psycopg.connect(database_info, autocommit=True) as second:
        second.execute(OWNER, [owner])
        second.execute("SET lock_timeout = '1s'")
        slow, quick = add_document(second, owner), add_document(second, owner)
        first.execute(CHUNK, [slow, 1, 0, "a text that is not committed yet"])
        for index in range(60):
            second.execute(CHUNK, [quick, 1, index, "a crane at the quay"])
        first.execute(CHUNK, [slow, 1, 1, "and another one"])
        first.commit()
        assert second.execute(TOTALS, [owner]).fetchall() == second.execute(COUNTED, [owner]).fetchall()
        rows = second.execute("SELECT count(*) FROM text_totals WHERE owner_id = %s", [owner]).fetchone()
        assert rows is not None
        assert rows[0] < 60


async def test_only_the_index_of_the_owner_is_used(database_info: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hits of rare words are the same with the index as when all chunks are scored, also beside other owners."""
    async with Database(database_info) as database:
        owner = await add_chunks(database, 20, 10)
        await add_chunks(database, 20, 10)
        queries = (
            "keel7x3 harbour",
            "lighthouse keel3x0",
            "keel9x9 keel2x1 lighthouse",
            '"the keel7x3"',
            "lighthouse -keel3x0",
        )
        found: list[list[list[tuple[UUID | None, float]]]] = []
        for few in (10_000, 0):
            monkeypatch.setattr(ranking, "FEW", few)
            monkeypatch.setattr(query_terms, "FEW", few)
            query_terms.forget_counts()
            async with database.transaction() as connection:
                hits = [await search(connection, owner, query, mode="text") for query in queries]
            found.append([[(hit.chunk_id, round(hit.scores.text or 0, 4)) for hit in one] for one in hits])
    assert found[0] == found[1]
    assert all(found[0])


async def test_titles_with_all_words_come_first_however_many_have_some(
    database_info: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_search, "MOST_NAMED", 5)
    owner = new_id()
    with psycopg.connect(database_info, autocommit=True) as connection:
        connection.execute(OWNER, [owner])
        for number in range(30):
            add_document(connection, owner, title=f"Crane lease {number}")
        wanted = add_document(connection, owner, title="Crane lease with a notice period")
    async with Database(database_info) as database, database.transaction() as connection:
        hits = await search(connection, owner, "crane lease notice period", mode="text")
    assert hits[0].document_id == wanted
