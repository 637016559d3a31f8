"""Vectors of passages and tags as the database keeps them: those of several models side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from octavo.ai.vectors import Vectors
from octavo.core.errors import BadSetting
from octavo.database import Connection, Database, load_queries
from octavo.language.inputs import Passage

QUERIES = load_queries("enriching")
# Each is a part that is committed on its own.
VECTORS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage of a document, in its place in the database."""

    id: UUID
    content: str
    heading_path: list[str]

    def as_passage(self) -> Passage:
        return Passage(self.content, tuple(self.heading_path))


async def load_pieces(database: Database, query: bytes, **values: object) -> list[Piece]:
    async with database.connection() as connection, connection.cursor(row_factory=class_row(Piece)) as cursor:
        await cursor.execute(query, values)
        return await cursor.fetchall()


async def save_chunk_vectors(connection: Connection, chunks: Sequence[UUID], made: Vectors) -> None:
    model = await _number_of(connection, made)
    values = {"model": model, "chunks": list(chunks), "vectors": _as_texts(made)}
    await connection.execute(QUERIES.insert_chunk_vectors, values)


async def save_tag_vectors(connection: Connection, tags: Sequence[UUID], made: Vectors) -> None:
    model = await _number_of(connection, made)
    values = {"model": model, "tags": list(tags), "vectors": _as_texts(made)}
    await connection.execute(QUERIES.insert_tag_vectors, values)


async def _number_of(connection: Connection, made: Vectors) -> int:
    values = {"name": made.model, "dimensions": len(made.vectors[0])}
    row = await (await connection.execute(QUERIES.embedding_model, values)).fetchone()
    if row is None or row[0] is None:
        raise BadSetting(f"{made.model} makes vectors of another length than before.")
    return row[0]


def _as_texts(made: Vectors) -> list[str]:
    return [f"[{','.join(map(repr, vector))}]" for vector in made.vectors]
