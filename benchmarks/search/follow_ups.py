"""How often the answering chunk is among the first five for a follow-up question, with and without rewriting it.

`python -m benchmarks.search.follow_ups [later_pairs|pairs]`: the pairs of `follow_ups.yaml` that were written after the
rules (default), or those that the rules were tuned on. The first question of each pair is answered offline, as in a
thread.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import yaml

from benchmarks.search.library import Passage, Text, add_texts, empty_database, new_owner
from octavo.ai.gateway import Gateway
from octavo.ai.gateway_setup import open_local_gateway
from octavo.ai.tasks.rewrite_question import EarlierTurn
from octavo.database import Database
from octavo.language import NAME, Embedder
from octavo.search.ask import Understood, answer, find_sources, understand

FIRST = 5


def main(part: str = "later_pairs") -> int:
    given = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    pairs = given[part]
    with empty_database() as info:
        with psycopg.connect(info, autocommit=True) as connection:
            owner = new_owner(connection)
            add_texts(connection, owner, make_texts([*given["documents"], *vary(given)]), NAME)
            connection.execute("ANALYZE")
        sections = [text for one in given["documents"] for text in one["sections"]]
        wanted = [next(text for text in sections if part_of_text in text) for _, _, part_of_text in pairs]
        results = asyncio.run(
            ask_all(info, owner, [(*pair[:2], text) for pair, text in zip(pairs, wanted, strict=True)])
        )
    for (_, follow_up, _), (understood, alone, rewritten) in zip(pairs, results, strict=True):
        print(f"{alone or '-':>3} {rewritten or '-':>3}  {follow_up}  ->  {understood}")
    places = [[alone for _, alone, _ in results], [rewritten for _, _, rewritten in results]]
    counts = [sum(0 < place <= FIRST for place in one) for one in places]
    first = [one.count(1) for one in places]
    print(f"{len(pairs)} {part}: among the first {FIRST} alone {counts[0]}, rewritten {counts[1]}")
    print(f"first of all: alone {first[0]}, rewritten {first[1]}")
    return 0


def vary(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Documents with the structure of others, but other names and numbers."""
    by_title = {one["title"]: one for one in given["documents"]}
    for variant in given["variants"]:
        base, replaced = by_title[variant["of"]], variant["replace"]
        for number in range(len(next(iter(replaced.values())))):
            words = {old: new[number] for old, new in replaced.items()}
            texts = [write_variant(text, words, number + 1) for text in (base["title"], *base["sections"])]
            yield {"title": texts[0], "sections": texts[1:]}


def write_variant(text: str, words: dict[str, str], number: int) -> str:
    pattern = re.compile("|".join(rf"{re.escape(word)}" for word in words) + r"|(?<![\d,.])\d+(?![\d,.])")

    def change(found: re.Match[str]) -> str:
        return words[found[0]] if found[0] in words else str(int(found[0]) + number)

    return pattern.sub(change, text)


def make_texts(documents: list[dict[str, Any]]) -> list[Text]:
    embedder = Embedder(threads=2)
    return [
        Text(
            one["title"],
            [
                Passage(text, vector)
                for text, vector in zip(one["sections"], embedder.embed(one["sections"]).tolist(), strict=True)
            ],
        )
        for one in documents
    ]


async def ask_all(info: str, owner: UUID, pairs: list[tuple[str, str, str]]) -> list[tuple[str, int, int]]:
    async with Database(info) as database:
        gateway = open_local_gateway()
        return [await ask_pair(database, gateway, owner, *pair) for pair in pairs]


async def ask_pair(
    database: Database, gateway: Gateway, owner: UUID, question: str, follow_up: str, wanted: str
) -> tuple[str, int, int]:
    """The question as it was understood, and the place of the answering chunk without and with rewriting."""
    said = await answer(gateway, await find_sources(database, gateway, owner, question))
    titles = tuple(one.title for one in said.citations)
    text = said.short or " ".join(one.text for one in said.statements)
    turn, sources = EarlierTurn(question, text, titles), [one.document_id for one in said.citations]
    understood = await understand(gateway, owner, follow_up, [turn], sources)
    places = [await place_of(database, gateway, owner, one, wanted) for one in (Understood(follow_up), understood)]
    return understood.text, places[0], places[1]


async def place_of(database: Database, gateway: Gateway, owner: UUID, asked: Understood, wanted: str) -> int:
    found = await find_sources(database, gateway, owner, asked.text, preferred=asked.preferred, asked=asked.asked)
    places = [place for place, one in enumerate(found.sources, start=1) if wanted == one.content]
    return places[0] if places else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
