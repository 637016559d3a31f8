"""Opens the database, the storage, the sandbox and other resources as configured in the settings.

All commands and processes use these functions.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil
import psycopg
import structlog
from pydantic import SecretStr

from octavo.convert import PRELOAD as CONVERT_PRELOAD
from octavo.core.errors import DatabaseUnavailable, OctavoError, WrongDatabase
from octavo.core.settings import Settings
from octavo.database import (
    Connection,
    Database,
    MigrationState,
    connect,
    fetch_rows,
    load_queries,
    migrate,
    read_state,
    require_current,
)
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.extract.chunks.chunking import PRELOAD as CHUNKS_PRELOAD
from octavo.extract.document_facts import PRELOAD as FACTS_PRELOAD
from octavo.extract.file_reader import PRELOAD as EXTRACT_PRELOAD
from octavo.extract.file_reader import SHORT_TEXT_PRELOAD, FileReader
from octavo.extract.ocr.recognition import PRELOAD as OCR_PRELOAD
from octavo.extract.ocr.recognition import Recognition
from octavo.extract.paged_file import PRELOAD as PICTURE_PRELOAD
from octavo.extract.pdf.pdf_file import PRELOAD as PDF_PRELOAD
from octavo.extract.pdf.placed_words import PRELOAD as WORDS_PRELOAD
from octavo.extract.pictures.page_images import PRELOAD as PAGE_IMAGES_PRELOAD
from octavo.fetch import GuardedClient
from octavo.ops.health import Disk
from octavo.sandbox import BACKGROUND_NICENESS, Limits, Sandbox
from octavo.storage import Bucket, open_bucket

log = structlog.get_logger()
QUERIES = load_queries("operations")
WATCH_SECONDS, SCHEMA_SECONDS = 0.5, 0.05
MOST_WEB_PROCESSES = 4
# Any server allows this many connections. A process also opens some outside its pool (a worker's main loop, LISTEN),
# and some are left for commands, backups and administrators.
FEW_CONNECTIONS, UNPOOLED_CONNECTIONS, SPARE_CONNECTIONS, LEAST_CONNECTIONS = 50, 3, 10, 2
FIT_SECONDS = 5.0
# Modules that a worker's sandbox imports once for all its children. PRELOAD: every document needs them; LATER: some do.
PRELOAD = (*EXTRACT_PRELOAD, *CHUNKS_PRELOAD, *FACTS_PRELOAD, *SHORT_TEXT_PRELOAD)
LATER = (
    *PDF_PRELOAD,
    *PICTURE_PRELOAD,
    *PAGE_IMAGES_PRELOAD,
    *WORDS_PRELOAD,
    *CONVERT_PRELOAD,
    "trafilatura",
)


def embedded_server(settings: Settings) -> EmbeddedPostgres | None:
    """Return the built-in PostgreSQL server. Returns None if the settings name another server."""
    if settings.database_url:
        return None
    return EmbeddedPostgres(DataFolder(settings.data_dir), account=settings.postgres_account)


async def start_database(settings: Settings, server: EmbeddedPostgres | None) -> str:
    """Start the built-in database server, unless the settings name another server. Returns the connection string."""
    if settings.database_url:
        return settings.database_url.get_secret_value()
    if server is None:
        raise AssertionError("there is a built-in server if no database URL is set")
    return await asyncio.to_thread(server.start)


def direct_address(settings: Settings) -> str | None:
    """Return the connection string that bypasses the connection pooler. Returns None if the settings contain none."""
    direct = settings.database_direct_url if settings.database_url else None
    return direct.get_secret_value() if direct else None


@asynccontextmanager
async def database_address(settings: Settings, *, direct: bool = False) -> AsyncGenerator[str]:
    """Start the built-in database server if necessary, and provide its connection string.

    On exit, the server stops unless another process uses it. If `direct` is true, the connection string bypasses the
    connection pooler, for long operations.
    """
    server = embedded_server(settings)
    try:
        address = await start_database(settings, server)
        yield (direct_address(settings) or address) if direct else address
    finally:
        if server:
            server.release()


async def migrate_database(settings: Settings) -> MigrationState:
    """Migrate the database to the schema of this version."""
    async with database_address(settings, direct=True) as connection_info:
        return await migrate(connection_info)


@asynccontextmanager
async def open_connection(settings: Settings, *, direct: bool = False) -> AsyncGenerator[Connection]:
    """Open a single database connection, for example for a command."""
    prepared = settings.prepared_statements
    async with (
        database_address(settings, direct=direct) as address,
        await connect(address, prepared=prepared) as connection,
    ):
        yield connection


@asynccontextmanager
async def open_current_connection(settings: Settings) -> AsyncGenerator[Connection]:
    """Open a single connection. Raises `WrongDatabase` if the schema does not match this version.

    Without this check, a missing table would be reported as an internal error.
    """
    async with open_connection(settings) as connection:
        await require_current(connection)
        yield connection


@asynccontextmanager
async def open_database(settings: Settings, *, supervised: bool = False) -> AsyncGenerator[Database]:
    """Open a connection pool. The built-in server keeps running until the pool is closed.

    Set `supervised` if another process restarts the built-in server when it ends.
    """
    server = embedded_server(settings)
    connection_info = await start_database(settings, server)
    watch = asyncio.create_task(keep_running(server)) if server and not supervised else None
    try:
        most, prepared = settings.database_connections, settings.prepared_statements
        direct = direct_address(settings)
        async with Database(connection_info, connections=most, prepared=prepared, direct=direct) as database:
            await fit_connections(database, settings)
            yield database
    finally:
        if watch:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        if server:
            server.release()


async def wait_for_schema(database: Database) -> None:
    """Wait while the supervisor migrates the database.

    Also returns if the database is not available or cannot be used: requests then fail with an error that says so.
    """
    with suppress(DatabaseUnavailable, WrongDatabase, psycopg.Error):
        while True:
            async with database.connection() as connection:
                if not (await read_state(connection)).missing:
                    return
            await asyncio.sleep(SCHEMA_SECONDS)


def web_processes(settings: Settings) -> int:
    """Return how many web processes `octavo up` starts."""
    return settings.web or min(MOST_WEB_PROCESSES, os.cpu_count() or 1)


async def fit_connections(database: Database, settings: Settings) -> None:
    """Shrink the connection pool of this process if all processes together could exceed the server's limit."""
    processes = web_processes(settings) + settings.workers
    if direct_address(settings) or processes * settings.database_connections <= FEW_CONNECTIONS:
        return  # a connection pooler has its own limit
    try:
        async with database.connection(wait_seconds=FIT_SECONDS) as connection:
            (row,) = await fetch_rows(connection, QUERIES.allowed_connections, {})
    except DatabaseUnavailable:  # the server is unavailable; most servers allow enough
        return
    allowed: int = row["allowed"]
    share = max(LEAST_CONNECTIONS, (allowed - processes * UNPOOLED_CONNECTIONS - SPARE_CONNECTIONS) // processes)
    if share < settings.database_connections:
        log.info("fewer database connections", connections=share, allowed=allowed, processes=processes)
        await database.resize(share)


async def keep_running(server: EmbeddedPostgres) -> None:
    """Check the built-in server regularly and restart it if it has ended. Runs until it is cancelled."""
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        if server.is_running():
            continue
        log.warning("database ended, restarting it")
        try:
            await asyncio.to_thread(server.start)
        except OctavoError as error:
            log.error("database failed to start", code=error.code, reason=error.line)  # noqa: TRY400 - expected


def storage_place(settings: Settings) -> str:
    """Return the location of the stored files in a readable form: a URL or a path."""
    return settings.storage_url or str(DataFolder(settings.data_dir).objects)


def local_disk(settings: Settings) -> Disk:
    """Return the local folders that the installation writes to, and the free space that they need."""
    folders = [settings.data_dir] if settings.database_url is None or settings.storage_url is None else []
    parts = urlsplit(settings.storage_url or "")
    return Disk([*folders, *([Path(unquote(parts.path))] if parts.scheme == "file" else [])], settings.free_disk_bytes)


def bucket_of(settings: Settings) -> Bucket:
    """Open the storage bucket that the settings name; by default, a folder in the data folder."""
    return open_bucket(
        settings.storage_url or DataFolder(settings.data_dir).objects.as_uri(),
        endpoint=settings.s3_endpoint,
        region=settings.s3_region,
        access_key=_reveal(settings.s3_access_key),
        secret_key=_reveal(settings.s3_secret_key),
    )


def sandbox_of(
    settings: Settings, preload: Sequence[str] = (), *, later: Sequence[str] = (), niceness: int = BACKGROUND_NICENESS
) -> Sandbox:
    """Open the sandbox with the limits from the settings.

    `preload` names modules that all child processes need; `later` names modules that only some child processes need.
    """
    limits = Limits(memory_bytes=settings.sandbox_memory_bytes, cpu_seconds=settings.sandbox_cpu_seconds)
    at_once = settings.sandbox_at_once or _files_at_once(limits.memory_bytes)
    return Sandbox(limits=limits, preload=preload, later=later, niceness=niceness, parallel=at_once)


def _files_at_once(memory_bytes: int) -> int:
    """Return how many files can be read in parallel.

    This is twice the number of CPUs, so that small files do not wait for slow ones, but no more than fit into half of
    the memory.
    """
    return max(1, min(2 * (os.cpu_count() or 1), psutil.virtual_memory().total // 2 // memory_bytes))


@asynccontextmanager
async def open_recognition(settings: Settings) -> AsyncGenerator[Recognition]:
    """Open text recognition (OCR).

    Its models are loaded when the first scan arrives, so that other files do not wait for them.
    """
    async with aclosing(sandbox_of(settings, OCR_PRELOAD)) as sandbox:
        yield Recognition(sandbox, settings.ocr_language, settings.ocr_seconds, settings.ocr_pages)


@asynccontextmanager
async def open_reader_of(settings: Settings) -> AsyncGenerator[FileReader]:
    """Open a reader for files that people and programs wait for. Its sandboxes start when the first file arrives."""
    async with (
        aclosing(sandbox_of(settings, EXTRACT_PRELOAD, later=LATER, niceness=0)) as sandbox,
        open_recognition(settings) as recognition,
    ):
        yield FileReader(sandbox, recognition)


def fetch_client_of(settings: Settings) -> GuardedClient:
    """Return the client for requests to other servers.

    It can also reach the private servers that the settings allow.
    """
    return GuardedClient(frozenset(settings.fetch_allow))


def _reveal(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None
