"""What it costs to remove old events: moved to files and dropped as a partition, or deleted in batches.

`python -m benchmarks.scale.archives [EVENTS]`. Both ways remove the same number of events, while another connection
writes one event after the other. Printed are the time, the log that the server wrote, the disk space that is left, and
how long the slowest of the other writes took.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager
from pathlib import Path
from uuid import UUID

import psycopg

from benchmarks.search.library import empty_database, new_owner
from octavo.database import Database
from octavo.library.sweep import archive_events
from octavo.storage import open_bucket

EVENTS, BATCH = 1_000_000, 5_000
MONTHS = {"events_2026_01": "2026-01-01", "events_2026_02": "2026-02-01"}
MONTH = """
    CREATE TABLE {name} PARTITION OF events
    FOR VALUES FROM ('{first} 00:00Z') TO (timestamptz '{first} 00:00Z' + '1 month')"""
FILL = """
    INSERT INTO events (at, process_id, kind, state_after, owner_id, document_id, detail)
    SELECT timestamptz '{first} 00:00Z' + make_interval(secs => n), gen_random_uuid(), 'stage', NULL, %s,
           gen_random_uuid(),
           jsonb_build_object('stage', 'described', 'attempt', 1, 'seconds', random())
    FROM generate_series(1, %s) AS n"""
DELETE = "DELETE FROM {name} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {name} LIMIT %s))"
WRITE = "INSERT INTO events (process_id, kind, owner_id) VALUES (gen_random_uuid(), 'stage', %s)"
SIZE = "SELECT coalesce(pg_total_relation_size(to_regclass(%s)), 0)"
LOG = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
MEGABYTE = 1e6


def one(connection: psycopg.Connection, query: str, *values: object) -> int:
    row = connection.execute(query.encode(), values).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def traffic(info: str, owner: UUID) -> Generator[list[float]]:
    """Writes of another connection, and how long each took."""
    took, over = list[float](), threading.Event()

    def write() -> None:
        with psycopg.connect(info, autocommit=True) as connection:
            while not over.is_set():
                began = time.monotonic()
                connection.execute(WRITE.encode(), [owner])
                took.append(time.monotonic() - began)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield took
    finally:
        over.set()
        writer.join()


def measure(info: str, owner: UUID, name: str, what: str, remove: Callable[[], None]) -> None:
    with psycopg.connect(info, autocommit=True) as connection:
        size, log = one(connection, SIZE, name), one(connection, LOG)
        began = time.monotonic()
        with traffic(info, owner) as took:
            remove()
        seconds = time.monotonic() - began
        written, left = one(connection, LOG) - log, one(connection, SIZE, name)
    print(
        f"{what}: {seconds:.1f} s, {written / MEGABYTE:.0f} MB of log, {left / MEGABYTE:.0f} of "
        f"{size / MEGABYTE:.0f} MB left, slowest of {len(took)} other writes {max(took) * 1000:.0f} ms"
    )


def archive(info: str, folder: Path) -> None:
    async def move() -> None:
        async with Database(info) as database, aclosing(open_bucket(folder.as_uri())) as bucket:
            while await archive_events(database, bucket, 30):
                pass

    asyncio.run(move())


def drop(info: str, name: str) -> None:
    with psycopg.connect(info, autocommit=True) as connection:
        connection.execute(f"DROP TABLE {name}".encode())


def delete(info: str, name: str) -> None:
    with psycopg.connect(info, autocommit=True) as connection:
        connection.execute(f"ALTER TABLE {name} DISABLE TRIGGER USER".encode())
        while connection.execute(DELETE.format(name=name).encode(), [BATCH]).rowcount:
            pass


def main(events: int = EVENTS) -> None:
    with empty_database() as info, tempfile.TemporaryDirectory() as folder:
        with psycopg.connect(info, autocommit=True) as connection:
            owner = new_owner(connection)
            for name, first in MONTHS.items():
                connection.execute(MONTH.format(name=name, first=first).encode())
                connection.execute(FILL.format(first=first).encode(), [owner, events])
            connection.execute("UPDATE relay SET epoch = (SELECT max(number) FROM event_epochs), id = last_event_id()")
        deleted, moved = reversed(MONTHS)
        measure(info, owner, deleted, f"{events} events deleted in batches of {BATCH}", lambda: delete(info, deleted))
        drop(info, deleted)
        measure(info, owner, moved, f"{events} events moved to files and dropped", lambda: archive(info, Path(folder)))
        files = [file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()]
        print(f"{sum(files) / MEGABYTE:.0f} MB of files")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
