"""How long a claim takes as the line grows: `python -m benchmarks.engine.claims`.

Beside the jobs in line there are 1,000,000 finished ones and 100,000 that wait for a slot of their cap. Each size is
measured with and without a snapshot that is held open, as a backup does, in one run on one server.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.core.types import JSON, new_id
from octavo.database import Connection, connect, load_queries, migrate
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.jobs.job_run import ClaimedJob, Run
from octavo.jobs.kinds import JobKind, Kinds, sync_kinds
from octavo.jobs.worker_state import LaneClaims
from octavo.owners import ensure_local_owner
from tests.support.postgres import open_folder

QUERIES = load_queries("jobs")
SIZES = (1_000, 10_000, 100_000, 1_000_000)
FINISHED, CAPPED = 1_000_000, 100_000
CLAIMS = 500
OWNERS = 50

# Loaded without triggers, because what counts is what lies there and not how it came.
LOAD = """
INSERT INTO jobs (id, kind, owner_id, priority, virtual_time, status, max_attempts, admitted, cap_key,
                  created_at, queued_at, started_at, completed_at)
SELECT gen_random_uuid(), 'plain', o.id, 5, n, '{status}', 3, {admitted}, {cap}, now(), now(), {done}, {done}
FROM generate_series(1, {count}) AS n
JOIN (SELECT id, row_number() OVER () - 1 AS place FROM owners) AS o ON o.place = n % {owners}
"""


@dataclass(frozen=True)
class Figure:
    size: int
    snapshot: bool
    p50: float
    p95: float


async def nothing(run: Run[None]) -> JSON:  # noqa: ARG001
    return None


async def prepare(connection: Connection) -> None:
    kinds: Kinds[None] = Kinds()
    kinds.add(JobKind("plain", nothing, time_limit_seconds=600))
    await ensure_local_owner(connection)
    await sync_kinds(connection, kinds)
    await connection.execute(b"SET session_replication_role = replica")
    await connection.execute(b"INSERT INTO caps (key, most, taken) VALUES ('full', 5, 5)")
    for _ in range(OWNERS - 1):
        await connection.execute(b"INSERT INTO owners (id, kind) VALUES (%s, 'anonymous')", [new_id()])
    await load(connection, FINISHED, "complete", admitted=False, done="now()")
    await load(connection, CAPPED, "queued", admitted=False, cap="'full'")


async def load(
    connection: Connection, count: int, status: str, *, admitted: bool, cap: str = "NULL", done: str = "NULL"
) -> None:
    values = {"status": status, "admitted": admitted, "cap": cap, "count": count, "done": done, "owners": OWNERS}
    await connection.execute(LOAD.format(**values).encode())


async def claim(connection: Connection, start: LaneClaims) -> float:
    values = {
        "worker": new_id(),
        "held": [],
        "tokens": [],
        "outputs": Jsonb([]),
        "kinds": ["plain"],
        "slots": 1,
        "lease": 600,
        "bulk_most": 1,
        **start.values(time.monotonic()),
    }
    async with connection.cursor(row_factory=class_row(ClaimedJob)) as cursor:
        started = time.perf_counter()
        await cursor.execute(QUERIES.exchange, values)
        taken = time.perf_counter() - started
        start.add(await cursor.fetchall(), time.monotonic())
    return taken * 1000


async def measure(info: str, size: int, *, snapshot: bool) -> Figure:
    async with await connect(info) as connection, await connect(info) as other:
        await connection.execute(b"SET session_replication_role = replica")
        await connection.execute(b"DELETE FROM jobs WHERE status = 'processing' OR (status = 'queued' AND admitted)")
        await load(connection, size, "queued", admitted=True)
        await connection.execute(b"SET session_replication_role = origin")
        await connection.execute(b"VACUUM ANALYZE jobs")
        await connection.execute(b"CHECKPOINT")
        if snapshot:
            await other.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ")
            await other.execute(b"SELECT count(*) FROM owners")
        start = LaneClaims()
        times = sorted([await claim(connection, start) for _ in range(CLAIMS)])
        return Figure(size, snapshot, statistics.median(times), times[int(CLAIMS * 0.95)])


async def run(info: str) -> list[Figure]:
    await migrate(info)
    async with await connect(info) as connection:
        await prepare(connection)
    return [await measure(info, size, snapshot=held) for size in SIZES for held in (False, True)]


def page(figures: list[Figure]) -> str:
    rows = [
        f"| {one.size:,} | {'held open' if one.snapshot else 'none'} | {one.p50:.2f} | {one.p95:.2f} |"
        for one in figures
    ]
    head = "| jobs in line | snapshot | claim p50, ms | claim p95, ms |\n| ---: | --- | ---: | ---: |\n"
    return head + "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    arguments = parser.parse_args()
    with open_folder() as root:
        server = EmbeddedPostgres(DataFolder(root / "data"))
        try:
            table = page(asyncio.run(run(server.start())))
        finally:
            server.stop()
    print(table)
    if arguments.out:
        arguments.out.write_text(table)


if __name__ == "__main__":
    main()
