"""What an index of half-precision vectors saves, and how many of the true neighbours it still finds.

`python -m benchmarks.scale.halves CHUNKS FOLDER ...` cuts the Markdown and text files below the folders into chunks of
120 words, embeds them with the built-in model, and looks for the 50 nearest chunks of 300 of them.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import psycopg
from numpy.typing import NDArray

from benchmarks.search.library import empty_database
from octavo.language.embedding import DIMENSIONS, Embedder

WORDS, QUERIES, NEAREST, EF_SEARCH, SEED = 120, 300, 50, 120, 8
NAMES = ("METADATA", "*.md", "*.rst")
TYPES = ("vector", "halfvec")
MEGABYTE = 1e6


def chunks(folders: Sequence[Path]) -> Iterator[str]:
    """Texts without repetitions."""
    seen = set[str]()
    for file in sorted({file for folder in folders for name in NAMES for file in folder.rglob(name)}):
        words = file.read_text(errors="replace").split()
        for start in range(0, len(words) - WORDS, WORDS):
            text = " ".join(words[start : start + WORDS])
            if text not in seen:
                seen.add(text)
                yield text


def fill(connection: psycopg.Connection, vectors: NDArray[np.float32]) -> None:
    connection.execute(f"CREATE TABLE halves (id integer PRIMARY KEY, vector vector({DIMENSIONS}))".encode())
    with connection.cursor() as cursor, cursor.copy("COPY halves FROM STDIN") as copy:
        for number, vector in enumerate(vectors.tolist()):
            copy.write_row((number, f"[{','.join(f'{one:.7g}' for one in vector)}]"))
    connection.execute("SET maintenance_work_mem = '512MB'")
    connection.execute("SET max_parallel_maintenance_workers = 0")
    connection.execute(f"SET hnsw.ef_search = {EF_SEARCH}".encode())
    connection.execute("SET enable_seqscan = off")


def measure(connection: psycopg.Connection, kind: str, asked: Sequence[int], true: list[set[int]]) -> str:
    cast = f"vector::{kind}({DIMENSIONS})"
    began = time.monotonic()
    connection.execute(f"CREATE INDEX halves_{kind} ON halves USING hnsw (({cast}) {kind}_cosine_ops)".encode())
    built = time.monotonic() - began
    row = connection.execute(f"SELECT pg_relation_size('halves_{kind}')".encode()).fetchone()
    query = (
        f"SELECT id FROM halves ORDER BY {cast} <=> (SELECT {cast} FROM halves WHERE id = %s) LIMIT {NEAREST}".encode()
    )
    began = time.monotonic()
    found = [{one for (one,) in connection.execute(query, [number]).fetchall()} for number in asked]
    searched = (time.monotonic() - began) / len(asked)
    share = sum(len(one & other) for one, other in zip(found, true, strict=True)) / (NEAREST * len(asked))
    connection.execute(f"DROP INDEX halves_{kind}".encode())
    size = (row[0] if row else 0) / MEGABYTE
    return f"{kind}: {size:.1f} MB, built in {built:.1f} s, {searched * 1000:.1f} ms a search, recall {share:.4f}"


def main(count: int, *folders: Path) -> None:
    texts = list(chunks(folders))
    chosen = random.Random(SEED).sample(texts, min(count, len(texts)))
    vectors = Embedder().embed(chosen).astype(np.float32)
    asked = random.Random(SEED).sample(range(len(vectors)), QUERIES)
    scores = vectors[asked] @ vectors.T
    true = [set(np.argpartition(-one, NEAREST)[:NEAREST].tolist()) for one in scores]
    print(f"{len(vectors)} of {len(texts)} chunks")
    with empty_database() as info, psycopg.connect(info, autocommit=True) as connection:
        fill(connection, vectors)
        for kind in TYPES:
            print(measure(connection, kind, asked, true))


if __name__ == "__main__":
    main(int(sys.argv[1]), *map(Path, sys.argv[2:]))
