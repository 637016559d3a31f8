"""Real PostgreSQL servers for tests: one per major version and session, one fresh database per test."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from octavo.database import migrate
from octavo.database.embedded import DataFolder, EmbeddedPostgres

_numbers = itertools.count()
MEMORY, LEAST_FREE = Path("/dev/shm"), 6 << 30


@contextmanager
def open_folder() -> Generator[Path]:
    """A temporary folder that any account may enter, because root's PostgreSQL runs under another one."""
    root = Path(tempfile.mkdtemp(prefix="octavo-test-", dir=MEMORY if has_room() else None))
    root.chmod(0o755)
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def has_room() -> bool:
    """If files can be kept in memory: no test cuts the power, and a database is made there in a tenth of the time."""
    if not os.access(MEMORY, os.W_OK):
        return False
    return min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available) > LEAST_FREE


class Server:
    """A running server whose database `octavo` is migrated and serves as the template of all others."""

    def __init__(self, connection_info: str) -> None:
        self.template = connection_info
        self._connection = psycopg.connect(make_conninfo(connection_info, dbname="postgres"), autocommit=True)

    @contextmanager
    def database(self, *, migrated: bool = True) -> Generator[str]:
        name = f"test_{next(_numbers)}"
        template = "octavo" if migrated else "template0"
        # Copying files in memory takes two thirds of the time of writing them through the log.
        self._connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY".encode())
        try:
            yield make_conninfo(self.template, dbname=name)
        finally:
            self._connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def close(self) -> None:
        self._connection.close()


@contextmanager
def run_server(major: int) -> Generator[Server]:
    with open_folder() as root:
        server = EmbeddedPostgres(DataFolder(root / "data"), major=major)
        try:
            connection_info = server.start()
            trust_users_of_tests(connection_info)
            with psycopg.connect(connection_info, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET max_wal_size = '256MB'")
                # It takes time of the processors that the tests need.
                connection.execute("ALTER SYSTEM SET autovacuum = off")
                connection.execute("SELECT pg_reload_conf()")
            asyncio.run(migrate(connection_info))
            with closing(Server(connection_info)) as running:
                yield running
        finally:
            server.stop()


def trust_users_of_tests(connection_info: str) -> None:
    """Checking a password takes half of the time of opening a connection; only the template still asks for one."""
    with psycopg.connect(connection_info, autocommit=True) as connection:
        row = connection.execute("SHOW hba_file").fetchone()
        assert row
        Path(row[0]).write_text("local octavo all scram-sha-256\nlocal all all trust\n")


def as_url(connection_info: str) -> str:
    """The form in which the setting takes it."""
    parts = {name: str(value) for name, value in conninfo_to_dict(connection_info).items()}
    secret = quote(parts["password"], safe="")
    return f"postgresql://{parts['user']}:{secret}@/{parts['dbname']}?host={quote(parts['host'], safe='')}"
