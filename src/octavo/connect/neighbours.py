"""Nearest-neighbour search over chunk vectors: exact for accounts with few vectors, otherwise with an HNSW index.

Finds chunks with similar content, by the cosine similarity of their vectors.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import class_row

from octavo.connect.evidence import ChunkPair, DetectedConnection, SentenceCache, SharedQuotes, shared_quotes
from octavo.core.errors import NotFound
from octavo.database import Connection, Database, load_queries
from octavo.language.embedding import NAME as LOCAL_MODEL
from octavo.records.search import Engine

QUERIES = load_queries("connections")
# Up to this many vectors the search is exact. Measured in docs/decisions/0018-connections.md.
MOST_EXACT = 20_000
BLOCK = 20_000
MOST_COUNTED = 1 << 30
# hnsw.ef_search of the first search, and of the second one for chunks that are not in their own results.
EF_SEARCH, EF_RETRY = 120, 400
PARALLEL_SEARCHES = 2
ID = np.dtype("V16")
# vector_send puts four bytes (dimensions and padding) before the numbers.
HEADER = 4

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """An embedding model, as it is stored in the database."""

    id: int
    name: str
    dimensions: int

    @property
    def index(self) -> str:
        """The name of the index.

        The index stores vectors in half precision, which halves its size without changing the neighbours that are
        found.
        """
        return f"chunk_embeddings_half_{self.id}"

    @property
    def earlier_index(self) -> str:
        """The name of the index that earlier versions built. It is used until the current index is built."""
        return f"chunk_embeddings_hnsw_{self.id}"


class Neighbour(NamedTuple):
    source: UUID
    target: UUID
    similarity: float


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The vectors to search: all vectors of one account and model, except those of the excluded documents."""

    owner: UUID
    model: EmbeddingModel
    excluded: list[UUID]

    def values(self) -> dict[str, Any]:
        return {"owner": self.owner, "model": self.model.id, "excluded": self.excluded}


async def find_neighbours(
    database: Database, scope: SearchScope, chunks: Sequence[UUID], most: int, least: float
) -> list[Neighbour]:
    """For each chunk, find up to `most` neighbours with a similarity of at least `least`, in no particular order."""
    async with database.transaction() as connection:
        counted = await _count(connection, scope, MOST_EXACT + 1)
        if counted <= MOST_EXACT:
            return await find_exactly(connection, scope, chunks, most, least, counted)
        indexed = await indexed_type(connection, scope.model)
        if indexed is None:
            counted = await _count(connection, scope, MOST_COUNTED)
            return await find_exactly(connection, scope, chunks, most, least, counted)

    async def search(part: Sequence[UUID]) -> list[Neighbour]:
        async with database.transaction() as connection:
            return await find_by_index(connection, scope, part, most, least, indexed)

    # Each index search keeps one core of the database server busy.
    results = await asyncio.gather(*(search(chunks[number::PARALLEL_SEARCHES]) for number in range(PARALLEL_SEARCHES)))
    return [one for found in results for one in found]


async def needs_index(connection: Connection, scope: SearchScope) -> bool:
    return not await is_small(connection, scope) and await indexed_type(connection, scope.model) is None


async def is_small(connection: Connection, scope: SearchScope) -> bool:
    return await _count(connection, scope, MOST_EXACT + 1) <= MOST_EXACT


async def _count(connection: Connection, scope: SearchScope, most: int) -> int:
    values = {"owner": scope.owner, "model": scope.model.id, "most": most}
    row = await (await connection.execute(QUERIES.owner_vectors, values)).fetchone()
    return int(row[0]) if row else 0


async def indexed_type(connection: Connection, model: EmbeddingModel) -> str | None:
    """Return the type of the indexed vectors, such as `halfvec(384)`. Returns None if there is no index."""
    for index, kind in ((model.index, "halfvec"), (model.earlier_index, "vector")):
        row = await (await connection.execute(QUERIES.has_index, {"name": index})).fetchone()
        if row and row[0]:
            return f"{kind}({model.dimensions})"
    return None


async def find_by_index(
    connection: Connection, scope: SearchScope, chunks: Sequence[UUID], most: int, least: float, indexed: str
) -> list[Neighbour]:
    """Find neighbours with the vector index.

    A search in the index can miss the nearest vectors. If the result for a chunk does not even include the chunk
    itself, the search is repeated with a wider range.
    """
    found = await _search_index(connection, scope, chunks, most, EF_SEARCH, indexed)
    reliable = {one.source for one in found if one.source == one.target}
    if missed := [chunk for chunk in chunks if chunk not in reliable]:
        found = [one for one in found if one.source in reliable]
        found += await _search_index(connection, scope, missed, most, EF_RETRY, indexed)
    return best_neighbours(found, most, least)


async def _search_index(
    connection: Connection, scope: SearchScope, chunks: Sequence[UUID], most: int, ef_search: int, indexed: str
) -> list[Neighbour]:
    await connection.execute(QUERIES.set_index_search_width, {"ef": str(ef_search)})
    placeholders = {b"{type}": indexed, b"{model}": str(scope.model.id)}
    query = QUERIES.nearest
    for mark, text in placeholders.items():
        query = query.replace(mark, text.encode())
    values = {"chunks": list(chunks), "owner": scope.owner, "excluded": scope.excluded, "most": most}
    cursor = await connection.execute(query, values, prepare=False)
    return [Neighbour(*row) for row in await cursor.fetchall()]


def best_neighbours(found: Sequence[Neighbour], most: int, least: float) -> list[Neighbour]:
    """Return up to `most` nearest neighbours of each chunk, with a similarity of at least `least`.

    A chunk is not its own neighbour.
    """
    taken = Counter[UUID]()
    kept: list[Neighbour] = []
    for one in sorted(found, key=lambda one: -one.similarity):
        if one.source == one.target or one.similarity < least or taken[one.source] == most:
            continue
        taken[one.source] += 1
        kept.append(one)
    return kept


async def find_exactly(
    connection: Connection, scope: SearchScope, chunks: Sequence[UUID], most: int, least: float, counted: int
) -> list[Neighbour]:
    """Compare the chunks with every vector. `counted` is the number of vectors.

    Vectors are fetched in blocks, so that memory use does not grow with the number of vectors.
    """
    values = {"chunks": list(chunks), "model": scope.model.id}
    sources, source_vectors = await _fetch(connection, QUERIES.vectors_of, values)
    best = TopNeighbours(len(sources), most)
    blocks = -(-counted // BLOCK)
    for block in range(blocks):
        among = scope.values() | {"blocks": blocks, "block": block}
        targets, vectors = await _fetch(connection, QUERIES.vectors_to_compare, among)
        await asyncio.to_thread(best.add, source_vectors, vectors, targets)
    return best.as_neighbours(sources, least)


async def _fetch(connection: Connection, query: bytes, values: dict[str, Any]) -> tuple[NDArray[np.void], Matrix]:
    """Fetch ids and unit vectors.

    All ids are fetched as one value and all vectors as another, because fetching one row per vector would be slower.
    """
    rows = await (await connection.execute(query, values, binary=True)).fetchall()
    count, ids, vectors = rows[0]
    if not count:
        return np.empty(0, dtype=ID), np.empty((0, 1), dtype=np.float32)
    sent: NDArray[np.uint8] = np.frombuffer(vectors, dtype=np.uint8).reshape(count, -1)
    return np.frombuffer(ids, dtype=ID), np.ascontiguousarray(sent[:, HEADER:]).view(">f4").astype(np.float32)


class TopNeighbours:
    """Collects the nearest neighbours of each source chunk while vectors are compared block by block."""

    def __init__(self, sources: int, most: int) -> None:
        self._most = most
        self._scores: NDArray[np.float32] = np.empty((sources, 0), dtype=np.float32)
        self._targets: NDArray[np.void] = np.empty((sources, 0), dtype=ID)

    def add(self, sources: Matrix, block: Matrix, targets: NDArray[np.void]) -> None:
        if not len(targets):
            return
        scores, places = _top(sources @ block.T, self._most)
        self._scores, chosen = _top(np.hstack([self._scores, scores]), self._most)
        self._targets = np.take_along_axis(np.hstack([self._targets, targets[places]]), chosen, axis=1)

    def as_neighbours(self, sources: NDArray[np.void], least: float) -> list[Neighbour]:
        rows = zip(sources.tolist(), self._targets.tolist(), self._scores.tolist(), strict=True)
        return [
            Neighbour(one, UUID(bytes=target), score)
            for source, targets, scores in rows
            for one in (UUID(bytes=source),)
            for target, score in zip(targets, scores, strict=True)
            if score >= least
        ]


def _top(scores: NDArray[np.float32], most: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    if scores.shape[1] <= most:
        return scores, np.tile(np.arange(scores.shape[1], dtype=np.int64), (len(scores), 1))
    chosen = np.argpartition(scores, -most, axis=1)[:, -most:]
    return np.take_along_axis(scores, chosen, axis=1), chosen


async def build_index(database: Database, model_id: int, memory_bytes: int) -> str:
    """Build the index for a model's vectors, unless it exists. Returns the name of the index.

    CREATE INDEX CONCURRENTLY cannot run in a transaction and may take an hour, so it gets a separate database
    connection. An invalid index that a killed attempt left behind is dropped first, and the index that earlier versions
    built is dropped last.
    """
    connection, keeps_session = await database.connect_directly()
    try:
        async with connection.cursor(row_factory=class_row(EmbeddingModel)) as cursor:
            await cursor.execute(QUERIES.model, {"model": model_id})
            model = await cursor.fetchone()
        if model is None:
            raise NotFound(f"There is no embedding model {model_id}.")
        if (await indexed_type(connection, model) or "vector").startswith("vector"):
            await connection.execute(_fill_in(QUERIES.drop_index, model))
            if keeps_session:  # otherwise, the setting of the server applies
                await connection.execute(QUERIES.raise_maintenance_memory, {"memory": f"{memory_bytes >> 10}kB"})
            await connection.execute(_fill_in(QUERIES.create_index, model))
        await connection.execute(_fill_in(QUERIES.drop_earlier_index, model))
        return model.index
    finally:
        await connection.close()


def _fill_in(query: bytes, model: EmbeddingModel) -> bytes:
    """Insert a model's index name and types into a query, because they cannot be query parameters.

    They never contain user input.
    """
    parts = {"index": model.index, "earlier": model.earlier_index, "model": str(model.id)}
    parts["type"] = f"halfvec({model.dimensions})"
    for name, text in parts.items():
        query = query.replace(f"{{{name}}}".encode(), text.encode())
    return query


# The maximum number of connections per source chunk.
MOST_KEPT = 10
MOST_NAMED = 3
# Two sentences have a similar wording if the words they share have at least this share of the weight.
SIMILAR_WORDING = 0.5


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits for the cosine similarity of two chunks. They depend on the embedding model.

    - `similar`: Chunks with at least this similarity count as similar.
    - `related`: Chunks with at least this similarity are about the same subject and may contradict each other.
    - `apart`: Chunks with a lower similarity are about different subjects, so that shared concepts may be a bridge.
    - `same_domain`: Documents whose mean vectors have at least this similarity are about the same subject.
    """

    similar: float
    related: float
    apart: float
    same_domain: float


# Measured in docs/decisions/0018-connections.md. Typical similarities differ between models.
BY_MODEL = {LOCAL_MODEL: Thresholds(similar=0.65, related=0.35, apart=0.5, same_domain=0.55)}
# For models that were not measured: higher, because missing connections are better than many wrong ones.
UNKNOWN = Thresholds(similar=0.75, related=0.5, apart=0.6, same_domain=0.65)


def thresholds_of(model: str) -> Thresholds:
    return BY_MODEL.get(model, UNKNOWN)


def find_similar(pairs: Iterable[ChunkPair], threshold: float, sentences: SentenceCache) -> list[DetectedConnection]:
    """Connect each source chunk with the chunks that are most similar to it.

    Chunks without a sentence, such as tables of numbers, are skipped, because their vectors are always similar.
    """
    kept: Counter[UUID] = Counter()
    connections: list[DetectedConnection] = []
    for pair in sorted(pairs, key=lambda pair: (-pair.similarity, pair.source.id, pair.target.id)):
        if pair.similarity < threshold:
            break
        has_sentences = sentences.sentences(pair.source) and sentences.sentences(pair.target)
        if has_sentences and kept[pair.source.id] < MOST_KEPT:
            kept[pair.source.id] += 1
            connections.append(_connect(pair, sentences))
    return connections


def _connect(pair: ChunkPair, sentences: SentenceCache) -> DetectedConnection:
    quotes = shared_quotes(pair.source, pair.target, sentences)
    strength = round(min(max(pair.similarity, 0.0), 1.0), 3)
    return DetectedConnection(Engine.SIMILARITY, pair, strength, quotes.mine, quotes.theirs, _what_is_similar(quotes))


def _what_is_similar(quotes: SharedQuotes) -> str:
    """Describe what two quotes have in common: numbers, wording, or only their subject."""
    if quotes.figures:
        return f"Same numbers: {', '.join(quotes.figures[:MOST_NAMED])}."
    return "Similar wording." if quotes.overlap >= SIMILAR_WORDING else "Similar subject."


def shared_concepts(pair: ChunkPair) -> list[str]:
    """Return the concepts that both chunks have, the most important first."""
    theirs = {concept.lower(): weight for concept, weight in pair.target.concepts.items()}
    mine = {concept: weight for concept, weight in pair.source.concepts.items() if concept.lower() in theirs}
    return sorted(mine, key=lambda concept: (-mine[concept] - theirs[concept.lower()], concept))
