"""What it costs the database to find the chunks that share concepts with a document, as a library grows.

`python -m benchmarks.scale.concepts [CHUNKS ...]`. Documents have two chunks with eight concepts each. Concepts are as
common as words are (Zipf): the most common one is in a seventh of the chunks. All chunks have one vector, which this
query only reads for the chosen pairs. Another owner has as many chunks with the same concepts. Printed are the median
and the slowest of 30 documents, in milliseconds of the server, and the pages that it read.
"""

from __future__ import annotations

import json
import statistics
import sys
from uuid import UUID

import psycopg

from benchmarks.search.library import empty_database, new_owner
from octavo.connect.detection import CONCEPT_LIMITS
from octavo.database import load_queries

SIZES = (25_000, 100_000, 250_000)
CONCEPTS, CONCEPTS_A_CHUNK, CHUNKS_A_DOCUMENT, ROUNDS, WARM = 40_000, 8, 2, 30, 5
FILL = (
    """
    INSERT INTO documents (id, owner_id, process_id, status, filename, content_type, source_type, sha256, bytes,
                           revision, last_revision, text_ready, embeddings_ready, language, family_id)
    SELECT i.id, %(owner)s, gen_random_uuid(), 'completed', 'note.md', 'text/markdown', 'markdown',
           sha256(uuid_send(i.id)), 1, 1, 1, true, true, 'en', i.id
    FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, %(documents)s)) AS i""",
    """
    INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, word_count, tone, importance)
    SELECT gen_random_uuid(), d.id, 1, i, repeat('word ', 250), 0, 1250, 250,
           jsonb_build_object('polarity', random() * 2 - 1), 0.5
    FROM documents d CROSS JOIN generate_series(0, %(chunks)s - 1) AS i
    WHERE d.owner_id = %(owner)s AND NOT EXISTS (SELECT FROM chunks c WHERE c.document_id = d.id)""",
    """
    INSERT INTO chunk_concepts (chunk_id, owner_id, concept, importance)
    SELECT c.id, %(owner)s, 'concept ' || floor(exp(random() * ln(%(concepts)s))), random()
    FROM chunks c JOIN documents d ON d.id = c.document_id CROSS JOIN generate_series(1, %(each)s)
    WHERE d.owner_id = %(owner)s AND NOT EXISTS (SELECT FROM chunk_concepts k WHERE k.chunk_id = c.id)
    ON CONFLICT DO NOTHING""",
    """
    INSERT INTO chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector)
    SELECT %(model)s, c.id, %(owner)s, d.id, %(vector)s::vector
    FROM chunks c JOIN documents d ON d.id = c.document_id
    WHERE d.owner_id = %(owner)s AND NOT EXISTS (SELECT FROM chunk_embeddings e WHERE e.chunk_id = c.id)""",
)


def fill(connection: psycopg.Connection, owner: UUID, chunks: int, model: int) -> None:
    """Adds documents until the owner has so many chunks."""
    row = connection.execute("SELECT count(*) FROM documents WHERE owner_id = %s", [owner]).fetchone()
    values = {
        "owner": owner,
        "documents": chunks // CHUNKS_A_DOCUMENT - (row[0] if row else 0),
        "chunks": CHUNKS_A_DOCUMENT,
        "concepts": CONCEPTS,
        "each": CONCEPTS_A_CHUNK,
        "model": model,
        "vector": str([1.0] + [0.0] * 383),
    }
    connection.execute("SET session_replication_role = replica")  # nobody searches these texts
    for statement in FILL:
        connection.execute(statement, values)
    connection.execute("SET session_replication_role = origin")
    connection.execute("VACUUM ANALYZE documents, chunks, chunk_concepts, chunk_embeddings")


def measure(connection: psycopg.Connection, owner: UUID, model: int) -> tuple[list[float], list[int]]:
    """Milliseconds and pages of each round."""
    query = b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + load_queries("connections").by_concepts
    documents = connection.execute(
        "SELECT d.id, array_agg(c.id) FROM documents d JOIN chunks c ON c.document_id = d.id "
        "WHERE d.owner_id = %s GROUP BY d.id ORDER BY d.id LIMIT %s",
        [owner, WARM + ROUNDS],
    ).fetchall()
    times, pages = list[float](), list[int]()
    for document, chunks in documents:
        values = {"owner": owner, "model": model, "excluded": [document], "chunks": chunks, **CONCEPT_LIMITS}
        (plan,) = connection.execute(query, values).fetchone() or ("",)
        made = (json.loads(plan) if isinstance(plan, str) else plan)[0]
        times.append(made["Execution Time"])
        pages.append(made["Plan"]["Shared Hit Blocks"] + made["Plan"]["Shared Read Blocks"])
    return times[WARM:], pages[WARM:]


def main(sizes: tuple[int, ...]) -> None:
    with empty_database() as info, psycopg.connect(info, autocommit=True) as connection:
        owner, other = new_owner(connection), new_owner(connection)
        (model,) = connection.execute("SELECT embedding_model('made-up', 384)").fetchone() or (0,)
        print("| chunks of the owner | median, ms | slowest, ms | pages, median |\n|---:|---:|---:|---:|")
        for size in sizes:
            fill(connection, owner, size, model)
            fill(connection, other, size, model)
            times, pages = measure(connection, owner, model)
            print(f"| {size:,} | {statistics.median(times):.1f} | {max(times):.1f} | {statistics.median(pages):,.0f} |")


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
