"""Searches chunks by words, by meaning, or both. Read-only, and limited to the owner's documents."""

from __future__ import annotations

import asyncio
import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.ai.calls import Caller, ModelAnswer
from octavo.ai.vectors import Vectors
from octavo.core.errors import BadInput, OctavoError, TimedOut
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.library.documents import moment_url
from octavo.records.search import Degraded, Mode, Scores, SearchHit, SearchPage
from octavo.search.query import DEFAULT_LIMIT, Filters, SearchQuery, parse_query
from octavo.search.ranking import (
    MOST_CANDIDATES,
    TEXT_WEIGHT,
    TITLE_WEIGHT,
    VECTOR_WEIGHT,
    RankingPlan,
    fuse,
    plan_ranking,
    spread,
)
from octavo.search.snippets import BEGIN, END, cut_snippet
from octavo.search.term_counts import count_terms, read_terms

QUERIES = load_queries("search")
# Most hits of each ranking that are fused.
POOL = 100
# Most chunks read for one word, even if the counts in the plan are outdated, and most chunks scored in total.
MOST_MATCHES = MOST_CANDIDATES + 500
MOST_SCORED = 500
# Up to this many chunks all vectors are compared; above, an index finds the nearest.
EXACT_CHUNKS = 20_000
# Share of the query's weight that a title has to match.
TITLE_SHARE = 0.6
MOST_TITLES = 10
# Least similarity of a chunk, relative to the most similar one.
SIMILAR_SHARE = 0.5
# After this time the search continues without the model, because a person is waiting.
EMBED_SECONDS = 5.0
# Paging ends after this many hits. The rankings together find fewer.
MOST_SHOWN = 1000


class QueryEmbedder(Protocol):
    """The interface that embeds queries. The AI gateway implements it."""

    async def embed(self, texts: Sequence[str], caller: Caller, model: str | None = None) -> ModelAnswer[Vectors]: ...


@dataclass(frozen=True, slots=True)
class ChunkFilter:
    """Filters, phrases and exclusions in the form that the database expects. They are the same for every ranking."""

    owner: UUID
    chosen: Jsonb
    required: str | None
    excluded: str | None

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


async def find(
    database: Database,
    embedder: QueryEmbedder,
    owner: UUID,
    query: str,
    *,
    mode: Mode = "hybrid",
    limit: int = DEFAULT_LIMIT,
    filters: Filters | None = None,
    most_of_one: int | None = None,
) -> SearchPage:
    """Embed the query and search. If embedding fails, a hybrid search uses only words."""
    parsed = parse_query(query)
    vector, degraded = None, None
    if mode != "text":
        try:
            vector = await embed_query(embedder, owner, parsed)
        except OctavoError as error:
            if mode == "semantic":
                raise
            mode, degraded = "text", Degraded(error.code, error.line)
    async with database.transaction() as connection:
        hits = await search(
            connection, owner, parsed, mode=mode, limit=limit, filters=filters, vector=vector, most_of_one=most_of_one
        )
    return SearchPage(hits, mode, degraded)


async def find_page(
    database: Database,
    embedder: QueryEmbedder,
    owner: UUID,
    query: str,
    *,
    cursor: str | None = None,
    mode: Mode = "hybrid",
    limit: int = DEFAULT_LIMIT,
    filters: Filters | None = None,
    most_of_one: int | None = None,
) -> SearchPage:
    """One page of hits. A hit has no stable sort key, so the cursor holds the number of hits already shown."""
    shown = read_shown(cursor) if cursor else 0
    wanted = shown + limit
    found = await find(
        database, embedder, owner, query, mode=mode, limit=wanted + 1, filters=filters, most_of_one=most_of_one
    )
    more = make_shown(wanted) if len(found.items) > wanted and wanted < MOST_SHOWN else None
    return replace(found, items=found.items[shown:wanted], next_cursor=more)


def make_shown(shown: int) -> str:
    return urlsafe_b64encode(f"shown {shown}".encode()).decode().rstrip("=")


def read_shown(cursor: str) -> int:
    try:
        word, _, number = urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)).decode().partition(" ")
    except (ValueError, binascii.Error):
        word, number = "", ""
    if word != "shown" or not number.isdecimal() or not number.isascii() or not 0 < int(number[:9]) < MOST_SHOWN:
        raise BadInput("Invalid cursor. Use the next_cursor of the previous page.")
    return int(number)


async def embed_query(embedder: QueryEmbedder, owner: UUID, query: SearchQuery) -> Vectors:
    """Embed a query. The owner pays for the call, but only once for the same words."""
    try:
        async with asyncio.timeout(EMBED_SECONDS):
            return (await embedder.embed([query.text], Caller(owner))).output
    except TimeoutError:
        raise TimedOut("The model that embeds the query did not respond in time.") from None


async def search(
    connection: Connection,
    owner: UUID,
    query: str | SearchQuery,
    *,
    mode: Mode = "hybrid",
    limit: int = DEFAULT_LIMIT,
    filters: Filters | None = None,
    vector: Vectors | None = None,
    most_of_one: int | None = None,
) -> list[SearchHit]:
    """Find chunks, best first, with at most `most_of_one` chunks of each document. Runs in the caller's transaction.

    `vector` is the embedded query; without it the search uses only words.
    """
    query = parse_query(query) if isinstance(query, str) else query
    await connection.execute(QUERIES.settle)
    chunk_filter = await _read_filter(connection, owner, query, filters or Filters())
    look_up = read_terms if mode == "semantic" else count_terms
    plan = plan_ranking(await look_up(connection, owner, query.words))
    by_words, by_title = await _by_text(connection, chunk_filter, plan) if mode != "semantic" else ([], [])
    by_vector = await _by_vector(connection, chunk_filter, vector) if vector and mode != "text" else []
    fused = fuse(
        (weight, [row["chunk_id"] for row in found])
        for weight, found in ((TEXT_WEIGHT, by_words), (VECTOR_WEIGHT, by_vector), (TITLE_WEIGHT, by_title))
    )
    documents = {row["chunk_id"]: row["document_id"] for row in (*by_words, *by_vector, *by_title)}
    chosen = spread(fused, documents, most_of_one, limit)
    text, semantic = ({row["chunk_id"]: float(row["score"]) for row in found} for found in (by_words, by_vector))
    details = await _details(connection, owner, chosen, plan)
    return [
        _as_hit(details[chunk], fused[chunk], Scores(text.get(chunk), semantic.get(chunk)))
        for chunk in chosen
        if chunk in details
    ]


async def _by_text(connection: Connection, chunk_filter: ChunkFilter, plan: RankingPlan) -> tuple[list[Row], list[Row]]:
    """Rank by the words of chunks and, separately, by titles.

    Titles are ignored if the query has phrases or exclusions.
    """
    if not plan.terms:
        return [], []
    by_words = await _by_words(connection, chunk_filter, plan) if plan.lookups else []
    is_exact = chunk_filter.required or chunk_filter.excluded
    return by_words, [] if is_exact else await _by_title(connection, chunk_filter, plan)


async def _read_filter(connection: Connection, owner: UUID, query: SearchQuery, filters: Filters) -> ChunkFilter:
    read = partial(_phrases, connection, owner)
    required = _all_of([_any_of(one) for one in await read(query.phrases)])
    excluded = _any_of([_any_of(one) for one in await read(query.excluded)])
    return ChunkFilter(owner, Jsonb(filters.as_json()), required, excluded)


async def _phrases(connection: Connection, owner: UUID, phrases: Sequence[str]) -> list[list[str]]:
    """Convert each phrase to database queries, one for each of the owner's languages."""
    if not phrases:
        return []
    rows = await _fetch(connection, QUERIES.phrases, {"owner": owner, "phrases": list(phrases)})
    return [[row["query"] for row in rows if row["place"] == place] for place in range(1, len(phrases) + 1)]


def _any_of(queries: Iterable[str | None]) -> str | None:
    return " | ".join(f"({query})" for query in dict.fromkeys(queries) if query) or None


def _all_of(queries: Iterable[str | None]) -> str | None:
    return " & ".join(f"({query})" for query in queries if query) or None


async def _by_words(connection: Connection, chunk_filter: ChunkFilter, plan: RankingPlan) -> list[Row]:
    values = {
        **chunk_filter.values(),
        **_columns(plan),
        "few": plan.few,
        "lookups": [one.query for one in plan.lookups],
        "worth": [one.worth for one in plan.lookups],
        "averages": [term.average for term in plan.terms],
        "most_matches": MOST_MATCHES,
        "most_scored": MOST_SCORED,
        "most": POOL,
    }
    return [row for row in await _fetch(connection, QUERIES.by_words, values) if row["score"]]


async def _by_title(connection: Connection, chunk_filter: ChunkFilter, plan: RankingPlan) -> list[Row]:
    values = {
        "owner": chunk_filter.owner,
        "chosen": chunk_filter.chosen,
        **_columns(plan),
        "anything": _any_of(term.query for term in plan.terms),
        "share": TITLE_SHARE,
        "most": MOST_TITLES,
    }
    return await _fetch(connection, QUERIES.by_title, values)


def _columns(plan: RankingPlan) -> dict[str, list[Any]]:
    return {
        "configs": [term.config for term in plan.terms],
        "queries": [term.query for term in plan.terms],
        "weights": [term.weight for term in plan.terms],
    }


async def _by_vector(connection: Connection, chunk_filter: ChunkFilter, vector: Vectors) -> list[Row]:
    """Rank by similarity. Leaves out chunks that are far less similar than the best chunk."""
    rows = await nearest(connection, chunk_filter, vector.model, as_text(vector.vectors[0]), POOL)
    return [row for row in rows if row["score"] >= SIMILAR_SHARE * rows[0]["score"]]


async def nearest(connection: Connection, chunk_filter: ChunkFilter, model: str, vector: str, most: int) -> list[Row]:
    """The chunks whose vectors are nearest to the given vector. Only vectors of the same model are compared."""
    (count,) = await _fetch(connection, QUERIES.count_chunks, {"owner": chunk_filter.owner})
    by_index = count["chunks"] > EXACT_CHUNKS
    values = {**chunk_filter.values(), "model": model, "vector": vector, "by_index": by_index, "most": most}
    return await _fetch(connection, QUERIES.by_vector, values)


def as_text(vector: Sequence[float]) -> str:
    return f"[{','.join(map(repr, vector))}]"


async def _details(connection: Connection, owner: UUID, chunks: list[UUID], plan: RankingPlan) -> dict[UUID, Row]:
    if not chunks:
        return {}
    marked = _any_of(term.query for term in plan.terms)
    values = {"owner": owner, "chunks": chunks, "marked": marked, "begin": BEGIN, "end": END}
    return {row["chunk_id"]: row for row in await _fetch(connection, QUERIES.details, values)}


def _as_hit(row: Row, score: float, scores: Scores) -> SearchHit:
    snippet = cut_snippet(row["marked"])
    return SearchHit(
        document_id=row["document_id"],
        title=row["title"],
        source_type=row["source_type"],
        chunk_id=row["chunk_id"],
        snippet=snippet.text,
        marks=snippet.marks,
        page=_page(row, snippet.at),
        heading_path=row["heading_path"],
        seconds=row["seconds"],
        url=moment_url(row["source_url"], row["seconds"]),
        score=round(score, 6),
        scores=scores,
    )


def _page(row: Row, at: int) -> int | None:
    """The page on which the snippet begins; None if the document has no pages."""
    if row["page_from"] is None:
        return None
    return row["page_from"] + bisect_right(row["page_starts"], row["char_start"] + at)


async def _fetch(connection: Connection, query: bytes, values: Mapping[str, Any]) -> list[Row]:
    """Run a query with a plan made for these values, because the best plan depends on how common the words are."""
    return await fetch_rows(connection, query, values, prepare=False)
