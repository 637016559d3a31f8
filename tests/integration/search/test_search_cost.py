"""What a search costs does not depend on how common its words are, and an offline answer takes under a second.

Both are measured in the long forms. The short forms count rows, and check what is answered.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from uuid import UUID

import pytest

from octavo.ai.calls import Caller
from octavo.ai.gateway_setup import open_local_gateway
from octavo.core.types import new_id
from octavo.database import Database, fetch_rows
from octavo.language import DIMENSIONS, NAME
from octavo.search import chunk_search, query_terms, search
from octavo.search.ask import answer, find_sources
from octavo.search.chunk_search import as_text
from octavo.search.query_terms import count_terms

OWNER = b"INSERT INTO owners (id, kind) VALUES (%s, 'user')"
DOCUMENTS = b"""INSERT INTO documents
    (id, owner_id, process_id, status, title, filename, content_type, source_type, sha256, bytes, revision,
     last_revision, text_ready, language)
SELECT gen_random_uuid(), %s, gen_random_uuid(), 'completed', 'Log ' || n, 'log.md', 'text/markdown', 'markdown',
       sha256('log'), 1, 1, 1, true, 'en' FROM generate_series(1, %s) AS n"""
# Every chunk mentions the harbour, half of them three times; one in twenty a lighthouse. No two share a keel.
CHUNKS = b"""INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, word_count)
SELECT gen_random_uuid(), d.id, 1, n, concat_ws(
    ' ', 'The harbour', CASE WHEN n %% 2 = 0 THEN 'of the harbour, harbour' END,
    CASE WHEN n %% 20 = 0 THEN 'with a lighthouse' END, 'and the keel' || substr(d.title, 5) || 'x' || n), 0, 9, 9
FROM documents d CROSS JOIN generate_series(0, %s) AS n WHERE d.owner_id = %s"""
PLACES = (
    "Tallinn",
    "Turku",
    "Bergen",
    "Esbjerg",
    "Gdansk",
    "Rostock",
    "Riga",
    "Visby",
    "Malmo",
    "Oulu",
    "Pori",
    "Narva",
)
SENTENCES = (
    "The old quay of {} was built of oak and granite before the railway came.",
    "Surveyors of {} measured a depth of seven metres of water at the quay.",
    "In winter the ferries of {} wait until the ice has been broken.",
    "A crane from the shipyard of {} unloads timber, salt and coal.",
    "The customs house of {} keeps a register of every vessel.",
    "Fishermen of {} mend their nets on the northern pier.",
    "The lighthouse keeper of {} writes down the wind each evening.",
    "Merchants in {} ask for a second warehouse beside the rails.",
    "Children of {} learn to swim behind the breakwater.",
    "The council of {} has voted for a new bridge twice.",
    "Pilots near {} know the currents better than any chart.",
    "Storms took the roof of the market hall of {} in autumn.",
)
ESSAYS = b"""INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, word_count)
SELECT gen_random_uuid(), d.id, 1, 0, t.text, 0, length(t.text), 9
FROM unnest(%s::text[]) WITH ORDINALITY AS t (text, n) JOIN documents d ON d.title = 'Log ' || n
WHERE d.owner_id = %s"""
VECTORS = b"""INSERT INTO chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector)
SELECT embedding_model(%s, %s), c.id, d.owner_id, d.id, v.vector::vector
FROM unnest(%s::text[]) WITH ORDINALITY AS v (vector, n)
JOIN documents d ON d.title = 'Log ' || n JOIN chunks c ON c.document_id = d.id
WHERE d.owner_id = %s"""
FETCHED = b"""SELECT (idx_tup_fetch + seq_tup_read)::integer AS rows
FROM pg_stat_xact_user_tables WHERE relname = 'chunk_words'"""


async def add_chunks(database: Database, documents: int, each: int) -> UUID:
    """Documents of an owner, and the statistics that autovacuum makes of them."""
    owner = new_id()
    async with database.transaction() as connection:
        await connection.execute(OWNER, [owner])
        await connection.execute(DOCUMENTS, [owner, documents])
        await connection.execute(CHUNKS, [each - 1, owner])
        await connection.execute(b"ANALYZE")
    return owner


async def rows_read(database: Database, owner: UUID, query: str) -> tuple[int, int]:
    """How many rows of words a search reads, and how many hits it has."""
    async with database.transaction() as connection:
        (before,) = await fetch_rows(connection, FETCHED, {})
        hits = await search(connection, owner, query, mode="text")
        (after,) = await fetch_rows(connection, FETCHED, {})
    return after["rows"] - before["rows"], len(hits)


async def test_a_common_word_reads_no_more_chunks_than_its_limits_allow(
    database_info: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_terms, "ESTIMATED_FROM", 1000)
    monkeypatch.setattr(query_terms, "SAMPLE", 100)
    monkeypatch.setattr(chunk_search, "MOST_BROWSED", 300)
    monkeypatch.setattr(chunk_search, "MOST_SCORED", 100)
    async with Database(database_info) as database:
        owner = await add_chunks(database, 50, 60)
        rare, found = await rows_read(database, owner, "keel7x3")
        common, hits = await rows_read(database, owner, "harbour")
        assert (found, hits) == (1, 20)
        assert rare <= 2 * 100 + 5, "a sample: its rows and their words"
        assert common <= 2 * 100 + 300 + 100, "a sample, the candidates and those that are scored"
        async with database.transaction() as connection:
            terms = await count_terms(connection, owner, ["harbour", "lighthouse"])
        harbour, lighthouse = (one for one in terms if one.chunks)
        assert (harbour.found_in, harbour.often_in) == (3000, pytest.approx(1500, rel=0.5)), "of a sample of 100"
        assert lighthouse.found_in == 150, "what is not common is counted"


@pytest.mark.long
async def test_a_common_word_costs_at_most_twice_a_rare_one(database_info: str) -> None:
    """Processor time, of this process and of the database, the first time that each word is looked for."""
    async with Database(database_info, connections=1) as database:
        owner = await add_chunks(database, 4000, 50)
        async with database.connection() as connection:
            backend = connection.info.backend_pid
        costs: dict[str, list[float]] = {"keel7x3": [], "harbour": [], "lighthouse": []}
        for _ in range(9):
            for word, took in costs.items():
                query_terms.forget_counts()
                start = processor_time(backend)
                async with database.transaction() as connection:
                    await search(connection, owner, word, mode="text")
                took.append(processor_time(backend) - start)
    rare = median(costs["keel7x3"])
    assert median(costs["harbour"]) <= 2 * rare
    assert median(costs["lighthouse"]) <= 2 * rare


async def test_an_offline_answer_is_about_the_place_that_was_asked_about(database_info: str) -> None:
    await answer_questions(database_info, PLACES[:3])


@pytest.mark.long
async def test_an_offline_answer_takes_less_than_a_second_of_processor_time(database_info: str) -> None:
    costs = await answer_questions(database_info, PLACES)
    assert median(costs[1:]) <= 1, "the first question loads the models"


async def answer_questions(database_info: str, places: Sequence[str]) -> list[float]:
    """The processor time, of this process and of the database, of each search and its answer."""
    gateway, costs = open_local_gateway(), list[float]()
    async with Database(database_info, connections=1) as database:
        owner = await add_essays(database, places)
        async with database.connection() as connection:
            backend = connection.info.backend_pid
        for place in places:
            question = f"How deep is the water at the quay of {place}, and who measured it?"
            start = processor_time(backend)
            answered = await answer(gateway, await find_sources(database, gateway, owner, question))
            costs.append(processor_time(backend) - start)
            assert place in answered.statements[0].text
    return costs


async def add_essays(database: Database, places: Sequence[str]) -> UUID:
    """A document of a dozen sentences for each place, with vectors."""
    owner, texts = new_id(), [" ".join(one.format(place) for one in SENTENCES) for place in places]
    vectors = (await open_local_gateway().embed(texts, Caller(owner))).output.vectors
    async with database.transaction() as connection:
        await connection.execute(OWNER, [owner])
        await connection.execute(DOCUMENTS, [owner, len(texts)])
        await connection.execute(ESSAYS, [texts, owner])
        await connection.execute(VECTORS, [NAME, DIMENSIONS, [as_text(one) for one in vectors], owner])
    return owner


def processor_time(backend: int) -> float:
    spent = int(Path(f"/proc/{backend}/schedstat").read_text().split()[0])
    return time.process_time() + spent / 1e9
