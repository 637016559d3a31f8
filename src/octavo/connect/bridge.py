"""Passages of different subjects that are important where they stand and share some of their concepts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from octavo.connect.contract import Engine, Found, Pair, Piece
from octavo.connect.evidence import Readings, shared_quotes
from octavo.connect.similarity import MOST_NAMED, shared_concepts

LEAST_IMPORTANCE = 0.6
LEAST_OVERLAP, MOST_OVERLAP = 0.2, 0.7
MOST_CANDIDATES = 15
# What is kept where nobody but a rule looked at them.
MOST_UNJUDGED = 3


def find_candidates(pairs: Iterable[Pair], apart: float) -> list[tuple[Pair, float]]:
    """Pairs that may be bridges with the share of concepts that they have in common, the best of each passage first."""
    by_source: dict[UUID, list[tuple[Pair, float]]] = defaultdict(list)
    for pair in pairs:
        if min(pair.source.importance, pair.target.importance) <= LEAST_IMPORTANCE or not _of_other_domain(pair, apart):
            continue
        overlap = concept_overlap(pair.source, pair.target)
        if LEAST_OVERLAP < overlap < MOST_OVERLAP:
            by_source[pair.source.id].append((pair, overlap))
    return [one for candidates in by_source.values() for one in sorted(candidates, key=_promise)[:MOST_CANDIDATES]]


def explain_offline(candidates: Sequence[tuple[Pair, float]], readings: Readings) -> list[Found]:
    """Without a model: what they share and what they are about otherwise."""
    kept: Counter[UUID] = Counter()
    found: list[Found] = []
    for pair, overlap in sorted(candidates, key=_promise):
        if max(kept[pair.source.id], kept[pair.target.id]) >= MOST_UNJUDGED:
            continue
        kept.update((pair.source.id, pair.target.id))
        found.append(connect(pair, overlap, readings))
    return found


def connect(pair: Pair, overlap: float, readings: Readings) -> Found:
    mine, theirs = shared_quotes(pair.source, pair.target, readings)
    shared = ", ".join(shared_concepts(pair)[:MOST_NAMED])
    return Found(Engine.BRIDGE, pair, strength_of(pair, overlap), mine, theirs, f"{_subjects(pair)} share {shared}.")


def explained(found: Found, explanation: str, strength: float, made_by: str) -> Found:
    """As a model explained it."""
    return replace(found, explanation=explanation, strength=round(strength, 3), made_by=made_by)


def strength_of(pair: Pair, overlap: float) -> float:
    """Most for what is important on both sides and shares half of its concepts."""
    return round(min((pair.source.importance * pair.target.importance) ** 0.5 * (0.5 + overlap), 1.0), 3)


def concept_overlap(one: Piece, other: Piece) -> float:
    """Share of the weight of the fewer concepts that the other has too."""
    mine, theirs = ({name.lower(): weight for name, weight in piece.concepts.items()} for piece in (one, other))
    if not mine or not theirs:
        return 0.0
    shared = sum(min(mine[name], theirs[name]) for name in mine.keys() & theirs.keys())
    return shared / max(min(sum(mine.values()), sum(theirs.values())), 1e-9)


def _of_other_domain(pair: Pair, apart: float) -> bool:
    """Vectors tell subjects apart in every language; what shares a tag or a theme is of one subject anyway."""
    return pair.similarity < apart and pair.source.domain.isdisjoint(pair.target.domain)


def _promise(one: tuple[Pair, float]) -> tuple[float, UUID, UUID]:
    pair, overlap = one
    return -strength_of(pair, overlap), pair.source.id, pair.target.id


def _subjects(pair: Pair) -> str:
    mine, theirs = (next(iter(piece.themes), "") for piece in (pair.source, pair.target))
    return f"“{mine}” and “{theirs}”" if mine and theirs and mine != theirs else "Two different subjects"
