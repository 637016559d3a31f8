"""Fetches database rows as records, with times in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from psycopg.rows import dict_row

from octavo.database import Connection

Record = TypeVar("Record")


async def fetch_all(
    connection: Connection, query: bytes, values: Mapping[str, Any], record: type[Record]
) -> list[Record]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, values)
        return [record(**{name: _in_utc(value) for name, value in row.items()}) for row in await cursor.fetchall()]


async def fetch_one(
    connection: Connection, query: bytes, values: Mapping[str, Any], record: type[Record]
) -> Record | None:
    """The first record, or None."""
    found = await fetch_all(connection, query, values, record)
    return found[0] if found else None


def _in_utc(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
