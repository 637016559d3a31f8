"""The bridge engine: important chunks of documents in different domains that share some of their concepts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias
from uuid import UUID

from octavo.connect.domains import UNKNOWN, DocumentDomain, are_different
from octavo.connect.engine_types import ChunkPair, ComparableChunk, DetectedConnection
from octavo.connect.evidence import ClaimCache, shared_quotes
from octavo.connect.similarity import MOST_NAMED, shared_concepts
from octavo.records.search import Engine

LEAST_IMPORTANCE = 0.6
LEAST_OVERLAP, MOST_OVERLAP = 0.2, 0.7
MOST_CANDIDATES = 15
# Most bridges kept per chunk if no model has judged them.
MOST_UNJUDGED = 3

# A pair and its concept overlap.
Candidate: TypeAlias = tuple[ChunkPair, float]


def find_candidates(pairs: Iterable[ChunkPair], apart: float) -> list[Candidate]:
    """Find important pairs on different subjects that share some of their concepts, with their concept overlap."""
    return [
        (pair, overlap)
        for pair in pairs
        if min(pair.source.importance, pair.target.importance) > LEAST_IMPORTANCE
        and pair.similarity < apart
        and LEAST_OVERLAP < (overlap := concept_overlap(pair.source, pair.target)) < MOST_OVERLAP
    ]


def choose_candidates(
    candidates: Iterable[Candidate], domains: Mapping[UUID, DocumentDomain], same_domain: float
) -> list[Candidate]:
    """Of the candidates whose documents are in different domains, the best ones of each source chunk."""
    by_source: dict[UUID, list[Candidate]] = defaultdict(list)
    for pair, overlap in candidates:
        one, other = (domains.get(chunk.document_id, UNKNOWN) for chunk in (pair.source, pair.target))
        if are_different(one, other, same_domain):
            by_source[pair.source.id].append((pair, overlap))
    return [one for found in by_source.values() for one in best_first(found)[:MOST_CANDIDATES]]


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates by strength, no matter where in their documents they are."""
    return sorted(candidates, key=lambda one: (-strength_of(*one), one[0].source.id, one[0].target.id))


def explain_offline(candidates: Sequence[Candidate], claim_cache: ClaimCache) -> list[DetectedConnection]:
    """Explain bridges without a model: name the shared concepts and the themes of both sides."""
    kept: Counter[UUID] = Counter()
    connections: list[DetectedConnection] = []
    for pair, overlap in best_first(candidates):
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
    """Grows with the importance of both chunks and with their concept overlap; at most 1."""
    return round(min((pair.source.importance * pair.target.importance) ** 0.5 * (0.5 + overlap), 1.0), 3)


def concept_overlap(one: ComparableChunk, other: ComparableChunk) -> float:
    """The weight of the shared concepts, as a share of all concepts of the chunk whose concepts weigh less."""
    mine, theirs = ({name.lower(): weight for name, weight in chunk.concepts.items()} for chunk in (one, other))
    if not mine or not theirs:
        return 0.0
    shared = sum(min(mine[name], theirs[name]) for name in mine.keys() & theirs.keys())
    return shared / max(min(sum(mine.values()), sum(theirs.values())), 1e-9)


def _subjects(pair: ChunkPair) -> str:
    mine, theirs = (next(iter(chunk.themes), "") for chunk in (pair.source, pair.target))
    return f"“{mine}” and “{theirs}”" if mine and theirs and mine != theirs else "Two different subjects"
