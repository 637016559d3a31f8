"""Looks for passages: by their words, by their meaning, or both. Reads only, and only what belongs to the owner."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.ai.calls import Caller
from octavo.ai.vectors import Vectors
from octavo.core.errors import OctavoError, TimedOut
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.search.asking import Asked, read_query
from octavo.search.contract import DEFAULT_LIMIT, Degraded, Embeds, Filters, Found, Hit, Mode, Scores
from octavo.search.counting import count_terms, read_terms
from octavo.search.ranking import (
    MOST_CANDIDATES,
    TEXT_WEIGHT,
    TITLE_WEIGHT,
    VECTOR_WEIGHT,
    Plan,
    fuse,
    plan,
    spread,
)
from octavo.search.snippets import BEGIN, END, cut_snippet

QUERIES = load_queries("search")
# So many of each way of looking are fused.
POOL = 100
# What is looked at for one word at most, whatever the plan took for few; and how many of all of them are weighed.
ROOM = MOST_CANDIDATES + 500
MOST_WEIGHED = 500
# Up to so many passages all are compared; above, an index finds the nearest.
EXACT_PASSAGES = 20_000
# How much of what is asked a title has to say.
TITLE_SHARE = 0.6
MOST_TITLES = 10
# How similar a passage has to be, of what the most similar one is.
SIMILAR_SHARE = 0.5
# Somebody waits for the answer: a model that is slower than this is not waited for.
EMBED_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Phrases and exclusions as the database takes them, for every way of looking."""

    owner: UUID
    chosen: Jsonb
    required: str | None
    excluded: str | None

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


async def find(
    database: Database,
    embeds: Embeds,
    owner: UUID,
    query: str,
    *,
    mode: Mode = "hybrid",
    limit: int = DEFAULT_LIMIT,
    filters: Filters | None = None,
    most_of_one: int | None = None,
) -> Found:
    """Search as people do: the query's vector is made here, and where that is not possible words have to do."""
    asked = read_query(query)
    vector, degraded = None, None
    if mode != "text":
        try:
            vector = await embed_query(embeds, owner, asked)
        except OctavoError as error:
            if mode == "semantic":
                raise
            mode, degraded = "text", Degraded(error.code, error.line)
    async with database.transaction() as connection:
        hits = await search(
            connection, owner, asked, mode=mode, limit=limit, filters=filters, vector=vector, most_of_one=most_of_one
        )
    return Found(hits, mode, degraded)


async def embed_query(embeds: Embeds, owner: UUID, asked: Asked) -> Vectors:
    """Paid for like everything that is asked of models: within the owner's budget, and once for the same words."""
    try:
        async with asyncio.timeout(EMBED_SECONDS):
            return (await embeds.embed([asked.text], Caller(owner))).output
    except TimeoutError:
        raise TimedOut("The model that reads the query did not answer.") from None


async def search(
    connection: Connection,
    owner: UUID,
    query: str | Asked,
    *,
    mode: Mode = "hybrid",
    limit: int = DEFAULT_LIMIT,
    filters: Filters | None = None,
    vector: Vectors | None = None,
    most_of_one: int | None = None,
) -> list[Hit]:
    """The best passages first, in the caller's transaction; of one document no more than `most_of_one`.

    `vector` is that of the query; without one only words are looked for.
    """
    asked = read_query(query) if isinstance(query, str) else query
    await connection.execute(QUERIES.settle)
    limits = await _read_limits(connection, owner, asked, filters or Filters())
    look_up = read_terms if mode == "semantic" else count_terms
    planned = plan(await look_up(connection, owner, asked.words))
    by_words, by_title = await _by_text(connection, limits, planned) if mode != "semantic" else ([], [])
    by_vector = await _by_vector(connection, limits, vector) if vector and mode != "text" else []
    fused = fuse(
        (weight, [row["chunk_id"] for row in found])
        for weight, found in ((TEXT_WEIGHT, by_words), (VECTOR_WEIGHT, by_vector), (TITLE_WEIGHT, by_title))
    )
    documents = {row["chunk_id"]: row["document_id"] for row in (*by_words, *by_vector, *by_title)}
    chosen = spread(fused, documents, most_of_one, limit)
    text, semantic = ({row["chunk_id"]: float(row["score"]) for row in found} for found in (by_words, by_vector))
    details = await _details(connection, owner, chosen, planned)
    return [
        _as_hit(details[chunk], fused[chunk], Scores(text.get(chunk), semantic.get(chunk)))
        for chunk in chosen
        if chunk in details
    ]


async def _by_text(connection: Connection, limits: Limits, planned: Plan) -> tuple[list[Row], list[Row]]:
    """By the words of passages, and by titles; a title is not enough where a passage has to say something exactly."""
    if not planned.terms:
        return [], []
    by_words = await _by_words(connection, limits, planned) if planned.looked_for else []
    exactly = limits.required or limits.excluded
    return by_words, [] if exactly else await _by_title(connection, limits, planned)


async def _read_limits(connection: Connection, owner: UUID, asked: Asked, filters: Filters) -> Limits:
    read = partial(_phrases, connection, owner)
    required = _all_of([_any_of(one) for one in await read(asked.phrases)])
    excluded = _any_of([_any_of(one) for one in await read(asked.excluded)])
    return Limits(owner, Jsonb(filters.as_json()), required, excluded)


async def _phrases(connection: Connection, owner: UUID, phrases: Sequence[str]) -> list[list[str]]:
    """Each as the languages of the owner read it."""
    if not phrases:
        return []
    rows = await _fetch(connection, QUERIES.phrases, {"owner": owner, "phrases": list(phrases)})
    return [[row["query"] for row in rows if row["place"] == place] for place in range(1, len(phrases) + 1)]


def _any_of(queries: Iterable[str | None]) -> str | None:
    return " | ".join(f"({query})" for query in dict.fromkeys(queries) if query) or None


def _all_of(queries: Iterable[str | None]) -> str | None:
    return " & ".join(f"({query})" for query in queries if query) or None


async def _by_words(connection: Connection, limits: Limits, planned: Plan) -> list[Row]:
    values = {
        **limits.values(),
        **_columns(planned),
        "few": planned.few,
        "looked_for": [one.query for one in planned.looked_for],
        "worth": [one.worth for one in planned.looked_for],
        "averages": [term.average for term in planned.terms],
        "room": ROOM,
        "weighed": MOST_WEIGHED,
        "most": POOL,
    }
    return [row for row in await _fetch(connection, QUERIES.by_words, values) if row["score"]]


async def _by_title(connection: Connection, limits: Limits, planned: Plan) -> list[Row]:
    values = {
        "owner": limits.owner,
        "chosen": limits.chosen,
        **_columns(planned),
        "anything": _any_of(term.query for term in planned.terms),
        "share": TITLE_SHARE,
        "most": MOST_TITLES,
    }
    return await _fetch(connection, QUERIES.by_title, values)


def _columns(planned: Plan) -> dict[str, list[Any]]:
    return {
        "configs": [term.config for term in planned.terms],
        "queries": [term.query for term in planned.terms],
        "weights": [term.weight for term in planned.terms],
    }


async def _by_vector(connection: Connection, limits: Limits, vector: Vectors) -> list[Row]:
    """Without those that are far less similar than the best: something is always the nearest."""
    rows = await nearest(connection, limits, vector.model, as_text(vector.vectors[0]), POOL)
    return [row for row in rows if row["score"] >= SIMILAR_SHARE * rows[0]["score"]]


async def nearest(connection: Connection, limits: Limits, model: str, vector: str, most: int) -> list[Row]:
    """The passages whose vectors of a model are nearest to this one."""
    (count,) = await _fetch(connection, QUERIES.how_many, {"owner": limits.owner})
    by_index = count["passages"] > EXACT_PASSAGES
    values = {**limits.values(), "model": model, "vector": vector, "by_index": by_index, "most": most}
    return await _fetch(connection, QUERIES.by_vector, values)


def as_text(vector: Sequence[float]) -> str:
    return f"[{','.join(map(repr, vector))}]"


async def _details(connection: Connection, owner: UUID, chunks: list[UUID], planned: Plan) -> dict[UUID, Row]:
    if not chunks:
        return {}
    marked = _any_of(term.query for term in planned.terms)
    values = {"owner": owner, "chunks": chunks, "marked": marked, "begin": BEGIN, "end": END}
    return {row["chunk_id"]: row for row in await _fetch(connection, QUERIES.details, values)}


def _as_hit(row: Row, score: float, scores: Scores) -> Hit:
    snippet = cut_snippet(row["marked"])
    return Hit(
        document_id=row["document_id"],
        title=row["title"],
        source_type=row["source_type"],
        chunk_id=row["chunk_id"],
        snippet=snippet.text,
        marks=snippet.marks,
        page=_page(row, snippet.at),
        heading_path=row["heading_path"],
        seconds=row["seconds"],
        score=round(score, 6),
        scores=scores,
    )


def _page(row: Row, at: int) -> int | None:
    """The page on which the snippet is, of those that the passage runs over."""
    if row["page_from"] is None:
        return None
    return row["page_from"] + bisect_right(row["page_starts"], row["char_start"] + at)


async def _fetch(connection: Connection, query: bytes, values: Mapping[str, Any]) -> list[Row]:
    """Planned for just these values, always: how common a word is and how much somebody owns decides the way."""
    return await fetch_rows(connection, query, values, prepare=False)
