"""How long a search takes, with the making of its vector: for owners with 500, 10,000 and 100,000 passages.

`python -m benchmarks.search.speed [PASSAGES]`. Texts are made of invented words that are as common as words are (Zipf),
250 a passage, 50 passages a document; their vectors lie in clouds, as those of texts do. Queries are words of the texts
themselves, drawn as often as they are used there, without the hundred most common ones. All owners are in one database.
Printed are p50 and p95 in milliseconds, by the clock and then of processor time, which a busy machine changes less.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import numpy as np
import psycopg

from benchmarks.search.library import Passage, Text, add_texts, empty_database, new_owner
from octavo.ai.gateway_setup import open_local_gateway
from octavo.database import Database
from octavo.language import NAME
from octavo.search import Mode, find

GOAL_SECONDS = 0.1
WORDS_A_PASSAGE, PASSAGES_A_DOCUMENT, DIMENSIONS, CLOUDS = 250, 50, 384, 400
ROUNDS, WARM = 60, 10
MODES: tuple[Mode, ...] = ("text", "semantic", "hybrid")
QUERIES = {"one word": 1, "three words": 3, "question": 9}
SYLLABLES = ("ba", "do", "ki", "lu", "me", "no", "pa", "ri", "so", "tu", "ve", "xa", "zo", "gri", "sta", "plo")
INDEX = (
    "CREATE INDEX ON chunk_embeddings USING hnsw ((vector::vector(384)) vector_cosine_ops) WHERE model_id = {number}"
)


def _word(number: int) -> str:
    """Its own for each number; the more common ones are shorter, as words are."""
    digits = [number % len(SYLLABLES), number // len(SYLLABLES) % len(SYLLABLES)]
    rest = number // len(SYLLABLES) ** 2
    while rest:
        digits.append(rest % len(SYLLABLES))
        rest //= len(SYLLABLES)
    return "".join(SYLLABLES[digit] for digit in digits) + "n"


class Library:
    """Texts of invented words; the same in every run."""

    def __init__(self, words: int = 60_000) -> None:
        self._chance = np.random.default_rng(8)
        self.words = [_word(number) for number in range(words)]
        weights = 1 / (np.arange(words) + 2.7)
        self._ends = np.cumsum(weights / weights.sum())
        self._clouds = self._chance.normal(size=(CLOUDS, DIMENSIONS))

    def draw(self, count: int, skip: int = 0) -> list[str]:
        first = self._ends[skip - 1] if skip else 0.0
        places = np.searchsorted(self._ends, self._chance.uniform(first, 1, count))
        return [self.words[min(place, len(self.words) - 1)] for place in places]

    def texts(self, passages: int) -> list[Text]:
        documents = range(0, passages, PASSAGES_A_DOCUMENT)
        return [
            Text(" ".join(self.draw(4, 100)), self._passages(min(PASSAGES_A_DOCUMENT, passages - one)))
            for one in documents
        ]

    def _passages(self, count: int) -> list[Passage]:
        clouds = self._clouds[self._chance.integers(0, CLOUDS, count)]
        vectors = clouds + self._chance.normal(size=(count, DIMENSIONS))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return [Passage(" ".join(self.draw(WORDS_A_PASSAGE)), vector) for vector in vectors.round(5).tolist()]


def main(passages: int = 100_000) -> int:
    library = Library()
    slowest = 0.0
    with empty_database() as info:
        with psycopg.connect(info, autocommit=True) as connection:
            owners = {size: new_owner(connection) for size in (passages, passages // 10, passages // 200)}
            for size, owner in owners.items():
                for start in range(0, size, 5000):
                    add_texts(connection, owner, library.texts(min(5000, size - start)), NAME)
            connection.execute("SET maintenance_work_mem = '512MB'")
            number = connection.execute("SELECT id FROM embedding_models").fetchone()
            connection.execute(INDEX.format(number=number[0] if number else 0).encode())
            connection.execute("VACUUM ANALYZE")
        for size, owner in owners.items():
            for kind, words in QUERIES.items():
                queries = [" ".join(library.draw(words, 100)) for _ in range(ROUNDS)]
                for mode in MODES:
                    clock, processors = zip(*asyncio.run(measure(info, owner, queries, mode)), strict=True)
                    print(f"{size:>7} passages, {kind:<12} {mode:<9} {_times(clock)}  {_times(processors)}", flush=True)
                    slowest = max(slowest, float(np.quantile(clock, 0.95)))
    processors = len(os.sched_getaffinity(0))
    print(f"slowest p95 {slowest * 1000:.0f} ms, load {os.getloadavg()[0]:.1f} on {processors} processors")
    return 0 if slowest < GOAL_SECONDS else 1


def _times(seconds: Sequence[float]) -> str:
    return f"{np.median(seconds) * 1000:5.0f} {np.quantile(seconds, 0.95) * 1000:5.0f}"


async def measure(info: str, owner: UUID, queries: Sequence[str], mode: Mode) -> list[tuple[float, float]]:
    """By the clock, and by the processor time of this process and of the database's."""
    gateway = open_local_gateway()
    took: list[tuple[float, float]] = []
    async with Database(info, connections=1) as database:
        async with database.connection() as connection:
            server = connection.info.backend_pid
        for query in (*queries[:WARM], *queries):
            start, worked = time.perf_counter(), _processor_time(server)
            await find(database, gateway, owner, query, mode=mode)
            took.append((time.perf_counter() - start, _processor_time(server) - worked))
    return took[WARM:]


def _processor_time(process: int) -> float:
    spent = int(Path(f"/proc/{process}/schedstat").read_text().split()[0])
    return time.process_time() + spent / 1e9


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
