"""Uses numbered SQL files to migrate a database to the schema of this version.

Each file is applied once, in a transaction. A migration with a line such as `-- compatible-from: 40` does not break
processes that know only the migrations up to 40. Such processes keep running, and can also be started.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import psycopg
from psycopg.rows import class_row

from octavo.core.errors import Defect, WrongDatabase
from octavo.database.pool import Connection, connect, lasting_transaction
from octavo.database.queries import load_queries

QUERIES = load_queries("migrations")
EVENTS = load_queries("events")
# An arbitrary number that all migrating processes use for the lock.
LOCK_NUMBER = 0x0C7A_0001
FIRST = 1
OLDEST_SERVER = 16
OLDEST_VECTOR = (0, 8)
NAME = re.compile(r"(?P<number>\d{4})_(?P<name>[a-z0-9_]+)\.sql")
COMPATIBLE_FROM = re.compile(r"^-- compatible-from: (?P<number>\d+)( \(contract\))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    statements: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.statements.encode()).hexdigest()

    @property
    def compatible_from(self) -> int | None:
        """The number of the newest migration that a process must know to use a database with this migration.

        If it is None, the process must know this migration itself.
        """
        found = COMPATIBLE_FROM.search(self.statements)
        return int(found["number"]) if found else None


@dataclass(frozen=True, slots=True)
class AppliedMigration:
    number: int
    name: str
    digest: str
    compatible_from: int | None = None

    def works_with(self, newest_known: int) -> bool:
        """Whether a process that knows the migrations up to `newest_known` can use a database with this migration."""
        return self.number <= newest_known or (self.compatible_from or self.number) <= newest_known


@dataclass(frozen=True, slots=True)
class MigrationState:
    """The state of a database schema.

    `applied` is the number of applied migrations; `missing` contains the names of the migrations that must still be
    applied.
    """

    applied: int
    missing: tuple[str, ...]


@cache
def known_migrations() -> tuple[Migration, ...]:
    """Return the migration files of this version, in order. Raises `Defect` for missing or duplicate numbers."""
    folder = files("octavo.database").joinpath("migrations")
    named = [(NAME.fullmatch(file.name), file) for file in folder.iterdir()]
    found = [Migration(int(match["number"]), match["name"], file.read_text()) for match, file in named if match]
    found.sort(key=lambda migration: migration.number)
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise Defect("The migration files are not numbered 1, 2, 3, … without gaps.")
    return tuple(found)


async def migrate(connection_info: str) -> MigrationState:
    """Apply the missing migrations. If several processes call this at the same time, they wait for each other."""
    async with _migrating(connection_info) as connection:
        return await _apply_missing(connection)


async def create_schema(connection_info: str, numbers: set[int]) -> None:
    """Recreate the schema of a backed-up database by applying only the migrations with these numbers."""
    async with _migrating(connection_info) as connection:
        await connection.execute(QUERIES.create_table)
        applied = set(await applied_migrations(connection))
        if applied - numbers:
            raise WrongDatabase("The schema of the database is newer than the backup. Use an empty database.")
        await _apply(connection, [one for one in known_migrations() if one.number in numbers - applied])
        await connection.execute(EVENTS.ensure_partitions)


@asynccontextmanager
async def _migrating(connection_info: str) -> AsyncGenerator[Connection]:
    """Open a connection for migrations, and keep other processes from migrating until the block ends.

    A second connection holds the lock in a transaction. The lock is therefore released if the process is killed, and
    also works behind connection poolers in transaction mode.
    """
    async with await connect(connection_info) as connection, await connect(connection_info) as lock:
        await refuse_unfit_server(connection)
        async with lasting_transaction(lock):
            await lock.execute(QUERIES.lock, {"number": LOCK_NUMBER})
            with _explained_privileges():
                yield connection


async def read_state(connection: Connection) -> MigrationState:
    """Compare the schema of a database with the schema of this version, without changing anything."""
    if not await _exists(connection):
        return MigrationState(0, tuple(migration.name for migration in known_migrations()))
    applied = await applied_migrations(connection)
    missing = missing_migrations(known_migrations(), applied)
    return MigrationState(len(applied), tuple(migration.name for migration in missing))


async def require_current(connection: Connection) -> MigrationState:
    """Raise `WrongDatabase` if the schema does not match this version."""
    state = await read_state(connection)
    if state.missing:
        raise WrongDatabase(f"The schema is out of date. Run `octavo migrate` to add {', '.join(state.missing)}.")
    return state


def missing_migrations(known: Sequence[Migration], applied: Mapping[int, AppliedMigration]) -> list[Migration]:
    """Return the migrations that must still be applied. Raises `WrongDatabase` if the database cannot be upgraded."""
    first = applied.get(FIRST)
    if first and first.name != known[0].name:
        raise WrongDatabase(
            "The database was created by a development version from before the first release. It cannot be upgraded. "
            "Use an empty database or another data folder, and add your documents again."
        )
    newest = known[-1].number
    newer = [number for number, row in applied.items() if not row.works_with(newest)]
    if newer:
        raise WrongDatabase(
            f"The database was created by a newer version of Octavo (migration {max(newer)}; this version has "
            f"{newest}). Install that version, or use another database."
        )
    for migration in known:
        row = applied.get(migration.number)
        if row and row.digest != migration.digest:
            raise WrongDatabase(
                f"Migration {migration.number} ({row.name}) was applied with different content. "
                "Use the Octavo version that created the database, or another database."
            )
    return [migration for migration in known if migration.number not in applied]


async def refuse_unfit_server(connection: Connection) -> None:
    """Raise an error if the version of the server or of pgvector is too old, before anything is written."""
    row = await (await connection.execute(QUERIES.vector_version)).fetchone()
    reason = why_unfit(connection.info.server_version // 10000, row[0] if row else None)
    if reason:
        raise WrongDatabase(reason)


def why_unfit(major: int, vector: str | None) -> str | None:
    """Return the reason why a database server cannot be used. Returns None if it can be used."""
    if major < OLDEST_SERVER:
        return f"It is PostgreSQL {major}; Octavo needs {OLDEST_SERVER} or newer."
    if vector is None:
        return "The server has no pgvector. Install pgvector 0.8 or newer."
    if tuple(int(part) for part in vector.split(".")[:2]) < OLDEST_VECTOR:
        return f"The server has pgvector {vector}; Octavo needs 0.8 or newer."
    return None


async def _apply_missing(connection: Connection) -> MigrationState:
    await connection.execute(QUERIES.create_table)
    applied = await applied_migrations(connection)
    missing = missing_migrations(known_migrations(), applied)
    await _apply(connection, missing)
    await connection.execute(EVENTS.ensure_partitions)
    await connection.execute(EVENTS.begin_epoch)
    return MigrationState(len(applied) + len(missing), ())


def newest_known() -> int:
    """Return the number of the newest migration in this version of Octavo."""
    return known_migrations()[-1].number


async def _apply(connection: Connection, migrations: Sequence[Migration]) -> None:
    for migration in migrations:
        record = {
            "number": migration.number,
            "name": migration.name,
            "digest": migration.digest,
            "compatible_from": migration.compatible_from,
        }
        async with connection.transaction():
            await connection.execute(migration.statements.encode())
            await connection.execute(QUERIES.record, record)


@contextmanager
def _explained_privileges() -> Generator[None]:
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        reason = str(error).strip().splitlines()[0]
        raise WrongDatabase(f"The database user cannot create the schema: {reason}. Grant the privilege.") from None


async def _exists(connection: Connection) -> bool:
    row = await (await connection.execute(QUERIES.table_exists)).fetchone()
    return row is not None and bool(row[0])


async def applied_migrations(connection: Connection) -> dict[int, AppliedMigration]:
    """Return the migrations that were applied to the database, keyed by number."""
    async with connection.cursor(row_factory=class_row(AppliedMigration)) as cursor:
        await cursor.execute(QUERIES.applied)
        return {row.number: row async for row in cursor}
