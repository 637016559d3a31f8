"""Fills an installation with synthetic documents, set by set, without reading files.

One real note, which was added through the API, is the pattern: every synthetic document has the same rows in the same
tables, with its own ids, names and texts. It shares the note's three objects in the storage. What differs:

- Two chunks of 80 words each. A chunk is made of five of 20,000 fragments of 16 invented words, which are as common as
  words are (Zipf, 60,000 words). One fragment in twenty contains "notice period". The first chunk of each document
  also has a number that no other document has.
- Vectors are mixtures of the vectors of 1,000 fragments, as the built-in model makes them: mostly of one fragment, less
  of another one and of a third one.
- Eight concepts a chunk, as common as words are, of 50,000; four of the account's 40 tags; one connection with the
  document before.
- Two jobs, with their stages and events except those of the stages of processing.
- One document in eight is German.

The rows are inserted without triggers. What triggers would write is inserted, too: words, totals, usage, references.
Indexes that enforce nothing are dropped meanwhile and created again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from psycopg import sql

from benchmarks.search.speed import Library
from octavo.core.types import new_id
from octavo.language import offline_embedder

FRAGMENTS, FRAGMENT_WORDS, TOPICS, CONCEPTS, TAGS = 20_000, 16, 1_000, 50_000, 40
DOCUMENTS_AT_ONCE, OTHERS_AT_MOST, WRITERS = 10_000, 2_000, 2
# Up to so many chunks of an account, vectors are compared without an index.
MOST_EXACT = 20_000

POOLS = """
CREATE TABLE made_fragments (id integer PRIMARY KEY, content text);
CREATE TABLE made_words (id integer PRIMARY KEY, word text);
CREATE TABLE made_topics (id integer PRIMARY KEY, strong vector(384), middling vector(384), weak vector(384));
CREATE TABLE made_tags (owner_id uuid, number integer, id uuid, PRIMARY KEY (owner_id, number));
CREATE FUNCTION made_id(place bigint) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(overlay(uuid_send(gen_random_uuid()) PLACING substr(int8send(1700000000000 + place), 3) FROM 1),
                  'hex')::uuid $$;
"""
# The rows that a batch is about. `place` is the number of a document in the installation.
STAGING = (
    """
    CREATE TEMPORARY TABLE made ON COMMIT DROP AS
    SELECT g.owner_id, n AS place, made_id(n) AS document_id, made_id(n) AS process_id, made_id(n) AS upload_id,
           made_id(n) AS comparison_id, made_id(n) AS first_chunk, made_id(n) AS second_chunk,
           clock_timestamp() - make_interval(secs => (2000000 - n) * 30) AS at,
           CASE WHEN n % 8 = 0 THEN 'de' ELSE 'en' END AS language,
           CASE WHEN n % 8 = 0 THEN 'pg_catalog.german' ELSE 'pg_catalog.english' END::regconfig AS config,
           (ARRAY['invoice', 'letter', 'contract', 'article', 'receipt'])[1 + n % 5] AS kind,
           w.word AS name
    FROM unnest(%(owners)s::uuid[], %(firsts)s::integer[], %(counts)s::integer[]) AS g (owner_id, first, count)
    CROSS JOIN LATERAL generate_series(g.first, g.first + g.count - 1) AS n
    JOIN made_words w ON w.id = 100 + n::bigint * 7919 % 50000""",
    """
    CREATE TEMPORARY TABLE made_chunks ON COMMIT DROP AS
    SELECT m.owner_id, m.place, m.document_id, m.config, i AS index,
           CASE i WHEN 0 THEN m.first_chunk ELSE m.second_chunk END AS id,
           CASE i WHEN 0 THEN '# ' || initcap(m.name) || E'\\n\\nNumber n' || m.place || '. ' ELSE '' END
           || (SELECT string_agg(f.content, ' ') FROM made_fragments f
               WHERE f.id = ANY (ARRAY(SELECT floor(random() * %(fragments)s)::integer
                                       FROM generate_series(1, 5 + 0 * m.place)))) AS content
    FROM made m CROSS JOIN generate_series(0, 1) AS i""",
)
MARK = "array_to_tsvector(ARRAY[owner_mark(m.owner_id)])"
# Copies of the rows of the pattern: the table, its rows, the rows to make, and the columns that differ.
COPIES: tuple[tuple[str, str, str, Mapping[str, str]], ...] = (
    ("uploads", "t.document_id = %(pattern)s", "made m", {
        "id": "m.upload_id", "owner_id": "m.owner_id", "document_id": "m.document_id", "process_id": "m.process_id",
        "filename": "m.name || m.place || '.md'", "sha256": "sha256(uuid_send(m.document_id))", "created_at": "m.at",
        "finalized_at": "m.at"}),
    ("documents", "t.id = %(pattern)s", "made m", {
        "id": "m.document_id", "owner_id": "m.owner_id", "process_id": "m.process_id", "family_id": "m.document_id",
        "filename": "m.name || m.place || '.md'", "sha256": "sha256(uuid_send(m.document_id))", "created_at": "m.at",
        "updated_at": "m.at", "title": "initcap(m.name) || ' ' || m.place", "language": "m.language", "kind": "m.kind",
        "sender": "initcap((SELECT word FROM made_words w WHERE w.id = 1000 + m.place % 500)) || ' Ltd'",
        "document_date": "date '2000-01-01' + m.place % 9000", "amount": "m.place % 5000 + 0.5", "currency": "'EUR'",
        "summary": "'Summary of ' || m.name || '. ' || (SELECT content FROM made_fragments f "
                   "WHERE f.id = m.place % 20000)",
        "collection_id": "CASE WHEN m.place % 4 = 0 THEN (SELECT id FROM collections c "
                         "WHERE c.owner_id = m.owner_id) END",
        "quality": "CASE WHEN m.place % 50 = 0 THEN 'partial' ELSE 'full' END"}),
    ("artifacts", "t.document_id = %(pattern)s", "made m", {
        "id": "made_id(m.place)", "document_id": "m.document_id", "created_at": "m.at",
        "job_id": "CASE WHEN t.job_id IS NOT NULL THEN m.process_id END"}),
    ("facts", "t.document_id = %(pattern)s", "made m", {
        "document_id": "m.document_id", "made_at": "m.at",
        "value": "CASE t.name WHEN 'kind' THEN m.kind WHEN 'title' THEN initcap(m.name) || ' ' || m.place "
                 "ELSE t.value END",
        "normalized": "CASE t.name WHEN 'kind' THEN m.kind WHEN 'title' THEN m.name || ' ' || m.place "
                      "ELSE t.normalized END"}),
    ("pages", "t.document_id = %(pattern)s", "made m", {"document_id": "m.document_id"}),
    ("chunks", "t.document_id = %(pattern)s AND t.index = m.index", "made_chunks m", {
        "id": "m.id", "document_id": "m.document_id", "content": "m.content", "char_start": "m.index * 1000",
        "char_end": "m.index * 1000 + length(m.content)", "word_count": "80", "summary": "left(m.content, 120)",
        "themes": "ARRAY[split_part(m.content, ' ', 3), split_part(m.content, ' ', 9)]"}),
    ("document_passages", "t.document_id = %(pattern)s", "made m", {
        "document_id": "m.document_id", "owner_id": "m.owner_id", "config": "m.config::text",
        "words": "(SELECT sum(w.length) FROM chunk_words w WHERE w.chunk_id IN (m.first_chunk, m.second_chunk))"}),
    ("jobs", "t.id = %(process)s", "made m", {
        "id": "m.process_id", "owner_id": "m.owner_id", "document_id": "m.document_id",
        "key": "'process:' || m.document_id || ':1'"}),
    ("jobs", "t.id = %(comparison)s", "made m", {
        "id": "m.comparison_id", "owner_id": "m.owner_id", "document_id": "m.document_id",
        "key": "'connections:' || m.document_id || ':1'"}),
    ("job_stages", "t.job_id = %(comparison)s", "made m", {"job_id": "m.comparison_id"}),
    # The ids of events are in the order of the events of each job.
    ("events", "t.process_id IN (%(process)s, %(comparison)s) AND t.state_after IS NOT NULL", "made m", {
        "id": "%(events)s + m.place::bigint * %(pattern_events)s + t.id - %(first_event)s", "owner_id": "m.owner_id",
        "document_id": "m.document_id",
        "process_id": "CASE WHEN t.process_id = %(process)s THEN m.process_id ELSE m.comparison_id END"}),
)  # fmt: skip
# Rows that differ from those of the pattern in more than their names.
ROWS = {
    "chunk_words": f"""
        INSERT INTO chunk_words (chunk_id, document_id, revision, length, words, owner_id)
        SELECT m.id, m.document_id, 1, (SELECT sum(cardinality(positions)) FROM unnest(said.words)),
               said.words || {MARK}, m.owner_id
        FROM made_chunks m CROSS JOIN LATERAL search_words(m.config, E'\\n' || m.content) AS said (words)""",
    "document_words": f"""
        INSERT INTO document_words (document_id, words)
        SELECT m.document_id, name_words(m.config, d.title, 'A') || name_words(m.config, g.names, 'B')
               || name_words(m.config, concat_ws(' ', d.filename, name_text(d.filename)), 'C')
               || name_words(m.config, d.summary, 'D') || {MARK}
        FROM made m JOIN documents d ON d.id = m.document_id
        CROSS JOIN LATERAL (SELECT string_agg(w.word, E'\\n') AS names FROM generate_series(0, 3) AS k
                            JOIN made_words w ON w.id = 2000 + (m.place * 3 + k * 11) % %(tags)s) AS g""",
    "document_tags": """
        INSERT INTO document_tags (document_id, tag_id, made_by)
        SELECT m.document_id, t.id, 'local' FROM made m CROSS JOIN generate_series(0, 3) AS k
        JOIN made_tags t ON t.owner_id = m.owner_id AND t.number = (m.place * 3 + k * 11) % %(tags)s""",
    "chunk_concepts": """
        INSERT INTO chunk_concepts (chunk_id, concept, importance, owner_id)
        SELECT m.id, CASE WHEN k % 2 = 0 THEN w.word ELSE w.word || ' ' || v.word END, (1 - 0.1 * k)::real, m.owner_id
        FROM made_chunks m CROSS JOIN LATERAL (
            SELECT k, floor(exp(random() * ln(%(concepts)s + 0 * m.place)))::integer AS rank
            FROM generate_series(0, 7) AS k OFFSET 0) AS c
        JOIN made_words w ON w.id = c.rank JOIN made_words v ON v.id = c.rank * 31 % 60000
        ON CONFLICT DO NOTHING""",
    "chunk_embeddings": """
        INSERT INTO chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector)
        SELECT %(model)s, m.id, m.owner_id, m.document_id, l2_normalize(a.strong + b.middling + c.weak)
        FROM made_chunks m CROSS JOIN LATERAL (
            SELECT floor(random() * %(topics)s + 0 * m.place)::integer AS one,
                   floor(random() * %(topics)s)::integer AS two,
                   floor(random() * %(topics)s)::integer AS three OFFSET 0) AS r
        JOIN made_topics a ON a.id = r.one JOIN made_topics b ON b.id = r.two JOIN made_topics c ON c.id = r.three""",
    "connections": """
        INSERT INTO connections (id, owner_id, engine, source_chunk, target_chunk, source_document, target_document,
                                 strength, source_start, source_end, target_start, target_end, explanation, status,
                                 made_by, digest)
        SELECT made_id(place), owner_id, 'semantic_similarity', least(mine, theirs), greatest(mine, theirs),
               CASE WHEN mine < theirs THEN document_id ELSE other END,
               CASE WHEN mine < theirs THEN other ELSE document_id END,
               0.65 + 0.3 * random(), 0, 80, 0, 80, 'Both are about ' || name || '.', 'found', 'local',
               sha256(uuid_send(mine))
        FROM (SELECT *, first_chunk AS mine, lag(first_chunk) OVER w AS theirs, lag(document_id) OVER w AS other
              FROM made
              WINDOW w AS (PARTITION BY owner_id ORDER BY place)) AS pairs
        WHERE theirs IS NOT NULL""",
}  # fmt: skip
# After all batches: what triggers count.
TOTALS = (
    "UPDATE objects o SET refs = (SELECT count(*) FROM artifacts a WHERE a.key = o.key)",
    "DELETE FROM text_totals",
    """INSERT INTO text_totals (owner_id, config, chunks, words)
       SELECT owner_id, config, sum(passages), sum(words) FROM document_passages
       WHERE owner_id IS NOT NULL GROUP BY 1, 2""",
    "DELETE FROM owner_usage",
    """INSERT INTO owner_usage (owner_id, bytes, documents)
       SELECT owner_id, sum(bytes), count(*) FROM documents GROUP BY 1""",
    "DELETE FROM document_counts",
    """INSERT INTO document_counts (owner_id, name, value, documents)
       SELECT c.owner_id, c.name, c.value, count(*) FROM (
           SELECT v.* FROM documents d CROSS JOIN LATERAL counted_values(d) AS v
           UNION ALL SELECT d.owner_id, 'tag', t.tag_id::text
           FROM document_tags t JOIN documents d ON d.id = t.document_id) AS c
       GROUP BY 1, 2, 3""",
    "SELECT setval('events_id_seq', (SELECT max(id) FROM events))",
    "UPDATE relay SET id = (SELECT max(id) FROM events)",
)
# Up to three documents list a word of an account: of its first chunks, so that most of its words are listed.
VOCABULARY = """
    INSERT INTO vocabulary (owner_id, document_id, word)
    SELECT %(owner)s, document_id, word FROM (
        SELECT w.document_id, x.word, row_number() OVER (PARTITION BY x.word ORDER BY w.document_id) AS number
        FROM (SELECT id, document_id, content FROM chunks WHERE document_id IN (
                  SELECT id FROM documents WHERE owner_id = %(owner)s ORDER BY created_at LIMIT %(most)s)) AS w
        CROSS JOIN LATERAL (SELECT DISTINCT unnest(plain_words(w.content)) AS word) AS x
        WHERE length(x.word) BETWEEN 4 AND 24 AND x.word !~ '[0-9[:punct:]]') AS v
    WHERE number <= 3"""


class Filling:
    """Adds documents to one installation whose database is at `info`. `pattern` is the note that was added to it."""

    def __init__(self, info: str, pattern: UUID, fixed: UUID) -> None:
        self.info = info
        with self._connect() as connection:
            self.large, process = self._row(
                connection, "SELECT owner_id, process_id FROM documents WHERE id = %s", pattern
            )
            (comparison,) = self._row(
                connection, "SELECT id FROM jobs WHERE document_id = %s AND kind = 'detect_connections'", pattern
            )
            first, last = self._row(
                connection, "SELECT min(id), max(id) FROM events WHERE process_id IN (%s, %s)", process, comparison
            )
            (model,) = self._row(connection, "SELECT model_id FROM chunk_embeddings WHERE document_id = %s", pattern)
            (events,) = self._row(connection, "SELECT max(id) + 1 FROM events")
        self.fixed, self.total, self.words = fixed, 0, list[str]()
        self._tables = list(dict.fromkeys([copy[0] for copy in COPIES] + [*ROWS, "vocabulary"]))
        self._values = {
            "pattern": pattern,
            "process": process,
            "comparison": comparison,
            "model": model,
            "events": events,
            "first_event": first,
            "pattern_events": last - first + 1,
            "fragments": FRAGMENTS,
            "topics": TOPICS,
            "concepts": CONCEPTS,
            "tags": TAGS,
        }
        self._model = model

    def prepare(self) -> None:
        """Write the pools that texts, names and vectors are made of."""
        library, generator = Library(), np.random.default_rng(24)
        self.words = library.words
        words = library.draw(FRAGMENTS * FRAGMENT_WORDS)
        fragments = [words[start : start + FRAGMENT_WORDS] for start in range(0, len(words), FRAGMENT_WORDS)]
        for fragment in fragments[::20]:
            fragment[4:6] = "notice", "period"
        texts = [" ".join(fragment).capitalize() + "." for fragment in fragments]
        vectors = np.stack([np.asarray(one) for one in offline_embedder().embed(texts[:TOPICS])])
        noise = generator.normal(size=vectors.shape) / np.sqrt(vectors.shape[1])
        pairs = enumerate(zip(vectors, noise, strict=True))
        topics = [(number, *map(_text, (one, one * 0.7, chance * 0.5))) for number, (one, chance) in pairs]
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(POOLS)
            for table, rows in (
                ("made_fragments", list(enumerate(texts))),
                ("made_words", list(enumerate(library.words))),
                ("made_topics", topics),
            ):  # fmt: skip
                with cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
                    for row in rows:
                        copy.write_row(row)
            for owner in (self.large, self.fixed):
                self._add_account(connection, owner)
            connection.execute("ANALYZE made_fragments, made_words, made_topics")

    def grow(self, total: int, fixed: int) -> None:
        """Add documents until there are `total`: half of them of the large account, `fixed` of the fixed one."""
        new = total - self.total
        ranges = [(self.fixed, fixed)] if self.total == 0 else []
        ranges.append((self.large, total // 2 - self.total // 2))
        rest = new - sum(count for _, count in ranges)
        with self._connect() as connection:
            while rest > 0:
                owner = new_id()
                connection.execute("INSERT INTO owners (id, kind) VALUES (%s, 'user')", [owner])
                self._add_account(connection, owner)
                ranges.append((owner, min(rest, OTHERS_AT_MOST)))
                rest -= OTHERS_AT_MOST
        batches = list(_batches(ranges, self.total))
        with self._without_indexes(total), ThreadPoolExecutor(WRITERS) as pool:
            for _ in pool.map(self._insert, batches):
                pass
        with self._connect() as connection:
            connection.execute("SET session_replication_role = replica")
            for statement in TOTALS:
                connection.execute(statement.encode())
            for owner, _ in ranges:
                connection.execute("DELETE FROM vocabulary WHERE owner_id = %s", [owner])
                connection.execute(VOCABULARY, {"owner": owner, "most": 200})
            connection.execute("VACUUM (ANALYZE)")
            connection.execute("CHECKPOINT")
        self.total = total

    def _insert(self, batch: Sequence[tuple[UUID, int, int]]) -> None:
        owners, firsts, counts = zip(*batch, strict=True)
        values = {**self._values, "owners": list(owners), "firsts": list(firsts), "counts": list(counts)}
        with self._connect() as connection, connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")
            connection.execute("SET LOCAL synchronous_commit = off")
            connection.execute("SET LOCAL work_mem = '128MB'")
            for statement in STAGING:
                connection.execute(_escaped(statement), values)
            connection.execute("ANALYZE made")
            connection.execute("ANALYZE made_chunks")
            for table in ("chunk_words", "chunk_concepts", "chunk_embeddings", "document_tags", "connections"):
                connection.execute(_escaped(ROWS[table]), values)
            for copy in COPIES:
                connection.execute(_escaped(_copy_statement(connection, *copy)), values)
            connection.execute(_escaped(ROWS["document_words"]), values)

    @contextmanager
    def _without_indexes(self, total: int) -> Generator[None]:
        """Without those indexes that enforce nothing. They are built afterwards, with the vector index if it is due."""
        with self._connect() as connection:
            indexes = connection.execute(
                """SELECT i.indexrelid::regclass::text, replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ')
                   FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
                   WHERE c.relname = ANY (%s)
                     AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)""",
                [self._tables],
            ).fetchall()
            for name, _ in indexes:
                connection.execute(f"DROP INDEX {name}".encode())
        yield
        statements = deque(definition for _, definition in indexes if "hnsw" not in definition)
        if total > MOST_EXACT:
            statements.appendleft(
                f"CREATE INDEX chunk_embeddings_half_{self._model} ON chunk_embeddings USING hnsw "
                f"((vector::halfvec(384)) halfvec_cosine_ops) WHERE model_id = {self._model}"
            )

        def build() -> None:
            with self._connect() as connection, suppress(IndexError):
                connection.execute("SET max_parallel_maintenance_workers = 1")
                while True:
                    statement = statements.popleft()
                    memory = "4GB" if "hnsw" in statement else "512MB"
                    connection.execute(f"SET maintenance_work_mem = '{memory}'".encode())
                    connection.execute(statement.encode())

        with ThreadPoolExecutor(WRITERS) as pool:
            for one in [pool.submit(build) for _ in range(WRITERS)]:
                one.result()

    def _add_account(self, connection: psycopg.Connection, owner: UUID) -> None:
        """Its tags and its collection."""
        connection.execute("INSERT INTO collections (id, owner_id, name) VALUES (%s, %s, 'Quay')", [new_id(), owner])
        connection.execute(
            """WITH new AS (INSERT INTO made_tags
               SELECT %(owner)s, n, made_id(n) FROM generate_series(0, %(tags)s - 1) AS n
               RETURNING id, number)
               INSERT INTO tags (id, owner_id, name)
               SELECT new.id, %(owner)s, w.word FROM new JOIN made_words w ON w.id = 2000 + number
               """,
            {"owner": owner, "tags": TAGS},
        )

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.info, autocommit=True, prepare_threshold=None)

    def _row(self, connection: psycopg.Connection, query: str, *values: object) -> tuple[Any, ...]:
        row = connection.execute(query.encode(), values).fetchone()
        if row is None:
            raise RuntimeError(f"no row: {query}")
        return row


def _copy_statement(
    connection: psycopg.Connection, table: str, condition: str, made: str, columns: Mapping[str, str]
) -> str:
    """Insert the pattern's rows again for each row in `made`, with some columns changed."""
    names = [
        name
        for (name,) in connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped "
            "AND attgenerated = '' ORDER BY attnum",
            [table],
        )
    ]
    unknown = set(columns) - set(names)
    if unknown:
        raise ValueError(f"{table} has no {unknown}")
    values = ", ".join(columns.get(name, f"t.{name}") for name in names)
    quoted = ", ".join(sql.Identifier(name).as_string(connection) for name in names)
    # The pattern's few rows are read once.
    where = condition if made == "made m" else condition.partition(" AND t.index")[0]
    source = f"(SELECT * FROM {table} t WHERE {where} OFFSET 0) AS t"
    join = f"JOIN {made} ON true" if made == "made m" else f"JOIN {made} ON t.index = m.index"
    return f"INSERT INTO {table} ({quoted}) OVERRIDING SYSTEM VALUE SELECT {values} FROM {source} {join}"


def _batches(ranges: Sequence[tuple[UUID, int]], first: int) -> Iterator[list[tuple[UUID, int, int]]]:
    """Ranges of documents, for so many documents at once."""
    batch, room, place = list[tuple[UUID, int, int]](), DOCUMENTS_AT_ONCE, first
    for owner, given in ranges:
        left = given
        while left:
            count = min(left, room)
            batch.append((owner, place, count))
            place, left, room = place + count, left - count, room - count
            if room == 0:
                yield batch
                batch, room = [], DOCUMENTS_AT_ONCE
    if batch:
        yield batch


def _escaped(statement: str) -> bytes:
    return statement.replace(" % ", " %% ").encode()


def _text(vector: np.ndarray) -> str:
    return str(vector.round(5).tolist())
