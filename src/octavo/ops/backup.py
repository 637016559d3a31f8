"""`octavo backup` and `octavo restore`: copy the database, and all stored files that it refers to.

A backup is a folder. Its file `backup.json` names the subfolder with the copied tables, and is replaced last, so that
an interrupted backup leaves the earlier one intact. Stored files never change, so the next backup to the same folder
copies only new files.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from octavo import __version__
from octavo.core.errors import BadInput, DatabaseUnavailable, NotPossibleHere, WrongDatabase
from octavo.core.settings import Settings
from octavo.database import (
    Connection,
    connect,
    explain,
    lasting_transaction,
    load_queries,
    migrate,
    read_clock,
    require_current,
)
from octavo.database.embedded import DataFolder
from octavo.database.embedded.data_folder import PRIVATE
from octavo.database.migrator import (
    AppliedMigration,
    applied_migrations,
    create_schema,
    known_migrations,
    missing_migrations,
)
from octavo.database.table_copies import DatabaseCopy, TableCopy, copy_in, copy_out, is_intact, read_rows
from octavo.library.sweep import delete_kept_objects
from octavo.ops.instance import bucket_of, database_address, open_connection
from octavo.ops.processes import RecordFile
from octavo.storage import Bucket, ObjectMissing, open_bucket

QUERIES = load_queries("backup")
FORMAT = 1
MANIFEST = "backup.json"
# Marks the folder of a backup, even if the first backup to it was never completed.
MARKER = ".octavo-backup"
OBJECTS_AT_ONCE = 16
MOST_SHOWN = 3
WAIT_TRIES, WAIT_SECONDS = 40, 0.1

# Reports the current step, the amount that is done, and the total; 0 if the total is unknown.
Report = Callable[[str, int, int], None]
T = TypeVar("T")


class NotABackup(BadInput):
    """This folder does not contain a backup."""

    code = "NOT_A_BACKUP"


class DamagedBackup(BadInput):
    """The backup is damaged. Use another one."""

    code = "DAMAGED_BACKUP"


class IncompleteBackup(BadInput):
    """The backup was written, but files were missing or damaged in the storage. Run `octavo doctor`."""

    code = "INCOMPLETE_BACKUP"


class BackupRunning(BadInput):
    """Another backup of this instance is running. Wait until it has ended."""

    code = "BACKUP_RUNNING"
    status = 409


class NotEmpty(BadInput):
    """A backup can be restored only into an empty instance. Set OCTAVO_DATA_DIR or OCTAVO_DATABASE_URL to a new one."""

    code = "NOT_EMPTY"
    status = 409


@dataclass(frozen=True, slots=True)
class ObjectCopy:
    """A stored file to which the database refers, with its size and hash."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of `backup.json`.

    `folder` contains the copies of the tables. `damaged` lists files that were missing or damaged when the backup was
    made.
    """

    format: int
    version: str
    created_at: str
    migrations: Sequence[AppliedMigration]
    folder: str
    database: DatabaseCopy
    files: int
    file_bytes: int
    damaged: Sequence[str] = ()

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.database.tables)

    def objects(self, backup: Path) -> Iterator[ObjectCopy]:
        """Yield the stored files to which the copied rows refer."""
        table = next(table for table in self.database.tables if table.name == "objects")
        for key, size, digest in read_rows(table, backup / self.folder, "key", "bytes", "sha256"):
            yield ObjectCopy(key, int(size), digest.removeprefix("\\\\x"))


@dataclass(slots=True)
class Transfer:
    """The result of copying files.

    `files` is the number of intact files that the target has after copying, and `copied` is the number of those that
    are new. `damaged` lists files that could not be copied, because they are missing or altered.
    """

    files: int = 0
    bytes: int = 0
    copied: int = 0
    copied_bytes: int = 0
    damaged: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a backup or a restore."""

    path: str
    created_at: str
    rows: int
    database_bytes: int
    files: int
    file_bytes: int
    copied: int
    copied_bytes: int
    damaged: Sequence[str]


# Backup -------------------------------------------------------------------------------------------------------------


async def back_up(settings: Settings, path: Path, report: Report, *, verify: bool = False) -> Outcome:
    """Back up an instance to a folder. The instance can be running.

    If `verify` is true, files that an earlier backup copied are read again and checked.
    """
    _refuse_place(settings, path)
    with _named_failures(path):
        _prepare(path)
        async with (
            open_connection(settings, direct=True) as connection,
            aclosing(bucket_of(settings)) as bucket,
            aclosing(open_bucket((path / "objects").absolute().as_uri())) as copies,
        ):
            await require_current(connection)
            async with _kept_objects(settings, bucket):
                manifest = await _copy_database(connection, path, report)
                total = _objects_of(manifest).rows
                transfer = await _transfer(bucket, copies, manifest.objects(path), total, report, verify=verify)
            files, size, damaged = transfer.files, transfer.bytes, transfer.damaged
            done = replace(manifest, files=files, file_bytes=size, damaged=damaged)
            _publish(path, done)
            await _prune(copies, {one.key for one in done.objects(path)})
    return _outcome(path, done, transfer)


def _refuse_place(settings: Settings, path: Path) -> None:
    """Raise an error if a backup cannot be written to this folder.

    The folder must be outside the data folder. It must be empty or contain a backup, so that only files of earlier
    backups are deleted there.
    """
    whole = path.resolve()
    if whole.is_relative_to(settings.data_dir.resolve()):
        raise BadInput(f"{path} is in the data folder. Choose a folder outside it, ideally on another disk.")
    if whole.is_file() or (whole.is_dir() and not (whole / MARKER).is_file() and any(whole.iterdir())):
        raise BadInput(f"{path} is neither empty nor a backup. Choose another folder.")


def _prepare(path: Path) -> None:
    path.mkdir(PRIVATE, parents=True, exist_ok=True)
    (path / MARKER).touch(0o600)
    (path / "objects").mkdir(PRIVATE, exist_ok=True)


@asynccontextmanager
async def _kept_objects(settings: Settings, bucket: Bucket) -> AsyncGenerator[None]:
    """Prevent the deletion of stored files until the backup is finished.

    Files that become unused in the meantime are deleted afterwards.
    """
    async with open_connection(settings, direct=True) as connection:
        # The commit fails if the connection was lost: then files may have been deleted before they were copied.
        async with lasting_transaction(connection):
            await _wait_for_other_backup(connection)
            await connection.execute(QUERIES.hold_deletions)
            yield
        await delete_kept_objects(connection, bucket)


async def _wait_for_other_backup(connection: Connection) -> None:
    """Wait until no other backup is running. Raises `BackupRunning` if this takes longer than a few seconds.

    If a backup was interrupted, it takes the database server a moment to notice that the backup's process has ended.
    """
    for _ in range(WAIT_TRIES):
        row = await (await connection.execute(QUERIES.begin_backup)).fetchone()
        if row and row[0]:
            return
        await asyncio.sleep(WAIT_SECONDS)
    raise BackupRunning


async def _copy_database(connection: Connection, path: Path, report: Report) -> Manifest:
    now = await read_clock(connection)
    folder = path / f"database-{now:%Y%m%d-%H%M%S-%f}"
    folder.mkdir(PRIVATE)
    migrations = sorted((await applied_migrations(connection)).values(), key=lambda one: one.number)
    copy = await copy_out(connection, folder, lambda table: report(f"Reading table {table}", 0, 0))
    return Manifest(FORMAT, __version__, now.isoformat(), migrations, folder.name, copy, 0, 0)


def _objects_of(manifest: Manifest) -> TableCopy:
    return next(table for table in manifest.database.tables if table.name == "objects")


def _publish(path: Path, manifest: Manifest) -> None:
    """Make this backup the current one.

    Replaces `backup.json` atomically, then deletes the earlier copies of the tables.
    """
    new = path / f"{MANIFEST}.new"
    with new.open("w") as file:
        json.dump(asdict(manifest), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    for folder in (path / manifest.folder, path):
        _sync_folder(folder)
    new.replace(path / MANIFEST)
    _sync_folder(path)
    for old in path.glob("database-*"):
        if old.name != manifest.folder:
            shutil.rmtree(old, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def _prune(copies: Bucket, named: set[str]) -> None:
    """Remove files from the backup that the database no longer refers to."""
    await copies.delete([info.key async for info in copies.list() if info.key not in named])


# Files --------------------------------------------------------------------------------------------------------------


async def _transfer(
    source: Bucket, target: Bucket, objects: Iterable[ObjectCopy], total: int, report: Report, *, verify: bool
) -> Transfer:
    transfer = Transfer()
    for batch in _batches(objects, OBJECTS_AT_ONCE):
        await asyncio.gather(*(_copy_object(source, target, one, transfer, verify=verify) for one in batch))
        report("Copying files", transfer.files + len(transfer.damaged), total)
    return transfer


async def _copy_object(source: Bucket, target: Bucket, wanted: ObjectCopy, transfer: Transfer, *, verify: bool) -> None:
    if not await _has(target, wanted, verify=verify):
        if not await _copy_and_check(source, target, wanted):
            transfer.damaged.append(wanted.key)
            return
        transfer.copied += 1
        transfer.copied_bytes += wanted.bytes
    transfer.files += 1
    transfer.bytes += wanted.bytes


async def _has(target: Bucket, wanted: ObjectCopy, *, verify: bool) -> bool:
    """Whether the target has an intact copy of the file. A damaged copy is deleted, so that it is copied again."""
    info = await target.stat(wanted.key)
    if info is None:
        return False
    if info.bytes == wanted.bytes and (not verify or await _digest(target, wanted.key) == wanted.sha256):
        return True
    await target.delete([wanted.key])
    return False


async def _copy_and_check(source: Bucket, target: Bucket, wanted: ObjectCopy) -> bool:
    try:
        stored = await target.put(wanted.key, await source.stream(wanted.key))
    except ObjectMissing:
        return False
    if (stored.bytes, stored.sha256) == (wanted.bytes, wanted.sha256):
        return True
    await target.delete([wanted.key])
    return False


async def _digest(bucket: Bucket, key: str) -> str:
    digest = sha256()
    async for chunk in await bucket.stream(key):
        digest.update(chunk)
    return digest.hexdigest()


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


# Restore ------------------------------------------------------------------------------------------------------------


async def restore_backup(settings: Settings, path: Path, report: Report) -> Outcome:
    """Restore a backup into an empty installation that is not running.

    The PostgreSQL cluster and the storage bucket can differ from those of the backed-up installation. Files are
    restored first, then the database in one transaction. An interrupted restore can be repeated.
    """
    manifest = read_manifest(path)
    _refuse_later_version(manifest)
    _refuse_damaged_tables(manifest, path, report)
    folder = DataFolder(settings.data_dir)
    folder.prepare()
    with _only_process(folder), _named_failures(path):
        async with database_address(settings, direct=True) as address, await connect(address) as connection:
            await create_schema(address, {one.number for one in manifest.migrations})
            await _refuse_content(connection)
            transfer = await _restore_files(settings, path, manifest, report)
            await _restore_database(connection, path, manifest, report)
            await migrate(address)
            report("Updating statistics", 0, 0)
            await connection.execute(QUERIES.analyse)
    return _outcome(path, manifest, transfer)


def read_manifest(path: Path) -> Manifest:
    """Read the description of a backup from its file `backup.json`."""
    try:
        values: dict[str, Any] = json.loads((path / MANIFEST).read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise NotABackup(f"{path} has no {MANIFEST}.") from None
    except (OSError, ValueError) as error:
        raise DamagedBackup(f"{path / MANIFEST} cannot be read: {error}.") from None
    if values.get("format") != FORMAT:
        raise NotABackup(f"Its format is {values.get('format')}; this version of Octavo reads format {FORMAT}.")
    try:
        database = values.pop("database")
        tables = [TableCopy(**table) for table in database["tables"]]
        migrations = [AppliedMigration(**one) for one in values.pop("migrations")]
        return Manifest(**values, migrations=migrations, database=DatabaseCopy(tables, database["sequences"]))
    except (KeyError, TypeError) as error:
        raise DamagedBackup(f"{path / MANIFEST} cannot be read: {error}.") from None


def _refuse_later_version(manifest: Manifest) -> None:
    try:
        missing_migrations(known_migrations(), {one.number: one for one in manifest.migrations})
    except WrongDatabase as error:
        raise BadInput(f"This version of Octavo cannot restore the backup. {error.detail}") from None


def _refuse_damaged_tables(manifest: Manifest, path: Path, report: Report) -> None:
    for table in manifest.database.tables:
        report(f"Checking table {table.name}", 0, 0)
        if not is_intact(table, path / manifest.folder):
            raise DamagedBackup(f"{table.file(path / manifest.folder)} is missing or was changed.")


async def _refuse_content(connection: Connection) -> None:
    row = await (await connection.execute(QUERIES.has_content)).fetchone()
    if row and row[0]:
        raise NotEmpty


async def _restore_files(settings: Settings, path: Path, manifest: Manifest, report: Report) -> Transfer:
    async with (
        aclosing(open_bucket((path / "objects").absolute().as_uri())) as copies,
        aclosing(bucket_of(settings)) as bucket,
    ):
        objects = manifest.objects(path)
        transfer = await _transfer(copies, bucket, objects, _objects_of(manifest).rows, report, verify=True)
    lost = sorted(set(transfer.damaged) - set(manifest.damaged))
    if lost:
        raise DamagedBackup(f"Files are missing or were changed: {_shown(lost)}.")
    return transfer


async def _restore_database(connection: Connection, path: Path, manifest: Manifest, report: Report) -> None:
    async with connection.transaction():
        folder = path / manifest.folder
        await copy_in(connection, folder, manifest.database, lambda table: report(f"Writing table {table}", 0, 0))
        await connection.execute(QUERIES.begin_epoch)
        await connection.execute(QUERIES.hand_back)
        await connection.execute(QUERIES.forget_workers)


@contextmanager
def _only_process(folder: DataFolder) -> Generator[None]:
    """Raise an error if the instance is running, and prevent it from starting until the `with` block ends."""
    record = RecordFile(folder)
    record.claim()
    try:
        yield
    finally:
        record.release()


def _outcome(path: Path, manifest: Manifest, transfer: Transfer) -> Outcome:
    database_bytes = sum(table.bytes for table in manifest.database.tables)
    return Outcome(
        path=str(path),
        created_at=manifest.created_at,
        rows=manifest.rows,
        database_bytes=database_bytes,
        files=transfer.files,
        file_bytes=transfer.bytes,
        copied=transfer.copied,
        copied_bytes=transfer.copied_bytes,
        damaged=sorted(transfer.damaged),
    )


def refuse_damaged(outcome: Outcome) -> None:
    """Raise `IncompleteBackup` if files were missing or damaged."""
    if outcome.damaged:
        raise IncompleteBackup(f"{len(outcome.damaged)} files: {_shown(outcome.damaged)}.")


def _shown(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - MOST_SHOWN} more" if len(keys) > MOST_SHOWN else ""
    return "; ".join(keys[:MOST_SHOWN]) + more


@contextmanager
def _named_failures(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise NotPossibleHere(f"{path} cannot be used: {error.strerror}.") from error
    except (psycopg.IntegrityError, psycopg.DataError) as error:
        raise DamagedBackup(f"The database rejected a row: {explain(error)}") from error
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"{explain(error)} Run the command again.") from error
