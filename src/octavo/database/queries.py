"""Loads named queries from .sql files, so that the Python code contains no SQL, and fetches rows as dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import aiosql
from psycopg.rows import dict_row

from octavo.core.errors import Defect
from octavo.database.pool import Connection

Row = dict[str, Any]


class Queries:
    """The named queries of one .sql file, as attributes. The file is loaded on first use.

    An unknown name raises an error that lists the known names. aiosql rejects duplicate names and converts `:name` to
    psycopg's placeholders.
    """

    def __init__(self, file: str) -> None:
        self._file = file

    def __getattr__(self, name: str) -> bytes:
        try:
            return self.statements[name]
        except KeyError:
            known = ", ".join(sorted(self.statements))
            raise Defect(f"{self._file}.sql has no query {name}. It has {known}.") from None

    @cached_property
    def statements(self) -> dict[str, bytes]:
        text = files("octavo.database").joinpath("queries", f"{self._file}.sql").read_text()
        loaded = aiosql.from_str(text, "apsycopg")  # pyright: ignore[reportUnknownMemberType]
        return {name: str(getattr(loaded, name).sql).encode() for name in loaded.available_queries}


@cache
def load_queries(file: str) -> Queries:
    """Load the queries from `queries/<file>.sql`."""
    return Queries(file)


async def fetch_rows(
    connection: Connection, query: bytes, values: Mapping[str, Any], *, prepare: bool | None = None
) -> list[Row]:
    """Fetch all rows. Times are in UTC, regardless of the time zone of the connection.

    `prepare=False` plans the query for the given values each time, instead of reusing a prepared plan.
    """
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, values, prepare=prepare)
        return [{name: _in_utc(value) for name, value in row.items()} for row in await cursor.fetchall()]


async def read_clock(connection: Connection) -> datetime:
    """Return the current time of the database server. The clock of this machine may be wrong."""
    return (await fetch_rows(connection, load_queries("housekeeping").now, {}))[0]["now"]


def _in_utc(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
