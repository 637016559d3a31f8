"""Rows as dictionaries, with times in UTC whatever zone the connection has."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from psycopg.rows import dict_row

from octavo.database.pool import Connection

Row = dict[str, Any]


async def fetch_rows(
    connection: Connection, query: bytes, values: Mapping[str, Any], *, prepare: bool | None = None
) -> list[Row]:
    """`prepare=False` has the query planned for just these values, however often it is asked."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, values, prepare=prepare)
        return [{name: _in_utc(value) for name, value in row.items()} for row in await cursor.fetchall()]


def _in_utc(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
