"""How well searching finds: nDCG@10 on the Cranfield questions, by each mode.

`python -m benchmarks.search.quality FOLDER`: below FOLDER lies the Cranfield collection. Other weights of
the fusion were tried on the questions with even numbers only; those with odd ones had no part in it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import psycopg

from benchmarks import cranfield
from benchmarks.search.library import Passage, Text, add_texts, empty_database, new_owner
from octavo.ai.vectors import Vectors
from octavo.database import Database
from octavo.language import NAME, Embedder
from octavo.search import Mode, search

GOAL, GOAL_RATIO = 0.39, 1.03
MODES: tuple[Mode, ...] = ("text", "semantic", "hybrid")
HALVES = {"all": slice(None), "even": slice(0, None, 2), "odd": slice(1, None, 2)}


def main(folder: Path) -> int:
    collection = cranfield.read(folder)
    embedder = Embedder(threads=2)
    meanings = embedder.embed([abstract.text for abstract in collection.abstracts]).tolist()
    questions = embedder.embed(collection.questions)
    texts = [
        Text(abstract.title, [Passage(f"# {abstract.title}\n\n{abstract.body}", vector)])
        for abstract, vector in zip(collection.abstracts, meanings, strict=True)
    ]
    with empty_database() as info:
        with psycopg.connect(info, autocommit=True) as connection:
            owner = new_owner(connection)
            ids = add_texts(connection, owner, texts, NAME)
            connection.execute("ANALYZE")
        places = {chunk: number for number, (chunk,) in enumerate(ids)}
        vectors = [Vectors(NAME, [vector]) for vector in questions.tolist()]
        asked = list(zip(collection.questions, vectors, strict=True))
        found = {mode: asyncio.run(rankings(info, owner, asked, mode, places)) for mode in MODES}
    scores = {half: {mode: score(collection, found[mode], HALVES[half]) for mode in MODES} for half in HALVES}
    print("questions  " + "".join(f"{mode:>10}" for mode in MODES) + "   hybrid / better one")
    for half, row in scores.items():
        ratio = row["hybrid"] / max(row["text"], row["semantic"])
        print(f"{half:<11}" + "".join(f"{row[mode]:10.4f}" for mode in MODES) + f"{ratio:12.3f}")
    whole = scores["all"]
    return 0 if whole["hybrid"] >= max(GOAL, GOAL_RATIO * max(whole["text"], whole["semantic"])) else 1


async def rankings(
    info: str, owner: UUID, asked: Sequence[tuple[str, Vectors]], mode: Mode, places: dict[UUID, int]
) -> list[list[int]]:
    async with Database(info) as database, database.transaction() as connection:
        return [
            [
                places[hit.chunk_id]
                for hit in await search(connection, owner, text, mode=mode, limit=10, vectors=[vector])
                if hit.chunk_id
            ]
            for text, vector in asked
        ]


def score(collection: cranfield.Collection, found: list[list[int]], half: slice) -> float:
    part = cranfield.Collection(collection.abstracts, collection.questions[half], collection.judgements[half])
    return part.ndcg(found[half])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
