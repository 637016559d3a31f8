"""What a search by words costs as the library of an owner grows, and as the libraries of other owners grow.

`python -m benchmarks.scale.search [CHUNKS ...]`. One owner has as many documents of one chunk as given, another always
has 10,000. A chunk has 60 words: four are in all chunks, the others are as common as words are (Zipf). The title of
each document has two of the four words. Printed is the processor time of the database server for one search, in
milliseconds: the median of the first searches for different words, and of repeated searches, whose counts are cached.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from pathlib import Path
from uuid import UUID

import psycopg

from benchmarks.search.library import empty_database, new_owner
from octavo.database import Database
from octavo.search import query_terms, search

SIZES = (10_000, 50_000, 200_000)
BESIDE, WORDS_A_CHUNK, WORDS, ROUNDS = 10_000, 56, 60_000, 12
# In all chunks; `near` is in a twentieth of them.
QUERIES = {
    "a rare word": "word{rare}",
    "a word that a twentieth have": "near{number}",
    "a word that all have": "crane",
    "four words that all have": "crane lease notice period",
}
FILL = (
    """
    CREATE TEMPORARY TABLE new_texts ON COMMIT DROP AS
    SELECT gen_random_uuid() AS document, gen_random_uuid() AS chunk, n FROM generate_series(1, %(documents)s) AS n""",
    """
    INSERT INTO documents (id, owner_id, process_id, status, title, filename, content_type, source_type, sha256, bytes,
                           revision, last_revision, text_ready, language, family_id)
    SELECT document, %(owner)s, gen_random_uuid(), 'completed', 'Crane lease', 'note.md', 'text/markdown', 'markdown',
           sha256(uuid_send(document)), 1, 1, 1, true, 'en', document FROM new_texts""",
    """
    INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, word_count)
    SELECT chunk, document, 1, 0, 'The notice period of the crane lease.', 0, 37, 60 FROM new_texts""",
    """
    INSERT INTO chunk_words (chunk_id, document_id, revision, length, words, owner_id)
    SELECT chunk, document, 1, 60, array_to_tsvector(ARRAY[owner_mark(%(owner)s), 'crane', 'leas', 'notic', 'period',
           'near' || n %% 20] || ARRAY(SELECT 'word' || floor(exp(random() * ln(%(words)s)))
                                      FROM generate_series(1, %(each)s + 0 * n))), %(owner)s FROM new_texts""",
    """
    INSERT INTO document_words (document_id, words)
    SELECT document, name_words('english', 'Crane lease', 'A') || array_to_tsvector(ARRAY[owner_mark(%(owner)s)])
    FROM new_texts""",
    """
    INSERT INTO text_totals (owner_id, config, chunks, words)
    SELECT %(owner)s, 'english', %(documents)s, 60 * %(documents)s""",
)


def fill(connection: psycopg.Connection, owner: UUID, documents: int) -> None:
    """Adds documents as the triggers would, without the time that these take."""
    values = {"owner": owner, "documents": documents, "words": WORDS, "each": WORDS_A_CHUNK}
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        for statement in FILL:
            connection.execute(statement, values)
    connection.execute("VACUUM ANALYZE documents, chunks, chunk_words, document_words, text_totals")


async def measure(info: str, owner: UUID, query: str) -> tuple[float, float]:
    """The medians of first and of repeated searches."""
    first, again = list[float](), list[float]()
    async with Database(info, connections=1) as database:
        for number in range(ROUNDS):
            text = query.format(rare=30_000 + number, number=number)
            query_terms.forget_counts()
            for took in (first, again):
                async with database.transaction() as connection:
                    server = connection.info.backend_pid
                    before = processor_time(server)
                    await search(connection, owner, text, mode="text")
                    took.append(processor_time(server) - before)
    return statistics.median(first[2:]) * 1000, statistics.median(again[2:]) * 1000


def processor_time(process: int) -> float:
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def main(sizes: tuple[int, ...]) -> None:
    with empty_database() as info, psycopg.connect(info, autocommit=True) as connection:
        owner, other = new_owner(connection), new_owner(connection)
        fill(connection, other, BESIDE)
        filled = 0
        print("| chunks | of others | query | first, ms | repeated, ms |\n|---:|---:|---|---:|---:|")
        for size in sizes:
            fill(connection, owner, size - filled)
            filled = size
            for one, own, others in ((owner, size, BESIDE), (other, BESIDE, size)):
                for name, query in QUERIES.items():
                    first, again = asyncio.run(measure(info, one, query))
                    print(f"| {own:,} | {others:,} | {name} | {first:.1f} | {again:.1f} |", flush=True)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
