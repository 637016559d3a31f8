"""How long it takes to find the nearest passages of a document of 100 passages, and how many of them are found.

`python -m benchmarks.connections.speed [PASSAGES ...]`. Vectors are made up and lie in clouds, as those of texts do.
All are in one database: one owner has 0.5 % of the passages, one 5 %, one half, another the rest. What is timed is what
the job does; what is found is compared with what a comparison of all vectors finds.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid5

import numpy as np
import psycopg

from benchmarks.search.library import empty_database, new_owner
from octavo.connect.detection import MOST_NEIGHBOURS
from octavo.connect.neighbours import (
    EmbeddingModel,
    Neighbour,
    SearchScope,
    build_index,
    find_exactly,
    find_neighbours,
    is_small,
    needs_index,
)
from octavo.database import Connection, Database

SIZES = (1_000, 10_000, 100_000, 200_000)
SHARES = (0.005, 0.05, 0.5)
GOAL_SECONDS, GOAL_RECALL = 0.2, 0.98
DIMENSIONS, CLOUDS, PASSAGES_A_DOCUMENT, ROUNDS, NOISE = 384, 400, 100, 9, 0.8
NAME = "made-up"
SPACE = UUID(int=8)


class Vectors:
    """Around the middles of clouds, of length one."""

    def __init__(self) -> None:
        self._chance = np.random.default_rng(8)
        self._clouds = self._chance.normal(size=(CLOUDS, DIMENSIONS)).astype(np.float32)

    def draw(self, count: int) -> list[list[float]]:
        chosen = self._clouds[self._chance.integers(0, CLOUDS, count)]
        made = chosen + NOISE * self._chance.normal(size=(count, DIMENSIONS)).astype(np.float32)
        return (made / np.linalg.norm(made, axis=1, keepdims=True)).round(5).tolist()


def fill(
    connection: psycopg.Connection[tuple[object, ...]], owner: UUID, count: int, vectors: Vectors, model: int
) -> None:
    """Documents of a hundred passages. Their texts are short and not indexed: nobody reads them."""
    documents = [uuid5(owner, f"document {number}") for number in range(-(-count // PASSAGES_A_DOCUMENT))]
    cursor = connection.cursor()
    into = (
        "COPY documents (id, owner_id, process_id, filename, content_type, source_type, sha256, bytes, revision, "
        "last_revision, status, text_ready, embeddings_ready) FROM STDIN"
    )
    with cursor.copy(into) as copy:
        for one in documents:
            digest = f"\\x{one.hex * 2}"
            copy.write_row(
                (one, owner, one, "made.txt", "text/plain", "text", digest, 1, 1, 1, "completed", True, True)
            )
    connection.execute("SET session_replication_role = replica")
    with cursor.copy(
        "COPY chunks (id, document_id, revision, index, content, char_start, char_end, word_count) FROM STDIN"
    ) as copy:
        for chunk, document, place in passages(documents, count):
            copy.write_row((chunk, document, 1, place, "made up", 0, 7, 2))
    drawn = iter(vectors.draw(count))
    with cursor.copy("COPY chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector) FROM STDIN") as copy:
        for (chunk, document, _), vector in zip(passages(documents, count), drawn, strict=True):
            copy.write_row((model, chunk, owner, document, f"[{','.join(map(repr, vector))}]"))
    connection.execute("SET session_replication_role = DEFAULT")


def passages(documents: list[UUID], count: int) -> Iterator[tuple[UUID, UUID, int]]:
    for number in range(count):
        document = documents[number // PASSAGES_A_DOCUMENT]
        yield uuid5(document, str(number)), document, number % PASSAGES_A_DOCUMENT


async def measure(info: str, owner: UUID, model: EmbeddingModel) -> tuple[float, float, float, str]:
    """Seconds of processors and of the clock, share of the true neighbours that was found, and how it was done."""
    document = uuid5(owner, "document 0")
    chunks = [uuid5(document, str(number)) for number in range(PASSAGES_A_DOCUMENT)]
    field = SearchScope(owner, model, [document])
    async with Database(info) as database:
        async with database.connection() as connection:
            indexed = await needs_index(connection, field)
        if indexed:
            began = time.perf_counter()
            await build_index(database, model.id, 512 << 20)
            print(f"        index built in {time.perf_counter() - began:.0f} s", flush=True)
        async with database.transaction() as connection:
            true = await find_exactly(connection, field, chunks, MOST_NEIGHBOURS, -1.0)
        took: list[tuple[float, float]] = []
        found: list[Neighbour] = []
        for _ in range(ROUNDS + 1):
            began, busy = time.perf_counter(), processor_seconds(info)
            found = await find_neighbours(database, field, chunks, MOST_NEIGHBOURS, -1.0)
            took.append((processor_seconds(info) - busy, time.perf_counter() - began))
        async with database.connection() as connection:
            way = "index" if await _is_large(connection, field) else "all compared"
    pairs = {(one.source, one.target) for one in true}
    share = len(pairs & {(one.source, one.target) for one in found}) / max(len(pairs), 1)
    processor, clock = np.median(took[1:], axis=0).tolist()
    return processor, clock, share, way


def processor_seconds(info: str) -> float:
    """Of this process and of the server's for its connections: what is used, however many others use the machine."""
    with psycopg.connect(info, autocommit=True) as connection:
        rows = connection.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()").fetchall()
        stats = [
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            for (pid,) in rows
            if pid != connection.info.backend_pid
        ]
    used = sum(int(fields[11]) + int(fields[12]) for fields in stats)
    return time.process_time() + used / os.sysconf("SC_CLK_TCK")


async def _is_large(connection: Connection, field: SearchScope) -> bool:
    return not await is_small(connection, field)


def main(*sizes: int) -> int:
    good = True
    for size in sizes or SIZES:
        with empty_database() as info:
            owners: dict[float, UUID] = {}
            with psycopg.connect(info, autocommit=True) as connection:
                row = connection.execute("SELECT embedding_model(%s, %s)", (NAME, DIMENSIONS)).fetchone()
                model = EmbeddingModel(row[0] if row else 0, NAME, DIMENSIONS)
                vectors = Vectors()
                for share in (*SHARES, 1 - sum(SHARES)):
                    owners[share] = new_owner(connection)
                    fill(connection, owners[share], max(round(size * share), 101), vectors, model.id)
                connection.execute("VACUUM ANALYZE chunk_embeddings")
            for share in SHARES:
                processor, clock, recall, way = asyncio.run(measure(info, owners[share], model))
                good &= processor < GOAL_SECONDS and recall >= GOAL_RECALL
                count = max(round(size * share), 101)
                told = (
                    f"{size:>7} passages, owner with {count:>6} ({share:.1%}): {processor * 1000:4.0f} ms of processors"
                )
                print(f"{told}, {clock * 1000:5.0f} by the clock, recall {recall:.3f}, {way}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
