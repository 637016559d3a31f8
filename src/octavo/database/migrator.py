"""Brings a database to the schema of this version: numbered SQL files, each applied once, in its own transaction."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import psycopg
from psycopg.rows import class_row

from octavo.core.errors import Defect, WrongDatabase
from octavo.database.pool import Connection, connect
from octavo.database.queries import load_queries

QUERIES = load_queries("migrations")
EVENTS = load_queries("events")
# Any constant will do; it only has to be the same in every process that migrates.
LOCK_NUMBER = 0x0C7A_0001
OLDEST_SERVER = 16
OLDEST_VECTOR = (0, 8)
NAME = re.compile(r"(?P<number>\d{4})_(?P<name>[a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    statements: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.statements.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Applied:
    number: int
    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class MigrationState:
    """How far a database is; `missing` are the names still to be applied."""

    applied: int
    missing: tuple[str, ...]


@cache
def known_migrations() -> tuple[Migration, ...]:
    """The files of this version, without gaps or doubled numbers."""
    folder = files("octavo.database").joinpath("migrations")
    named = [(NAME.fullmatch(file.name), file) for file in folder.iterdir()]
    found = [Migration(int(match["number"]), match["name"], file.read_text()) for match, file in named if match]
    found.sort(key=lambda migration: migration.number)
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise Defect("The migration files are not numbered 1, 2, 3, … without gaps.")
    return tuple(found)


async def migrate(connection_info: str) -> MigrationState:
    """Apply what is missing. Any number of processes may call it at once; they take turns."""
    async with await connect(connection_info) as connection:
        await refuse_unfit_server(connection)
        # Held by the connection, so a killed process lets go of it.
        await connection.execute(QUERIES.lock, {"number": LOCK_NUMBER})
        try:
            return await _apply_missing(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            reason = str(error).strip().splitlines()[0]
            raise WrongDatabase(f"Its user may not set up the schema: {reason}. Grant it that.") from None


async def read_state(connection: Connection) -> MigrationState:
    """Compare a database with this version, changing nothing."""
    if not await _exists(connection):
        return MigrationState(0, tuple(migration.name for migration in known_migrations()))
    applied = await _applied(connection)
    missing = missing_migrations(known_migrations(), applied)
    return MigrationState(len(applied), tuple(migration.name for migration in missing))


async def require_current(connection: Connection) -> MigrationState:
    """Refuse to work on a schema that is not this version's."""
    state = await read_state(connection)
    if state.missing:
        raise WrongDatabase(f"The schema is not up to date; `octavo migrate` adds {', '.join(state.missing)}.")
    return state


def missing_migrations(known: Sequence[Migration], applied: Mapping[int, Applied]) -> list[Migration]:
    """What is still to be done, or why this version and this database do not belong together."""
    newer = sorted(set(applied) - {migration.number for migration in known})
    if newer:
        raise WrongDatabase(
            f"It was set up by a newer Octavo (migration {newer[-1]}; this one knows {len(known)}). "
            "Install that version, or use another database."
        )
    for migration in known:
        row = applied.get(migration.number)
        if row and row.digest != migration.digest:
            raise WrongDatabase(
                f"Migration {migration.number} ({row.name}) was applied in another form than this version has. "
                "Use the version that set it up, or another database."
            )
    return [migration for migration in known if migration.number not in applied]


async def refuse_unfit_server(connection: Connection) -> None:
    """Look at the server before anything is written to it."""
    row = await (await connection.execute(QUERIES.vector_version)).fetchone()
    reason = why_unfit(connection.info.server_version // 10000, row[0] if row else None)
    if reason:
        raise WrongDatabase(reason)


def why_unfit(major: int, vector: str | None) -> str | None:
    """The oldest server and pgvector that everything was tested with."""
    if major < OLDEST_SERVER:
        return f"It is PostgreSQL {major}; Octavo needs {OLDEST_SERVER} or newer."
    if vector is None:
        return "The server has no pgvector; install pgvector 0.8 or newer on it."
    if tuple(int(part) for part in vector.split(".")[:2]) < OLDEST_VECTOR:
        return f"The server has pgvector {vector}; Octavo needs 0.8 or newer."
    return None


async def _apply_missing(connection: Connection) -> MigrationState:
    await connection.execute(QUERIES.create_table)
    for migration in missing_migrations(known_migrations(), await _applied(connection)):
        record = {"number": migration.number, "name": migration.name, "digest": migration.digest}
        async with connection.transaction():
            await connection.execute(migration.statements.encode())
            await connection.execute(QUERIES.record, record)
    await connection.execute(EVENTS.ensure_partitions)
    return MigrationState(len(known_migrations()), ())


async def _exists(connection: Connection) -> bool:
    row = await (await connection.execute(QUERIES.table_exists)).fetchone()
    return row is not None and bool(row[0])


async def _applied(connection: Connection) -> dict[int, Applied]:
    async with connection.cursor(row_factory=class_row(Applied)) as cursor:
        await cursor.execute(QUERIES.applied)
        return {row.number: row async for row in cursor}
