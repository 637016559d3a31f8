"""Finds documents on similar topics, and tags with a similar meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.database import Connection, fetch_rows, load_queries
from octavo.records.search import RelatedDocument, SimilarTag
from octavo.search.chunk_search import ChunkFilter, nearest
from octavo.search.query import Filters

QUERIES = load_queries("search")
# Nearest chunks that are grouped by document.
NEIGHBOURS = 200
# A document is scored by this many of its most similar chunks; a single one may be similar by chance.
SCORED_CHUNKS = 3
# Below this similarity texts are unrelated; with the offline model, unrelated texts seldom reach it.
LEAST_SIMILARITY = 0.35
MOST_RELATED = 10


async def related_documents(
    connection: Connection, owner: UUID, document: UUID, model: str, limit: int = MOST_RELATED
) -> list[RelatedDocument]:
    """Find documents on similar topics, most similar first. The result is empty if the document has no vectors."""
    await connection.execute(QUERIES.settle)
    values = {"owner": owner, "document": document, "model": model}
    means = await fetch_rows(connection, QUERIES.mean_vector, values)
    if not means:
        return []
    chunk_filter = ChunkFilter(owner, Jsonb(Filters(without=document).as_json()), None, None)
    similar: dict[UUID, list[float]] = defaultdict(list)
    for row in await nearest(connection, chunk_filter, means[0]["model"], means[0]["mean"], NEIGHBOURS):
        similar[row["document_id"]].append(row["score"])
    scores = {one: score for one, score in rank(similar).items() if score >= LEAST_SIMILARITY}
    chosen = list(scores)[:limit]
    about = {
        row["document_id"]: row
        for row in await fetch_rows(connection, QUERIES.about, {"owner": owner, "documents": chosen})
    }
    return [RelatedDocument(**about[one], score=round(scores[one], 6)) for one in chosen if one in about]


def rank(similar: Mapping[UUID, Sequence[float]]) -> dict[UUID, float]:
    """Score documents by the mean similarity of their most similar chunks, best first."""
    means = {one: sum(found[:SCORED_CHUNKS]) / len(found[:SCORED_CHUNKS]) for one, found in similar.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1]))


async def similar_tags(
    connection: Connection, owner: UUID, name: str, model: str, limit: int = MOST_RELATED
) -> list[SimilarTag]:
    """Return the account's other tags, sorted by their similarity to the tag `name`. Unused tags are left out."""
    values = {"owner": owner, "name": name, "model": model, "most": limit}
    rows = await fetch_rows(connection, QUERIES.similar_tags, values)
    return [SimilarTag(row["name"], round(row["score"], 6), row["documents"]) for row in rows]


async def close_tags(
    connection: Connection, owner: UUID, names: Sequence[str], model: str, limit: int = MOST_RELATED
) -> list[SimilarTag]:
    """Return tags that are very similar to one of `names`, but are not in `names`, most similar first."""
    found = [tag for name in names for tag in await similar_tags(connection, owner, name, model)]
    known = {name.lower() for name in names}
    best: dict[str, SimilarTag] = {}
    for tag in sorted(found, key=lambda one: -one.score):
        if tag.score >= LEAST_SIMILARITY and tag.name.lower() not in known:
            best.setdefault(tag.name.lower(), tag)
    return list(best.values())[:limit]
