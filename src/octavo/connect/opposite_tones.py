"""Finds pairs of chunks that share a concept but have opposite tones, for a model to judge. Works in any language.

Concepts and tones come from the descriptions of the chunks. They show that two chunks may disagree, not that they do.
So none of these pairs is kept unless a model confirms the contradiction.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from uuid import UUID

from octavo.connect.contradiction import LEAST_TONE, are_opposed
from octavo.connect.engine_types import ChunkPair, ComparableChunk, DetectedConnection, Span
from octavo.connect.evidence import MOST_QUOTED, ClaimCache, shorten
from octavo.connect.similarity import shared_concepts
from octavo.language.sentences import split_sentences
from octavo.language.tone import polarity_of
from octavo.records.search import Engine, Status

_MARKUP = ("#", "|", "```")


def find_opposite_tones(
    pairs: Iterable[ChunkPair], claim_cache: ClaimCache, known: Container[tuple[UUID, UUID]] = ()
) -> list[DetectedConnection]:
    """Find pairs for the model. `known` are the pairs of chunks in which rules already found a contradiction."""
    return [
        _connect(pair, concept, claim_cache)
        for pair in pairs
        if (pair.source.id, pair.target.id) not in known
        and are_opposed(pair.source.polarity or 0.0, pair.target.polarity or 0.0, LEAST_TONE)
        and (concept := _shared_concept(pair))
    ]


def _shared_concept(pair: ChunkPair) -> str | None:
    """The most important shared concept, preferably one that both chunks contain literally."""
    shared = shared_concepts(pair)
    texts = [chunk.content.casefold() for chunk in (pair.source, pair.target)]
    literal = (concept for concept in shared if all(concept.casefold() in text for text in texts))
    return next(literal, shared[0] if shared else None)


def _connect(pair: ChunkPair, concept: str, claim_cache: ClaimCache) -> DetectedConnection:
    return DetectedConnection(
        Engine.CONTRADICTION,
        pair,
        round(0.5 + 0.4 * _promise(pair, concept), 3),
        _quote(pair.source, concept, claim_cache),
        _quote(pair.target, concept, claim_cache),
        f"One speaks well of {concept}, the other does not.",
        Status.POSSIBLE,
        detail={"kind": "polarity"},
    )


def _promise(pair: ChunkPair, concept: str) -> float:
    """How promising a pair is, up to 1: the importance of the concept for both chunks times the weaker tone."""
    weights = [
        {name.casefold(): weight for name, weight in chunk.concepts.items()}.get(concept.casefold(), 0.0)
        for chunk in (pair.source, pair.target)
    ]
    tones = (abs(pair.source.polarity or 0.0), abs(pair.target.polarity or 0.0))
    return min(*weights, 1.0) * min(*tones, 1.0)


def _quote(chunk: ComparableChunk, concept: str, claim_cache: ClaimCache) -> Span:
    """Quote the sentence about the concept that best shows the tone of the chunk, and as many next sentences as fit."""
    text = chunk.content
    sentences = [one for one in split_sentences(text) if not text.startswith(_MARKUP, one[0])]
    if not sentences:
        return shorten(text, 0, len(text))
    about = [n for n, (start, end) in enumerate(sentences) if concept.casefold() in text[start:end].casefold()] or [0]
    best = about[0]
    if claim_cache.is_supported(chunk):
        sign = 1 if (chunk.polarity or 0.0) > 0 else -1
        best = max(about, key=lambda n: sign * polarity_of(text[slice(*sentences[n])]))
    start = sentences[best][0]
    end = max(end for _, end in sentences[best:] if end - start <= MOST_QUOTED or end == sentences[best][1])
    return shorten(text, start, end)
