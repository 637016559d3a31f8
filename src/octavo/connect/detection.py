"""Detects the connections of one document: loads pairs of similar chunks, looks for each type of connection, and saves
the results.

Contradictions in any language are found by concepts and tones: pairs of chunks that share a concept but have opposite
tones are sent to a model. Concepts and tones only show that two chunks may disagree. Such a pair is therefore kept only
if the model confirms the contradiction.

Extensions can also find connections. Their entry point is a function that takes pairs of chunks and returns the
connections that it finds between them. For each connection, Octavo quotes the most similar sentences of the two chunks.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, cast
from uuid import UUID

import structlog
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.connect import contradiction
from octavo.connect.bridge import Candidate, DocumentDomain, choose_candidates, find_candidates, load_domains
from octavo.connect.contradiction import StatementPair
from octavo.connect.evidence import (
    MOST_QUOTED,
    ChunkPair,
    ComparableChunk,
    DetectedConnection,
    SentenceCache,
    Span,
    digest_of,
    shared_quotes,
    shorten,
)
from octavo.connect.neighbours import (
    MOST_KEPT,
    EmbeddingModel,
    Neighbour,
    SearchScope,
    find_neighbours,
    find_similar,
    shared_concepts,
    thresholds_of,
)
from octavo.core.extensions import ExtensionKind, load_extensions
from octavo.core.types import new_id
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.language.markdown_segments import split_sentences
from octavo.language.tone import polarity_of
from octavo.records.search import Engine, Status

log = structlog.get_logger()
MOST_EXPLANATION = 500


@dataclass(frozen=True, slots=True)
class FoundConnection:
    """A connection between the chunks of a pair: its type, its strength from 0 to 1, and an explanation."""

    pair: ChunkPair
    engine: Engine
    strength: float
    explanation: str


ConnectionEngine = Callable[[Sequence[ChunkPair]], Iterable[FoundConnection]]


def find_by_extensions(pairs: Iterable[ChunkPair], sentences: SentenceCache) -> list[DetectedConnection]:
    """Let each extension find connections. Invalid connections are left out.

    If an extension fails, its error is logged, and the other extensions continue.
    """
    engines = load_extensions(ExtensionKind.ENGINE)
    if not engines:
        return []
    by_ids = {(pair.source.id, pair.target.id): pair for pair in pairs}
    found: list[DetectedConnection] = []
    for name, engine in engines.items():
        try:
            answers = cast("ConnectionEngine", engine)([*by_ids.values()])
            made = [_as_found(one, name, sentences) for one in answers if _is_valid(one, by_ids)]
        except Exception:
            log.exception("extension failed", kind=str(ExtensionKind.ENGINE), name=name)
        else:
            found += made
    return found


def _is_valid(one: FoundConnection, by_ids: Mapping[tuple[UUID, UUID], ChunkPair]) -> bool:
    """Whether a connection can be stored: its chunks were compared, and its strength is between 0 and 1."""
    return (one.pair.source.id, one.pair.target.id) in by_ids and 0 <= one.strength <= 1


def _as_found(one: FoundConnection, name: str, sentences: SentenceCache) -> DetectedConnection:
    quotes = shared_quotes(one.pair.source, one.pair.target, sentences)
    explanation = " ".join(one.explanation.split())[:MOST_EXPLANATION]
    return DetectedConnection(
        Engine(one.engine),
        one.pair,
        round(one.strength, 3),
        quotes.mine,
        quotes.theirs,
        explanation,
        made_by=f"extension:{name}",
    )


QUERIES = load_queries("connections")
CHUNKS_PER_BATCH = 100
MOST_NEIGHBOURS = 50
# The maximum number of chunks that share concepts with a chunk, in addition to its nearest neighbours.
MOST_BY_CONCEPTS = 40
# The candidates for a chunk are chunks that share its rarest concepts: this many per concept, and this many in total.
MOST_PER_CONCEPT, MOST_CANDIDATES = 200, 600
# The maximum number of pairs per chunk to check for contradictions: with nearest neighbours, and by shared concepts.
MOST_COMPARED = 12
# Minimum absolute polarity of chunks with opposite tones.
LEAST_TONE = 0.2
CONCEPT_LIMITS = {
    "most": MOST_BY_CONCEPTS,
    "most_opposed": MOST_COMPARED,
    "least_tone": LEAST_TONE,
    "most_per_concept": MOST_PER_CONCEPT,
    "most_candidates": MOST_CANDIDATES,
}
_MARKUP = ("#", "|", "```")

Item = TypeVar("Item")


@dataclass(slots=True)
class DetectionResult:
    """The connections found for one document.

    `bridges` and `opposite_tones` are only candidates until a configured model confirms them. `statement_pairs` are
    candidates for contradictions, to be judged by the bundled octavo-small model. `from_extensions` are connections
    that extensions found. `domains` contains the subject of each document.
    """

    similar: list[DetectedConnection] = field(default_factory=list[DetectedConnection])
    statement_pairs: list[StatementPair] = field(default_factory=list[StatementPair])
    contradictions: list[DetectedConnection] = field(default_factory=list[DetectedConnection])
    opposite_tones: list[DetectedConnection] = field(default_factory=list[DetectedConnection])
    bridges: list[Candidate] = field(default_factory=list[Candidate])
    from_extensions: list[DetectedConnection] = field(default_factory=list[DetectedConnection])
    domains: dict[UUID, DocumentDomain] = field(default_factory=dict[UUID, DocumentDomain])
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(Engine, 0.0))

    def timed(self, engine: Engine, work: Callable[[], list[Item]]) -> list[Item]:
        """Run `work`, which looks for one type of connection. Adds the duration to the total for that type."""
        started = time.monotonic()
        output = work()
        self.seconds[engine] += time.monotonic() - started
        return output


async def start_of_comparison(connection: Connection) -> datetime:
    """Return the current time of the database. Call this before the comparison starts, and pass the time to `save`."""
    rows = await fetch_rows(connection, QUERIES.start_of_comparison, {})
    return rows[0]["started"]


async def chunks_of(connection: Connection, document: UUID) -> list[UUID]:
    return [row[0] for row in await (await connection.execute(QUERIES.chunks_of, {"document": document})).fetchall()]


async def find_model(connection: Connection, document: UUID, preferred: str) -> EmbeddingModel | None:
    async with connection.cursor(row_factory=class_row(EmbeddingModel)) as cursor:
        await cursor.execute(QUERIES.model_of, {"document": document, "preferred": preferred})
        return await cursor.fetchone()


async def search_scope(connection: Connection, owner: UUID, document: UUID, model: EmbeddingModel) -> SearchScope:
    rows = await (
        await connection.execute(QUERIES.excluded_documents, {"owner": owner, "document": document})
    ).fetchall()
    return SearchScope(owner, model, [row[0] for row in rows])


async def compare(
    database: Database,
    scope: SearchScope,
    chunks: Sequence[UUID],
    sentences: SentenceCache,
    result: DetectionResult,
    *,
    for_model: bool = True,
) -> None:
    """Compare one batch of chunks with all other documents of the account.

    Adds connections and candidates to `result`. Call `judge_contradictions` after the last batch. If `for_model` is
    true, also looks for candidates that only a configured model can confirm.
    """
    began, limits = time.monotonic(), thresholds_of(scope.model.name)
    near = await find_neighbours(database, scope, chunks, MOST_NEIGHBOURS, limits.related)
    result.seconds[Engine.SIMILARITY] += time.monotonic() - began
    async with database.connection() as connection:
        values = scope.values() | {"chunks": list(chunks)} | CONCEPT_LIMITS
        rows = await (await connection.execute(QUERIES.by_concepts, values)).fetchall()
        by_concepts = [Neighbour(*row) for row in rows]
        ids = {*chunks, *(one.target for one in (*near, *by_concepts))}
        loaded = await load_chunks(connection, scope.owner, ids)
    nearest, sharing = _pairs(near, loaded), _pairs(by_concepts, loaded)
    related = [pair for pair in sharing if pair.similarity >= limits.related]
    compared = list(
        {(p.source.id, p.target.id): p for p in (*_nearest_of_each(nearest), *_nearest_of_each(related))}.values()
    )

    def find() -> list[Candidate]:
        timed = result.timed
        result.similar += timed(Engine.SIMILARITY, lambda: find_similar(nearest, limits.similar, sentences))
        result.statement_pairs += timed(
            Engine.CONTRADICTION, lambda: contradiction.find_candidates(compared, sentences)
        )
        result.from_extensions += find_by_extensions([*nearest, *sharing], sentences)
        if not for_model:
            return []
        result.opposite_tones += timed(Engine.CONTRADICTION, lambda: find_opposite_tones(sharing, sentences))
        return timed(Engine.BRIDGE, lambda: find_candidates(sharing, limits.apart))

    candidates = await asyncio.to_thread(find)
    await _load_domains(database, scope, candidates, result.domains)
    result.bridges += choose_candidates(candidates, result.domains, limits.same_domain)


async def judge_contradictions(result: DetectionResult) -> None:
    """Let the octavo-small model judge the most promising statement pairs of the whole document.

    Chunks that contradict each other are then no longer reported as similar or as having opposite tones.
    """
    if result.statement_pairs:
        judge = partial(contradiction.judge_candidates, result.statement_pairs)
        result.contradictions = await asyncio.to_thread(result.timed, Engine.CONTRADICTION, judge)
    known = {_chunks(one) for one in result.contradictions}
    result.similar = [one for one in result.similar if _chunks(one) not in known]
    result.opposite_tones = [one for one in result.opposite_tones if _chunks(one) not in known]


def _chunks(one: DetectedConnection) -> frozenset[UUID]:
    return frozenset((one.pair.source.id, one.pair.target.id))


async def _load_domains(
    database: Database, scope: SearchScope, candidates: Iterable[Candidate], domains: dict[UUID, DocumentDomain]
) -> None:
    """Load the subjects of the candidates' documents, except those that are already loaded."""
    documents = {chunk.document_id for pair, _ in candidates for chunk in (pair.source, pair.target)}
    if missing := documents - domains.keys():
        async with database.connection() as connection:
            domains |= await load_domains(connection, scope.owner, scope.model, missing)


def _nearest_of_each(pairs: Iterable[ChunkPair]) -> list[ChunkPair]:
    """Return the most similar pairs, at most `MOST_COMPARED` for each source chunk."""
    count: Counter[UUID] = Counter()
    kept: list[ChunkPair] = []
    for pair in sorted(pairs, key=lambda pair: (-pair.similarity, pair.source.id, pair.target.id)):
        if count[pair.source.id] < MOST_COMPARED:
            count[pair.source.id] += 1
            kept.append(pair)
    return kept


def _pairs(neighbours: Iterable[Neighbour], loaded: dict[UUID, ComparableChunk]) -> list[ChunkPair]:
    """Pair each chunk with its neighbours. Pairs with a chunk that was deleted in the meantime are skipped."""
    return [
        ChunkPair(loaded[one.source], loaded[one.target], one.similarity)
        for one in neighbours
        if one.source in loaded and one.target in loaded
    ]


async def load_chunks(connection: Connection, owner: UUID, chunks: Iterable[UUID]) -> dict[UUID, ComparableChunk]:
    rows = await fetch_rows(connection, QUERIES.comparable_chunks, {"owner": owner, "chunks": list(chunks)})
    return {
        row["id"]: ComparableChunk(
            row["id"],
            row["document_id"],
            row["content"],
            row["concepts"],
            tuple(row["themes"]),
            None if row["emotion"] in {None, "unknown"} else row["polarity"],
            row["importance"] or 0.0,
            row["language"],
        )
        for row in rows
    }


async def save(
    connection: Connection, owner: UUID, document: UUID, found: Sequence[DetectedConnection], started: datetime
) -> dict[str, int]:
    """Replace the connections that earlier comparisons found for the document, in the caller's transaction.

    Another document may be compared with this one at the same time. If its comparison started later, its connections
    are kept, because it used newer data. Returns the counts by connection type.
    """
    documents = {chunk.document_id for one in found for chunk in (one.pair.source, one.pair.target)}
    await connection.execute(QUERIES.lock_owner, {"owner": owner})
    await connection.execute(QUERIES.lock_documents, {"documents": [document, *documents]})
    await connection.execute(QUERIES.delete_earlier, {"document": document, "started": started})
    if found:
        rows = {(row["source"], row["target"], row["engine"], row["digest"]): row for row in map(_as_row, found)}
        values = {"owner": owner, "found": Jsonb(list(rows.values())), "started": started}
        await connection.execute(QUERIES.save, values)
        await connection.execute(QUERIES.delete_contradicted, {"document": document})
        affected = {chunk.id for one in found for chunk in (one.pair.source, one.pair.target)}
        limits = {"chunks": list(affected), "engine": Engine.SIMILARITY, "most": MOST_KEPT}
        await connection.execute(QUERIES.prune, limits)
    counts = dict(await (await connection.execute(QUERIES.count_by_engine, {"document": document})).fetchall())
    return {engine: counts.get(engine, 0) for engine in Engine}


def _as_row(one: DetectedConnection) -> dict[str, Any]:
    """Convert a connection to a database row.

    The two chunks are sorted by id, so that a pair gives the same row no matter which of the two documents is being
    compared.
    """
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


def find_opposite_tones(pairs: Iterable[ChunkPair], sentences: SentenceCache) -> list[DetectedConnection]:
    """Find pairs of chunks with a shared concept and opposite tones, in any language. A model must judge these pairs
    later.
    """
    return [
        _connect(pair, concept, sentences)
        for pair in pairs
        if _are_opposed(pair.source.polarity or 0.0, pair.target.polarity or 0.0) and (concept := _shared_concept(pair))
    ]


def _are_opposed(one: float, other: float) -> bool:
    """Whether one of the two tones is clearly positive and the other clearly negative."""
    return min(abs(one), abs(other)) >= LEAST_TONE and one * other < 0


def _shared_concept(pair: ChunkPair) -> str | None:
    """Return the most important shared concept, preferably one that appears literally in both chunks."""
    shared = shared_concepts(pair)
    texts = [chunk.content.casefold() for chunk in (pair.source, pair.target)]
    literal = (concept for concept in shared if all(concept.casefold() in text for text in texts))
    return next(literal, shared[0] if shared else None)


def _connect(pair: ChunkPair, concept: str, sentences: SentenceCache) -> DetectedConnection:
    return DetectedConnection(
        Engine.CONTRADICTION,
        pair,
        round(0.5 + 0.4 * _promise(pair, concept), 3),
        _quote(pair.source, concept, sentences),
        _quote(pair.target, concept, sentences),
        f"One passage is positive about {concept}, the other is not.",
        Status.POSSIBLE,
        detail={"kind": "polarity"},
    )


def _promise(pair: ChunkPair, concept: str) -> float:
    """Score how likely a pair of chunks is to disagree, from 0 to 1.

    The score is the importance of the concept times the strength of the tone. For both, the lower value of the two
    chunks is used.
    """
    weights = [
        {name.casefold(): weight for name, weight in chunk.concepts.items()}.get(concept.casefold(), 0.0)
        for chunk in (pair.source, pair.target)
    ]
    tones = (abs(pair.source.polarity or 0.0), abs(pair.target.polarity or 0.0))
    return min(*weights, 1.0) * min(*tones, 1.0)


def _quote(chunk: ComparableChunk, concept: str, cache: SentenceCache) -> Span:
    """Quote the sentence that mentions the concept and best shows the tone, and as many following sentences as fit."""
    text = chunk.content
    sentences = [one for one in split_sentences(text) if not text.startswith(_MARKUP, one[0])]
    if not sentences:
        return shorten(text, 0, len(text))
    about = [n for n, (start, end) in enumerate(sentences) if concept.casefold() in text[start:end].casefold()] or [0]
    best = about[0]
    if cache.is_supported(chunk):
        sign = 1 if (chunk.polarity or 0.0) > 0 else -1
        best = max(about, key=lambda n: sign * polarity_of(text[slice(*sentences[n])]))
    start = sentences[best][0]
    end = max(end for _, end in sentences[best:] if end - start <= MOST_QUOTED or end == sentences[best][1])
    return shorten(text, start, end)
