"""Keyword, semantic and hybrid search for chunks. Read-only, and limited to the account's documents."""

from __future__ import annotations

import asyncio
import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.ai.calls import LOCAL, Caller
from octavo.ai.vectors import Vectors
from octavo.core.errors import BadInput, OctavoError, TimedOut
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.language.embedding import NAME
from octavo.records.search import Degraded, Mode, SearchHit, SearchPage
from octavo.search.hits import HitDraft, QueryEmbedder, Reason, choose_sentences, finish_hit, read_details
from octavo.search.query import DEFAULT_LIMIT, Filters, SearchQuery, parse_query
from octavo.search.query_terms import count_terms, read_terms, suggest
from octavo.search.ranking import (
    FIELD_WEIGHT,
    MOST_CANDIDATES,
    TEXT_WEIGHT,
    VECTOR_WEIGHT,
    RankingPlan,
    Term,
    essential_terms,
    fuse,
    least_similarity,
    plan_ranking,
    spread,
    vector_share,
)

QUERIES = load_queries("search")
# The maximum number of hits of each ranking that are fused.
POOL = 100
# The maximum number of chunks that are read for one word, even if the counts in the plan are outdated, and that are
# scored in total.
MOST_MATCHES = MOST_CANDIDATES + 500
MOST_SCORED = 500
# The size of the sample that is scored without a lookup, if a large share of all chunks contains the words.
MOST_BROWSED = 1000
# Up to this number of chunks, all vectors are compared. Above it, an index finds the nearest.
EXACT_CHUNKS = 20_000
# Share of the query's weight that the title, tags and names of a document have to match.
FIELD_SHARE = 0.6
MOST_BY_FIELDS = 50
# The maximum number of documents whose titles, tags and names are compared with the query.
MOST_NAMED = 500
# At most this many of them are ranked with the other hits; the rest follow at the end.
RANKED_BY_FIELDS = 10
LAST_WEIGHT = 0.001
# The minimum similarity of a chunk, relative to the most similar one.
SIMILAR_SHARE = 0.5
# After this time the search continues without the model, because a person is waiting.
EMBED_SECONDS = 5.0
# Paging ends after this many hits. The rankings together find fewer.
MOST_SHOWN = 1000
NO_FILTERS = Filters()
# Filters that exclude few documents.
UNSELECTIVE = frozenset({"versions", "without"})


@dataclass(frozen=True, slots=True)
class ChunkFilter:
    """Filters, phrases and exclusions in the format that the database expects. All rankings use the same filter."""

    owner: UUID
    chosen: Jsonb
    required: str | None
    excluded: str | None

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def is_filtered(self) -> bool:
        """Whether the filters may exclude most documents."""
        return bool(self.chosen.obj.keys() - UNSELECTIVE)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search.

    `limit` is the maximum number of hits, and `most_of_one` the maximum for each document. If `nearest_always` is true,
    a semantic search returns the nearest chunks even if they are not similar to the query, for callers that check the
    chunks themselves.
    """

    mode: Mode = "hybrid"
    limit: int = DEFAULT_LIMIT
    filters: Filters = NO_FILTERS
    most_of_one: int | None = None
    nearest_always: bool = False


@dataclass(frozen=True, slots=True)
class Rankings:
    """The rows that each kind of search (keywords, fields, vectors) found, best first."""

    words: Sequence[Row] = ()
    vectors: Sequence[Row] = ()
    fields: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits without snippets, best first, and the terms of the query."""

    drafts: list[HitDraft]
    terms: list[Term]


async def find(
    database: Database,
    embedder: QueryEmbedder,
    owner: UUID,
    query: str,
    *,
    mode: Mode = "hybrid",
    limit: int = DEFAULT_LIMIT,
    filters: Filters | None = None,
) -> SearchPage:
    """Embed the query and search. If embedding fails, a hybrid search falls back to keyword search."""
    options = SearchOptions(mode, limit, filters or NO_FILTERS)
    return await _find_part(database, embedder, owner, query, options, slice(0, limit))


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
    """Search and return one page of hits.

    Hits have no stable sort key, so the cursor contains the number of hits already shown.
    """
    shown = read_shown(cursor) if cursor else 0
    options = SearchOptions(mode, shown + limit + 1, filters or NO_FILTERS, most_of_one)
    return await _find_part(database, embedder, owner, query, options, slice(shown, shown + limit))


async def find_drafts(
    database: Database, embedder: QueryEmbedder, owner: UUID, query: str, options: SearchOptions
) -> list[HitDraft]:
    """Search without snippets and spelling suggestions, for a caller that reads the chunks itself."""
    parsed = parse_query(query)
    vectors, degraded = await _embed_if_wanted(database, embedder, owner, parsed, options.mode)
    options = replace(options, mode="text") if degraded else options
    async with database.transaction() as connection:
        return (await _search(connection, owner, parsed, options, vectors)).drafts


async def _find_part(
    database: Database, embedder: QueryEmbedder, owner: UUID, query: str, options: SearchOptions, part: slice
) -> SearchPage:
    """Search, and build the hits of one page of results.

    The database connection is released before sentences are chosen for the snippets.
    """
    parsed = parse_query(query)
    vectors, degraded = await _embed_if_wanted(database, embedder, owner, parsed, options.mode)
    options = replace(options, mode="text") if degraded else options
    async with database.transaction() as connection:
        result = await _search(connection, owner, parsed, options, vectors)
        suggestion = None if part.start else await _suggest(connection, owner, query, parsed, result)
    drafts = result.drafts[part]
    sentences = await choose_sentences(embedder, owner, parsed.text, drafts)
    hits = [finish_hit(draft, sentences.get(draft.row["chunk_id"])) for draft in drafts]
    more = make_shown(part.stop) if len(result.drafts) > part.stop and part.stop < MOST_SHOWN else None
    return SearchPage(hits, options.mode, degraded, more, suggestion)


async def _suggest(
    connection: Connection, owner: UUID, typed: str, query: SearchQuery, result: SearchResult
) -> str | None:
    """Suggest a corrected spelling of the query.

    A semantic search does not count how often the query's words occur. If such a search found nothing, this function
    counts the words.
    """
    terms = result.terms
    if not any(term.found_in for term in terms):
        if result.drafts or not query.words:
            return None
        terms = await count_terms(connection, owner, query.words)
    return await suggest(connection, owner, typed, terms)


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


async def _embed_if_wanted(
    database: Database, embedder: QueryEmbedder, owner: UUID, query: SearchQuery, mode: Mode
) -> tuple[list[Vectors], Degraded | None]:
    if mode == "text" or not query.words:
        return [], None
    try:
        return await embed_query(database, embedder, owner, query), None
    except OctavoError as error:
        if mode == "semantic":
            raise
        return [], Degraded(error.code, error.line)


async def embed_query(database: Database, embedder: QueryEmbedder, owner: UUID, query: SearchQuery) -> list[Vectors]:
    """Embed a query with each embedding model that was used for the account's vectors.

    Usually this is one model. While documents are being embedded with a new model, there are two. Unavailable models
    are skipped. If all are unavailable, the error of the last one is raised. The account pays only once for the same
    query and model.
    """
    async with database.connection() as connection:
        models = [row["name"] for row in await fetch_rows(connection, QUERIES.models_in_use, {"owner": owner})]
    results = await asyncio.gather(
        *(_embed_with(embedder, owner, query, model) for model in models), return_exceptions=True
    )
    embedded = [one for one in results if isinstance(one, Vectors)]
    errors = [one for one in results if isinstance(one, BaseException)]
    if unexpected := [one for one in errors if not isinstance(one, OctavoError)]:
        raise unexpected[0]
    if errors and not embedded:
        raise errors[-1]
    return embedded


async def _embed_with(embedder: QueryEmbedder, owner: UUID, query: SearchQuery, model: str) -> Vectors:
    try:
        async with asyncio.timeout(EMBED_SECONDS):
            return (await embedder.embed([query.text], Caller(owner), LOCAL if model == NAME else model)).output
    except TimeoutError:
        raise TimedOut("The model that embeds the query did not respond in time.") from None


async def search(
    connection: Connection,
    owner: UUID,
    query: str,
    *,
    mode: Mode = "hybrid",
    limit: int = DEFAULT_LIMIT,
    vectors: Sequence[Vectors] = (),
) -> list[SearchHit]:
    """Find chunks, best first. Runs in the caller's transaction.

    `vectors` are the vectors of the query, one for each model. Without vectors, only keyword search is used.
    """
    result = await _search(connection, owner, parse_query(query), SearchOptions(mode, limit), vectors)
    return [finish_hit(draft) for draft in result.drafts]


async def _search(
    connection: Connection, owner: UUID, query: SearchQuery, options: SearchOptions, vectors: Sequence[Vectors]
) -> SearchResult:
    await connection.execute(QUERIES.settle)
    chunk_filter = await _read_filter(connection, owner, query, options.filters)
    if not query.words:
        return SearchResult(await _by_facts(connection, chunk_filter, options), [])
    look_up = read_terms if options.mode == "semantic" else count_terms
    terms = await look_up(connection, owner, query.words)
    plan = plan_ranking(terms, browses=not chunk_filter.required and not chunk_filter.excluded)
    rankings = Rankings()
    if options.mode != "semantic":
        rankings = await _by_text(connection, chunk_filter, plan)
    if options.mode != "text":
        found = await _by_vectors(connection, chunk_filter, vectors, options)
        rankings = replace(rankings, vectors=found)
    return SearchResult(await _draft_hits(connection, owner, rankings, plan, options), terms)


async def _by_facts(connection: Connection, chunk_filter: ChunkFilter, options: SearchOptions) -> list[HitDraft]:
    """Find documents, sorted by date, for a query that consists only of operators such as `type:invoice`."""
    values = {"owner": chunk_filter.owner, "chosen": chunk_filter.chosen, "most": POOL}
    rankings = Rankings(fields=await _fetch(connection, QUERIES.by_facts, values))
    return await _draft_hits(connection, chunk_filter.owner, rankings, RankingPlan((), (), few=True), options)


async def _draft_hits(
    connection: Connection, owner: UUID, rankings: Rankings, plan: RankingPlan, options: SearchOptions
) -> list[HitDraft]:
    """Merge the rankings and read the details of the best hits."""
    fields = place_fields(rankings)
    words, vectors = ({row["chunk_id"]: row for row in found} for found in (rankings.words, rankings.vectors))
    first, rest = [*fields][:RANKED_BY_FIELDS], [*fields][RANKED_BY_FIELDS:]
    shares = {key: vector_share(row["model"], row["language"]) for key, row in vectors.items()}
    fused = fuse(((TEXT_WEIGHT, [*words]), (VECTOR_WEIGHT, shares), (FIELD_WEIGHT, first), (LAST_WEIGHT, rest)))
    documents = {key: row["document_id"] for found in (words, vectors, fields) for key, row in found.items()}
    chosen = spread(fused, documents, options.most_of_one, options.limit)
    details = (
        await read_details(connection, owner, chosen, _any_of(term.query for term in plan.terms) or "")
        if chosen
        else {}
    )
    return [
        HitDraft(details[key], fused[key], _reason(key, words, vectors, fields)) for key in chosen if key in details
    ]


def place_fields(rankings: Rankings) -> dict[UUID, Row]:
    """Turn matches in titles, tags and names into hits.

    Such a match is assigned to the best matching chunk of its document or, if no chunk matches, to the first one. A
    document without text becomes a hit without a chunk.
    """
    best: dict[UUID, UUID] = {}
    for row in (*rankings.words, *rankings.vectors):
        best.setdefault(row["document_id"], row["chunk_id"])
    return {best.get(row["document_id"]) or row["chunk_id"] or row["document_id"]: row for row in rankings.fields}


def _reason(key: UUID, words: Mapping[UUID, Row], vectors: Mapping[UUID, Row], fields: Mapping[UUID, Row]) -> Reason:
    text, semantic = (float(found[key]["score"]) if key in found else None for found in (words, vectors))
    return Reason(text, semantic, fields[key]["field"] if key in fields else None)


async def _by_text(connection: Connection, chunk_filter: ChunkFilter, plan: RankingPlan) -> Rankings:
    """Search for the query's words in chunks, titles, tags and names.

    If the query excludes words, only chunks are searched.
    """
    if not plan.terms:
        return Rankings()
    words = await _by_words(connection, chunk_filter, plan) if plan.lookups or plan.browsed else []
    fields = [] if chunk_filter.excluded else await _by_fields(connection, chunk_filter, plan)
    return Rankings(words, fields=fields)


async def _read_filter(connection: Connection, owner: UUID, query: SearchQuery, filters: Filters) -> ChunkFilter:
    read = partial(_phrases, connection, owner)
    required = _all_of([_any_of(one) for one in await read(query.phrases)])
    excluded = _any_of([_any_of(one) for one in await read(query.excluded)])
    return ChunkFilter(owner, Jsonb({**filters.as_json(), **query.facts}), required, excluded)


async def _phrases(connection: Connection, owner: UUID, phrases: Sequence[str]) -> list[list[str]]:
    """Convert each phrase to database queries, one for each language of the account's documents."""
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
        "filtered": chunk_filter.is_filtered,
        "few": plan.few,
        "lookups": [one.query for one in plan.lookups],
        "worth": [one.worth for one in plan.lookups],
        "browsed": list(plan.browsed),
        "browse_worth": list(plan.browsed.values()),
        "most_browsed": MOST_BROWSED,
        "averages": [term.average for term in plan.terms],
        "most_matches": MOST_MATCHES,
        "most_scored": MOST_SCORED,
        "most": POOL,
    }
    return [row for row in await _fetch(connection, QUERIES.by_words, values) if row["score"]]


async def _by_fields(connection: Connection, chunk_filter: ChunkFilter, plan: RankingPlan) -> list[Row]:
    languages: dict[str, list[str]] = {}
    for term in plan.terms:
        languages.setdefault(term.config, []).append(term.query)
    values = {
        "owner": chunk_filter.owner,
        "chosen": chunk_filter.chosen,
        "filtered": chunk_filter.is_filtered,
        "required": chunk_filter.required,
        **_columns(plan),
        "everything": _any_of(_all_of(queries) or "" for queries in languages.values()),
        "anything": _any_of(term.query for term in essential_terms(plan.terms, FIELD_SHARE)),
        "most_named": MOST_NAMED,
        "share": FIELD_SHARE,
        "most": MOST_BY_FIELDS,
    }
    return await _fetch(connection, QUERIES.by_fields, values)


def _columns(plan: RankingPlan) -> dict[str, list[Any]]:
    return {
        "configs": [term.config for term in plan.terms],
        "queries": [term.query for term in plan.terms],
        "weights": [term.weight for term in plan.terms],
    }


async def _by_vectors(
    connection: Connection, chunk_filter: ChunkFilter, vectors: Sequence[Vectors], options: SearchOptions
) -> list[Row]:
    """Search by vector similarity.

    If there are vectors from two models, the results are interleaved, because similarity values of different models
    cannot be compared.
    """
    found = [await _by_vector(connection, chunk_filter, one, options) for one in vectors]
    return [row for row in chain.from_iterable(zip_longest(*found)) if row is not None][:POOL]


async def _by_vector(
    connection: Connection, chunk_filter: ChunkFilter, vector: Vectors, options: SearchOptions
) -> list[Row]:
    """Rank chunks by similarity. Chunks that are far less similar than the nearest one are left out.

    If even the nearest chunk is not similar enough to be an answer, no chunks are returned. This check is skipped if
    the query requires a phrase or `nearest_always` is set.
    """
    chunks = await _count_chunks(connection, chunk_filter.owner)
    rows = await nearest(connection, chunk_filter, vector.model, as_text(vector.vectors[0]), POOL, chunks)
    compared = chunks if len(rows) == POOL else len(rows)
    best = rows[0]["score"] if rows else 0.0
    is_open = options.nearest_always or chunk_filter.required
    if not is_open and best < least_similarity(vector.model, compared):
        return []
    return [{**row, "model": vector.model} for row in rows if row["score"] >= SIMILAR_SHARE * best]


async def _count_chunks(connection: Connection, owner: UUID) -> int:
    (row,) = await _fetch(connection, QUERIES.count_chunks, {"owner": owner})
    return row["chunks"]


async def nearest(
    connection: Connection, chunk_filter: ChunkFilter, model: str, vector: str, most: int, chunks: int | None = None
) -> list[Row]:
    """Return the chunks whose vectors from this model are nearest to `vector`.

    `chunks` is the number of the account's chunks.
    """
    if chunks is None:
        chunks = await _count_chunks(connection, chunk_filter.owner)
    by_index = chunks > EXACT_CHUNKS
    values = {**chunk_filter.values(), "model": model, "vector": vector, "by_index": by_index, "most": most}
    return await _fetch(connection, QUERIES.by_vector, values)


def as_text(vector: Sequence[float]) -> str:
    return f"[{','.join(map(repr, vector))}]"


async def _fetch(connection: Connection, query: bytes, values: Mapping[str, Any]) -> list[Row]:
    """Run a query without a prepared statement, so that PostgreSQL plans it again for each call.

    The best plan depends on how common the words in `values` are.
    """
    return await fetch_rows(connection, query, values, prepare=False)
