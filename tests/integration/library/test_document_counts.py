"""The numbers of documents by kind, language, source type, collection and tag are kept with every change."""

from __future__ import annotations

import psycopg

from octavo.core.types import new_id

OWNER = "INSERT INTO owners (id, kind) VALUES (%s, 'user')"
COLLECTION = "INSERT INTO collections (id, owner_id, name) VALUES (%s, %s, 'Quay')"
TAG = "INSERT INTO tags (id, owner_id, name) VALUES (%s, %s, %s)"
DOCUMENT = """INSERT INTO documents (id, owner_id, process_id, status, filename, content_type, source_type, sha256,
    bytes, revision, last_revision, text_ready, language, kind, family_id, version)
VALUES (%s, %s, gen_random_uuid(), 'completed', 'a.md', 'text/markdown', 'markdown', sha256('a'), 1, 1, 1, true, 'en',
    'letter', %s, %s)"""
KEPT = """SELECT name, value, sum(documents) FROM document_counts WHERE owner_id = %s
GROUP BY 1, 2 HAVING sum(documents) <> 0 ORDER BY 1, 2"""
COUNTED = """SELECT name, value, count(*) FROM (
    SELECT d.owner_id, v.name, v.value FROM documents d CROSS JOIN LATERAL (VALUES
        ('kind', CASE WHEN NOT superseded THEN kind END), ('language', CASE WHEN NOT superseded THEN language END),
        ('source_type', source_type), ('collection', collection_id::text)) AS v (name, value)
        WHERE d.deleted_at IS NULL AND v.value IS NOT NULL
    UNION ALL SELECT d.owner_id, 'tag', t.tag_id::text FROM documents d JOIN document_tags t ON t.document_id = d.id
    WHERE d.deleted_at IS NULL) AS c WHERE owner_id = %s GROUP BY 1, 2 ORDER BY 1, 2"""
# What happens to a document, one after another.
CHANGES = (
    "INSERT INTO document_tags (document_id, tag_id) SELECT %(document)s, id FROM tags WHERE owner_id = %(owner)s",
    "UPDATE documents SET kind = 'invoice', collection_id = %(collection)s WHERE id = %(document)s",
    "UPDATE documents SET deleted_at = now() WHERE id = %(document)s",
    "DELETE FROM document_tags WHERE document_id = %(document)s AND tag_id = %(tag)s",
    "UPDATE documents SET kind = 'contract', language = 'fr' WHERE id = %(document)s",
    "UPDATE documents SET deleted_at = NULL WHERE id = %(document)s",
    "INSERT INTO document_tags (document_id, tag_id) VALUES (%(document)s, %(tag)s)",
    "UPDATE documents SET language = 'de', kind = NULL WHERE id = %(document)s",
    "UPDATE documents SET owner_id = %(other)s WHERE id = %(document)s",
    "UPDATE documents SET owner_id = %(owner)s WHERE id = %(document)s",
    "UPDATE documents SET deleted_at = now() WHERE id = %(newer)s",
    "UPDATE documents SET deleted_at = NULL WHERE id = %(newer)s",
    "DELETE FROM tags WHERE id = %(tag)s",
    "DELETE FROM collections WHERE id = %(collection)s",
    "DELETE FROM documents WHERE id = %(newer)s",
    "DELETE FROM documents WHERE id = %(document)s",
)


def add_document(connection: psycopg.Connection, values: dict[str, object], *, version: int = 1) -> None:
    name = "document" if version == 1 else "newer"
    connection.execute(DOCUMENT, [values[name], values["owner"], values["document"], version])


def test_numbers_follow_every_change_of_a_document(database_info: str) -> None:
    values: dict[str, object] = {
        name: new_id() for name in ("owner", "other", "document", "newer", "collection", "tag", "second_tag")
    }
    with psycopg.connect(database_info, autocommit=True) as connection:
        for one in ("owner", "other"):
            connection.execute(OWNER, [values[one]])
        connection.execute(COLLECTION, [values["collection"], values["owner"]])
        for name in ("tag", "second_tag"):
            connection.execute(TAG, [values[name], values["owner"], name])
        add_document(connection, values)
        add_document(connection, values, version=2)
        for change in CHANGES:
            connection.execute(change, values)  # type: ignore[arg-type]
            for one in ("owner", "other"):
                kept, counted = (connection.execute(query, [values[one]]).fetchall() for query in (KEPT, COUNTED))
                assert kept == counted, change
        add_document(connection, values)
        connection.execute("DELETE FROM owners WHERE id = %s", [values["owner"]])
        left = connection.execute("SELECT count(*) FROM document_counts WHERE owner_id = %s", [values["owner"]])
        assert left.fetchone() == (0,)


def test_writers_of_one_owner_do_not_wait_for_each_other_and_changes_are_summed(database_info: str) -> None:
    owner, slow, quick = (new_id() for _ in range(3))
    change = "UPDATE documents SET kind = %s WHERE id = %s"
    with psycopg.connect(database_info) as first, psycopg.connect(database_info, autocommit=True) as second:
        second.execute(OWNER, [owner])
        second.execute("SET lock_timeout = '1s'")
        for document in (slow, quick):
            second.execute(DOCUMENT, [document, owner, document, 1])
        first.execute(change, ["invoice", slow])
        for kind in ("invoice", "letter") * 30:
            second.execute(change, [kind, quick])
        first.execute(change, ["contract", slow])
        first.commit()
        assert second.execute(KEPT, [owner]).fetchall() == second.execute(COUNTED, [owner]).fetchall()
        rows = second.execute("SELECT count(*) FROM document_counts WHERE owner_id = %s", [owner]).fetchone()
        assert rows
        assert rows[0] < 60
