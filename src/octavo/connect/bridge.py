"""The bridge engine: important chunks about different subjects that share some of their concepts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from octavo.connect.engine_types import ChunkPair, ComparableChunk, DetectedConnection
from octavo.connect.evidence import ClaimCache, shared_quotes
from octavo.connect.similarity import MOST_NAMED, shared_concepts
from octavo.records.search import Engine

LEAST_IMPORTANCE = 0.6
LEAST_OVERLAP, MOST_OVERLAP = 0.2, 0.7
MOST_CANDIDATES = 15
# Most bridges kept per chunk if no model has judged them.
MOST_UNJUDGED = 3


def find_candidates(pairs: Iterable[ChunkPair], apart: float) -> list[tuple[ChunkPair, float]]:
    """Find pairs that may be bridges, with the overlap of their concepts. Keeps the best pairs of each source chunk."""
    by_source: dict[UUID, list[tuple[ChunkPair, float]]] = defaultdict(list)
    for pair in pairs:
        if min(pair.source.importance, pair.target.importance) <= LEAST_IMPORTANCE or not _are_different_subjects(
            pair, apart
        ):
            continue
        overlap = concept_overlap(pair.source, pair.target)
        if LEAST_OVERLAP < overlap < MOST_OVERLAP:
            by_source[pair.source.id].append((pair, overlap))
    return [one for candidates in by_source.values() for one in sorted(candidates, key=_best_first)[:MOST_CANDIDATES]]


def explain_offline(candidates: Sequence[tuple[ChunkPair, float]], claim_cache: ClaimCache) -> list[DetectedConnection]:
    """Explain the best bridges without a model: name the shared concepts and the themes of both chunks."""
    kept: Counter[UUID] = Counter()
    connections: list[DetectedConnection] = []
    for pair, overlap in sorted(candidates, key=_best_first):
        if max(kept[pair.source.id], kept[pair.target.id]) >= MOST_UNJUDGED:
            continue
        kept.update((pair.source.id, pair.target.id))
        connections.append(connect(pair, overlap, claim_cache))
    return connections


def connect(pair: ChunkPair, overlap: float, claim_cache: ClaimCache) -> DetectedConnection:
    mine, theirs = shared_quotes(pair.source, pair.target, claim_cache)
    shared = ", ".join(shared_concepts(pair)[:MOST_NAMED])
    return DetectedConnection(
        Engine.BRIDGE, pair, strength_of(pair, overlap), mine, theirs, f"{_subjects(pair)} share {shared}."
    )


def with_model_explanation(
    connection: DetectedConnection, explanation: str, strength: float, made_by: str
) -> DetectedConnection:
    return replace(connection, explanation=explanation, strength=round(strength, 3), made_by=made_by)


def strength_of(pair: ChunkPair, overlap: float) -> float:
    """The strength of a bridge.

    It grows with the importance of both chunks and with their concept overlap; at most 1.
    """
    return round(min((pair.source.importance * pair.target.importance) ** 0.5 * (0.5 + overlap), 1.0), 3)


def concept_overlap(one: ComparableChunk, other: ComparableChunk) -> float:
    """The weight of the concepts that both chunks share, divided by the weight of all concepts of the lighter chunk."""
    mine, theirs = ({name.lower(): weight for name, weight in chunk.concepts.items()} for chunk in (one, other))
    if not mine or not theirs:
        return 0.0
    shared = sum(min(mine[name], theirs[name]) for name in mine.keys() & theirs.keys())
    return shared / max(min(sum(mine.values()), sum(theirs.values())), 1e-9)


def _are_different_subjects(pair: ChunkPair, apart: float) -> bool:
    """Whether the vectors of the chunks are far enough apart, and their documents share no tag."""
    return pair.similarity < apart and pair.source.domain.isdisjoint(pair.target.domain)


def _best_first(one: tuple[ChunkPair, float]) -> tuple[float, UUID, UUID]:
    pair, overlap = one
    return -strength_of(pair, overlap), pair.source.id, pair.target.id


def _subjects(pair: ChunkPair) -> str:
    mine, theirs = (next(iter(chunk.themes), "") for chunk in (pair.source, pair.target))
    return f"“{mine}” and “{theirs}”" if mine and theirs and mine != theirs else "Two different subjects"
