"""What a passage is about, by counting: no model is asked, which would take ten times as long as embedding it.

A phrase weighs as much as its words do: how often they stand in the passage, how rare they are in English, and in how
few of the document's passages they are. It counts where it stands alone, not as a part of a longer one, and more near
the beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log, sqrt

from octavo.language.outputs import MOST_CONCEPTS, Concept
from octavo.language.phrases import Phrases, Stems, parts_of
from octavo.language.words import rarity

# Half of a word's weight does not depend on the other passages: what a whole document is about is a concept too.
_OWN = 0.5
# Less than one, so that a word that is repeated does not drown all others.
_REPEATED = 0.7
_MOST_CHARACTERS = 80


class Weights:
    """How much each word of a document tells, by how many of its passages have it."""

    def __init__(self, passages: Sequence[Phrases], language: str | None) -> None:
        self._is_english = language == "en"
        self._count = len(passages)
        self._passages_with: Counter[str] = Counter(stem for phrases in passages for stem in phrases.stems)

    def weigh(self, stem: str) -> float:
        scarce = log((1 + self._count) / max(self._passages_with[stem], 1)) / log(1 + self._count)
        return (rarity(stem) ** 2 if self._is_english else 1) * (_OWN + (1 - _OWN) * scarce)


def score(phrases: Phrases, weights: Weights) -> dict[Stems, float]:
    """A score for each phrase that stands somewhere alone."""
    inside: Counter[Stems] = Counter()
    for phrase, seen in phrases.seen.items():
        for part in parts_of(phrase):
            inside[part] = max(inside[part], seen.count)
    words = {stem: weights.weigh(stem) * log(1 + count) for stem, count in phrases.stems.items()}
    return {
        phrase: alone**_REPEATED
        * sum(words[stem] for stem in phrase)
        / sqrt(len(phrase))
        / (1 + seen.first / phrases.runs)
        for phrase, seen in phrases.seen.items()
        if (alone := seen.count - inside[phrase]) > 0 and len(seen.form) <= _MOST_CHARACTERS
    }


def choose(scores: Mapping[Stems, float], most: int, *, apart: bool = False) -> list[Stems]:
    """The best ones, none of which only repeats a better one; with `apart` none is a better one with more words."""
    size = min if apart else max
    chosen: list[Stems] = []
    for phrase in sorted(scores, key=lambda phrase: (-scores[phrase], phrase)):
        own = {*phrase}
        if not any(own <= {*other} or 2 * len(own & {*other}) > size(len(own), len(other)) for other in chosen):
            chosen.append(phrase)
        if len(chosen) == most:
            break
    return chosen


def name_concepts(phrases: Phrases, scores: Mapping[Stems, float]) -> list[tuple[Stems, Concept]]:
    """The most important one has an importance of 1."""
    chosen = choose(scores, MOST_CONCEPTS)
    best = scores[chosen[0]] if chosen else 1.0
    return [
        (phrase, Concept(text=phrases.seen[phrase].form, importance=round(scores[phrase] / best, 3)))
        for phrase in chosen
        if best > 0
    ]
