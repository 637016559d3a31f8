"""Stores vectors of chunks and tags. A chunk can have vectors of several models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from octavo.ai.vectors import Vectors
from octavo.core.errors import BadSetting
from octavo.database import Connection, Database, load_queries
from octavo.language.insights import ChunkText

QUERIES = load_queries("describe")


@dataclass(frozen=True, slots=True)
class StoredChunk:
    id: UUID
    content: str
    heading_path: list[str]

    def as_text(self) -> ChunkText:
        return ChunkText(self.content, tuple(self.heading_path))


async def load_chunks(database: Database, query: bytes, **values: object) -> list[StoredChunk]:
    async with database.connection() as connection, connection.cursor(row_factory=class_row(StoredChunk)) as cursor:
        await cursor.execute(query, values)
        return await cursor.fetchall()


async def save_chunk_vectors(connection: Connection, chunks: Sequence[UUID], vectors: Vectors) -> None:
    model = await _model_id(connection, vectors)
    values = {"model": model, "chunks": list(chunks), "vectors": _as_texts(vectors)}
    await connection.execute(QUERIES.insert_chunk_vectors, values)


async def save_tag_vectors(connection: Connection, tags: Sequence[UUID], vectors: Vectors) -> None:
    model = await _model_id(connection, vectors)
    values = {"model": model, "tags": list(tags), "vectors": _as_texts(vectors)}
    await connection.execute(QUERIES.insert_tag_vectors, values)


async def _model_id(connection: Connection, vectors: Vectors) -> int:
    values = {"name": vectors.model, "dimensions": len(vectors.vectors[0])}
    row = await (await connection.execute(QUERIES.embedding_model, values)).fetchone()
    if row is None or row[0] is None:
        raise BadSetting(f"{vectors.model} now returns vectors of a different length than before.")
    return row[0]


def _as_texts(vectors: Vectors) -> list[str]:
    return [f"[{','.join(map(repr, vector))}]" for vector in vectors.vectors]
