"""How many transactions and connections workers without jobs need.

`python -m benchmarks.scale.idle [WORKERS] [SECONDS]`. The transactions are those of `pg_stat_database`. Jobs that are
scheduled every five minutes are part of the figure if they fall into the time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from benchmarks.search.library import empty_database

SETTLE_SECONDS, EVERY_SECONDS = 100, 5
COMMITS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
OPEN = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def as_url(info: str) -> str:
    parts = {name: str(value) for name, value in conninfo_to_dict(info).items()}
    place = urlencode({name: parts[name] for name in ("host", "port") if name in parts})
    return f"postgresql://{quote(parts['user'])}:{quote(parts.get('password', 'none'))}@/{parts['dbname']}?{place}"


def one(connection: psycopg.Connection, query: bytes) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def main(workers: int = 2, seconds: int = 60) -> None:
    with empty_database() as info, tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "OCTAVO_DATABASE_URL": as_url(info), "OCTAVO_DATA_DIR": folder}
        command = [sys.executable, "-m", "octavo", "worker"]
        running = [subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) for _ in range(workers)]
        try:
            with psycopg.connect(info, autocommit=True) as connection:
                while one(connection, b"SELECT count(*) FROM workers") < workers:
                    time.sleep(1)
                time.sleep(SETTLE_SECONDS)
                before, began, held = one(connection, COMMITS.encode()), time.monotonic(), list[int]()
                while time.monotonic() - began < seconds:
                    time.sleep(EVERY_SECONDS)
                    held.append(one(connection, OPEN.encode()))
                made = one(connection, COMMITS.encode()) - before - len(held)
            print(f"{made / (time.monotonic() - began) / workers:.2f} transactions a second for each worker")
            print(
                f"{statistics.mean(held) / workers:.1f} connections for each worker, at most {max(held) / workers:.1f}"
            )
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
