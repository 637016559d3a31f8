"""The nearest passages of many at once: all compared for those who have few, by an index for those who have many."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from octavo.database import Connection, Database, load_queries

QUERIES = load_queries("connections")
# Up to so many vectors an owner's are all fetched and multiplied; measured in docs/decisions/0018-connections.md.
MOST_EXACT = 20_000
BLOCK = 20_000
MOST_COUNTED = 1 << 30
# How far a walk through the index looks around, and how far where it did not even find the passage it was sent for.
EF_SEARCH, EF_AGAIN = 120, 400
AT_ONCE = 2
# What pgvector indexes as numbers of four bytes.
MOST_WHOLE_DIMENSIONS = 2000
ID = np.dtype("V16")
# Before its numbers, a vector says in four bytes how many there are.
HEAD = 4

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding model, as the database knows it."""

    id: int
    name: str
    dimensions: int

    @property
    def type(self) -> str:
        kind = "vector" if self.dimensions <= MOST_WHOLE_DIMENSIONS else "halfvec"
        return f"{kind}({self.dimensions})"

    @property
    def index(self) -> str:
        return f"chunk_embeddings_hnsw_{self.id}"


class Neighbour(NamedTuple):
    source: UUID
    target: UUID
    similarity: float


@dataclass(frozen=True, slots=True)
class Field:
    """Among whom neighbours are looked for."""

    owner: UUID
    model: Model
    left_out: list[UUID]

    def values(self) -> dict[str, Any]:
        return {"owner": self.owner, "model": self.model.id, "left_out": self.left_out}


async def find_neighbours(
    database: Database, field: Field, chunks: Sequence[UUID], most: int, least: float
) -> list[Neighbour]:
    """Up to `most` for each passage, from a similarity on, in no order."""
    async with database.transaction() as connection:
        if await is_small(connection, field) or not await has_index(connection, field.model):
            return await find_exactly(connection, field, chunks, most, least)

    async def walk(part: Sequence[UUID]) -> list[Neighbour]:
        async with database.transaction() as connection:
            return await find_by_index(connection, field, part, most, least)

    # Each walk through the index keeps one processor of the server busy.
    walks = await asyncio.gather(*(walk(chunks[number::AT_ONCE]) for number in range(AT_ONCE)))
    return [one for found in walks for one in found]


async def needs_index(connection: Connection, field: Field) -> bool:
    return not await is_small(connection, field) and not await has_index(connection, field.model)


async def is_small(connection: Connection, field: Field) -> bool:
    return await _count(connection, field, MOST_EXACT + 1) <= MOST_EXACT


async def _count(connection: Connection, field: Field, most: int) -> int:
    values = {"owner": field.owner, "model": field.model.id, "most": most}
    row = await (await connection.execute(QUERIES.owner_vectors, values)).fetchone()
    return int(row[0]) if row else 0


async def has_index(connection: Connection, model: Model) -> bool:
    row = await (await connection.execute(QUERIES.has_index, {"name": model.index})).fetchone()
    return row is not None and bool(row[0])


async def find_by_index(
    connection: Connection, field: Field, chunks: Sequence[UUID], most: int, least: float
) -> list[Neighbour]:
    """Where texts lie in clouds a walk may end in the wrong one, and then it does not meet the passage itself."""
    found = await _walk(connection, field, chunks, most, EF_SEARCH)
    arrived = {one.source for one in found if one.source == one.target}
    if astray := [chunk for chunk in chunks if chunk not in arrived]:
        found = [one for one in found if one.source in arrived]
        found += await _walk(connection, field, astray, most, EF_AGAIN)
    return without_themselves(found, most, least)


async def _walk(
    connection: Connection, field: Field, chunks: Sequence[UUID], most: int, ef_search: int
) -> list[Neighbour]:
    await connection.execute(QUERIES.look_far, {"ef": str(ef_search)})
    named = {b"{type}": field.model.type, b"{model}": str(field.model.id)}
    query = QUERIES.nearest
    for mark, text in named.items():
        query = query.replace(mark, text.encode())
    values = {"chunks": list(chunks), "owner": field.owner, "left_out": field.left_out, "most": most}
    cursor = await connection.execute(query, values, prepare=False)
    return [Neighbour(*row) for row in await cursor.fetchall()]


def without_themselves(found: Sequence[Neighbour], most: int, least: float) -> list[Neighbour]:
    """The best `most` of each."""
    taken = Counter[UUID]()
    kept: list[Neighbour] = []
    for one in sorted(found, key=lambda one: -one.similarity):
        if one.source == one.target or one.similarity < least or taken[one.source] == most:
            continue
        taken[one.source] += 1
        kept.append(one)
    return kept


async def find_exactly(
    connection: Connection, field: Field, chunks: Sequence[UUID], most: int, least: float
) -> list[Neighbour]:
    """Vectors come in blocks, so that nobody's number of passages decides how much memory it takes."""
    values = {"chunks": list(chunks), "model": field.model.id}
    sources, wanted = await _fetch(connection, QUERIES.vectors_of, values)
    best = Best(len(sources), most)
    blocks = -(-await _count(connection, field, MOST_COUNTED) // BLOCK)
    for block in range(blocks):
        among = field.values() | {"blocks": blocks, "block": block}
        targets, vectors = await _fetch(connection, QUERIES.vectors_to_compare, among)
        await asyncio.to_thread(best.take, wanted, vectors, targets)
    return best.as_neighbours(sources, least)


async def _fetch(connection: Connection, query: bytes, values: dict[str, Any]) -> tuple[NDArray[np.void], Matrix]:
    """Ids and vectors, which are of length one: each all in one value, because a row costs more than what is in it."""
    rows = await (await connection.execute(query, values, binary=True)).fetchall()
    count, ids, vectors = rows[0]
    if not count:
        return np.empty(0, dtype=ID), np.empty((0, 1), dtype=np.float32)
    sent: NDArray[np.uint8] = np.frombuffer(vectors, dtype=np.uint8).reshape(count, -1)
    return np.frombuffer(ids, dtype=ID), np.ascontiguousarray(sent[:, HEAD:]).view(">f4").astype(np.float32)


class Best:
    """The best of each passage, over all blocks that were taken."""

    def __init__(self, passages: int, most: int) -> None:
        self._most = most
        self._scores: NDArray[np.float32] = np.empty((passages, 0), dtype=np.float32)
        self._targets: NDArray[np.void] = np.empty((passages, 0), dtype=ID)

    def take(self, wanted: Matrix, block: Matrix, targets: NDArray[np.void]) -> None:
        if not len(targets):
            return
        scores, places = _top(wanted @ block.T, self._most)
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
