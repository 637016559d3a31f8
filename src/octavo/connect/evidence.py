"""What is quoted of two passages that have to do with each other: the sentences that have most in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from octavo.connect.claims import Claim, read_claims
from octavo.connect.contract import Piece, Span
from octavo.connect.roots import weigh
from octavo.language.languages import ENGLISH
from octavo.language.sentences import split

MOST_QUOTED = 400


@dataclass(frozen=True, slots=True)
class Readings:
    """Passages are read once, however many pairs they are part of."""

    _claims: dict[UUID, list[Claim]] = field(default_factory=dict[UUID, list[Claim]])
    _places: dict[UUID, dict[str, list[int]]] = field(default_factory=dict[UUID, dict[str, list[int]]])

    def claims(self, piece: Piece) -> list[Claim]:
        if piece.id not in self._claims:
            self._claims[piece.id] = read_claims(piece.content)
        return self._claims[piece.id]

    def places(self, piece: Piece) -> dict[str, list[int]]:
        """All roots of a passage, and which of its claims have each."""
        if piece.id not in self._places:
            places = self._places[piece.id] = {}
            for place, claim in enumerate(self.claims(piece)):
                for one in claim.roots:
                    places.setdefault(one, []).append(place)
        return self._places[piece.id]

    def is_understood(self, piece: Piece) -> bool:
        """Rules for what contradicts what are those of English."""
        return piece.language in {None, ENGLISH}


def shared_quotes(source: Piece, target: Piece, readings: Readings) -> tuple[Span, Span]:
    """The two sentences that have most words in common, or the first of each."""
    best, most = (None, None), 0.0
    for mine in readings.claims(source):
        for theirs in readings.claims(target):
            shared = mine.roots & theirs.roots
            if not shared:
                continue
            weight = sum(map(weigh, shared))
            score = weight * weight / (1 + mine.weight + theirs.weight)
            if score > most:
                best, most = (mine, theirs), score
    mine, theirs = best
    return quote_of(source, mine), quote_of(target, theirs)


def quote_of(piece: Piece, claim: Claim | None) -> Span:
    """A sentence, cut at the end of a word where it is very long."""
    text = piece.content
    start, end = (claim.start, claim.end) if claim else next(split(text), (0, len(text)))
    if end - start > MOST_QUOTED:
        space = text.rfind(" ", start + 1, start + MOST_QUOTED)
        end = space if space > 0 else start + MOST_QUOTED
    return Span(start, end)
