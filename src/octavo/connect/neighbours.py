"""The nearest passages of many at once: all compared for those who have few, by an index for those who have many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from octavo.database import Connection, load_queries

QUERIES = load_queries("connections")
# Up to so many vectors an owner's are all fetched and multiplied; measured in docs/decisions/0018-connections.md.
MOST_EXACT = 20_000
BLOCK = 20_000
EF_SEARCH = 120
# What pgvector indexes as numbers of four bytes.
MOST_WHOLE_DIMENSIONS = 2000
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


@dataclass(frozen=True, slots=True)
class Neighbour:
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


async def find_neighbours(connection: Connection, field: Field, chunks: Sequence[UUID], most: int) -> list[Neighbour]:
    """Inside a transaction. Up to `most` for each passage, in no order."""
    if await _is_small(connection, field) or not await has_index(connection, field.model):
        return await find_exactly(connection, field, chunks, most)
    return await find_by_index(connection, field, chunks, most)


async def needs_index(connection: Connection, field: Field) -> bool:
    return not await _is_small(connection, field) and not await has_index(connection, field.model)


async def _is_small(connection: Connection, field: Field) -> bool:
    values = {"owner": field.owner, "model": field.model.id, "most": MOST_EXACT + 1}
    row = await (await connection.execute(QUERIES.owner_vectors, values)).fetchone()
    return row is None or row[0] <= MOST_EXACT


async def has_index(connection: Connection, model: Model) -> bool:
    row = await (await connection.execute(QUERIES.has_index, {"name": model.index})).fetchone()
    return row is not None and bool(row[0])


async def find_by_index(connection: Connection, field: Field, chunks: Sequence[UUID], most: int) -> list[Neighbour]:
    await connection.execute(QUERIES.look_far, {"ef": str(EF_SEARCH)})
    query = QUERIES.nearest.replace(b"{type}", field.model.type.encode()).replace(
        b"{model}", str(field.model.id).encode()
    )
    values = {"chunks": list(chunks), "owner": field.owner, "left_out": field.left_out, "most": most}
    cursor = await connection.execute(query, values, prepare=False)
    return [Neighbour(*row) for row in await cursor.fetchall()]


async def find_exactly(connection: Connection, field: Field, chunks: Sequence[UUID], most: int) -> list[Neighbour]:
    """Vectors come in blocks, so that nobody's number of passages decides how much memory it takes."""
    cursor = await connection.execute(
        QUERIES.vectors_of, {"chunks": list(chunks), "model": field.model.id}, binary=True
    )
    sources, wanted = _as_matrix(await cursor.fetchall())
    best = Best(len(sources), most)
    async for targets, block in _blocks(connection, field):
        await asyncio.to_thread(best.take, wanted, block, targets)
    return best.as_neighbours(sources)


async def _blocks(connection: Connection, field: Field) -> AsyncIterator[tuple[list[UUID], Matrix]]:
    async with connection.cursor("vectors", binary=True) as cursor:
        await cursor.execute(QUERIES.vectors_to_compare, field.values())
        while rows := await cursor.fetchmany(BLOCK):
            yield _as_matrix(rows)


def _as_matrix(rows: Sequence[tuple[Any, ...]]) -> tuple[list[UUID], Matrix]:
    """One row of length one for each vector."""
    sent = b"".join(row[1][HEAD:] for row in rows)
    numbers = np.frombuffer(sent, dtype=">f4").astype(np.float32).reshape(len(rows), -1)
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    return [row[0] for row in rows], numbers / np.maximum(lengths, 1e-12)


class Best:
    """The best of each passage, over all blocks that were taken."""

    def __init__(self, passages: int, most: int) -> None:
        self._most = most
        self._scores: NDArray[np.float32] = np.empty((passages, 0), dtype=np.float32)
        self._targets: list[UUID] = []
        self._places: NDArray[np.int64] = np.empty((passages, 0), dtype=np.int64)

    def take(self, wanted: Matrix, block: Matrix, targets: Sequence[UUID]) -> None:
        scores, places = _top(wanted @ block.T, self._most)
        joined = np.hstack([self._scores, scores])
        beside = np.hstack([self._places, places + len(self._targets)])
        self._scores, chosen = _top(joined, self._most)
        self._places = np.take_along_axis(beside, chosen, axis=1)
        self._targets.extend(targets)

    def as_neighbours(self, sources: Sequence[UUID]) -> list[Neighbour]:
        return [
            Neighbour(source, self._targets[int(place)], float(score))
            for source, scores, places in zip(sources, self._scores.tolist(), self._places.tolist(), strict=True)
            for score, place in zip(scores, places, strict=True)
        ]


def _top(scores: NDArray[np.float32], most: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    if scores.shape[1] <= most:
        return scores, np.tile(np.arange(scores.shape[1], dtype=np.int64), (len(scores), 1))
    chosen = np.argpartition(scores, -most, axis=1)[:, -most:]
    return np.take_along_axis(scores, chosen, axis=1), chosen
