"""The index of one model's vectors; made beside what goes on, and made anew where a kill left half of one."""

from __future__ import annotations

from psycopg.rows import class_row

from octavo.connect.neighbours import Model, has_index
from octavo.core.errors import NotFound
from octavo.database import Database, load_queries

QUERIES = load_queries("connections")


async def build_index(database: Database, model_id: int) -> str:
    """Answers its name. On a connection of its own, because it may take an hour and can be in no transaction."""
    connection = await database.connect_apart()
    try:
        async with connection.cursor(row_factory=class_row(Model)) as cursor:
            await cursor.execute(QUERIES.model, {"model": model_id})
            model = await cursor.fetchone()
        if model is None:
            raise NotFound(f"There is no embedding model {model_id}.")
        if not await has_index(connection, model):
            await connection.execute(_written_for(QUERIES.drop_index, model))
            await connection.execute(QUERIES.more_memory)
            await connection.execute(_written_for(QUERIES.create_index, model))
        return model.index
    finally:
        await connection.close()


def _written_for(query: bytes, model: Model) -> bytes:
    """Names and types cannot be parameters; none of these comes from outside."""
    kind = model.type.partition("(")[0]
    parts = {"index": model.index, "type": model.type, "model": str(model.id), "operators": f"{kind}_cosine_ops"}
    for name, text in parts.items():
        query = query.replace(f"{{{name}}}".encode(), text.encode())
    return query
