"""Passages that say the same, by their vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from octavo.connect.contract import Engine, Found, Pair
from octavo.connect.evidence import Readings, shared_quotes

# Of one passage.
MOST_KEPT = 10
MOST_NAMED = 3


def find_similar(pairs: Iterable[Pair], threshold: float, readings: Readings) -> list[Found]:
    """The nearest of each passage."""
    kept: Counter[UUID] = Counter()
    found: list[Found] = []
    for pair in sorted(pairs, key=lambda pair: (-pair.similarity, pair.source.id, pair.target.id)):
        if pair.similarity < threshold:
            break
        if kept[pair.source.id] < MOST_KEPT:
            kept[pair.source.id] += 1
            found.append(_connect(pair, readings))
    return found


def _connect(pair: Pair, readings: Readings) -> Found:
    mine, theirs = shared_quotes(pair.source, pair.target, readings)
    shared = shared_concepts(pair)
    about = f"Both are about {', '.join(shared[:MOST_NAMED])}." if shared else "Both say much the same."
    strength = round(min(max(pair.similarity, 0.0), 1.0), 3)
    return Found(Engine.SIMILARITY, pair, strength, mine, theirs, about)


def shared_concepts(pair: Pair) -> list[str]:
    """What both name, the most important first."""
    theirs = {concept.lower(): weight for concept, weight in pair.target.concepts.items()}
    mine = {concept: weight for concept, weight in pair.source.concepts.items() if concept.lower() in theirs}
    return sorted(mine, key=lambda concept: (-mine[concept] - theirs[concept.lower()], concept))
