"""One prepared data directory of each version of PostgreSQL, copied wherever a new one would be made.

Making one and applying all migrations takes a second of processor time, copying one a tenth of that. Copies have the
same system identifier, so tests of the bundled PostgreSQL and of backups do not use them.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from octavo.database import migrate
from octavo.database.embedded import DataFolder, EmbeddedPostgres, launcher
from octavo.database.embedded.cluster import Account, Binaries, make_cluster, recorded_major
from tests.support.postgres import open_folder

ROOT = Path(__file__).parents[2]
NEWEST = 18
# Names the folder that all processes of a test run share.
PREPARED = "TEST_PREPARED_CLUSTERS"
# No test cuts the power or copies the log: nothing waits for the disk, and the log contains no copies of whole pages.
UNSAFE_BUT_QUICK = """
fsync = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
min_wal_size = 32MB
wal_recycle = off
"""


@contextmanager
def prepared_clusters() -> Generator[None]:
    """Keep the prepared data directories for as long as a test run takes."""
    with open_folder() as folder:
        os.environ[PREPARED] = str(folder)
        try:
            yield
        finally:
            del os.environ[PREPARED]


@contextmanager
def prepared_early() -> Generator[None]:
    """Prepare the data directory of the newest version while the tests are collected, on another core."""
    with subprocess.Popen([sys.executable, "-m", "tests.support.clusters"], cwd=ROOT):
        yield


@contextmanager
def new_clusters() -> Generator[None]:
    """Make data directories as usual, also in the commands that are started meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(PREPARED)
        yield


def copy_clusters() -> None:
    """Let this process and its forks copy data directories, and start servers with few buffers.

    Making and dropping a database goes through all buffers, and so does the first use of each by a connection.
    """
    launcher.make_cluster = make_or_copy
    launcher.buffers = few_buffers


def few_buffers() -> str:
    return "32MB"


def make_or_copy(folder: DataFolder, binaries: Binaries, account: Account) -> None:
    if place := os.environ.get(PREPARED):
        copy_cluster(Path(place), folder, binaries, account)
    else:
        make_cluster(folder, binaries, account)


def copy_cluster(place: Path, folder: DataFolder, binaries: Binaries, account: Account) -> None:
    prepared = DataFolder(place / f"{binaries.major}-{account.uid}")
    with (place / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if recorded_major(prepared) is None:
            prepared.prepare()
            make_cluster(prepared, binaries, account)
            with (prepared.cluster / "postgresql.conf").open("a") as settings:
                settings.write(UNSAFE_BUT_QUICK)
            migrate_prepared(prepared, binaries.major)
    fresh = folder.cluster.with_name("postgres.new")
    copied = subprocess.run(["cp", "-a", prepared.cluster, fresh], capture_output=True, check=False)
    if copied.returncode:  # such as on a full disk, for which there is an error message
        make_cluster(folder, binaries, account)
        return
    shutil.copy2(prepared.secrets / "postgres-password", folder.secrets)
    fresh.rename(folder.cluster)


def migrate_prepared(folder: DataFolder, major: int) -> None:
    """All migrations take half a second of processor time, which each new installation would spend again."""
    server = EmbeddedPostgres(folder, major=major)
    try:
        connection_info = server.start()
        with ThreadPoolExecutor(1) as thread:  # this one may run an event loop
            thread.submit(lambda: asyncio.run(migrate(connection_info))).result()
        hash_password_fast(connection_info)
    finally:
        server.stop()


def main() -> None:
    copy_clusters()
    with open_folder() as folder:
        server = EmbeddedPostgres(DataFolder(folder / "data"), major=NEWEST)
        try:
            server.start()
        finally:
            server.stop()


def hash_password_fast(connection_info: str) -> None:
    """A client hashes the password thousands of times for each connection, which takes milliseconds."""
    with psycopg.connect(connection_info) as connection:
        password = sql.Literal(connection.info.password)
        connection.execute("SET scram_iterations = 1")
        connection.execute(sql.SQL("ALTER ROLE CURRENT_USER PASSWORD {}").format(password))


if __name__ == "__main__":
    main()
