"""An account's collections and tags."""

from __future__ import annotations

from uuid import UUID

import psycopg
from psycopg.rows import class_row

from octavo.core.errors import BadInput, NotFound
from octavo.core.types import new_id
from octavo.database import Connection, load_queries
from octavo.library.errors import NameTaken
from octavo.records.documents import Collection, Tag

QUERIES = load_queries("documents")
EVENTS = load_queries("events")


async def list_collections(connection: Connection, owner: UUID) -> list[Collection]:
    async with connection.cursor(row_factory=class_row(Collection)) as cursor:
        await cursor.execute(QUERIES.collections, {"owner": owner})
        return await cursor.fetchall()


async def list_tags(connection: Connection, owner: UUID) -> list[Tag]:
    """List the tags in use, most used first."""
    async with connection.cursor(row_factory=class_row(Tag)) as cursor:
        await cursor.execute(QUERIES.tags, {"owner": owner})
        return await cursor.fetchall()


async def ensure_collection(connection: Connection, owner: UUID, name: str) -> UUID:
    """Return the id of the collection with this name. The collection is created if it does not exist."""
    values = {"owner": owner, "id": new_id(), "name": clean_label(name, "collection")}
    row = await (await connection.execute(QUERIES.ensure_collection, values)).fetchone()
    if row is None:
        raise AssertionError("an upsert returns its row")
    made, is_new = row
    if is_new:
        await _publish(connection, owner, made, "made")
    return made


async def rename_collection(connection: Connection, owner: UUID, collection: UUID, name: str) -> None:
    label = clean_label(name, "collection")
    values = {"owner": owner, "id": collection, "name": label}
    try:
        row = await (await connection.execute(QUERIES.rename_collection, values)).fetchone()
    except psycopg.errors.UniqueViolation:
        raise NameTaken(label) from None
    if row is None:
        raise NotFound
    await _publish(connection, owner, collection, "renamed")


async def keep_collection(connection: Connection, owner: UUID, collection: UUID, days: int | None) -> None:
    """Set for how many days the collection's documents are kept after their last change. None keeps them forever."""
    values = {"owner": owner, "id": collection, "days": days}
    if await (await connection.execute(QUERIES.keep_collection, values)).fetchone() is None:
        raise NotFound
    await _publish(connection, owner, collection, "kept")


async def delete_collection(connection: Connection, owner: UUID, collection: UUID) -> None:
    """Delete a collection, but not its documents."""
    values = {"owner": owner, "id": collection}
    if await (await connection.execute(QUERIES.delete_collection, values)).fetchone() is None:
        raise NotFound
    await _publish(connection, owner, collection, "deleted")


async def _publish(connection: Connection, owner: UUID, collection: UUID, change: str) -> None:
    """Write an event, so that lists that are open in a browser are updated live."""
    await connection.execute(EVENTS.tell_of_collection, {"owner": owner, "collection": collection, "change": change})


def clean_label(name: str, what: str) -> str:
    label = " ".join(name.split())
    if not label:
        raise BadInput(f"A {what} needs a name.")
    return label
