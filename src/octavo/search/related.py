"""What is like something that is there: documents about the same things, tags that mean nearly the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.database import Connection, fetch_rows, load_queries
from octavo.search.contract import Filters, Related, SimilarTag
from octavo.search.steps import Limits, nearest

QUERIES = load_queries("search")
# So many passages are looked at to find the documents that they belong to.
NEIGHBOURS = 200
# How many of a document's passages say how similar it is; one alone may be so by chance.
TELLING = 3
# Below this, texts have nothing to do with each other; unrelated ones of the local model seldom pass it.
LEAST_SIMILARITY = 0.35
MOST_RELATED = 10


async def related_documents(
    connection: Connection, owner: UUID, document: UUID, model: str, limit: int = MOST_RELATED
) -> list[Related]:
    """By vectors of a model if there are any, the most similar first; none for a document without vectors."""
    await connection.execute(QUERIES.settle)
    values = {"owner": owner, "document": document, "model": model}
    means = await fetch_rows(connection, QUERIES.mean_vector, values)
    if not means:
        return []
    limits = Limits(owner, Jsonb(Filters(without=document).as_json()), None, None)
    similar: dict[UUID, list[float]] = defaultdict(list)
    for row in await nearest(connection, limits, means[0]["model"], means[0]["mean"], NEIGHBOURS):
        similar[row["document_id"]].append(row["score"])
    scores = {one: score for one, score in rank(similar).items() if score >= LEAST_SIMILARITY}
    chosen = list(scores)[:limit]
    about = {
        row["document_id"]: row
        for row in await fetch_rows(connection, QUERIES.about, {"owner": owner, "documents": chosen})
    }
    return [Related(**about[one], score=round(scores[one], 6)) for one in chosen if one in about]


def rank(similar: Mapping[UUID, Sequence[float]]) -> dict[UUID, float]:
    """Documents by their most similar passages, the best first."""
    means = {one: sum(found[:TELLING]) / len(found[:TELLING]) for one, found in similar.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1]))


async def similar_tags(
    connection: Connection, owner: UUID, name: str, model: str, limit: int = MOST_RELATED
) -> list[SimilarTag]:
    """The owner's other tags, the most similar first; those that no document has are left out."""
    values = {"owner": owner, "name": name, "model": model, "most": limit}
    rows = await fetch_rows(connection, QUERIES.similar_tags, values)
    return [SimilarTag(row["name"], round(row["score"], 6), row["documents"]) for row in rows]
