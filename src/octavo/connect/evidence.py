"""Choose the quotes of a connection: the two sentences that have the most words in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from octavo.connect.claims import Claim, read_claims
from octavo.connect.engine_types import ComparableChunk, Span
from octavo.connect.english_words import weigh
from octavo.core.languages import primary_language
from octavo.language.languages import ENGLISH
from octavo.language.sentences import split_sentences

MOST_QUOTED = 400


@dataclass(frozen=True, slots=True)
class ClaimCache:
    """Parses each chunk into claims once, no matter how many pairs it is part of."""

    _claims: dict[UUID, list[Claim]] = field(default_factory=dict[UUID, list[Claim]])
    _places: dict[UUID, dict[str, list[int]]] = field(default_factory=dict[UUID, dict[str, list[int]]])

    def claims(self, chunk: ComparableChunk) -> list[Claim]:
        if chunk.id not in self._claims:
            self._claims[chunk.id] = read_claims(chunk.content)
        return self._claims[chunk.id]

    def places(self, chunk: ComparableChunk) -> dict[str, list[int]]:
        """Map every root in a chunk to the indexes of the claims that contain it."""
        if chunk.id not in self._places:
            places = self._places[chunk.id] = {}
            for place, claim in enumerate(self.claims(chunk)):
                for one in claim.roots:
                    places.setdefault(one, []).append(place)
        return self._places[chunk.id]

    def is_supported(self, chunk: ComparableChunk) -> bool:
        """Whether the contradiction rules apply to the chunk: its language must be English or unknown."""
        return primary_language(chunk.language) in {None, ENGLISH}


def shared_quotes(source: ComparableChunk, target: ComparableChunk, claim_cache: ClaimCache) -> tuple[Span, Span]:
    """The two sentences that share the most words or, if none do, the first sentence of each chunk."""
    best, most = (None, None), 0.0
    for mine in claim_cache.claims(source):
        for theirs in claim_cache.claims(target):
            shared = mine.roots & theirs.roots
            if not shared:
                continue
            weight = sum(map(weigh, shared))
            score = weight * weight / (1 + mine.weight + theirs.weight)
            if score > most:
                best, most = (mine, theirs), score
    mine, theirs = best
    return quote_of(source, mine), quote_of(target, theirs)


def quote_of(chunk: ComparableChunk, claim: Claim | None) -> Span:
    """The sentence of a claim, cut at a word boundary if it is very long."""
    text = chunk.content
    return shorten(text, *((claim.start, claim.end) if claim else next(split_sentences(text), (0, len(text)))))


def shorten(text: str, start: int, end: int) -> Span:
    """The range, cut at a word boundary if it is too long for a quote."""
    if end - start > MOST_QUOTED:
        space = text.rfind(" ", start + 1, start + MOST_QUOTED)
        end = space if space > 0 else start + MOST_QUOTED
    return Span(start, end)
