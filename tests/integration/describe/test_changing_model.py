"""Changing the embedding model: nothing is lost to search meanwhile, and no document has half of each model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.ai.gateway_setup import open_gateway
from octavo.connect import neighbours
from octavo.core.settings import Settings
from octavo.core.types import new_id
from octavo.describe import embedding
from octavo.describe.embedding import embedding_model, embedding_progress, reembed, renew_vectors
from octavo.jobs.kinds import run_now, sync_schedules
from octavo.language import NAME
from octavo.ops.doctor import Installation, WrongState, vectors
from octavo.pipeline import known_schedules
from octavo.search import find
from tests.support.fake_ai import FakeGemini
from tests.support.fake_ai.server import SECRET, Trouble
from tests.support.library import Desk
from tests.support.processes import PATIENCE_SECONDS
from tests.support.processing import OpenSandbox
from tests.support.working import add, finished, working

BOOK = "\n\n".join(
    f"## Chapter {number}\n\n" + f"The water table of bog number {number} fell by {number} centimetres in summer. " * 30
    for number in range(1, 8)
)
BREAD = "Feed the starter with flour and water, let the dough rest overnight, and bake the loaf with steam."
IN_USE = "SELECT m.name FROM documents d JOIN embedding_models m ON m.id = d.embedding_model_id WHERE d.id = %s"

LOADED = """INSERT INTO documents
    (id, owner_id, process_id, status, title, filename, content_type, source_type, sha256, bytes, revision,
     last_revision, text_ready)
VALUES (%s, %s, gen_random_uuid(), 'completed', '', 'a.md', 'text/markdown', 'markdown', sha256('a'), 1, 1, 1, true)"""
LOADED_CHUNKS = """WITH made AS (
    INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, word_count)
    SELECT gen_random_uuid(), d.id, 1, n, 'bog ' || n, 0, 5, 2
    FROM documents d CROSS JOIN generate_series((SELECT count(*) FROM chunks), %s - 1) AS n RETURNING id, document_id)
INSERT INTO chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector)
SELECT embedding_model(%s, 384), m.id, d.owner_id, d.id, array_fill(0.1::real, ARRAY[384])::vector
FROM made m JOIN documents d ON d.id = m.document_id"""
DIFFERENT_VECTORS = """UPDATE chunk_embeddings e SET vector = (
    SELECT l2_normalize(array_agg(random() - 0.5)::real[]::vector)
    FROM generate_series(length(e.chunk_id::text), length(e.chunk_id::text) + 383))"""
VECTORS_OF = "SELECT m.name, count(*) FROM chunk_embeddings e JOIN embedding_models m ON m.id = e.model_id"
INDEXES = "SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname ~ '_half_' AND i.indisvalid"


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    with FakeGemini() as server:
        yield server


@pytest.fixture
def sandbox() -> OpenSandbox:
    return OpenSandbox()


def with_gemini(gemini: FakeGemini) -> dict[str, Any]:
    return {"providers": "gemini,local", "gemini_key": SECRET, "gemini_url": gemini.url, "task_models": TASKS}


TASKS = "classify_document=local,enrich_chunks=local"


async def until_ended(desk: Desk, kind: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        active = "SELECT 1 FROM jobs WHERE kind = %s AND status IN ('queued', 'processing')"
        while await desk.rows(active, kind):  # noqa: ASYNC110 - a worker ends it
            await asyncio.sleep(0.02)


async def test_documents_are_found_by_their_earlier_vectors_until_all_new_ones_exist(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "CHUNKS_PER_CALL", 3)
    book = await add(desk, owner, "book.md", BOOK.encode())
    bread = await add(desk, owner, "bread.txt", BREAD.encode())
    async with working(desk, sandbox, folder):
        for document in (book, bread):
            await finished(desk, owner, document)
    settings = Settings.model_validate(with_gemini(gemini))
    label = embedding_model(settings)
    async with aclosing(open_gateway(settings, desk.database)) as gateway:

        async def found(query: str) -> list[UUID]:
            page = await find(desk.database, gateway, owner, query, mode="semantic")
            return list(dict.fromkeys(hit.document_id for hit in page.items))

        assert await found("baking a loaf at home") == [bread]
        # The renewal of the book fails half way.
        gemini.script.extend([None, Trouble.BAD_KEY])
        async with desk.database.transaction() as connection:
            assert await renew_vectors(connection, settings, most=1) == 1
        async with working(desk, sandbox, folder, gateway=gateway, **with_gemini(gemini)):
            await until_ended(desk, "embed_document")
        assert await desk.one("SELECT priority FROM jobs WHERE kind = 'embed_document'") == 18
        half = "SELECT count(*) FROM chunk_embeddings e JOIN embedding_models m ON m.id = e.model_id WHERE m.name = %s"
        assert await desk.one(half, label) == 3
        assert (await desk.one(IN_USE, book)) == NAME
        assert (await found("level of groundwater in peat"))[0] == book
        # Later both are renewed, and are found by the new model only.
        async with desk.database.transaction() as connection:
            assert await renew_vectors(connection, settings) == 1, "the bread; the book failed today"
            assert await reembed(connection, owner, settings) == 1, "the book, because a person asked"
            assert await renew_vectors(connection, settings) == 0
            progress = await embedding_progress(connection, owner, settings)
        assert (progress.model, progress.documents, progress.done) == (label, 2, 0)
        async with working(desk, sandbox, folder, gateway=gateway, **with_gemini(gemini)):
            await until_ended(desk, "embed_document")
            await until_ended(desk, "embed_tags")
        assert {await desk.one(IN_USE, one) for one in (book, bread)} == {label}
        assert set(await found("anything")) == {book, bread}
        tags = "SELECT 1 FROM document_tags dt WHERE NOT EXISTS (SELECT FROM tag_embeddings e JOIN embedding_models m"
        assert await desk.rows(f"{tags} ON m.id = e.model_id WHERE e.tag_id = dt.tag_id AND m.name = %s)", label) == []
        async with desk.database.connection() as connection:
            assert (await embedding_progress(connection, owner, settings)).done == 2


async def test_changing_back_costs_nothing_and_is_done_by_the_schedule(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path, gemini: FakeGemini
) -> None:
    settings = Settings.model_validate(with_gemini(gemini))
    bread = await add(desk, owner, "bread.txt", BREAD.encode())
    async with (
        aclosing(open_gateway(settings, desk.database)) as gateway,
        working(desk, sandbox, folder, gateway=gateway, **with_gemini(gemini)),
    ):
        await finished(desk, owner, bread)
    assert await desk.one(IN_USE, bread) == embedding_model(settings)
    asked = len(gemini.requests)
    async with working(desk, sandbox, folder):
        for _ in range(2):
            await run_renewal(desk)
            await until_ended(desk, "embed_document")
    assert await desk.one(IN_USE, bread) == NAME
    assert len(gemini.requests) == asked
    assert await desk.one("SELECT count(*) FROM jobs WHERE kind = 'embed_document'") == 1


async def test_vectors_of_an_earlier_model_are_deleted_when_all_documents_were_compared_by_the_new_one(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "DELETED_PER_BATCH", 2)
    book = await add(desk, owner, "book.md", BOOK.encode())
    bread = await add(desk, owner, "bread.txt", BREAD.encode())
    async with working(desk, sandbox, folder):
        for document in (book, bread):
            await finished(desk, owner, document)
    settings = Settings.model_validate(with_gemini(gemini))
    label, of_model = embedding_model(settings), f"{VECTORS_OF} GROUP BY 1"
    before = {row["name"]: row["count"] for row in await desk.rows(of_model)}
    gemini.script.append(Trouble.BAD_KEY)
    async with aclosing(open_gateway(settings, desk.database)) as gateway:
        async with working(desk, sandbox, folder, gateway=gateway, **with_gemini(gemini)):
            for _ in range(2):  # one of the two documents fails today
                await run_renewal(desk)
                await until_ended(desk, "embed_document")
                await until_ended(desk, "detect_connections")
            kept = {row["name"]: row["count"] for row in await desk.rows(of_model)}
            assert kept[NAME] == before[NAME], "the other document is still searched by the earlier model"
            async with desk.database.transaction() as connection:
                assert await reembed(connection, owner, settings) == 1
            await until_ended(desk, "embed_document")
            await until_ended(desk, "detect_connections")
            await run_renewal(desk)
            assert {row["name"]: row["count"] for row in await desk.rows(of_model)} == {label: before[NAME]}
            assert not await desk.rows("SELECT FROM replaced_models")
        found = await find(desk.database, gateway, owner, "level of groundwater in peat", mode="semantic")
    assert found.items[0].document_id == book


async def run_renewal(desk: Desk) -> None:
    """Run the schedule now, as a worker does every five minutes."""
    await desk.rows("INSERT INTO owners (id, kind) SELECT %s, 'local' ON CONFLICT DO NOTHING", new_id())
    async with desk.database.transaction() as connection:
        await sync_schedules(connection, known_schedules())
        await run_now(connection, "renew_vectors")
    await until_ended(desk, "renew_vectors")


async def test_an_index_is_built_for_vectors_that_no_comparison_has_seen(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restore, a bulk load, or the merge of a visitor; and again if the index is lost or its job failed."""
    monkeypatch.setattr(neighbours, "MOST_EXACT", 5)
    await desk.rows(LOADED, new_id(), owner)
    await desk.rows(LOADED_CHUNKS, 5, NAME)
    async with working(desk, sandbox, folder):
        await run_renewal(desk)
        assert not await desk.rows(INDEXES), "five vectors are compared one by one"
        await desk.rows(LOADED_CHUNKS, 6, NAME)
        await run_renewal(desk)
        await until_ended(desk, "index_vectors")
        assert len(await desk.rows(INDEXES)) == 1
        assert await desk.one("SELECT count(*) FROM jobs WHERE kind = 'detect_connections'") == 0
        await run_renewal(desk)
        assert await desk.one("SELECT count(*) FROM jobs WHERE kind = 'index_vectors'") == 1


async def test_the_doctor_finds_vectors_of_an_earlier_model(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path, gemini: FakeGemini
) -> None:
    bread = await add(desk, owner, "bread.txt", BREAD.encode())
    async with working(desk, sandbox, folder):
        await finished(desk, owner, bread)
    settings = Settings.model_validate(with_gemini(gemini))
    async with desk.database.connection() as connection:
        assert "1 still have vectors from an earlier model" in await vectors(Installation(settings, connection))
        assert "earlier" not in await vectors(Installation(Settings(data_dir=folder), connection))
    await desk.rows("DELETE FROM chunk_embeddings WHERE document_id = %s", bread)
    async with desk.database.connection() as connection:
        with pytest.raises(WrongState, match="incomplete vectors"):
            await vectors(Installation(settings, connection))


async def test_the_index_of_an_earlier_version_is_used_until_the_one_with_half_precision_is_built(
    desk: Desk, owner: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "MOST_EXACT", 5)
    await desk.rows(LOADED, new_id(), owner)
    await desk.rows(LOADED_CHUNKS, 40, NAME)
    await desk.rows(DIFFERENT_VECTORS)
    (row,) = await desk.rows("SELECT id, name, dimensions FROM embedding_models")
    model = neighbours.EmbeddingModel(**row)
    chunks = [one["chunk_id"] for one in await desk.rows("SELECT chunk_id FROM chunk_embeddings LIMIT 3")]
    scope = neighbours.SearchScope(owner, model, [])
    exact = await neighbours.find_neighbours(desk.database, scope, chunks, 6, -1.0)  # with the chunk itself
    async with desk.database.connection() as connection:
        assert await neighbours.indexed_type(connection, model) is None
        expression = f"((vector::vector({model.dimensions})) vector_cosine_ops) WHERE model_id = {model.id}"
        await connection.execute(
            f"CREATE INDEX {model.earlier_index} ON chunk_embeddings USING hnsw {expression}".encode()
        )
        assert await neighbours.indexed_type(connection, model) == f"vector({model.dimensions})"
    earlier = await neighbours.find_neighbours(desk.database, scope, chunks, 5, -1.0)
    assert await neighbours.build_index(desk.database, model.id, 64 << 20) == model.index
    async with desk.database.connection() as connection:
        assert await neighbours.indexed_type(connection, model) == f"halfvec({model.dimensions})"
    later = await neighbours.find_neighbours(desk.database, scope, chunks, 5, -1.0)
    assert await desk.one("SELECT to_regclass(%s)", model.earlier_index) is None
    best = {(one.source, one.target): one.similarity for one in exact if one.source != one.target}
    for found in (earlier, later):
        assert {(one.source, one.target): one.similarity for one in found} == pytest.approx(best, abs=0.002)
