"""Copies all rows of a database to files, and loads them into an empty database of any PostgreSQL version.

The files contain the state of the database at one point in time. Each table becomes one compressed file in the text
format of COPY, which all versions of PostgreSQL can read. The schema is not copied, because migrations create it.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path

from psycopg import sql
from psycopg.rows import class_row

from octavo.database.pool import Connection
from octavo.database.queries import fetch_rows, load_queries

QUERIES = load_queries("backup")
BLOCK_BYTES = 1 << 18
# Higher levels take several times as long and save little.
COMPRESSION = 1

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TableCopy:
    """The file that contains the rows of one table. `sha256` is the hash of the compressed file."""

    name: str
    columns: Sequence[str]
    rows: int
    bytes: int
    sha256: str

    def file(self, folder: Path) -> Path:
        return folder / f"{self.name}.gz"


@dataclass(frozen=True, slots=True)
class DatabaseCopy:
    """The files of all tables, copied at one point in time, and the last values of the sequences."""

    tables: Sequence[TableCopy]
    sequences: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    columns: list[str]


@dataclass(frozen=True, slots=True)
class _ForeignKey:
    table: str
    name: str
    definition: str


async def copy_out(connection: Connection, folder: Path, report: Report) -> DatabaseCopy:
    """Write all tables to files. Other processes can keep writing to the database."""
    await connection.execute(QUERIES.begin_snapshot)
    try:
        await connection.execute(QUERIES.use_plain_forms)
        tables = [await _copy_table(connection, folder, table, report) for table in await _tables(connection)]
        # Sequences have no snapshot: their values may be later, never earlier than those in the tables.
        sequences = {row["name"]: row["last_value"] for row in await fetch_rows(connection, QUERIES.sequences, {})}
    finally:
        await connection.rollback()
    return DatabaseCopy(tables, sequences)


async def copy_in(connection: Connection, folder: Path, copy: DatabaseCopy, report: Report) -> None:
    """Load the copied rows into an empty database with the same schema, in the caller's transaction.

    Foreign keys are dropped first and created again at the end, so tables can be loaded in any order and every
    reference is checked. Triggers do not run.
    """
    await connection.execute(QUERIES.use_plain_forms)
    async with _without_triggers(connection), _without_foreign_keys(connection):
        await connection.execute(_fill_in(QUERIES.empty, tables=_quote(table.name for table in copy.tables)))
        for table in copy.tables:
            report(table.name)
            statement = _fill_in(QUERIES.copy_in, table=_quote([table.name]), columns=_quote(table.columns))
            async with connection.cursor() as cursor, cursor.copy(statement) as rows:
                for block in read_blocks(table.file(folder)):
                    await rows.write(block)
    for name, value in copy.sequences.items():
        await connection.execute(QUERIES.set_sequence, {"name": name, "value": value})


def is_intact(table: TableCopy, folder: Path) -> bool:
    """Whether the file with the rows of a table is complete and unchanged."""
    file = table.file(folder)
    return file.is_file() and file.stat().st_size == table.bytes and _digest(file) == table.sha256


def read_blocks(file: Path) -> Generator[bytes]:
    with gzip.open(file, "rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            yield block


def read_rows(table: TableCopy, folder: Path, *columns: str) -> Generator[list[str]]:
    """Yield the values of the given columns from the file that contains a table's rows.

    Values are not unescaped, so use this only for keys, numbers and similar values.
    """
    places = [table.columns.index(column) for column in columns]
    with gzip.open(table.file(folder), "rt", newline="\n") as lines:
        for line in lines:
            values = line.rstrip("\n").split("\t")
            yield [values[place] for place in places]


async def _tables(connection: Connection) -> list[_Table]:
    async with connection.cursor(row_factory=class_row(_Table)) as cursor:
        await cursor.execute(QUERIES.tables)
        return await cursor.fetchall()


async def _copy_table(connection: Connection, folder: Path, table: _Table, report: Report) -> TableCopy:
    report(table.name)
    file = folder / f"{table.name}.gz"
    rows = 0
    statement = _fill_in(QUERIES.copy_out, table=_quote([table.name]), columns=_quote(table.columns))
    with _open_for_writing(file) as stream:
        async with connection.cursor() as cursor, cursor.copy(statement) as blocks:
            async for block in blocks:
                data = bytes(block)
                rows += data.count(b"\n")  # line breaks in values are escaped
                stream.write(data)
    _sync(file)
    return TableCopy(table.name, table.columns, rows, file.stat().st_size, _digest(file))


def _open_for_writing(file: Path) -> gzip.GzipFile:
    return gzip.GzipFile(file, "wb", COMPRESSION)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _sync(file: Path) -> None:
    with file.open("rb") as stream:
        os.fsync(stream.fileno())


def _quote(names: Iterable[str]) -> str:
    return ", ".join(sql.Identifier(name).as_string() for name in names)


def _fill_in(query: bytes, **parts: str) -> bytes:
    """Insert identifiers, such as table names, into a query. PostgreSQL does not accept them as query parameters."""
    for name, text in parts.items():
        query = query.replace(f"{{{name}}}".encode(), text.encode())
    return query


@asynccontextmanager
async def _without_triggers(connection: Connection) -> AsyncGenerator[None]:
    rows = await (await connection.execute(QUERIES.tables_and_partitions)).fetchall()
    for row in rows:
        await connection.execute(_fill_in(QUERIES.disable_triggers, table=row[0]))
    yield
    for row in rows:
        await connection.execute(_fill_in(QUERIES.enable_triggers, table=row[0]))


@asynccontextmanager
async def _without_foreign_keys(connection: Connection) -> AsyncGenerator[None]:
    async with connection.cursor(row_factory=class_row(_ForeignKey)) as cursor:
        await cursor.execute(QUERIES.foreign_keys)
        keys = await cursor.fetchall()
    for key in keys:
        await connection.execute(_fill_in(QUERIES.drop_foreign_key, table=key.table, name=key.name))
    yield
    for key in keys:
        await connection.execute(_fill_in(QUERIES.add_foreign_key, **asdict(key)))
