"""How much disk space chunks take in the database, by table, as a library grows.

`python -m benchmarks.scale.storage FOLDER [CHUNKS ...]` cuts the Markdown and text files below the folder into chunks
of 250 words, and repeats them in another order of words if there are too few. Vectors are made up, because their size
does not depend on their content.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg

from benchmarks.search.library import Passage, Text, add_texts, empty_database, new_owner

SIZES = (2_000, 10_000, 40_000)
WORDS, A_DOCUMENT, DIMENSIONS, SEED = 250, 20, 384, 8
NAMES = ("METADATA", "*.md", "*.rst")
TABLES = """
    SELECT relname, pg_total_relation_size(c.oid) FROM pg_class c
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_total_relation_size(c.oid) > 1000000
    ORDER BY 2 DESC"""
INDEX = """
    CREATE INDEX half ON chunk_embeddings USING hnsw ((vector::halfvec(384)) halfvec_cosine_ops)
    WHERE model_id = {model}"""


def chunks(folder: Path) -> Iterator[str]:
    chance = random.Random(SEED)
    files = sorted({file for name in NAMES for file in folder.rglob(name)})
    texts = [file.read_text(errors="replace").split() for file in files]
    found = [words[start : start + WORDS] for words in texts for start in range(0, len(words) - WORDS, WORDS)]
    while True:
        for words in found:
            yield " ".join(words)
            chance.shuffle(words)


def main(folder: Path, *sizes: int) -> None:
    chance, source, made = np.random.default_rng(SEED), chunks(folder), 0
    with empty_database() as info, psycopg.connect(info, autocommit=True) as connection:
        owner = new_owner(connection)
        for size in sizes or SIZES:
            vectors = chance.normal(size=(size - made, DIMENSIONS)).astype(np.float32)
            passages = [Passage(next(source), vector.round(5).tolist()) for vector in vectors]
            parts = range(0, len(passages), A_DOCUMENT)
            texts = [Text(f"Text {made + start}", passages[start : start + A_DOCUMENT]) for start in parts]
            add_texts(connection, owner, texts, "made-up")
            made = size
            connection.execute("VACUUM ANALYZE")
            (model,) = connection.execute("SELECT min(model_id) FROM chunk_embeddings").fetchone() or (0,)
            connection.execute("SET maintenance_work_mem = '256MB'")
            connection.execute(INDEX.format(model=model).encode())
            rows = connection.execute(TABLES.encode()).fetchall()
            (index,) = connection.execute("SELECT pg_relation_size('half')").fetchone() or (0,)
            connection.execute("DROP INDEX half")
            told = ", ".join(f"{name} {taken / size / 1000:.2f}" for name, taken in rows)
            whole = sum(taken for _, taken in rows) / size / 1000
            print(
                f"{size} chunks: {whole:.1f} kB a chunk ({told}), of this {index / size / 1000:.2f} vector index",
                flush=True,
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
