"""Finds chunks with similar content, by the cosine similarity of their vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from octavo.connect.evidence import ChunkPair, DetectedConnection, SentenceCache, SharedQuotes, shared_quotes
from octavo.language.embedding import NAME as LOCAL_MODEL
from octavo.records.search import Engine

# Most connections per source chunk.
MOST_KEPT = 10
MOST_NAMED = 3
# From this share of common word weight on, two sentences have a similar wording.
SIMILAR_WORDING = 0.5


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits for the cosine similarity of two chunks.

    They depend on the embedding model. Chunks with at least `similar` are similar. Chunks with at least `related` are
    about the same subject and may contradict each other. Chunks below `apart` are about different subjects, so that
    shared concepts may be a bridge. Two documents are about the same subject if the similarity of their mean vectors is
    at least `same_domain`.
    """

    similar: float
    related: float
    apart: float
    same_domain: float


# Measured in docs/decisions/0018-connections.md. Typical similarities differ between models.
BY_MODEL = {LOCAL_MODEL: Thresholds(similar=0.65, related=0.35, apart=0.5, same_domain=0.55)}
# For models that were not measured: higher, because missing connections are better than many wrong ones.
UNKNOWN = Thresholds(similar=0.75, related=0.5, apart=0.6, same_domain=0.65)


def thresholds_of(model: str) -> Thresholds:
    return BY_MODEL.get(model, UNKNOWN)


def find_similar(pairs: Iterable[ChunkPair], threshold: float, sentences: SentenceCache) -> list[DetectedConnection]:
    """Connect each source chunk with the chunks that are most similar to it.

    Chunks without a sentence are skipped, because all tables of numbers have similar vectors.
    """
    kept: Counter[UUID] = Counter()
    connections: list[DetectedConnection] = []
    for pair in sorted(pairs, key=lambda pair: (-pair.similarity, pair.source.id, pair.target.id)):
        if pair.similarity < threshold:
            break
        has_sentences = sentences.sentences(pair.source) and sentences.sentences(pair.target)
        if has_sentences and kept[pair.source.id] < MOST_KEPT:
            kept[pair.source.id] += 1
            connections.append(_connect(pair, sentences))
    return connections


def _connect(pair: ChunkPair, sentences: SentenceCache) -> DetectedConnection:
    quotes = shared_quotes(pair.source, pair.target, sentences)
    strength = round(min(max(pair.similarity, 0.0), 1.0), 3)
    return DetectedConnection(Engine.SIMILARITY, pair, strength, quotes.mine, quotes.theirs, _what_is_similar(quotes))


def _what_is_similar(quotes: SharedQuotes) -> str:
    """Describe what two quotes have in common: numbers, wording, or only their subject."""
    if quotes.figures:
        return f"Same numbers: {', '.join(quotes.figures[:MOST_NAMED])}."
    return "Similar wording." if quotes.overlap >= SIMILAR_WORDING else "Similar subject."


def shared_concepts(pair: ChunkPair) -> list[str]:
    """Return the concepts that both chunks have, the most important first."""
    theirs = {concept.lower(): weight for concept, weight in pair.target.concepts.items()}
    mine = {concept: weight for concept, weight in pair.source.concepts.items() if concept.lower() in theirs}
    return sorted(mine, key=lambda concept: (-mine[concept] - theirs[concept.lower()], concept))
