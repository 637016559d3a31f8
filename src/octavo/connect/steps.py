"""Candidates from the database, through the engines, to connections in the database."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.connect.bridge import find_candidates
from octavo.connect.contract import Engine, Found, Pair, Piece, digest_of
from octavo.connect.contradiction import find_contradictions
from octavo.connect.evidence import Readings
from octavo.connect.neighbours import Field, Model, Neighbour, find_neighbours
from octavo.connect.similarity import MOST_KEPT, find_similar
from octavo.connect.thresholds import thresholds_of
from octavo.core.ids import new_id
from octavo.database import Connection, Database, fetch_rows, load_queries

QUERIES = load_queries("connections")
PASSAGES_AT_ONCE = 100
MOST_NEIGHBOURS = 50
# Passages that share concepts with one, beside its neighbours.
MOST_BY_CONCEPTS = 40
# Of one passage, looked at for contradictions: its nearest, and those that share most concepts.
MOST_COMPARED = 12


@dataclass(slots=True)
class Outcome:
    """What was found in a document; bridges are only candidates as long as nobody has explained them."""

    similar: list[Found] = field(default_factory=list[Found])
    contradictions: list[Found] = field(default_factory=list[Found])
    bridges: list[tuple[Pair, float]] = field(default_factory=list[tuple[Pair, float]])
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(Engine, 0.0))


async def passages_of(connection: Connection, document: UUID) -> list[UUID]:
    return [row[0] for row in await (await connection.execute(QUERIES.passages_of, {"document": document})).fetchall()]


async def find_model(connection: Connection, document: UUID, preferred: str) -> Model | None:
    async with connection.cursor(row_factory=class_row(Model)) as cursor:
        await cursor.execute(QUERIES.model_of, {"document": document, "preferred": preferred})
        return await cursor.fetchone()


async def open_field(connection: Connection, owner: UUID, document: UUID, model: Model) -> Field:
    rows = await (await connection.execute(QUERIES.left_out, {"owner": owner, "document": document})).fetchall()
    return Field(owner, model, [row[0] for row in rows])


async def compare(database: Database, among: Field, chunks: Sequence[UUID], readings: Readings, into: Outcome) -> None:
    """Up to a hundred passages with all others of their owner."""
    began, limits = time.monotonic(), thresholds_of(among.model.name)
    near = await find_neighbours(database, among, chunks, MOST_NEIGHBOURS, limits.related)
    into.seconds[Engine.SIMILARITY] += time.monotonic() - began
    async with database.connection() as connection:
        values = among.values() | {"chunks": list(chunks), "most": MOST_BY_CONCEPTS}
        rows = await (await connection.execute(QUERIES.by_concepts, values)).fetchall()
        by_concepts = [Neighbour(*row) for row in rows]
        ids = {*chunks, *(one.target for one in (*near, *by_concepts))}
        pieces = await load_pieces(connection, among.owner, ids)
    nearest, sharing = _pairs(near, pieces), _pairs(by_concepts, pieces)
    related = [pair for pair in sharing if pair.similarity >= limits.related]
    compared = list({(p.source.id, p.target.id): p for p in (*_first(nearest), *_first(related))}.values())

    async def timed(engine: Engine, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the engine finds
        started = time.monotonic()
        made = await asyncio.to_thread(work)
        into.seconds[engine] += time.monotonic() - started
        return made

    into.similar += await timed(Engine.SIMILARITY, lambda: find_similar(nearest, limits.similar, readings))
    into.contradictions += await timed(Engine.CONTRADICTION, lambda: find_contradictions(compared, readings))
    into.bridges += await timed(Engine.BRIDGE, lambda: find_candidates(sharing, limits.apart))


def _first(pairs: Iterable[Pair]) -> list[Pair]:
    """The nearest of each passage."""
    kept: Counter[UUID] = Counter()
    first: list[Pair] = []
    for pair in sorted(pairs, key=lambda pair: (-pair.similarity, pair.source.id, pair.target.id)):
        if kept[pair.source.id] < MOST_COMPARED:
            kept[pair.source.id] += 1
            first.append(pair)
    return first


def _pairs(neighbours: Iterable[Neighbour], pieces: dict[UUID, Piece]) -> list[Pair]:
    """What vanished meanwhile is left out."""
    return [
        Pair(pieces[one.source], pieces[one.target], one.similarity)
        for one in neighbours
        if one.source in pieces and one.target in pieces
    ]


async def load_pieces(connection: Connection, owner: UUID, chunks: Iterable[UUID]) -> dict[UUID, Piece]:
    rows = await fetch_rows(connection, QUERIES.pieces, {"owner": owner, "chunks": list(chunks)})
    return {
        row["id"]: Piece(
            row["id"],
            row["document_id"],
            row["content"],
            row["concepts"],
            tuple(row["themes"]),
            None if row["emotion"] in {None, "unknown"} else row["polarity"],
            row["importance"] or 0.0,
            row["language"],
            frozenset(row["tags"]),
        )
        for row in rows
    }


async def save(connection: Connection, owner: UUID, document: UUID, found: Sequence[Found]) -> dict[str, int]:
    """In the caller's transaction: all of the document's connections make way for these. Answers how many of each."""
    documents = {piece.document_id for one in found for piece in (one.pair.source, one.pair.target)}
    await connection.execute(QUERIES.wait_for_turn, {"owner": owner})
    await connection.execute(QUERIES.hold_documents, {"documents": [document, *documents]})
    await connection.execute(QUERIES.forget, {"document": document})
    rows = {(row["source"], row["target"], row["engine"]): row for row in map(_as_row, found)}
    values = {"owner": owner, "found": Jsonb(list(rows.values()))}
    await connection.execute(QUERIES.save, values)
    touched = {piece.id for one in found for piece in (one.pair.source, one.pair.target)}
    limits = {"chunks": list(touched), "engine": Engine.SIMILARITY, "most": MOST_KEPT}
    await connection.execute(QUERIES.prune, limits)
    counts = dict(await (await connection.execute(QUERIES.how_many, {"document": document})).fetchall())
    return {engine: counts.get(engine, 0) for engine in Engine}


def _as_row(one: Found) -> dict[str, Any]:
    """A pair is kept in one order, whichever of the two documents found it."""
    sides = [(one.pair.source, one.source_span), (one.pair.target, one.target_span)]
    (source, mine), (target, theirs) = sorted(sides, key=lambda side: side[0].id)
    return {
        "id": str(new_id()),
        "engine": one.engine,
        "source": str(source.id),
        "target": str(target.id),
        "strength": one.strength,
        "source_start": mine.start,
        "source_end": mine.end,
        "target_start": theirs.start,
        "target_end": theirs.end,
        "explanation": one.explanation,
        "status": one.status,
        "made_by": one.made_by,
        "digest": digest_of(one.engine, one.quotes).hex(),
        "detail": dict(one.detail),
    }
